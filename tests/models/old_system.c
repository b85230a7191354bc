/* A system library of system API 1.MINOR with an empty table: it has no profile serializer.
 * Offsets: version at 16, the table from 32 on. */
#include <stdint.h>

uint64_t QnnSystemInterface_getProviders(const void ***list, uint32_t *count) {
    static uint64_t record[4 + 16];
    static const void *providers[1] = {record};
    uint32_t *version = (uint32_t *)&record[2];
    version[0] = 1;
    version[1] = MINOR;
    *list = providers;
    *count = 1;
    return 0;
}
