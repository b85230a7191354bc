/* A program that runs a model library on QNN and prints what each call returned, interleaved with the backend's log.
 *
 *   host BACKEND_LIBRARY LOG_LEVEL [MODEL_LIBRARY INFERENCES [SAVED_BINARY]]
 *   host BACKEND_LIBRARY LOG_LEVEL binary FILE INFERENCES
 *
 * HOST_VOTES    requests burst power before it creates a context
 * HOST_PROFILE  prints the profile of each execution: `event NAME VALUE`
 *
 * Records are declared by memory layout, as far as they are used. The model is one of tests/models with one input and one output.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  BACKEND_CREATE = 1, GET_BUILD_ID = 4, CONTEXT_CREATE = 9, BINARY_SIZE = 11, GET_BINARY = 12, FROM_BINARY = 13,
  CONTEXT_FREE = 14, FINALIZE = 19, RETRIEVE = 20, EXECUTE = 21, LOG_CREATE = 25,
  PROFILE_CREATE = 28, PROFILE_EVENTS = 30, PROFILE_SUB_EVENTS = 31, PROFILE_EVENT = 32, GET_INFRASTRUCTURE = 39, DEVICE_CREATE = 40, DEVICE_FREE = 43, SLOTS = 62
};

typedef struct {
  uint8_t head[40];
  void *entry[SLOTS];
} provider;

typedef struct {
  void *entry[SLOTS];
} table_rec;

typedef struct {
  uint32_t record_version, unused0;
  uint32_t number, unused1;
  const char *label;
  uint32_t use, layout, element, unused2;
  uint32_t quant_defined, quant_kind;
  float scale;
  int32_t offset;
  uint8_t quant_rest[24];
  uint32_t dim_count, unused3;
  uint32_t *dims;
  uint32_t memory_kind, unused4;
  uint8_t *bytes;
  uint32_t byte_count, unused5;
  uint8_t rest[24];
} tensor_rec;
_Static_assert(sizeof(tensor_rec) == 144, "tensor record");

typedef struct {
  void *handle;
  char *label;
  tensor_rec *ins;
  uint32_t in_count, unused0;
  tensor_rec *outs;
  uint32_t out_count, unused1;
} graph_rec;

typedef uint64_t (*two_fn)(void *, void *);
typedef uint64_t (*three_fn)(void *, void *, void *);
typedef uint32_t (*compose_fn)(void *backend, table_rec table, void *context, const void **settings, uint32_t count,
                               graph_rec ***infos, uint32_t *info_count, bool debug, void *callback, uint32_t level);

static const char *levels[] = {"", "ERROR", "WARNING", "INFO", "VERBOSE", "DEBUG"};

static void logged(const char *format, uint32_t level, uint64_t stamp, va_list arguments) {
  (void)stamp;
  printf("[ %s ] ", level < 6 ? levels[level] : "?");
  vprintf(format, arguments);
  printf("\n");
}

static uint64_t told(const char *call, uint64_t code) {
  code &= 0xffff;
  if (code == 0) {
    printf("%s: ok 0\n", call);
  } else {
    printf("%s: error %lu (0x%lx)\n", call, (unsigned long)code, (unsigned long)code);
  }
  return code;
}

static void *contents(const char *path, uint64_t *bytes) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    return NULL;
  }
  fseek(file, 0, SEEK_END);
  *bytes = (uint64_t)ftell(file);
  rewind(file);
  void *all = malloc(*bytes + 1);
  *bytes = fread(all, 1, *bytes, file);
  fclose(file);
  return all;
}

typedef struct {
  uint32_t kind, unit;
  uint64_t value;
  const char *label;
} event_rec;

/* The events of a profile or below one of them. */
static void told_events(void **entry, void *of, int slot, int depth) {
  const uint64_t *ids = NULL;
  uint32_t count = 0;
  if (((uint64_t (*)(void *, const uint64_t **, uint32_t *))entry[slot])(of, &ids, &count) != 0 || depth > 3) {
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    event_rec event = {0};
    if (((uint64_t (*)(uint64_t, event_rec *))entry[PROFILE_EVENT])(ids[i], &event) == 0) {
      printf("event %s %lu\n", event.label == NULL ? "?" : event.label, (unsigned long)event.value);
    }
    told_events(entry, (void *)ids[i], PROFILE_SUB_EVENTS, depth + 1);
  }
}

