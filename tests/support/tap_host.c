/* A program that runs QNN, of the kinds that the tap meets. The tests build it with the machine's C compiler; it needs no vendor
 * header (the records below are declared by hand from the measured layout).
 *
 *     tap_host BACKEND.so MODE [COUNT]
 *
 * It composes a small graph of adds and a relu, executes it, and prints a checksum of the result. MODE:
 *   plain     COUNT executions
 *   threads   COUNT executions on each of 16 threads, over 4 graphs
 *   async     COUNT executions through graphExecuteAsync if the backend has it
 *   profile   COUNT executions with a profile handle of its own, whose events it reads and counts
 *   contexts  COUNT contexts, one after another, each with a graph that is executed once
 *   two       COUNT executions on two backends in turns, BACKEND and HOST_SECOND
 *   binary    creates a context binary, writes it to HOST_BINARY, loads it and executes its graph COUNT times
 *   list      contextCreateFromBinaryListAsync with COUNT such binaries (none: an empty list); executes each graph once
 *   many      COUNT graphs in one context, none executed but the last
 *   huge      composes one graph of COUNT ops, and executes it once
 *   churn     eight threads make a context and a graph, execute it three times and free it, COUNT times each, while the program
 *             forks twenty children that execute a graph of their parent's
 *   stack     COUNT executions on a thread with the smallest possible stack; the graph is composed on one of 64 KiB
 *   nofile    lowers the limit of open files to those it has, then as `plain`
 *   fork      a fork without exec executes COUNT times, then the parent does
 *   children  COUNT children are started that run this program in `plain`
 *   reopen    opens and closes the backend library COUNT times, executing once each time
 *   refuse    asks the backend about an op that it lacks
 *   closefds  closes all descriptors from 3 on, opens a file of its own, then as `plain`
 *   closeagain  COUNT times: closes all descriptors from 3 on, executes ten times, and waits 50 ms
 *   crash     COUNT executions, then a segmentation fault
 *   kill      COUNT executions, then SIGKILL
 *   exec      COUNT executions, then becomes this program in `plain`
 *   exit7     COUNT executions, then exit code 7 through _exit
 *   log       COUNT executions on a backend that logs to a callback of its own at level 2; counts the lines
 *   bench     COUNT executions through the tap (BACKEND is the tap in a backend's place) and past it (BENCH_REAL is that
 *             backend), in turns
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef void *handle;
typedef struct { uint32_t definition, encoding; uint64_t data[4]; } quantize;
typedef struct { void *data; uint32_t size; } buffer;
typedef struct {
    uint32_t id;
    const char *name;
    uint32_t kind, format, dtype;
    quantize q;
    uint32_t rank;
    uint32_t *dims;
    uint32_t mem;
    buffer buf;
    uint8_t *dynamic;
    struct { uint32_t kind, a, b; } sparse;
    uint8_t produced;
} body;
typedef struct { uint32_t version; body b; } tensor;
typedef struct {
    uint32_t version;
    const char *name, *package, *type;
    uint32_t params;
    void *param;
    uint32_t ins;
    tensor *in;
    uint32_t outs;
    tensor *out;
} op;
typedef struct { uint32_t id; const char *name; uint32_t core[3], backend[3]; void *slot[128]; } provider;
typedef uint64_t (*get_providers)(const provider ***, uint32_t *);

#define CALL(p, n, ...) ((uint64_t(*)())(p)->slot[n])(__VA_ARGS__)
enum { BACKEND_CREATE = 1, VALIDATE = 7, BACKEND_FREE = 8, CONTEXT_CREATE = 9, CONTEXT_FREE = 14, GRAPH_CREATE = 15,
       ADD_NODE = 18, FINALIZE = 19, EXECUTE = 21, EXECUTE_ASYNC = 22, GRAPH_TENSOR = 24, LOG_CREATE = 25,
       GET_BINARY_SIZE = 11, GET_BINARY = 12, FROM_BINARY = 13, RETRIEVE = 20, PROFILE_CREATE = 28, PROFILE_EVENTS = 30, PROFILE_SUB = 31, PROFILE_FREE = 34, FROM_BINARY_LIST = 56 };

static const char *library_path;
static const provider *p;
static handle backend;
static uint32_t dims[4] = {1, 8, 8, 16};
static uint32_t elements;
static uint32_t adds = 3;
static useconds_t pause_us; /* HOST_PAUSE_US: between executions */

