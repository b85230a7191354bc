/* A model library with ops that backends refuse, each for a different reason, for the tests of `qnnscope check`.
 *
 * Without defines it composes one healthy quantised op, y = relu(x). Each define adds ops to it:
 *
 * -DRANK6     a Relu on a tensor of rank 6
 * -DINT_CONV  a Conv2d on int32 tensors
 * -DFLOAT_IN  an addition of a quantised and a float tensor
 * -DINT64     a Cast from int64
 * -DUNKNOWN   an op type that no backend has
 * -DWIDE      a Conv2d of 16-bit activations and 16-bit weights, which older architectures lack
 * -DEMPTY     a Relu on a tensor with a dimension of 0
 * -DENCODINGS ops on tensors whose encodings are wrong in every way that is checked
 * -DASKS      validates each op with the backend before adding it and stops composing on a refusal, as converters' libraries do
 * -DFAILS     the library fails after its ops, as a converter's would on an error of its own
 * -DCRASHES   the library crashes after its ops, unless its caller has no backend and only reads
 * -DFLOATS    a chain of float ops (div, mul, softmax) in place of the quantised Relu
 * -DRESIZE    a resize with a parameter that its op does not have
 * -DHARD      a float HardSigmoid behind an addition, for which HTP without fp16 has no variant
 * -DUNUSED    an input that no op reads
 * -DLISTED    the library lists all inputs and outputs of its graph, as a converter's would; otherwise only x and y
 *
 * The records are declared here by their memory layout, and only as far as they are used.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT_VALIDATE = 7, SLOT_CREATE_GRAPH = 15, SLOT_ADD_NODE = 18, SLOT_CREATE_TENSOR = 24, SLOTS = 62 };
enum { INT_32 = 0x0032, INT_64 = 0x0064, UINT_32 = 0x0132, FLOAT_32 = 0x0232 };
enum { SFIXED_8 = 0x0308, SFIXED_16 = 0x0316, SFIXED_32 = 0x0332, UFIXED_8 = 0x0408, UFIXED_16 = 0x0416, UNDEFINED = 0x7fffffff };
enum use { APP_WRITES = 0, APP_READS = 1, BETWEEN = 3, CONSTANT = 4 };

typedef struct {
  float scale;
  int32_t offset;
} encoding_rec;

typedef struct {
  uint32_t record_version, unused0;
  uint32_t number, unused1;
  const char *label;
  uint32_t use, layout, element, unused2;
  uint32_t quant_defined, quant_kind;
  union {
    encoding_rec one;
    struct {
      int32_t axis;
      uint32_t count;
      encoding_rec *each;
    } axis;
    uint8_t bytes[32];
  } quant;
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
  union {
    struct {
      uint32_t element, unused;
      uint64_t value;
    } scalar;
    tensor_rec tensor;
  } value;
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
} graph_rec;

typedef struct {
  void *entry[SLOTS];
} table_rec;

typedef uint64_t (*create_graph_fn)(void *context, const char *label, const void **settings, void **graph);
typedef uint64_t (*create_tensor_fn)(void *graph, tensor_rec *tensor);
typedef uint64_t (*add_node_fn)(void *graph, node_rec node);
typedef uint64_t (*validate_fn)(void *backend, node_rec node);

static create_tensor_fn create_tensor;
static add_node_fn add_node;
static validate_fn validate;
static void *graph, *backend_handle;
static uint64_t trouble;

/* A tensor of the graph. Constants hold zeros. */
static tensor_rec make(const char *label, enum use use, uint32_t element, uint32_t rank, const uint32_t *dims) {
  tensor_rec t;
  memset(&t, 0, sizeof t);
  t.record_version = 1;
  t.label = label;
  t.use = use;
  t.element = element;
  t.quant_defined = t.quant_kind = UNDEFINED;
  t.dim_count = rank;
  t.dims = malloc(rank * sizeof *dims);
  memcpy(t.dims, dims, rank * sizeof *dims);
  if (use == CONSTANT) {
    size_t count = element == SFIXED_16 ? 2 : element == FLOAT_32 || element == INT_32 || element == SFIXED_32 ? 4 : 1;
    for (uint32_t i = 0; i < rank; i++) {
      count *= dims[i];
    }
    t.bytes = calloc(1, count);
    t.byte_count = (uint32_t)count;
  }
  return t;
}

enum { MOST_LISTED = 16 };
static tensor_rec ins[MOST_LISTED], outs[MOST_LISTED];
static uint32_t in_count, out_count;

static tensor_rec registered(tensor_rec t) {
  trouble |= create_tensor(graph, &t);
#ifdef LISTED
  bool all = true;
#else
  bool all = in_count + out_count < 2;
#endif
  if (t.use == APP_WRITES && all) {
    ins[in_count++] = t;
  } else if (t.use == APP_READS && all) {
    outs[out_count++] = t;
  }
  return t;
}

