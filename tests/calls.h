/* SPDX-License-Identifier: Apache-2.0
   calls: calls of ops for tests that compare executors: a table of examples, calls made up at random for
   every row, and ONNX's conformance cases node by node. Each is interpreted, made again and handed to `add`,
   which the test defines before it includes this. HONE_TEST_SEED repeats a run. */
#ifndef HONE_TESTS_CALLS_H
#define HONE_TESTS_CALLS_H
#include <dirent.h>
#include <math.h>

#include "random.h"
#include "walk.h"

enum { WORK = 2000000 /* operations that a call may take */ };
static void add(walk_call *c, hone_value *const *in, int n_in, hone_value *const *want, int n_out,
                bool failed, const char *what);

static uint64_t seed = 0x9e3779b97f4a7c15u;
static uint64_t random_bits(void) { return next_random(&seed); }
static int64_t below(int64_t n) { return (int64_t)(random_bits() >> 11) % n; }

static void calls_seed(void) {
    const char *s = getenv("HONE_TEST_SEED");
    if (s) seed = strtoull(s, NULL, 0);
}

/* ---- calls from text and at random --------------------------------------------------------------------- */
static bool tame; /* no special values: what a recurrence, or a long chain, computes stays a number */
static double random_number(void) {
    if (tame) return (double)(below(2001) - 1000) / 1000;
    static const double special[] = {0.0,   -0.0,  1,   -1,  0.5,   1.5, 2.5, -2.5, 1e30,
                                     -1e30, 1e-40, 255, 256, 65504, 7e4, 448, 3e9,  1e19};
    int64_t k = below(40);
    if (k == 0) return (double)NAN;
    if (k == 1) return (double)INFINITY;
    if (k == 2) return -(double)INFINITY;
    if (k < 8) return special[below(sizeof special / sizeof *special)];
    if (k < 14) return (double)(below(9) - 4);
    return (double)(below(2001) - 1000) / 250;
}
static hone_value *random_value(hone_dtype t, const int64_t *dim, int rank) {
    hone_value *v = NULL;
    assert_int_equal(hone_value_tensor(t, dim, rank, &v), HONE_OK);
    bool real = hone_dtypes[t].kind == HONE_KIND_FLOAT, wild = below(4) == 0;
    for (int64_t k = 0; t != HONE_DTYPE_STRING && k < hone_value_count(v); k++) {
        hone_scalar s = {.u64 = 0};
        if (real) s.f64 = random_number();
        else s.i64 = wild ? (int64_t)random_bits() : below(6) - 1; /* small ones are often good indices */
        hone_dtype_store(t, (char *)v->data + (size_t)k * hone_dtypes[t].bytes, real ? HONE_F64 : HONE_I64, s,
                         false);
    }
    return v;
}
/* Interprets a call and adds it. False when the call is none: types, ranks or attributes do not fit. */
static bool try_call(const hone_program *p, const hone_attr *attr, int n_attr, hone_value *const *in,
                     int n_in, const bool *want, const char *what) {
    walk_call c, again;
    double flops, bytes;
    if (walk_call_make(&c, p, attr, n_attr, in, n_in, want, p->n_out)) {
        walk_call_free(&c);
        return false;
    }
    hone_instance_counts(c.in, c.param, &flops, &bytes);
    if (!(flops + bytes <= WORK)) {
        walk_call_free(&c);
        return false;
    }
    hone_status s = hone_interpret(c.in, c.param, c.place);
    if (walk_call_make(&again, p, attr, n_attr, in, n_in, want, p->n_out))
        fail_msg("%s: made once but not twice: %s", what, hone_fail_text());
    add(&again, in, n_in, c.out, p->n_out, s != HONE_OK, what);
    walk_call_free(&c);
    return true;
}

typedef struct {
    const char *op, *in, *attr;
} example;
/* Inputs: dtype[dims] with random numbers, dtype{numbers}, or - where absent. Attributes: name=1, name=1,2,
   name=0.5, name='text', name=:dtype. */
