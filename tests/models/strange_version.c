/* A backend library that lends the real one's functions under a core API version of its own choosing.
 * Built with -DREAL="path" and -DMINOR=number. Offsets: major at 16, minor at 20, the table from 40 on. */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#define SLOTS 72

typedef uint64_t (*get_providers)(const void ***list, uint32_t *count);

uint64_t QnnInterface_getProviders(const void ***list, uint32_t *count) {
    static uint64_t record[5 + SLOTS + 1];
    static const void *providers[1] = {record};
    void *library = dlopen(REAL, RTLD_NOW | RTLD_LOCAL);
    if (!library) return 1;
    get_providers real = (get_providers)dlsym(library, "QnnInterface_getProviders");
    const void **found;
    uint32_t found_count;
    if (!real || real(&found, &found_count) != 0) return 1;
    memcpy(record, found[0], 40 + 8 * SLOTS);
    /* A word that is no pointer to code ends the table. */
    record[5 + SLOTS] = 7;
    ((uint32_t *)record)[5] = MINOR;
    *list = providers;
    *count = 1;
    return 0;
}
