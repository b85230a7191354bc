/* A backend for what no available real one does: asynchronous executions that notify, executions in a fork, any latency,
 * failures on request. It computes nothing. The tests build it with the machine's C compiler.
 *
 *     FAKE_US      how long an execution takes, busy, microseconds (default 0)
 *     FAKE_CPU_US  how much processor time it takes, whatever else is running (default 0)
 *     FAKE_FAIL    N: every N-th execution fails with 1007 (default never)
 *
 * Built with -DDEVICE_CODE=n, deviceCreate fails with n and logs DEVICE_LINE, a string, as an error.
 */
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef void *handle;
typedef struct { uint32_t id; const char *name; uint32_t core[3], backend[3]; void *slot[72]; } provider;
typedef struct { uint64_t words[10]; } op;

static uint64_t next_handle = 0x1000;
static uint64_t made(handle *out) { *out = (handle)__atomic_add_fetch(&next_handle, 16, __ATOMIC_SEQ_CST); return 0; }

static uint64_t busy(void) {
    static long count;
    const char *us = getenv("FAKE_US"), *fail = getenv("FAKE_FAIL");
    long time_us = us ? atol(us) : 0, every = fail ? atol(fail) : 0;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    if (time_us) do clock_gettime(CLOCK_MONOTONIC, &b);
    while ((b.tv_sec - a.tv_sec) * 1000000 + (b.tv_nsec - a.tv_nsec) / 1000 < time_us);
    const char *cpu = getenv("FAKE_CPU_US");
    long cpu_us = cpu ? atol(cpu) : 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    if (cpu_us) do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    while ((b.tv_sec - a.tv_sec) * 1000000 + (b.tv_nsec - a.tv_nsec) / 1000 < cpu_us);
    return every && __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST) % every == 0 ? 1007 : 0;
}

static uint64_t backend_create(handle log, const void **c, handle *out) { (void)log, (void)c; return made(out); }
static uint64_t free_one(handle h) { (void)h; return 0; }
static uint64_t context_create(handle b, handle d, const void **c, handle *out) { (void)b, (void)d, (void)c; return made(out); }
static uint64_t context_free(handle c, handle p) { (void)c, (void)p; return 0; }
static char last_name[64];
static uint64_t graph_create(handle c, const char *n, const void **g, handle *out) {
    (void)c, (void)g;
    strncpy(last_name, n, sizeof last_name - 1);
    return made(out);
}
static uint64_t add_node(handle g, op o) { (void)g, (void)o; return 0; }
static uint64_t finalize(handle g, handle p, handle s) { (void)g, (void)p, (void)s; return 0; }
static uint64_t tensor_create(handle g, void *t) {
    (void)g;
    static uint32_t id;
    ((uint32_t *)t)[2] = __atomic_add_fetch(&id, 1, __ATOMIC_SEQ_CST);
    return 0;
}

/* One event per execution, with two ops. */
static uint64_t profile_create(handle b, uint32_t level, handle *out) { (void)b, (void)level; return made(out); }
static const uint64_t roots[1] = {1}, ops[2] = {2, 3};
static uint64_t get_events(handle p, const uint64_t **ids, uint32_t *n) { (void)p; *ids = roots; *n = 1; return 0; }
static uint64_t get_sub(uint64_t id, const uint64_t **ids, uint32_t *n) { *ids = ops; *n = id == 1 ? 2 : 0; return 0; }
static uint64_t get_data(uint64_t id, struct { uint32_t kind, unit; uint64_t value; const char *name; } *data) {
    data->kind = id == 1 ? 400 : 404;
    data->unit = 1;
    data->value = id * 10;
    data->name = id == 1 ? "EXECUTE" : id == 2 ? "add_0" : "relu";
    return 0;
}

static uint64_t execute(handle g, const void *i, uint32_t n, void *o, uint32_t m, handle p, handle s) {
    (void)g, (void)i, (void)n, (void)o, (void)m, (void)p, (void)s;
    return busy();
}

