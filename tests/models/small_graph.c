/* A model library for the tests: float32 graphs composed through the caller's function table.
 *
 *   first:  y = relu(W x + b + c), x is 1x4, y is 1x3
 *   second: z = x + x, x is 1x4 (with -DGRAPHS=2)
 *
 * -DSLOTS=n      entries of the function table that this library "was built with"
 * -DBEHAVIOUR=f  a function of behaviour.h, called before anything is composed
 * -DOP_TYPE="x"  another op type in place of Relu
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "behaviour.h"

#ifndef GRAPHS
#define GRAPHS 1
#endif
#ifndef BEHAVIOUR
#define BEHAVIOUR well_behaved
#endif
#ifndef OP_TYPE
#define OP_TYPE "Relu"
#endif

#include "records.h"

static option_rec add_operation(void) {
  option_rec option;
  memset(&option, 0, sizeof option);
  option.label = "operation";
  option.element = UINT_32;
  option.value = 0;
  return option;
}

static uint32_t in_dims[] = {1, 4}, out_dims[] = {1, 3}, weight_dims[] = {3, 4}, bias_dims[] = {3};
static float weights[] = {1, 2, 3, 4, -1, 0.5f, -2, 0.25f, 8, -4, 2, -1};
static float bias[] = {0.5f, 1, -2};
static float shift[] = {10, 0, -1};

static uint32_t first(const table_rec *table, void *context, bool debug, graph_rec *info) {
  create_graph_fn create_graph = (create_graph_fn)table->entry[SLOT_CREATE_GRAPH];
  create_tensor_fn create_tensor = (create_tensor_fn)table->entry[SLOT_CREATE_TENSOR];
  add_node_fn add_node = (add_node_fn)table->entry[SLOT_ADD_NODE];
  void *graph = NULL;
  TRY(create_graph(context, "first", NULL, &graph));
  /* As in converters' libraries: with debug on, intermediate tensors become outputs. */
  enum use between = debug ? APP_READS : BETWEEN;
  tensor_rec x = tensor("x", APP_WRITES, 2, in_dims, NULL, 0);
  tensor_rec w = tensor("w", CONSTANT, 2, weight_dims, weights, sizeof weights);
  tensor_rec b = tensor("b", CONSTANT, 1, bias_dims, bias, sizeof bias);
  tensor_rec c = tensor("c", CONSTANT, 2, out_dims, shift, sizeof shift);
  tensor_rec sum = tensor("sum", between, 2, out_dims, NULL, 0);
  tensor_rec moved = tensor("moved", between, 2, out_dims, NULL, 0);
  tensor_rec y = tensor("y", APP_READS, 2, out_dims, NULL, 0);
  tensor_rec *all[] = {&x, &w, &b, &c, &sum, &moved, &y};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    TRY(create_tensor(graph, all[i]));
  }
  tensor_rec ins[] = {x, w, b};
  TRY(add_node(graph, node("matrix", "FullyConnected", 3, ins, &sum)));
  tensor_rec pair[] = {sum, c};
  option_rec option = add_operation();
  node_rec add = node("shift", "ElementWiseBinary", 2, pair, &moved);
  add.option_count = 1;
  add.options = &option;
  TRY(add_node(graph, add));
  TRY(add_node(graph, node("clamp", OP_TYPE, 1, &moved, &y)));
  publish(info, graph, "first", &x, &y);
  return 0;
}

static uint32_t second(const table_rec *table, void *context, graph_rec *info) {
  create_graph_fn create_graph = (create_graph_fn)table->entry[SLOT_CREATE_GRAPH];
  create_tensor_fn create_tensor = (create_tensor_fn)table->entry[SLOT_CREATE_TENSOR];
  add_node_fn add_node = (add_node_fn)table->entry[SLOT_ADD_NODE];
  void *graph = NULL;
  TRY(create_graph(context, "second", NULL, &graph));
  tensor_rec x = tensor("x", APP_WRITES, 2, in_dims, NULL, 0);
  tensor_rec z = tensor("z", APP_READS, 2, in_dims, NULL, 0);
  TRY(create_tensor(graph, &x));
  TRY(create_tensor(graph, &z));
  tensor_rec pair[] = {x, x};
  option_rec option = add_operation();
  node_rec add = node("double", "ElementWiseBinary", 2, pair, &z);
  add.option_count = 1;
  add.options = &option;
  TRY(add_node(graph, add));
  publish(info, graph, "second", &x, &z);
  return 0;
}

uint32_t QnnModel_composeGraphs(void *backend, table_rec table, void *context, const void **settings,
                                uint32_t settings_count, graph_rec ***infos, uint32_t *count, bool debug,
                                void *callback, uint32_t level) {
  (void)settings;
  if (backend == NULL || settings_count != 0) {
    return 3;
  }
  if (callback != NULL || level != 0) {
    fprintf(stderr, "callback %p and level %u are not what a table of %d slots leaves\n", callback, level, SLOTS);
  }
  BEHAVIOUR();
  graph_rec **list = calloc(GRAPHS, sizeof *list);
  for (int i = 0; i < GRAPHS; i++) {
    list[i] = calloc(1, sizeof **list);
    uint32_t code = i == 0 ? first(&table, context, debug, list[i]) : second(&table, context, list[i]);
    if (code != 0) {
      return code;
    }
  }
  *infos = list;
  *count = GRAPHS;
  return 0;
}