static void need(uint64_t code, const char *what) {
    if (code & 0xffff) {
        printf("%s failed: %llu\n", what, (unsigned long long)(code & 0xffff));
        fflush(stdout);
        exit(3);
    }
}

static tensor make_tensor(const char *name, uint32_t kind) {
    tensor t;
    memset(&t, 0, sizeof t);
    t.version = 1;
    t.b.name = name;
    t.b.kind = kind;
    t.b.dtype = 0x0232;
    t.b.q.definition = t.b.q.encoding = 0x7fffffff;
    t.b.rank = 4;
    t.b.dims = dims;
    return t;
}

typedef struct { handle graph; tensor in, out; pthread_mutex_t *lock; } model;

static uint64_t add_node(handle graph, op *o) { return ((uint64_t(*)(handle, op))p->slot[ADD_NODE])(graph, *o); }

/* x -> (x + x) + x ... -> Relu -> y */
static model compose(handle context, const char *name) {
    model m = {0};
    need(CALL(p, GRAPH_CREATE, context, name, NULL, &m.graph), "graphCreate");
    tensor x = make_tensor("x", 0), last;
    need(CALL(p, GRAPH_TENSOR, m.graph, &x), "tensorCreateGraphTensor");
    last = x;
    static char names[64][32];
    for (uint32_t i = 0; i < adds; i++) {
        snprintf(names[i], sizeof names[i], "sum_%u", i);
        tensor sum = make_tensor(names[i], 3);
        need(CALL(p, GRAPH_TENSOR, m.graph, &sum), "tensorCreateGraphTensor");
        char op_name[32];
        snprintf(op_name, sizeof op_name, "add_%u", i);
        tensor in[2] = {last, x};
        op o = {1, op_name, "qti.aisw", "ElementWiseAdd", 0, NULL, 2, in, 1, &sum};
        need(add_node(m.graph, &o), "graphAddNode");
        last = sum;
    }
    tensor y = make_tensor("y", 1);
    need(CALL(p, GRAPH_TENSOR, m.graph, &y), "tensorCreateGraphTensor");
    op o = {1, "relu", "qti.aisw", "Relu", 0, NULL, 1, &last, 1, &y};
    need(add_node(m.graph, &o), "graphAddNode");
    need(CALL(p, FINALIZE, m.graph, NULL, NULL), "graphFinalize");
    m.in = x;
    m.out = y;
    return m;
}

/* A graph of many ops: each has a constant of its own. */
static model compose_huge(handle context, long count) {
    model m = {0};
    need(CALL(p, GRAPH_CREATE, context, "huge_graph", NULL, &m.graph), "graphCreate");
    tensor x = make_tensor("x", 0), last;
    need(CALL(p, GRAPH_TENSOR, m.graph, &x), "tensorCreateGraphTensor");
    last = x;
    for (long i = 0; i < count; i++) {
        char names[3][96];
        snprintf(names[0], sizeof names[0], "model/block_%ld/layer_%ld/attention/output/add_constant", i / 12, i % 12);
        snprintf(names[1], sizeof names[1], "model/block_%ld/layer_%ld/attention/output/add_sum", i / 12, i % 12);
        snprintf(names[2], sizeof names[2], "model/block_%ld/layer_%ld/attention/output/add", i / 12, i % 12);
        tensor constant = make_tensor(names[0], 3), sum = make_tensor(names[1], i + 1 == count ? 1 : 3);
        need(CALL(p, GRAPH_TENSOR, m.graph, &constant), "tensorCreateGraphTensor");
        need(CALL(p, GRAPH_TENSOR, m.graph, &sum), "tensorCreateGraphTensor");
        tensor in[2] = {last, constant};
        op o = {1, names[2], "qti.aisw", "ElementWiseAdd", 0, NULL, 2, in, 1, &sum};
        need(add_node(m.graph, &o), "graphAddNode");
        last = sum;
    }
    need(CALL(p, FINALIZE, m.graph, NULL, NULL), "graphFinalize");
    m.in = x;
    m.out = last;
    return m;
}

