/* A model library with a planted pattern: float32 graphs for which a suggestion must name what was planted.
 *
 * -DPATTERN=storm     six transposes in a row, then a Relu
 * -DPATTERN=divide    a convolution, then a division by a constant
 * -DPATTERN=prelu     a convolution whose output a PReLU and an addition read
 * -DPATTERN=five      transposes of a tensor of rank 5
 * -DPATTERN=shallow   a convolution of three channels over a large map
 * -DPATTERN=hot       a convolution of 3 x 3 between four additions of a constant
 * -DPATTERN=healthy   two convolutions of 32 channels
 * -DPATTERN=chain     -DSTEPS=n (20) convolutions of 1 x 1, one after the other: a tenth more of them is a tenth more work
 */
#include <stdio.h>

#include "records.h"

enum { TENSOR_OPTION = 1, MOST_VALUES = 3 * 3 * 32 * 32 };

static float values[MOST_VALUES];
static const table_rec *calls;
static void *graph;
static char names[512][16];
static int made;

static tensor_rec make(const char *label, enum use use, uint32_t rank, uint32_t *dims) {
  if (label == NULL) {
    snprintf(names[made], sizeof names[made], "between%d", made);
    label = names[made++];
  }
  tensor_rec t = tensor(label, use, rank, dims, NULL, 0);
  if (use == CONSTANT) {
    uint32_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
      count *= dims[i];
    }
    t.bytes = values;
    t.byte_count = count * (uint32_t)sizeof(float);
  }
  return t;
}

static uint32_t declare(tensor_rec *t) {
  return (uint32_t)((create_tensor_fn)calls->entry[SLOT_CREATE_TENSOR])(graph, t);
}

/* A parameter that is a tensor of numbers. */
static option_rec numbers(const char *label, uint32_t rank, uint32_t *dims, uint32_t *list, uint32_t count) {
  tensor_rec t = tensor(label, CONSTANT, rank, dims, list, count * (uint32_t)sizeof(uint32_t));
  t.element = UINT_32;
  snprintf(names[made], sizeof names[made], "option%d", made);
  t.label = names[made++];
  declare(&t);
  option_rec option;
  memset(&option, 0, sizeof option);
  option.kind = TENSOR_OPTION;
  option.label = label;
  memcpy(&option.element, &t, sizeof t);
  return option;
}

static option_rec operation(uint64_t number) {
  option_rec option;
  memset(&option, 0, sizeof option);
  option.label = "operation";
  option.element = UINT_32;
  option.value = number;
  return option;
}

static uint32_t add(const char *label, const char *type, uint32_t in_count, tensor_rec *ins, tensor_rec *out,
                    uint32_t option_count, option_rec *options) {
  TRY(declare(out));
  node_rec n = node(label, type, in_count, ins, out);
  n.option_count = option_count;
  n.options = options;
  return (uint32_t)((add_node_fn)calls->entry[SLOT_ADD_NODE])(graph, n);
}

static uint32_t conv(const char *label, tensor_rec in, uint32_t *weight_dims, tensor_rec *out) {
  static uint32_t two[] = {2}, two_two[] = {2, 2}, stride[] = {1, 1}, pads[4];
  pads[0] = pads[1] = pads[2] = pads[3] = weight_dims[0] / 2;
  tensor_rec w = make(NULL, CONSTANT, 4, weight_dims);
  TRY(declare(&w));
  option_rec options[] = {numbers("stride", 1, two, stride, 2), numbers("pad_amount", 2, two_two, pads, 4)};
  tensor_rec ins[] = {in, w};
  return add(label, "Conv2d", 2, ins, out, 2, options);
}

static uint32_t transpose(const char *label, tensor_rec in, uint32_t *perm, tensor_rec *out) {
  static uint32_t ranks[8][1];
  uint32_t *rank = ranks[in.dim_count];
  *rank = in.dim_count;
  option_rec option = numbers("perm", 1, rank, perm, in.dim_count);
  return add(label, "Transpose", 1, &in, out, 1, &option);
}

static uint32_t small[] = {1, 32, 32, 32};
static uint32_t square[] = {3, 3, 32, 32}, point[] = {1, 1, 32, 32}, one[] = {1, 1, 1, 32};

static uint32_t storm(tensor_rec *x, tensor_rec *y) {
  static uint32_t last[] = {1, 96, 128, 32}, first[] = {1, 32, 96, 128}, to_first[] = {0, 3, 1, 2}, to_last[] = {0, 2, 3, 1};
  static char labels[6][8];
  *x = make("x", APP_WRITES, 4, last);
  TRY(declare(x));
  tensor_rec now = *x;
  for (int i = 0; i < 6; i++) {
    tensor_rec next = make(NULL, BETWEEN, 4, i % 2 == 0 ? first : last);
    snprintf(labels[i], sizeof labels[i], "turn%d", i);
    TRY(transpose(labels[i], now, i % 2 == 0 ? to_first : to_last, &next));
    now = next;
  }
  *y = make("y", APP_READS, 4, last);
  return add("clamp", "Relu", 1, &now, y, 0, NULL);
}