static void *profile;

static int execute(void **entry, void *graph, graph_rec *info, long inferences) {
  for (long i = 0; i < inferences; i++) {
    typedef uint64_t (*execute_fn)(void *, const tensor_rec *, uint32_t, tensor_rec *, uint32_t, void *, void *);
    uint64_t code = ((execute_fn)entry[EXECUTE])(graph, info->ins, info->in_count, info->outs, info->out_count, profile, NULL);
    if (told("graphExecute", code) != 0) {
      return 1;
    }
    if (profile != NULL) {
      told_events(entry, profile, PROFILE_EVENTS, 0);
    }
  }
  return 0;
}

static void give_memory(tensor_rec *tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    tensors[i].byte_count = 1 * 8 * 8 * 16;
    tensors[i].bytes = calloc(1, tensors[i].byte_count);
  }
}

static int run(void **entry, void *backend, void *context, char **arguments, int count) {
  void *library = dlopen(arguments[0], RTLD_NOW);
  compose_fn compose = library == NULL ? NULL : (compose_fn)dlsym(library, "QnnModel_composeGraphs");
  if (compose == NULL) {
    printf("the model does not load: %s\n", dlerror());
    return 1;
  }
  table_rec table;
  memcpy(table.entry, entry, sizeof table.entry);
  graph_rec **infos = NULL;
  uint32_t info_count = 0;
  uint32_t composed = compose(backend, table, context, NULL, 0, &infos, &info_count, false, NULL, 1);
  printf("composeGraphs: %s %u\n", composed == 0 ? "ok" : "model error", composed);
  if (composed != 0) {
    return 1;
  }
  void *graph = infos[0]->handle;
  if (told("graphFinalize", ((three_fn)entry[FINALIZE])(graph, NULL, NULL)) != 0) {
    return 1;
  }
  give_memory(infos[0]->ins, infos[0]->in_count);
  give_memory(infos[0]->outs, infos[0]->out_count);
  if (execute(entry, graph, infos[0], strtol(arguments[1], NULL, 10)) != 0) {
    return 1;
  }
  if (count > 2) {
    uint64_t bytes = 0, written = 0;
    told("contextGetBinarySize", ((two_fn)entry[BINARY_SIZE])(context, &bytes));
    void *all = malloc(bytes);
    uint64_t code = ((uint64_t (*)(void *, void *, uint64_t, uint64_t *))entry[GET_BINARY])(context, all, bytes, &written);
    FILE *file = fopen(arguments[2], "wb");
    if (told("contextGetBinary", code) != 0 || file == NULL || fwrite(all, 1, written, file) != written || fclose(file) != 0) {
      return 1;
    }
  }
  return 0;
}

/* The graph of the model that the binary was made from. */
static int run_saved(void **entry, void *context, long inferences) {
  void *graph = NULL;
  if (told("graphRetrieve", ((three_fn)entry[RETRIEVE])(context, "odd", &graph)) != 0) {
    return 1;
  }
  uint32_t dims[] = {1, 8, 8, 16};
  tensor_rec in = {.record_version = 1, .number = 1, .label = "x", .use = 0, .element = 0x0408, .quant_defined = 1,
                   .scale = 0.05f, .offset = -128, .dim_count = 4, .dims = dims};
  tensor_rec out = {.record_version = 1, .number = 2, .label = "y", .use = 1, .element = 0x0408, .quant_defined = 1,
                    .scale = 0.025f, .dim_count = 4, .dims = dims};
  graph_rec info = {.ins = &in, .in_count = 1, .outs = &out, .out_count = 1};
  give_memory(&in, 1);
  give_memory(&out, 1);
  return execute(entry, graph, &info, inferences);
}