static void bind_tensors(model *m, float *in, float *out) {
    for (uint32_t i = 0; i < elements; i++) in[i] = (float)(i % 97) / 7.0f - 3.0f;
    m->in.b.mem = m->out.b.mem = 0;
    m->in.b.buf = (buffer){in, elements * 4};
    m->out.b.buf = (buffer){out, elements * 4};
}

static uint64_t checksum(const float *out) {
    uint64_t sum = 1469598103934665603ull;
    for (uint32_t i = 0; i < elements * 4; i++) sum = (sum ^ ((const uint8_t *)out)[i]) * 1099511628211ull;
    return sum;
}

static uint64_t run(model m, long count, handle profile) {
    float *in = calloc(elements, 4), *out = calloc(elements, 4);
    bind_tensors(&m, in, out);
    for (long i = 0; i < count; i++) {
        /* The CPU backend gives wrong results where one graph executes on two threads at once. */
        if (m.lock) pthread_mutex_lock(m.lock);
        need(CALL(p, EXECUTE, m.graph, &m.in, 1, &m.out, 1, profile, NULL), "graphExecute");
        if (m.lock) pthread_mutex_unlock(m.lock);
        if (pause_us) usleep(pause_us);
    }
    uint64_t sum = checksum(out);
    free(in);
    free(out);
    return sum;
}

static int lines, wants_log;
static void log_line(const char *format, uint32_t level, uint64_t stamp, va_list arguments) {
    char text[512];
    vsnprintf(text, sizeof text, format, arguments);
    (void)stamp;
    /* Nothing above the requested level. */
    lines += level <= 2 ? 1 : 1000000;
}

static void open_backend(void) {
    void *library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("dlopen: %s\n", dlerror());
        exit(2);
    }
    get_providers get = (get_providers)dlsym(library, "QnnInterface_getProviders");
    const provider **list = NULL;
    uint32_t count = 0;
    need(get(&list, &count), "QnnInterface_getProviders");
    p = list[0];
    handle log = NULL;
    if (wants_log) need(CALL(p, LOG_CREATE, log_line, 2, &log), "logCreate");
    need(CALL(p, BACKEND_CREATE, log, NULL, &backend), "backendCreate");
}

static handle create_context(void) {
    handle context = NULL;
    need(CALL(p, CONTEXT_CREATE, backend, NULL, NULL, &context), "contextCreate");
    return context;
}

typedef struct { model m; long count; uint64_t sum; } job;
static void *worker(void *argument) {
    job *j = argument;
    j->sum = run(j->m, j->count, NULL);
    return NULL;
}

static void *churner(void *argument) {
    job *j = argument;
    for (long i = 0; i < j->count; i++) {
        handle context = create_context();
        model m = compose(context, "churned");
        j->sum = j->sum * 31 + run(m, 3, NULL);
        CALL(p, CONTEXT_FREE, context, NULL);
    }
    return NULL;
}

static void churn(model m, long count) {
    job jobs[8];
    pthread_t threads[8];
    uint64_t sum = 0;
    for (int i = 0; i < 8; i++) {
        jobs[i] = (job){m, count, 0};
        pthread_create(&threads[i], NULL, churner, &jobs[i]);
    }
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (!child) {
            int bad = run(m, 5, NULL) == 0;
            /* Without last words, and with them. */
            if (i < 2) _exit(bad);
            exit(bad);
        }
        int status = 0;
        waitpid(child, &status, 0);
        sum += (uint64_t)status;
        usleep(2000);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        sum = sum * 31 + jobs[i].sum;
    }
    printf("sum %016llx\n", (unsigned long long)sum);
}

typedef struct { handle context; model m; } composed;
static void *composer(void *argument) {
    composed *c = argument;
    c->m = compose(c->context, "small_stack");
    return NULL;
}