static uint32_t divide(tensor_rec *x, tensor_rec *y) {
  *x = make("x", APP_WRITES, 4, small);
  TRY(declare(x));
  tensor_rec c = make(NULL, BETWEEN, 4, small), by = make(NULL, CONSTANT, 4, one);
  TRY(conv("conv", *x, point, &c));
  TRY(declare(&by));
  *y = make("y", APP_READS, 4, small);
  tensor_rec pair[] = {c, by};
  option_rec option = operation(2);
  return add("scale", "ElementWiseBinary", 2, pair, y, 1, &option);
}

static uint32_t prelu(tensor_rec *x, tensor_rec *y) {
  *x = make("x", APP_WRITES, 4, small);
  TRY(declare(x));
  tensor_rec c = make(NULL, BETWEEN, 4, small), slope = make(NULL, CONSTANT, 4, one), bent = make(NULL, BETWEEN, 4, small);
  TRY(conv("conv", *x, point, &c));
  TRY(declare(&slope));
  tensor_rec pair[] = {c, slope};
  TRY(add("bend", "Prelu", 2, pair, &bent, 0, NULL));
  *y = make("y", APP_READS, 4, small);
  tensor_rec both[] = {bent, c};
  option_rec option = operation(0);
  return add("skip", "ElementWiseBinary", 2, both, y, 1, &option);
}

static uint32_t five(tensor_rec *x, tensor_rec *y) {
  static uint32_t windows[] = {1, 8, 8, 64, 16}, swapped[] = {1, 8, 64, 8, 16}, perm[] = {0, 2, 3, 1, 4};
  *x = make("x", APP_WRITES, 5, windows);
  TRY(declare(x));
  tensor_rec t = make(NULL, BETWEEN, 5, swapped);
  TRY(transpose("windows", *x, perm, &t));
  *y = make("y", APP_READS, 5, swapped);
  return add("clamp", "Relu", 1, &t, y, 0, NULL);
}

static uint32_t shallow(tensor_rec *x, tensor_rec *y) {
  static uint32_t image[] = {1, 264, 264, 3}, map[] = {1, 264, 264, 32}, shape[] = {1, 1, 3, 32};
  *x = make("x", APP_WRITES, 4, image);
  TRY(declare(x));
  *y = make("y", APP_READS, 4, map);
  return conv("stem", *x, shape, y);
}

static uint32_t hot(tensor_rec *x, tensor_rec *y) {
  static const char *labels[] = {"before0", "before1", "hot", "after0", "after1"};
  *x = make("x", APP_WRITES, 4, small);
  TRY(declare(x));
  *y = make("y", APP_READS, 4, small);
  tensor_rec now = *x;
  for (int i = 0; i < 5; i++) {
    tensor_rec next = i == 4 ? *y : make(NULL, BETWEEN, 4, small);
    if (i == 2) {
      TRY(conv(labels[i], now, square, &next));
    } else {
      tensor_rec by = make(NULL, CONSTANT, 4, one);
      TRY(declare(&by));
      tensor_rec pair[] = {now, by};
      option_rec option = operation(0);
      TRY(add(labels[i], "ElementWiseBinary", 2, pair, &next, 1, &option));
    }
    now = next;
  }
  *y = now;
  return 0;
}

static uint32_t healthy(tensor_rec *x, tensor_rec *y) {
  *x = make("x", APP_WRITES, 4, small);
  TRY(declare(x));
  tensor_rec c = make(NULL, BETWEEN, 4, small);
  TRY(conv("first", *x, square, &c));
  *y = make("y", APP_READS, 4, small);
  return conv("second", c, square, y);
}

#ifndef STEPS
#define STEPS 20
#endif

static uint32_t chain(tensor_rec *x, tensor_rec *y) {
  static char labels[STEPS][12];
  *x = make("x", APP_WRITES, 4, small);
  TRY(declare(x));
  tensor_rec now = *x;
  for (int i = 0; i < STEPS; i++) {
    snprintf(labels[i], sizeof labels[i], "step%d", i);
    tensor_rec next = i + 1 == STEPS ? make("y", APP_READS, 4, small) : make(NULL, BETWEEN, 4, small);
    TRY(conv(labels[i], now, point, &next));
    now = next;
  }
  *y = now;
  return 0;
}

uint32_t QnnModel_composeGraphs(void *backend, table_rec table, void *context, const void **settings,
                                uint32_t settings_count, graph_rec ***infos, uint32_t *count, bool debug,
                                void *callback, uint32_t level) {
  (void)settings, (void)debug, (void)callback, (void)level;
  if (backend == NULL || settings_count != 0) {
    return 3;
  }
  for (int i = 0; i < MOST_VALUES; i++) {
    values[i] = 0.25f + (float)(i % 7) * 0.01f;
  }
  calls = &table;
  made = 0;
  TRY(((create_graph_fn)table.entry[SLOT_CREATE_GRAPH])(context, "planted", NULL, &graph));
  tensor_rec x, y;
  TRY(PATTERN(&x, &y));
  graph_rec **list = calloc(1, sizeof *list);
  list[0] = calloc(1, sizeof **list);
  publish(list[0], graph, "planted", &x, &y);
  *infos = list;
  *count = 1;
  return 0;
}