typedef struct { void (*notify)(void *, uint64_t); void *parameter; } later;
static void *run_later(void *argument) {
    later l = *(later *)argument;
    free(argument);
    uint64_t code = busy();
    if (l.notify) l.notify(l.parameter, code);
    return NULL;
}
static uint64_t execute_async(handle g, const void *i, uint32_t n, void *o, uint32_t m, handle p, handle s,
                              void (*notify)(void *, uint64_t), void *parameter) {
    (void)g, (void)i, (void)n, (void)o, (void)m, (void)p, (void)s;
    later *l = malloc(sizeof *l);
    *l = (later){notify, parameter};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_later, l)) return 1007;
    pthread_detach(thread);
    return 0;
}

/* Binaries are 100 bytes: the graph's name, repeated. */
enum { BINARY = 100 };
static uint64_t binary_size(handle c, uint64_t *n) { (void)c; *n = BINARY; return 0; }
static uint64_t binary_of(handle c, char *to, uint64_t room, uint64_t *n) {
    (void)c;
    for (int i = 0; i < BINARY && (uint64_t)i < room; i++) to[i] = last_name[i % (strlen(last_name) + 1)];
    *n = BINARY;
    return 0;
}
static uint64_t from_binary(handle b, handle d, const void **c, const void *data, uint64_t n, handle *out, handle p) {
    (void)b, (void)d, (void)c, (void)data, (void)n, (void)p;
    return made(out);
}
/* The only graph of a loaded context. */
static handle graph_of(handle context) { return (char *)context + 8; }
static uint64_t retrieve(handle c, const char *n, handle *out) { (void)n; *out = graph_of(c); return 0; }

/* A list: another thread notifies about each graph first, then about its context; an empty list is an error. */
typedef struct { const void **configs; const void *binary; uint64_t bytes; handle profile;
                 void (*notify)(handle, handle, const char *, uint32_t, void *, uint64_t); void *parameter; void *callback; } listed;
typedef struct { uint32_t version; union { listed one; listed *two; } body; } listed_record;
static void *list_later(void *argument) {
    const listed_record **all = argument;
    for (int i = 0; all[i]; i++) {
        listed of = {0};
        if (all[i]->version == 2) of = *all[i]->body.two;
        else memcpy(&of, &all[i]->body.one, offsetof(listed, callback));
        usleep(2000);
        handle context;
        made(&context);
        of.notify(context, graph_of(context), of.binary, 0, of.parameter, 0);
        of.notify(context, NULL, NULL, 1, of.parameter, 0);
    }
    return NULL;
}
static uint64_t from_list(handle b, handle d, const void **p, const void **c, handle s) {
    (void)b, (void)d, (void)c, (void)s;
    if (!p || !p[0]) return 5001;
    pthread_t thread;
    if (pthread_create(&thread, NULL, list_later, (void *)p)) return 1007;
    pthread_detach(thread);
    return 0;
}

#ifdef DEVICE_CODE
typedef void (*log_callback)(const char *, uint32_t, uint64_t, va_list);
static log_callback host_log;
static uint64_t log_create(log_callback callback, uint32_t level, handle *out) {
    (void)level;
    host_log = callback;
    return made(out);
}
static void say(const char *format, ...) {
    va_list words;
    va_start(words, format);
    host_log(format, 1, 0, words);
    va_end(words);
}
static uint64_t device_create(handle log, const void **c, handle *out) {
    (void)log, (void)c, (void)out;
    say("%s", DEVICE_LINE);
    return DEVICE_CODE;
}
#endif

static provider record = {3, "FAKE", {2, 36, 0}, {1, 0, 0}, {0}};
uint64_t QnnInterface_getProviders(const provider ***list, uint32_t *count) {
    static const provider *all[1] = {&record};
    void **s = record.slot;
    s[1] = backend_create, s[8] = free_one, s[9] = context_create, s[11] = binary_size, s[12] = binary_of, s[13] = from_binary;
    s[14] = context_free, s[15] = graph_create, s[20] = retrieve;
    s[18] = add_node, s[19] = finalize, s[21] = execute, s[22] = execute_async, s[24] = tensor_create;
    s[28] = profile_create, s[30] = get_events, s[31] = get_sub, s[32] = get_data, s[34] = free_one, s[56] = from_list;
#ifdef DEVICE_CODE
    s[25] = log_create, s[27] = free_one, s[40] = device_create;
#endif
    *list = all;
    *count = 1;
    return 0;
}