static tensor_rec plain(const char *label, enum use use, uint32_t element, uint32_t rank, const uint32_t *dims) {
  return registered(make(label, use, element, rank, dims));
}

static tensor_rec quantised(const char *label, enum use use, uint32_t element, uint32_t rank, const uint32_t *dims,
                            float scale, int32_t offset) {
  tensor_rec t = make(label, use, element, rank, dims);
  t.quant_defined = 1;
  t.quant_kind = 0;
  t.quant.one.scale = scale;
  t.quant.one.offset = offset;
  return registered(t);
}

/* With one scale per slice along an axis. */
static tensor_rec per_axis(const char *label, uint32_t rank, const uint32_t *dims, int32_t axis, uint32_t count,
                           float scale, int32_t offset) {
  tensor_rec t = make(label, CONSTANT, SFIXED_8, rank, dims);
  t.quant_defined = 1;
  t.quant_kind = 1;
  t.quant.axis.axis = axis;
  t.quant.axis.count = count;
  t.quant.axis.each = malloc(count * sizeof(encoding_rec));
  for (uint32_t i = 0; i < count; i++) {
    t.quant.axis.each[i] = (encoding_rec){scale, offset};
  }
  return registered(t);
}

static void op(const char *label, const char *type, uint32_t in_count, const tensor_rec *ins, tensor_rec out,
               uint32_t option_count, option_rec *options) {
  node_rec n;
  memset(&n, 0, sizeof n);
  n.record_version = 1;
  n.label = label;
  n.package = "qti.aisw";
  n.type = type;
  n.option_count = option_count;
  n.options = options;
  n.in_count = in_count;
  n.ins = malloc(in_count * sizeof *ins);
  memcpy(n.ins, ins, in_count * sizeof *ins);
  n.out_count = 1;
  n.outs = malloc(sizeof out);
  *n.outs = out;
#ifdef ASKS
  if (trouble == 0) {
    trouble = validate(backend_handle, n);
  }
  if (trouble != 0) {
    return;
  }
#endif
  trouble |= add_node(graph, n);
}

static option_rec number(const char *label, uint32_t value) {
  option_rec option;
  memset(&option, 0, sizeof option);
  option.label = label;
  option.value.scalar.element = UINT_32;
  option.value.scalar.value = value;
  return option;
}

static option_rec numbers(const char *label, uint32_t rank, const uint32_t *dims, const uint32_t *values) {
  option_rec option;
  memset(&option, 0, sizeof option);
  option.kind = 1;
  option.label = label;
  tensor_rec t = make(label, CONSTANT, UINT_32, rank, dims);
  size_t count = 1;
  for (uint32_t i = 0; i < rank; i++) {
    count *= dims[i];
  }
  t.bytes = malloc(4 * count);
  t.byte_count = (uint32_t)(4 * count);
  memcpy(t.bytes, values, 4 * count);
  option.value.tensor = registered(t);
  return option;
}

#define DIMS(...) (sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)), (uint32_t[]){__VA_ARGS__}

static void conv(const char *label, tensor_rec in, tensor_rec weights, const tensor_rec *bias, tensor_rec out) {
  option_rec options[] = {numbers("stride", DIMS(2), (uint32_t[]){1, 1}),
                          numbers("pad_amount", DIMS(2, 2), (uint32_t[]){0, 0, 0, 0})};
  tensor_rec ins[3] = {in, weights};
  if (bias != NULL) {
    ins[2] = *bias;
  }
  op(label, "Conv2d", bias == NULL ? 2 : 3, ins, out, 2, options);
}