static void *on_stack(void *(*work)(void *), void *argument, size_t bytes) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    need((uint64_t)pthread_attr_setstacksize(&attributes, bytes), "pthread_attr_setstacksize");
    need((uint64_t)pthread_create(&thread, &attributes, work, argument), "pthread_create");
    pthread_join(thread, NULL);
    return argument;
}

static volatile int notified;
static void notify(void *parameter, uint64_t status) {
    if (parameter == (void *)&notified && (status & 0xffff) == 0) __atomic_add_fetch(&notified, 1, __ATOMIC_SEQ_CST);
}

/* One context of a list: version 1 has the fields behind the number, version 2 points to them. */
typedef struct { const void **configs; const void *binary; uint64_t bytes; handle profile; void *notify; void *parameter; void *callback; } listed;
typedef struct { uint32_t version; union { listed one; listed *two; } body; } listed_record;
typedef struct { handle context, graph; char name[64]; int contexts, graphs; uint64_t status; } arrived;

static void context_notify(handle context, handle graph, const char *name, uint32_t kind, void *parameter, uint64_t status) {
    arrived *a = parameter;
    if (status & 0xffff) a->status = status & 0xffff;
    if (kind == 0) {
        a->graph = graph;
        if (name) snprintf(a->name, sizeof a->name, "%s", name);
        __atomic_add_fetch(&a->graphs, 1, __ATOMIC_SEQ_CST);
    } else {
        a->context = context;
        __atomic_add_fetch(&a->contexts, 1, __ATOMIC_SEQ_CST);
    }
}

/* The binary of a context with one graph. */
static void *saved(const char *name, uint64_t *bytes, model *m) {
    handle context = NULL;
    need(CALL(p, CONTEXT_CREATE, backend, NULL, NULL, &context), "contextCreate");
    *m = compose(context, name);
    need(CALL(p, GET_BINARY_SIZE, context, bytes), "contextGetBinarySize");
    void *binary = malloc(*bytes);
    uint64_t written = 0;
    need(CALL(p, GET_BINARY, context, binary, *bytes, &written), "contextGetBinary");
    *bytes = written;
    CALL(p, CONTEXT_FREE, context, NULL);
    return binary;
}

static void list_of(long count) {
    listed_record records[64];
    listed bodies[64];
    arrived got[64];
    model m;
    const void *list[65] = {0};
    uint64_t sum = 0, bytes = 0;
    memset(got, 0, sizeof got);
    memset(bodies, 0, sizeof bodies);
    for (long i = 0; i < count && i < 64; i++) {
        char name[32];
        snprintf(name, sizeof name, "listed_%ld", i);
        bodies[i].binary = saved(strdup(name), &bytes, &m);
        bodies[i].bytes = bytes;
        bodies[i].notify = context_notify;
        bodies[i].parameter = &got[i];
        records[i].version = i % 2 ? 2 : 1;
        if (i % 2) records[i].body.two = &bodies[i];
        else records[i].body.one = bodies[i];
        list[i] = &records[i];
    }
    uint64_t code = CALL(p, FROM_BINARY_LIST, backend, NULL, count ? list : NULL, NULL, NULL);
    printf("list %llu\n", (unsigned long long)(code & 0xffff));
    if (code & 0xffff) return;
    for (long i = 0; i < count; i++) {
        for (int wait = 0; !__atomic_load_n(&got[i].contexts, __ATOMIC_SEQ_CST) && wait < 100000; wait++) usleep(100);
        char name[32];
        snprintf(name, sizeof name, "listed_%ld", i);
        printf("contexts %d, status %llu\n", got[i].contexts, (unsigned long long)got[i].status);
        if (got[i].status || !got[i].contexts) continue;
        need(CALL(p, RETRIEVE, got[i].context, name, &m.graph), "graphRetrieve");
        sum = sum * 31 + run(m, 1, NULL);
        CALL(p, CONTEXT_FREE, got[i].context, NULL);
    }
    printf("sum %016llx\n", (unsigned long long)sum);
}

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Processor time of this thread only. */
static double cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    double d = *(const double *)a - *(const double *)b;
    return d < 0 ? -1 : d > 0;
}