/* Requests the clocks of the burst profile. */
static void vote(void **entry) {
  struct {
    uint32_t kind, unused0;
    uint64_t (*create)(uint32_t, uint32_t, uint32_t *);
    uint64_t (*destroy)(uint32_t);
    uint64_t (*set)(uint32_t, const void **);
  } *infrastructure = NULL;
  uint32_t id = 0;
  if (told("deviceGetInfrastructure", ((uint64_t (*)(void *))entry[GET_INFRASTRUCTURE])(&infrastructure)) != 0 ||
      told("createPowerConfigId", infrastructure->create(0, 0, &id)) != 0) {
    return;
  }
  const uint32_t corner = 0xa0;
  const uint32_t dcvs[17] = {1, id, 1, 0, 0x10, 1, 40, 0, 0, 1, corner, corner, corner, 1, corner, corner, corner};
  const void *settings[] = {dcvs, NULL};
  told("setPowerConfig", infrastructure->set(id, settings));
}

int main(int count, char **arguments) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  dup2(1, 2);
  if (count < 3) {
    return 2;
  }
  void *library = dlopen(arguments[1], RTLD_NOW);
  uint64_t (*providers)(const provider ***, uint32_t *) = NULL;
  if (library != NULL) {
    *(void **)&providers = dlsym(library, "QnnInterface_getProviders");
  }
  const provider **list = NULL;
  uint32_t list_count = 0;
  if (providers == NULL || providers(&list, &list_count) != 0) {
    printf("the backend does not load: %s\n", dlerror());
    return 1;
  }
  void **entry = (void **)list[0]->entry;
  const char *build = NULL;
  ((uint64_t (*)(const char **))entry[GET_BUILD_ID])(&build);
  printf("backend build id %s\n", build);
  uint32_t level = (uint32_t)strtoul(arguments[2], NULL, 10);
  void *log = NULL, *backend = NULL, *device = NULL, *context = NULL;
  told("logCreate", ((uint64_t (*)(void *, uint32_t, void **))entry[LOG_CREATE])((void *)logged, level, &log));
  if (told("backendCreate", ((three_fn)entry[BACKEND_CREATE])(log, NULL, &backend)) != 0) {
    return 1;
  }
  if (told("deviceCreate", ((three_fn)entry[DEVICE_CREATE])(log, NULL, &device)) != 0) {
    return 1;
  }
  if (getenv("HOST_VOTES") != NULL) {
    vote(entry);
  }
  if (getenv("HOST_PROFILE") != NULL) {
    told("profileCreate", ((uint64_t (*)(void *, uint32_t, void **))entry[PROFILE_CREATE])(backend, 2, &profile));
  }
  int failed = 0;
  if (count == 6 && strcmp(arguments[3], "binary") == 0) {
    uint64_t bytes = 0;
    void *all = contents(arguments[4], &bytes);
    typedef uint64_t (*from_binary_fn)(void *, void *, const void **, const void *, uint64_t, void **, void *);
    uint64_t code = ((from_binary_fn)entry[FROM_BINARY])(backend, device, NULL, all, bytes, &context, NULL);
    failed = told("contextCreateFromBinary", code) != 0 || run_saved(entry, context, strtol(arguments[5], NULL, 10)) != 0;
  } else if (count > 4) {
    uint64_t code =
        ((uint64_t (*)(void *, void *, const void **, void **))entry[CONTEXT_CREATE])(backend, device, NULL, &context);
    failed = told("contextCreate", code) != 0 || run(entry, backend, context, arguments + 3, count - 3) != 0;
  }
  if (context != NULL) {
    told("contextFree", ((two_fn)entry[CONTEXT_FREE])(context, NULL));
  }
  told("deviceFree", ((uint64_t (*)(void *))entry[DEVICE_FREE])(device));
  return failed;
}