static void compose(tensor_rec *x, tensor_rec *y) {
#ifdef FLOATS
  *x = plain("x", APP_WRITES, FLOAT_32, DIMS(1, 8, 8, 32));
  *y = plain("y", APP_READS, FLOAT_32, DIMS(1, 8, 8, 32));
  tensor_rec half = plain("half", BETWEEN, FLOAT_32, DIMS(1, 8, 8, 32));
  option_rec divide = number("operation", 2), add = number("operation", 0);
  op("ratio", "ElementWiseBinary", 2, (tensor_rec[]){*x, *x}, half, 1, &divide);
  op("sum", "ElementWiseBinary", 2, (tensor_rec[]){half, *x}, *y, 1, &add);
#else
  *x = quantised("x", APP_WRITES, UFIXED_8, DIMS(1, 8, 8, 16), 0.05f, -128);
  *y = quantised("y", APP_READS, UFIXED_8, DIMS(1, 8, 8, 16), 0.025f, 0);
  op("fine", "Relu", 1, x, *y, 0, NULL);
#endif
#ifdef RANK6
  tensor_rec six = quantised("six", APP_WRITES, UFIXED_8, DIMS(1, 2, 2, 2, 2, 2), 0.1f, -128);
  tensor_rec six_out = quantised("six_out", APP_READS, UFIXED_8, DIMS(1, 2, 2, 2, 2, 2), 0.1f, -128);
  op("rank6", "Relu", 1, &six, six_out, 0, NULL);
#endif
#ifdef INT_CONV
  tensor_rec ints = plain("ints", APP_WRITES, INT_32, DIMS(1, 8, 8, 4));
  tensor_rec int_weights = plain("int_weights", CONSTANT, INT_32, DIMS(1, 1, 4, 4));
  tensor_rec ints_out = plain("ints_out", APP_READS, INT_32, DIMS(1, 8, 8, 4));
  conv("int_conv", ints, int_weights, NULL, ints_out);
#endif
#ifdef FLOAT_IN
  tensor_rec left = plain("left", BETWEEN, FLOAT_32, DIMS(1, 8, 8, 16));
  tensor_rec mixed = quantised("mixed", APP_READS, UFIXED_8, DIMS(1, 8, 8, 16), 0.1f, -128);
  option_rec operation = number("operation", 0);
  op("to_float", "Dequantize", 1, x, left, 0, NULL);
  op("float_in", "ElementWiseBinary", 2, (tensor_rec[]){*x, left}, mixed, 1, &operation);
#endif
#ifdef INT64
  tensor_rec longs = plain("longs", APP_WRITES, INT_64, DIMS(1, 8));
  tensor_rec shorts = plain("shorts", APP_READS, INT_64, DIMS(1, 8));
  option_rec add = number("operation", 0);
  op("int64", "ElementWiseBinary", 2, (tensor_rec[]){longs, longs}, shorts, 1, &add);
#endif
#ifdef UNKNOWN
  tensor_rec strange = quantised("strange", APP_READS, UFIXED_8, DIMS(1, 8, 8, 16), 0.05f, -128);
  op("unknown", "Frobnicate", 1, x, strange, 0, NULL);
#endif
#ifdef RESIZE
  tensor_rec small = plain("small", APP_WRITES, FLOAT_32, DIMS(1, 4, 4, 2));
  tensor_rec large = plain("large", APP_READS, FLOAT_32, DIMS(1, 8, 8, 2));
  option_rec twice[] = {number("transformation_mode", 1), number("interpolation_mode", 0), number("nearest_mode", 0),
                        number("cubic_coeff", 0)};
  op("enlarge", "ResizeNearestNeighbor", 1, &small, large, 4, twice);
#endif
#ifdef HARD
  tensor_rec hard_in = plain("hard_in", APP_WRITES, FLOAT_32, DIMS(1, 24, 100, 48));
  tensor_rec hard_sum = plain("hard_sum", BETWEEN, FLOAT_32, DIMS(1, 24, 100, 48));
  tensor_rec hard_gate = plain("hard_gate", BETWEEN, FLOAT_32, DIMS(1, 24, 100, 48));
  tensor_rec hard_out = plain("hard_out", APP_READS, FLOAT_32, DIMS(1, 24, 100, 48));
  option_rec hard_add = number("operation", 0), hard_mul = number("operation", 3);
  option_rec gate = number("operation", 2);
  op("before", "ElementWiseBinary", 2, (tensor_rec[]){hard_in, hard_in}, hard_sum, 1, &hard_add);
  op("gate", "ElementWiseNeuron", 1, &hard_sum, hard_gate, 1, &gate);
  op("gated", "ElementWiseBinary", 2, (tensor_rec[]){hard_sum, hard_gate}, hard_out, 1, &hard_mul);
#endif
#ifdef WIDE
  tensor_rec wide = quantised("wide", APP_WRITES, UFIXED_16, DIMS(1, 8, 8, 32), 0.001f, -32768);
  tensor_rec wide_weights = quantised("wide_weights", CONSTANT, SFIXED_16, DIMS(1, 1, 32, 32), 0.001f, 0);
  tensor_rec wide_bias = quantised("wide_bias", CONSTANT, SFIXED_32, DIMS(32), 0.000001f, 0);
  tensor_rec wide_out = quantised("wide_out", APP_READS, UFIXED_16, DIMS(1, 8, 8, 32), 0.001f, -32768);
  conv("wide_conv", wide, wide_weights, &wide_bias, wide_out);
#endif
#ifdef EMPTY
  tensor_rec none = quantised("none", APP_WRITES, UFIXED_8, DIMS(1, 0, 8), 0.1f, -128);
  tensor_rec none_out = quantised("none_out", APP_READS, UFIXED_8, DIMS(1, 0, 8), 0.1f, -128);
  op("empty", "Relu", 1, &none, none_out, 0, NULL);
#endif
#ifdef UNUSED
  plain("unused", APP_WRITES, FLOAT_32, DIMS(1, 8));
#endif
#ifdef ENCODINGS
  /* One tensor per fault; `good` has none. */
  tensor_rec good = quantised("good", BETWEEN, UFIXED_8, DIMS(1, 8, 8, 16), 0.05f, -128);
  op("good", "Relu", 1, x, good, 0, NULL);
  tensor_rec zero = quantised("zero_scale", BETWEEN, UFIXED_8, DIMS(1, 8, 8, 16), 0.0f, 0);
  op("zero", "Relu", 1, &good, zero, 0, NULL);
  tensor_rec huge = quantised("huge_range", BETWEEN, UFIXED_8, DIMS(1, 8, 8, 16), 1e36f, -128);
  op("huge", "Relu", 1, &good, huge, 0, NULL);
  tensor_rec off = quantised("offset_outside", BETWEEN, UFIXED_8, DIMS(1, 8, 8, 16), 0.05f, 300);
  op("off", "Relu", 1, &good, off, 0, NULL);
  tensor_rec missing = plain("no_encoding", BETWEEN, UFIXED_8, DIMS(1, 8, 8, 16));
  op("missing", "Relu", 1, &good, missing, 0, NULL);
  tensor_rec activation = plain("left_float", BETWEEN, FLOAT_32, DIMS(1, 8, 8, 16));
  op("float", "Relu", 1, &good, activation, 0, NULL);
  tensor_rec moved = quantised("moved", BETWEEN, UFIXED_8, DIMS(1, 16, 8, 8), 0.5f, -10);
  option_rec perm = numbers("perm", DIMS(4), (uint32_t[]){0, 3, 1, 2});
  op("move", "Transpose", 1, &good, moved, 1, &perm);
  tensor_rec uneven = quantised("uneven_weights", CONSTANT, SFIXED_8, DIMS(1, 1, 16, 16), 0.01f, 7);
  tensor_rec bias = quantised("wrong_bias", CONSTANT, SFIXED_32, DIMS(16), 0.25f, 0);
  tensor_rec by_one = quantised("by_one", BETWEEN, UFIXED_8, DIMS(1, 8, 8, 16), 0.05f, -128);
  conv("one", good, uneven, &bias, by_one);
  tensor_rec few = per_axis("few_scales", DIMS(1, 1, 16, 16), 3, 5, 0.01f, 0);
  tensor_rec by_axis = quantised("by_axis", BETWEEN, UFIXED_8, DIMS(1, 8, 8, 16), 0.05f, -128);
  conv("axis", good, few, NULL, by_axis);
  tensor_rec powered = quantised("powered", BETWEEN, UFIXED_8, DIMS(1, 8, 8, 16), 0.05f, 0);
  option_rec exponent = number("operation", 5);
  op("power", "ElementWiseUnary", 1, &good, powered, 1, &exponent);
#endif
}

