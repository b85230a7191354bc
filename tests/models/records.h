/* QNN's records by their place in memory, only as far as the models here use them, and what every model library needs.
 *
 * -DSLOTS=n      entries of the function table that the library "was built with"
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef SLOTS
#define SLOTS 62
#endif

enum { SLOT_CREATE_GRAPH = 15, SLOT_ADD_NODE = 18, SLOT_CREATE_TENSOR = 24 };
enum { FLOAT_32 = 0x0232, UINT_32 = 0x0132, UNDEFINED = 0x7fffffff };
enum use { APP_WRITES = 0, APP_READS = 1, BETWEEN = 3, CONSTANT = 4 };

typedef struct {
  uint32_t record_version, unused0;
  uint32_t number, unused1;
  const char *label;
  uint32_t use, layout, element, unused2;
  uint32_t quant_defined, quant_kind;
  uint8_t quant_rest[32];
  uint32_t dim_count, unused3;
  uint32_t *dims;
  uint32_t memory_kind, unused4;
  void *bytes;
  uint32_t byte_count, unused5;
  uint8_t later_fields[24];
} tensor_rec;
_Static_assert(sizeof(tensor_rec) == 144, "tensor record");

typedef struct {
  uint32_t kind, unused0;
  const char *label;
  uint32_t element, unused1;
  uint64_t value;
  uint8_t rest[128];
} option_rec;
_Static_assert(sizeof(option_rec) == 160, "parameter record");

typedef struct {
  uint32_t record_version, unused0;
  const char *label, *package, *type;
  uint32_t option_count, unused1;
  option_rec *options;
  uint32_t in_count, unused2;
  tensor_rec *ins;
  uint32_t out_count, unused3;
  tensor_rec *outs;
} node_rec;
_Static_assert(sizeof(node_rec) == 80, "op record");

typedef struct {
  void *handle;
  char *label;
  tensor_rec *ins;
  uint32_t in_count, unused0;
  tensor_rec *outs;
  uint32_t out_count, unused1;
  tensor_rec *updatable;
  uint32_t updatable_count, unused2;
} graph_rec;

typedef struct {
  void *entry[SLOTS];
} table_rec;

typedef uint64_t (*create_graph_fn)(void *context, const char *label, const void **settings, void **graph);
typedef uint64_t (*create_tensor_fn)(void *graph, tensor_rec *tensor);
typedef uint64_t (*add_node_fn)(void *graph, node_rec node);

static tensor_rec tensor(const char *label, enum use use, uint32_t rank, uint32_t *dims, void *bytes, uint32_t count) {
  tensor_rec t;
  memset(&t, 0, sizeof t);
  t.record_version = 1;
  t.label = label;
  t.use = use;
  t.element = FLOAT_32;
  t.quant_defined = t.quant_kind = UNDEFINED;
  t.dim_count = rank;
  t.dims = dims;
  t.bytes = bytes;
  t.byte_count = count;
  return t;
}

static node_rec node(const char *label, const char *type, uint32_t in_count, tensor_rec *ins, tensor_rec *out) {
  node_rec n;
  memset(&n, 0, sizeof n);
  n.record_version = 1;
  n.label = label;
  n.package = "qti.aisw";
  n.type = type;
  n.in_count = in_count;
  n.ins = ins;
  n.out_count = 1;
  n.outs = out;
  return n;
}

#define TRY(call) do { if ((call) != 0) { return 7; } } while (0)

/* Copies, as the caller of compose gets them: they must outlive the call. */
static void publish(graph_rec *info, void *graph, const char *label, const tensor_rec *in, const tensor_rec *out) {
  memset(info, 0, sizeof *info);
  info->handle = graph;
  info->label = strdup(label);
  info->ins = malloc(sizeof *in);
  *info->ins = *in;
  info->in_count = 1;
  info->outs = malloc(sizeof *out);
  *info->outs = *out;
  info->out_count = 1;
}

uint32_t QnnModel_freeGraphsInfo(graph_rec ***infos, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    free((*infos)[i]->label);
    free((*infos)[i]->ins);
    free((*infos)[i]->outs);
    free((*infos)[i]);
  }
  free(*infos);
  *infos = NULL;
  return 0;
}