/* The same graph through the tap's table and through the real one, in turns. */
static void bench(model m, long count) {
    void *library = dlopen(getenv("BENCH_REAL"), RTLD_NOW | RTLD_LOCAL);
    if (!library) { printf("dlopen: %s\n", dlerror()); exit(2); }
    /* By its place in the file, because the tap answers for the name where it is preloaded. */
    get_providers get = (get_providers)dlsym(library, "QnnInterface_getProviders");
    const provider **list = NULL;
    uint32_t n = 0;
    need(get(&list, &n), "QnnInterface_getProviders");
    const provider *tables[2] = {p, list[0]};
    if (tables[0] == tables[1]) { printf("both tables are the same\n"); exit(2); }
    float *in = calloc(elements, 4), *out = calloc(elements, 4);
    bind_tensors(&m, in, out);
    double *times[2] = {malloc(sizeof(double) * (size_t)count), malloc(sizeof(double) * (size_t)count)}, sum[2] = {0, 0}, cpu[2] = {0, 0};
    for (long i = -count / 10 - 10; i < count; i++) {
        for (int turn = 0; turn < 2; turn++) {
            int which = (turn ^ (int)i) & 1;
            double cpu_begun = cpu_ns(), begun = now_ns();
            uint64_t code = ((uint64_t(*)())tables[which]->slot[EXECUTE])(m.graph, &m.in, 1, &m.out, 1, NULL, NULL);
            double taken = now_ns() - begun, cpu_taken = cpu_ns() - cpu_begun;
            need(code, "graphExecute");
            if (i >= 0) times[which][i] = taken, sum[which] += taken, cpu[which] += cpu_taken;
        }
    }
    for (int which = 0; which < 2; which++) {
        qsort(times[which], (size_t)count, sizeof(double), by_size);
        printf("%s mean_ns %.1f p50_ns %.1f p99_ns %.1f cpu_mean_ns %.1f\n", which ? "real" : "tapped", sum[which] / (double)count,
               times[which][count / 2], times[which][count * 99 / 100], cpu[which] / (double)count);
    }
}

/* HOST_MEMORY: prints the peak size of this process on stderr. */
static void tell_memory(void) {
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) if (!strncmp(line, "VmHWM:", 6)) fputs(line, stderr);
}