uint32_t QnnModel_composeGraphs(void *backend, table_rec table, void *context, const void **settings,
                                uint32_t settings_count, graph_rec ***infos, uint32_t *count, bool debug,
                                void *callback, uint32_t level) {
  (void)backend, (void)settings, (void)settings_count, (void)debug, (void)callback, (void)level;
  create_tensor = (create_tensor_fn)table.entry[SLOT_CREATE_TENSOR];
  add_node = (add_node_fn)table.entry[SLOT_ADD_NODE];
  validate = (validate_fn)table.entry[SLOT_VALIDATE];
  backend_handle = backend;
  if (((create_graph_fn)table.entry[SLOT_CREATE_GRAPH])(context, "odd", NULL, &graph) != 0) {
    return 1;
  }
  tensor_rec x, y;
  compose(&x, &y);
#ifdef CRASHES
  if (backend != (void *)8) {
    abort();
  }
#endif
#ifdef FAILS
  return 4;
#endif
  graph_rec *info = calloc(1, sizeof *info);
  info->handle = graph;
  info->label = strdup("odd");
  info->ins = ins;
  info->in_count = in_count;
  info->outs = outs;
  info->out_count = out_count;
  *infos = malloc(sizeof *infos);
  **infos = info;
  *count = 1;
  return trouble == 0 ? 0 : 7;
}

uint32_t QnnModel_freeGraphsInfo(graph_rec ***infos, uint32_t count) {
  (void)count;
  free(**infos);
  free(*infos);
  *infos = NULL;
  return 0;
}
