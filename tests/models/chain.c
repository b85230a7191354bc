/* A model library of a size that can be chosen: y = W (W (... W x)), STEPS times, so that a model with a tenth more work is
 * one with a tenth more steps.
 *
 * -DSTEPS=n      FullyConnected ops, one after the other
 * -DROWS=n       rows of x, of 256 numbers each
 * -DSLOTS=n      entries of the function table that this library "was built with"
 */
#include <stdio.h>

#include "records.h"

#ifndef STEPS
#define STEPS 20
#endif
#ifndef ROWS
#define ROWS 2
#endif
enum { WIDTH = 256 };

static uint32_t row_dims[] = {ROWS, WIDTH}, weight_dims[] = {WIDTH, WIDTH};
static float weights[WIDTH * WIDTH];

static uint32_t compose(const table_rec *table, void *context, graph_rec *info) {
  create_graph_fn create_graph = (create_graph_fn)table->entry[SLOT_CREATE_GRAPH];
  create_tensor_fn create_tensor = (create_tensor_fn)table->entry[SLOT_CREATE_TENSOR];
  add_node_fn add_node = (add_node_fn)table->entry[SLOT_ADD_NODE];
  static char names[STEPS][2][24];
  void *graph = NULL;
  for (int i = 0; i < WIDTH * WIDTH; i++) {
    /* Rows add up to about 1, so that numbers neither grow nor vanish. */
    weights[i] = (float)(i * 37 % 101) / (50.f * WIDTH);
  }
  TRY(create_graph(context, "chain", NULL, &graph));
  tensor_rec x = tensor("x", APP_WRITES, 2, row_dims, NULL, 0), before, after;
  TRY(create_tensor(graph, &x));
  before = x;
  for (int i = 0; i < STEPS; i++) {
    snprintf(names[i][0], sizeof names[i][0], "weights_%d", i);
    snprintf(names[i][1], sizeof names[i][1], "step_%d", i);
    tensor_rec w = tensor(names[i][0], CONSTANT, 2, weight_dims, weights, sizeof weights);
    after = tensor(names[i][1], i + 1 == STEPS ? APP_READS : BETWEEN, 2, row_dims, NULL, 0);
    TRY(create_tensor(graph, &w));
    TRY(create_tensor(graph, &after));
    tensor_rec ins[] = {before, w};
    TRY(add_node(graph, node(names[i][1], "FullyConnected", 2, ins, &after)));
    before = after;
  }
  publish(info, graph, "chain", &x, &after);
  return 0;
}

uint32_t QnnModel_composeGraphs(void *backend, table_rec table, void *context, const void **settings,
                                uint32_t settings_count, graph_rec ***infos, uint32_t *count, bool debug,
                                void *callback, uint32_t level) {
  (void)settings, (void)debug, (void)callback, (void)level;
  if (backend == NULL || settings_count != 0) {
    return 3;
  }
  *infos = calloc(1, sizeof **infos);
  **infos = calloc(1, sizeof ***infos);
  *count = 1;
  return compose(&table, context, **infos);
}