static int spawn(const char *self, const char *mode, const char *count) {
    pid_t child = fork();
    if (child == 0) {
        execl(self, self, library_path, mode, count, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    library_path = argv[1];
    const char *mode = argv[2];
    wants_log = !strcmp(mode, "log");
    long count = argc > 3 ? atol(argv[3]) : 10;
    if (getenv("HOST_SIZE")) dims[1] = dims[2] = (uint32_t)atoi(getenv("HOST_SIZE"));
    if (getenv("HOST_ADDS")) adds = (uint32_t)atoi(getenv("HOST_ADDS"));
    if (adds > 64) adds = 64;
    if (getenv("HOST_MEMORY")) atexit(tell_memory);
    if (getenv("HOST_PAUSE_US")) pause_us = (useconds_t)atoi(getenv("HOST_PAUSE_US"));
    elements = dims[0] * dims[1] * dims[2] * dims[3];
    char self[4096] = {0};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 2;

    if (!strcmp(mode, "reopen")) {
        for (long i = 0; i < count; i++) {
            void *library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
            open_backend();
            handle context = create_context();
            printf("sum %016llx\n", (unsigned long long)run(compose(context, "reopened"), 1, NULL));
            CALL(p, CONTEXT_FREE, context, NULL);
            CALL(p, BACKEND_FREE, backend);
            dlclose(library);
            dlclose(library);
        }
        return 0;
    }
    if (!strcmp(mode, "children")) {
        int bad = 0;
        for (long i = 0; i < count; i++) bad |= spawn(self, "plain", "5");
        return bad ? 4 : 0;
    }
    int taken = -1;
    if (!strcmp(mode, "nofile")) {
        struct rlimit few = {16, 16};
        need((uint64_t)setrlimit(RLIMIT_NOFILE, &few), "setrlimit");
    }
    if (!strcmp(mode, "closefds")) {
        open_backend();
        for (int fd = 3; fd < 4096; fd++) close(fd);
        char path[] = "/tmp/tap_host_XXXXXX";
        taken = mkstemp(path);
        for (int fd = 3; fd < 1024; fd++) if (fd != taken) dup2(taken, fd);
        unlink(path);
    } else {
        open_backend();
    }
    if (!strcmp(mode, "list")) {
        list_of(count);
        return 0;
    }
    if (!strcmp(mode, "binary")) {
        model m;
        uint64_t bytes = 0;
        void *binary = saved("kept", &bytes, &m);
        const char *path = getenv("HOST_BINARY");
        FILE *file = path ? fopen(path, "w") : NULL;
        if (file) fwrite(binary, 1, bytes, file), fclose(file);
        handle loaded = NULL;
        need(CALL(p, FROM_BINARY, backend, NULL, NULL, binary, bytes, &loaded, NULL), "contextCreateFromBinary");
        memset(binary, 0, bytes);
        free(binary);
        need(CALL(p, RETRIEVE, loaded, "kept", &m.graph), "graphRetrieve");
        printf("sum %016llx\n", (unsigned long long)run(m, count, NULL));
        CALL(p, CONTEXT_FREE, loaded, NULL);
        CALL(p, BACKEND_FREE, backend);
        return 0;
    }
    if (!strcmp(mode, "refuse")) {
        tensor x = make_tensor("x", 0), y = make_tensor("y", 1);
        op o = {1, "strange", "qti.aisw", "NoSuchOp", 0, NULL, 1, &x, 1, &y};
        printf("validate %llu\n", (unsigned long long)(((uint64_t(*)(handle, op))p->slot[VALIDATE])(backend, o) & 0xffff));
        return 0;
    }
    handle context = create_context();
    if (!strcmp(mode, "two")) {
        const provider *tables[2] = {p, NULL};
        model models[2] = {compose(context, "on_first"), {0}};
        handle first = backend;
        library_path = getenv("HOST_SECOND");
        if (!library_path) return 2;
        open_backend();
        tables[1] = p;
        if (tables[0] == tables[1]) { printf("both backends are one\n"); return 8; }
        handle other = create_context();
        models[1] = compose(other, "on_second");
        uint64_t sum = 0;
        for (long i = 0; i < count; i++) {
            for (int which = 0; which < 2; which++) {
                p = tables[which];
                sum = sum * 31 + run(models[which], 1, NULL);
            }
        }
        printf("sum %016llx\n", (unsigned long long)sum);
        CALL(p, CONTEXT_FREE, other, NULL);
        CALL(p, BACKEND_FREE, backend);
        p = tables[0];
        backend = first;
    } else if (!strcmp(mode, "contexts")) {
        uint64_t sum = 0;
        for (long i = 0; i < count; i++) {
            handle other = create_context();
            sum = run(compose(other, "short-lived"), 1, NULL);
            CALL(p, CONTEXT_FREE, other, NULL);
        }
        printf("sum %016llx\n", (unsigned long long)sum);
    } else if (!strcmp(mode, "many")) {
        model m;
        memset(&m, 0, sizeof m);
        for (long i = 0; i < count; i++) {
            char name[32];
            snprintf(name, sizeof name, "graph_%ld", i);
            m = compose(context, strdup(name));
        }
        printf("sum %016llx\n", (unsigned long long)run(m, 1, NULL));
    } else if (!strcmp(mode, "churn")) {
        churn(compose(context, "inherited"), count);
    } else if (!strcmp(mode, "stack")) {
        composed c = {context, {0}};
        on_stack(composer, &c, 64 << 10);
        job j = {c.m, count, 0};
        on_stack(worker, &j, PTHREAD_STACK_MIN);
        printf("sum %016llx\n", (unsigned long long)j.sum);
    } else if (!strcmp(mode, "huge")) {
        printf("sum %016llx\n", (unsigned long long)run(compose_huge(context, count), 1, NULL));
    } else if (!strcmp(mode, "closeagain")) {
        model m = compose(context, "main_graph");
        uint64_t sum = 0;
        for (long i = 0; i < count; i++) {
            for (int fd = 3; fd < 4096; fd++) close(fd);
            sum = sum * 31 + run(m, 10, NULL);
            usleep(50000);
        }
        printf("sum %016llx\n", (unsigned long long)sum);
    } else if (!strcmp(mode, "threads")) {
        job jobs[16];
        pthread_t threads[16];
        model models[4];
        const char *names[4] = {"graph_a", "graph_b", "graph_c", "graph_d"};
        static pthread_mutex_t locks[4];
        for (int i = 0; i < 4; i++) {
            models[i] = compose(context, names[i]);
            models[i].lock = &locks[i];
        }
        for (int i = 0; i < 16; i++) {
            jobs[i] = (job){models[i % 4], count, 0};
            pthread_create(&threads[i], NULL, worker, &jobs[i]);
        }
        uint64_t sum = 0;
        for (int i = 0; i < 16; i++) {
            pthread_join(threads[i], NULL);
            sum ^= jobs[i].sum * (uint64_t)(i + 1);
        }
        printf("sum %016llx\n", (unsigned long long)sum);
    } else if (!strcmp(mode, "async")) {
        model m = compose(context, "later");
        float *in = calloc(elements, 4), *out = calloc(elements, 4);
        bind_tensors(&m, in, out);
        long taken_on = 0;
        uint64_t code = 0;
        for (long i = 0; i < count && p->slot[EXECUTE_ASYNC]; i++) {
            code = CALL(p, EXECUTE_ASYNC, m.graph, &m.in, 1, &m.out, 1, NULL, NULL, notify, (void *)&notified);
            if (code & 0xffff) break;
            taken_on++;
            for (int wait = 0; notified < taken_on && wait < 20000; wait++) usleep(100);
            if (notified < taken_on) break;
        }
        printf("async %ld of %ld, notified %d, code %llu, sum %016llx\n", taken_on, count, notified, (unsigned long long)(code & 0xffff),
               (unsigned long long)(taken_on ? checksum(out) : 0));
    } else if (!strcmp(mode, "profile")) {
        model m = compose(context, "profiled");
        handle profile = NULL;
        need(CALL(p, PROFILE_CREATE, backend, 2, &profile), "profileCreate");
        uint64_t sum = 0;
        uint32_t all = 0;
        for (long i = 0; i < count; i++) {
            sum = run(m, 1, profile);
            const uint64_t *ids = NULL, *children = NULL;
            uint32_t n = 0, of = 0;
            need(CALL(p, PROFILE_EVENTS, profile, &ids, &n), "profileGetEvents");
            for (uint32_t e = 0; e < n; e++) {
                need(CALL(p, PROFILE_SUB, ids[e], &children, &of), "profileGetSubEvents");
                all += 1 + of;
            }
        }
        printf("events %u, sum %016llx\n", all, (unsigned long long)sum);
        CALL(p, PROFILE_FREE, profile);
    } else if (!strcmp(mode, "fork")) {
        model m = compose(context, "shared");
        printf("sum %016llx\n", (unsigned long long)run(m, 2, NULL));
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            /* A fork has none of a real backend's threads: only a backend without threads can execute here. */
            printf("sum %016llx\n", (unsigned long long)run(m, count, NULL));
            exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        printf("sum %016llx\n", (unsigned long long)run(m, count, NULL));
        if (status) return 5;
    } else {
        model m = compose(context, "main_graph");
        if (!strcmp(mode, "bench")) {
            bench(m, count);
            return 0;
        }
        printf("sum %016llx\n", (unsigned long long)run(m, count, NULL));
        if (!strcmp(mode, "log")) printf("lines %d\n", lines);
        if (taken >= 0) {
            printf("file %ld bytes\n", (long)lseek(taken, 0, SEEK_END));
        }
        fflush(stdout);
        if (!strcmp(mode, "crash")) raise(SIGSEGV);
        if (!strcmp(mode, "kill")) raise(SIGKILL);
        if (!strcmp(mode, "exit7")) _exit(7);
        if (!strcmp(mode, "exec")) {
            execl(self, self, library_path, "plain", "5", (char *)NULL);
            return 6;
        }
    }
    CALL(p, CONTEXT_FREE, context, NULL);
    CALL(p, BACKEND_FREE, backend);
    return 0;
}