static const example examples[] = {
    {"LSTM", "f32[3,1,9] f32[2,200,9] f32[2,200,50] f32[2,400] - f32[2,1,50] f32[2,1,50]",
     "hidden_size=50 direction='bidirectional'"},
    {"Transpose", "f16[67,70]", ""},
    {"Transpose", "f32[3,41,65]", "perm=2,0,1"},
    {"Transpose", "u8[66,5,33]", "perm=2,1,0"},
    {"ReduceSum", "f32[1,70001] i64{1}", ""},
    {"ReduceMax", "f16[70001] i64{0}", ""},
    {"ReduceMean", "f32[5,3001] i64{1}", ""},
    {"ArgMax", "f32[4,2003]", "axis=1"},
    {"Softmax", "f32[7,701]", ""},
    {"Conv", "f32[2,4,9,7] f32[6,2,3,3] f32[6]", "group=2 strides=2,1 pads=1,0,2,1 dilations=1,2"},
    {"Conv", "f32[1,3,11] f32[5,3,4] -", "auto_pad='SAME_UPPER' strides=3"},
    {"Conv", "f16[1,2,5,5] f16[3,2,3,3] -", "pads=1,1,1,1"},
    {"Conv", "f32[1,2,5,4,6] f32[3,2,2,2,3] f32[3]", ""},
    {"ConvTranspose", "f32[1,4,5,3] f32[4,2,3,2] f32[4]",
     "group=2 strides=2,3 pads=1,0,0,1 output_padding=1,0"},
    {"ConvTranspose", "f32[1,3,4] f32[3,2,3] -", "strides=2 auto_pad='SAME_LOWER'"},
    {"ConvTranspose", "f32[1,4,5,3] f32[4,2,4,3] f32[4]",
     "group=2 strides=2,3 kernel_shape=4,3 pads=1,0,0,1 output_padding=1,0"},
    {"ConvInteger", "u8[1,2,5,5] i8[3,2,2,2] u8[] i8[]", ""},
    {"DeformConv", "f32[1,2,4,4] f32[3,2,2,2] f32[1,8,3,3]", "kernel_shape=2,2"},
    {"MaxPool", "f32[1,2,9,8]", "kernel_shape=3,2 strides=2,2 pads=1,0,1,1"},
    {"MaxPool", "i8[1,2,9]", "kernel_shape=3 ceil_mode=1 strides=2"},
    {"MaxPool", "f16[1,1,5,6,7]", "kernel_shape=2,3,2 dilations=1,2,1"},
    {"AveragePool", "f32[1,2,7,9]", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1 count_include_pad=1"},
    {"AveragePool", "f64[2,1,10]", "kernel_shape=4 ceil_mode=1 strides=3"},
    {"LpPool", "f32[1,2,6,5]", "kernel_shape=2,3 p=3"},
    {"MaxUnpool", "f32[1,1,2,2] i64[1,1,2,2]", "kernel_shape=2,2 strides=2,2"},
    {"Resize", "f32[1,2,5,4] - f32{1.0,1.0,2.0,1.5}", "mode='linear'"},
    {"Resize", "f32[1,1,7,6] - f32{0.6,0.5}", "mode='cubic' antialias=1 axes=2,3"},
    {"Resize", "u8[1,2,3,3] - - i64{1,2,5,7}", "mode='nearest' nearest_mode='ceil'"},
    {"GridSample", "f32[1,2,4,5] f32[1,3,3,2]", "mode='cubic' padding_mode='reflection'"},
    {"GridSample", "f32[1,1,3,4,5] f32[1,2,2,2,3]", "padding_mode='border' align_corners=1"},
    {"AffineGrid", "f32[2,2,3] i64{2,3,4,5}", ""},
    {"Pad", "f32[3,5] i64{1,2,0,-1} f32[]", ""},
    {"Pad", "i32[4,3] i64{2,1,1,2}", "mode='reflect'"},
    {"Pad", "f16[4] i64{5,6}", "mode='wrap'"},
    {"Slice", "f32[7,5,3] i64{1,-1} i64{6,-100} i64{0,1} i64{2,-2}", ""},
    {"Reshape", "bf16[4,3,5] i64{0,-1}", ""},
    {"Expand", "i16[3,1] i64{2,1,5}", ""},
    {"Tile", "u8[2,3] i64{2,3}", ""},
    {"Transpose", "f64[2,3,4]", "perm=2,0,1"},
    {"Transpose", "i64[2,3,4]", ""},
    {"Squeeze", "f32[1,3,1] i64{0}", ""},
    {"Unsqueeze", "f32[3,2] i64{0,3}", ""},
    {"Gather", "f32[5,3] i64[2,2]", "axis=1"},
    {"GatherElements", "f32[4,3] i32[4,2]", "axis=1"},
    {"GatherND", "f32[3,4,5] i64[2,2]", ""},
    {"GatherND", "f32[2,3,4] i64[2,1]", "batch_dims=1"},
    {"ScatterElements", "f32[4,3] i64[2,3] f32[2,3]", "reduction='add'"},
    {"ScatterND", "i32[5,3] i64[2,1] i32[2,3]", "reduction='max'"},
    {"ScatterND", "f16[5,3] i64[3,2] f16[3]", ""},
    {"OneHot", "i64[3,2] i64{5} f32[2]", "axis=1"},
    {"Range", "i32{3} i32{17} i32{4}", ""},
    {"Range", "f32{0.5} f32{4.0} f32{0.75}", ""},
    {"ConstantOfShape", "i64{2,3} f32[]", ""},
    {"CumSum", "f32[3,7] i64{1}", "exclusive=1 reverse=1"},
    {"ReduceSum", "f32[3,5,2] i64{0,2}", "keepdims=0"},
    {"ReduceSum", "i64[3,5,2] i64{-2}", ""},
    {"ReduceMax", "bf16[2,3,4] i64{1}", "keepdims=0"},
    {"ReduceMean", "f64[7,3]", ""},
    {"ReduceProd", "i32[3,4] i64{0}", ""},
    {"ReduceMin", "u8[2,9] i64{1}", ""},
    {"ReduceLogSumExp", "f32[4,6] i64{-1}", ""},
    {"ReduceL2", "f16[4,6]", "keepdims=0"},
    {"ArgMax", "f32[3,7,2]", "axis=1 select_last_index=1"},
    {"ArgMin", "i32[3,7]", "axis=0 keepdims=0"},
    {"Softmax", "f32[2,5,3]", "axis=1"},
    {"LogSoftmax", "f16[4,9]", ""},
    {"Hardmax", "f64[3,5]", "axis=0"},
    {"MatMul", "f32[2,1,3,4] f32[5,4,2]", ""},
    {"MatMul", "i32[4] i32[4,3]", ""},
    {"MatMul", "f16[3,5] f16[5]", ""},
    {"Gemm", "f32[4,3] f32[5,4] f32[5]", "transA=1 transB=1 alpha=0.5 beta=2.0"},
    {"MatMulInteger", "u8[3,4] i8[4,2] u8[] i8[]", ""},
    {"QLinearMatMul", "u8[3,4] f32[] u8[] i8[4,2] f32[] i8[] f32[] i8[]", ""},
    {"QLinearConv", "u8[1,2,4,4] f32[] u8[] i8[3,2,3,3] f32[3] i8[3] f32[] u8[] i32[3]", ""},
    {"QuantizeLinear", "f32[3,4] f32[4] i8[4]", "axis=1"},
    {"QuantizeLinear", "f32[3,4] f32[] -", "output_dtype=:f8e4m3fn"},
    {"QuantizeLinear", "f16[2,6] f16[2,3] u4[2,3]", "axis=1 block_size=2"},
    {"DequantizeLinear", "u8[3,4] f32[3] u8[3]", "axis=0"},
    {"DequantizeLinear", "i4[8] f16[]", ""},
    {"BatchNormalization", "f32[2,3,4] f32[3] f32[3] f32[3] f32[3]", ""},
    {"LayerNormalization", "f32[2,3,7] f32[7] f32[7]", "axis=-1"},
    {"GroupNormalization", "f32[2,6,5] f32[6] f32[6]", "num_groups=3"},
    {"InstanceNormalization", "f32[2,3,4,5] f32[3] f32[3]", ""},
    {"RMSNormalization", "f16[2,5] f16[5]", ""},
    {"LRN", "f32[1,6,3,3]", "size=3"},
    {"LSTM", "f32[3,2,4] f32[1,20,4] f32[1,20,5] f32[1,40]", "hidden_size=5"},
    {"LSTM", "f32[3,2,4] f32[2,12,4] f32[2,12,3] - i32[2]", "hidden_size=3 direction='bidirectional'"},
    {"GRU", "f32[4,1,3] f32[1,9,3] f32[1,9,3] f32[1,18]", "hidden_size=3 linear_before_reset=1"},
    {"RNN", "f64[4,2,3] f64[1,5,3] f64[1,5,5]", "hidden_size=5 direction='reverse'"},
    {"Attention", "f32[1,2,3,4] f32[1,2,5,4] f32[1,2,5,4]", ""},
    {"Attention", "f16[2,4,3,8] f16[2,2,5,8] f16[2,2,5,8] bool[3,5]", "is_causal=1 softcap=2.0"},
    {"RotaryEmbedding", "f32[1,2,3,4] f32[5,2] f32[5,2] i64[1,3]", ""},
    {"DepthToSpace", "f32[1,8,2,3]", "blocksize=2 mode='CRD'"},
    {"SpaceToDepth", "u8[1,2,4,6]", "blocksize=2"},
    {"Col2Im", "f32[1,9,4] i64{4,4} i64{3,3}", ""},
    {"RoiAlign", "f32[1,2,6,6] f32[2,4] i64[2]", "output_height=2 output_width=3 sampling_ratio=2"},
    {"EyeLike", "i32[3,4]", "k=1"},
    {"Trilu", "f32[2,4,5] i64[]", "upper=0"},
    {"ReverseSequence", "f32[5,3] i64[3]", ""},
    {"NegativeLogLikelihoodLoss", "f32[3,5] i64[3] f32[5]", "reduction='mean'"},
    {"SoftmaxCrossEntropyLoss", "f32[3,5,2] i64[3,2]", "reduction='none'"},
    {"Cast", "f32[40]", "to=:f8e5m2"},
    {"Cast", "f32[40]", "to=:i8"},
    {"Cast", "f64[40]", "to=:bf16"},
    {"Cast", "u64[40]", "to=:f16"},
    {"Cast", "f32[40]", "to=:f4e2m1"},
    {"Cast", "f32[40]", "to=:f8e8m0"},
    {"Cast", "i64[40]", "to=:u2"},
    {"Cast", "f16[40]", "to=:bool"},
    {"Clip", "i8[9] i8[] i8[]", ""},
    {"Where", "bool[3,1] f32[1,4] f32[3,4]", ""},
    {"Mod", "f32[9] f32[9]", "fmod=1"},
    {"BitShift", "u32[9] u32[9]", "direction='LEFT'"},
    {"DFT", "f32[1,8,1]", "axis=1"},
    {"HannWindow", "i64{9}", ""},
    {"BlackmanWindow", "i32{6}", "periodic=0"},
    {"Dropout", "f32[3,4]", "seed=7"},
    {"RandomUniformLike", "f32[3,5]", "seed=2.0"},
    {"RandomNormal", "", "shape=3,5 seed=2.0"},
    {"Bernoulli", "f32[3,5]", ""},
    {"Gelu", "f32[9]", "approximate='tanh'"},
    {"Upsample", "f32[1,1,2,2] f32{1.0,1.0,2.0,2.0}", ""},
    {"CenterCropPad", "f32[5,6] i64{3,8}", ""},
    {"CastLike", "f32[9] f16[2]", ""},
    {"Compress", "f32[3] bool[3]", ""},
    {"TensorScatter", "f32[1,2,5,3] f32[1,2,2,3] i64[1]", ""},
};
static const char *parse_dims(const char *s, int64_t *dim, int *rank) {
    for (*rank = 0; *s && *s != ']';) {
        char *end;
        dim[(*rank)++] = strtoll(s, &end, 10);
        s = *end == ',' ? end + 1 : end;
    }
    return *s ? s + 1 : s;
}
static int parse_inputs(const char *s, hone_value **in) {
    int n = 0;
    for (; *s; n++) {
        while (*s == ' ') s++;
        if (*s == '-') {
            in[n] = NULL, s++;
            continue;
        }
        size_t len = strcspn(s, "[{");
        hone_dtype t = hone_dtype_named(s, len);
        assert_true(t);
        int64_t dim[HONE_MAX_RANK];
        int rank;
        bool given = s[len] == '{';
        s += len + 1;
        if (!given) {
            s = parse_dims(s, dim, &rank);
            in[n] = random_value(t, dim, rank);
            continue;
        }
        double v[32];
        int64_t count = 0;
        while (*s && *s != '}') {
            char *end;
            v[count++] = strtod(s, &end);
            s = *end == ',' ? end + 1 : end;
        }
        s += *s != 0;
        in[n] = random_value(t, &count, 1);
        for (int64_t k = 0; k < count; k++)
            hone_dtype_store(t, (char *)in[n]->data + (size_t)k * hone_dtypes[t].bytes, HONE_F64,
                             (hone_scalar){.f64 = v[k]}, false);
    }
    return n;
}
static int parse_attrs(hone_arena *a, const hone_program *p, const char *s, hone_attr *out) {
    int n = 0;
    while (*s) {
        size_t len = strcspn(s, "=");
        hone_attr *o = out + n++;
        *o = (hone_attr){.name = hone_arena_textn(a, s, len), .n = 1};
        s += len + 1;
        int64_t *i = HONE_NEW_N(a, int64_t, 16);
        double *f = HONE_NEW_N(a, double, 16);
        hone_attr_kind want = HONE_ATTR_INT;
        for (int k = 0; k < p->n_attr; k++)
            if (!strcmp(p->attr[k].name, o->name)) want = p->attr[k].kind;
        len = strcspn(s, " ");
        if (*s == '\'') {
            hone_string *text = HONE_NEW(a, hone_string);
            text->text = hone_arena_textn(a, s + 1, len - 2), text->bytes = (int64_t)len - 2;
            o->kind = HONE_ATTR_STRING, o->s = text;
        } else if (*s == ':') {
            i[0] = hone_dtype_named(s + 1, len - 1);
            o->kind = HONE_ATTR_TYPE, o->i = i;
        } else {
            o->n = 0;
            for (const char *q = s; q < s + len;) {
                char *end;
                f[o->n] = strtod(q, &end), i[o->n] = (int64_t)f[o->n];
                o->n++, q = *end == ',' ? end + 1 : end;
            }
            o->kind = want;
            if (want == HONE_ATTR_FLOAT || want == HONE_ATTR_FLOATS) o->f = f;
            else o->i = i;
        }
        s += len;
        while (*s == ' ') s++;
    }
    return n;
}
static int calls_examples(int step) { /* every `step`th of them; how many were calls */
    const hone_library *library;
    int met = 0;
    if (hone_library_builtin(&library)) return 0;
    for (size_t e = 0; e < sizeof examples / sizeof *examples; e += (size_t)step) {
        const hone_program *p = hone_library_find(library, "", examples[e].op);
        /* rows come and go; which ops there are is not this test's concern */
        if (!p || !has_stage(p->lines)) continue;
        hone_arena *a = hone_arena_create();
        hone_value *in[WALK_MAX] = {NULL};
        hone_attr attr[16];
        int n_in = parse_inputs(examples[e].in, in), n_attr = parse_attrs(a, p, examples[e].attr, attr);
        char what[160];
        snprintf(what, sizeof what, "%s %.60s {%.60s}", examples[e].op, examples[e].in, examples[e].attr);
        bool want[WALK_MAX];
        for (int k = 0; k < p->n_out; k++) want[k] = true;
        if (try_call(p, attr, n_attr, in, n_in, want, what)) met++;
        else fprintf(stderr, "no call: %s: %s\n", what, hone_fail_text());
        for (int k = 0; k < n_in; k++) hone_value_drop(in[k]);
        tame = true;
        parse_inputs(examples[e].in, in);
        try_call(p, attr, n_attr, in, n_in, want, what);
        tame = false;
        for (int k = 0; k < n_in; k++) hone_value_drop(in[k]);
        hone_arena_destroy(a);
    }
    return met;
}

/* ---- every row, with made-up calls --------------------------------------------------------------------- */
/* odd sizes; one a name and try, so that operands agree */
static int64_t size_named(const char *name, int member) {
    static const int64_t sizes[] = {3, 5, 2, 7, 1, 4};
    uint64_t h = seed;
    for (const char *c = name; *c; c++) h = (h ^ (uint64_t)*c) * 0x100000001b3u;
    return sizes[(h ^ (uint64_t)(member * 77)) % 6];
}
static int64_t size_of(const hone_tree *t, int member) {
    if (t->kind == HONE_T_NUMBER) return t->real ? 1 : t->k.i;
    if (t->kind == HONE_T_NAME) return size_named(t->name, member);
    int64_t v = t->n_arg ? size_of(t->arg[0], member) : 1;
    for (int k = 1; k < t->n_arg; k++)
        v = t->kind == HONE_T_BINARY && *t->name == '+' ? v + size_of(t->arg[k], member)
                                                        : v * size_of(t->arg[k], member);
    return v;
}
static hone_value *made_up(const hone_program *p, const hone_operand *o, const hone_dtype *type_of,
                           uint64_t round) {
    int64_t dim[HONE_MAX_RANK];
    int rank = 0;
    hone_dtype t = o->of == HONE_OF_DTYPE ? o->dtype : HONE_DTYPE_F32;
    for (int k = 0; o->of == HONE_OF_VAR && k < p->n_type; k++)
        if (!strcmp(p->type[k].name, o->type)) t = type_of[k];
    if (t == HONE_DTYPE_STRING) return NULL;
    uint64_t keep = seed;
    seed = round; /* sizes are the round's */
    for (int e = 0; e < o->n_entry && rank < 8; e++) {
        const hone_entry *n = o->entry + e;
        bool group = n->expr && n->expr->kind == HONE_T_NAME && n->expr->group;
        int members = group ? (int)(size_named(n->expr->name, 99) % 3) : 1;
        for (int m = 0; m < members && rank < 8; m++) {
            int64_t d = n->kind != HONE_DIM_PLAIN ? 1 : size_of(n->expr, group ? m : 0);
            dim[rank++] = n->broadcast && size_named(o->name, m) == 1 ? 1 : d;
        }
    }
    seed = keep;
    if (!o->shaped) rank = (int)below(2), dim[0] = 1 + below(3);
    int64_t count;
    return hone_count_of(dim, rank, &count) && count < 4096 ? random_value(t, dim, rank) : NULL;
}
static int made_up_attrs(const hone_program *p, hone_arena *a, hone_attr *out) {
    int n = 0;
    for (int k = 0; k < p->n_attr && n < 16; k++) {
        const hone_attr_spec *s = p->attr + k;
        int64_t *i = HONE_NEW_N(a, int64_t, 4);
        double *f = HONE_NEW_N(a, double, 1);
        if (!s->required && below(3)) continue;
        i[0] = below(4) - 1, f[0] = random_number();
        if (s->kind == HONE_ATTR_TYPE) i[0] = 1 + below(HONE_DTYPE_COUNT - 1);
        if (s->kind == HONE_ATTR_INT || s->kind == HONE_ATTR_TYPE)
            out[n++] = (hone_attr){.name = s->name, .kind = s->kind, .n = 1, .i = i};
        if (s->kind == HONE_ATTR_FLOAT)
            out[n++] = (hone_attr){.name = s->name, .kind = s->kind, .n = 1, .f = f};
        if (s->kind == HONE_ATTR_INTS) {
            int count = 1 + (int)below(3);
            for (int q = 0; q < count; q++) i[q] = 1 + below(2);
            out[n++] = (hone_attr){.name = s->name, .kind = s->kind, .n = count, .i = i};
        }
    }
    return n;
}
static int calls_rows(int each) { /* how many rows had a call */
    const hone_library *library;
    int met = 0;
    if (hone_library_builtin(&library)) return 0;
    for (int r = 0; r < hone_library_count(library); r++) {
        const hone_program *p = hone_library_at(library, r);
        if (!has_stage(p->lines) || p->n_in + p->n_out > WALK_MAX) continue;
        int done = 0;
        for (int attempt = 0; attempt < 60 && done < each; attempt++) {
            hone_arena *a = hone_arena_create();
            hone_dtype type_of[16] = {HONE_DTYPE_NONE};
            for (int k = 0; k < p->n_type && k < 16; k++) do
                    type_of[k] = (hone_dtype)(1 + below(HONE_DTYPE_COUNT - 1));
                while (p->type[k].allowed && !(p->type[k].allowed >> type_of[k] & 1));
            hone_value *in[WALK_MAX] = {NULL};
            bool want[WALK_MAX], whole = true;
            uint64_t round = random_bits();
            for (int k = 0; k < p->n_in; k++) {
                if (p->operand[k].optional && below(2)) continue;
                in[k] = made_up(p, p->operand + k, type_of, round);
                whole &= in[k] != NULL;
            }
            for (int k = 0; k < p->n_out; k++) want[k] = !p->operand[p->n_in + k].optional || below(2);
            hone_attr attr[16];
            int n_attr = attempt % 2 ? made_up_attrs(p, a, attr) : 0;
            char what[160];
            snprintf(what, sizeof what, "%s, attempt %d", p->name, attempt);
            if (whole && try_call(p, attr, n_attr, in, p->n_in, want, what)) done++;
            for (int k = 0; k < p->n_in; k++) hone_value_drop(in[k]);
            hone_arena_destroy(a);
        }
        met += done > 0;
    }
    return met;
}

/* ---- the conformance cases ----------------------------------------------------------------------------- */
static hone_status keep_call(void *user, const hone_node *n, walk_call *w, hone_value *const *in) {
    walk_call again;
    bool want[WALK_MAX];
    char what[160];
    double flops, bytes;
    hone_instance_counts(w->in, w->param, &flops, &bytes);
    if (!(flops + bytes <= 20.0 * WORK)) return HONE_OK;
    for (int k = 0; k < n->n_out; k++) want[k] = n->out[k] >= 0;
    snprintf(what, sizeof what, "%.90s, %.50s", (const char *)user, n->program->name);
    HONE_TRY(walk_call_make(&again, n->program, n->attr, n->n_attr, in, n->n_in, want, n->n_out));
    add(&again, in, n->n_in, w->out, n->n_out, false, what);
    return HONE_OK;
}
/* Every `step`th of the conformance cases, node by node; false: they are not on this machine.
   HONE_TEST_PART=3/8: the fourth eighth of all. */
static bool calls_cases(int step, int *cases, int *whole) {
    const char *shared = getenv("HONE_SHARED_DIR");
    const hone_library *library;
    char folder[512];
    const char *part = getenv("HONE_TEST_PART");
    int met = 0, from = 0;
    if (part && (sscanf(part, "%d/%d", &from, &step) != 2 || step < 1)) return false;
    snprintf(folder, sizeof folder, "%.480s/onnx/node", shared ? shared : "");
    DIR *d = shared ? opendir(folder) : NULL;
    if (!d || hone_library_builtin(&library)) {
        if (d) closedir(d);
        return false;
    }
    for (struct dirent *e; (e = readdir(d));) {
        if (*e->d_name == '.' || met++ % step != from) continue;
        ++*cases;
        /* what cannot be loaded or run yet is another test's concern */
        *whole += !walk_case(folder, e->d_name, library, keep_call);
    }
    closedir(d);
    return true;
}
#endif
