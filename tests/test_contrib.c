/* SPDX-License-Identifier: Apache-2.0
   Ops of com.microsoft: each node beside the ops of ONNX that say the same, on random numbers, fast and by
   its definition; some with numbers known by hand; and what is refused, with its reason.
   scripts/compare_contrib.py has many more, beside ONNX Runtime. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hone/hone.h"
#include "hone/tools.h"
#include "onnx_write.h"
#include "random.h"

/* ---- graphs in few words: "Op in,in -> out attr=1 attr=0.5 attr=1:2:3 attr='text'; …"; M. stands for
   com.microsoft --- */
static msg attribute(char *word) {
    char *v = strchr(word, '=');
    *v++ = 0;
    if (*v == '\'') {
        v[strlen(v) - 1] = 0;
        return attr_text(word, v + 1);
    }
    if (strchr(v, ':')) { /* a list; of floats where a number has a point */
        bool real = strchr(v, '.') != NULL;
        msg a = attr(word, real ? 6 : 7);
        for (char *at = v; *at; at += *at == ':') {
            if (real) fixed32(&a, 7, strtof(at, &at));
            else number(&a, 8, strtoll(at, &at, 10));
        }
        return a;
    }
    return strchr(v, '.') ? attr_float(word, strtof(v, NULL)) : attr_int(word, strtoll(v, NULL, 10));
}
static void listed(msg *n, int field, char *list) { /* "a,,b": the middle one is left out */
    for (char *at = list, *end; at; at = end ? end + 1 : NULL) {
        end = strchr(at, ',');
        bytes(n, field, at, end ? (size_t)(end - at) : strlen(at));
    }
}
static void add_nodes(msg *g, const char *spec) {
    char copy[2048], *rest = copy;
    snprintf(copy, sizeof copy, "%s", spec);
    while (rest && *rest) {
        char *line = rest, *word, *more = NULL;
        if ((rest = strchr(line, ';'))) *rest++ = 0;
        if (!(word = strtok_r(line, " \n", &more))) continue;
        msg n = {0}, attrs = {0};
        bool contrib = strncmp(word, "M.", 2) == 0, out = false;
        text(&n, 4, word + (contrib ? 2 : 0));
        if (contrib) text(&n, 7, "com.microsoft");
        while ((word = strtok_r(NULL, " \n", &more))) {
            if (strcmp(word, "->") == 0) out = true;
            else if (strchr(word, '=')) sub(&attrs, 5, attribute(word));
            else listed(&n, out ? 2 : 1, word);
        }
        if (attrs.n) put(&n, attrs.at, attrs.n);
        free(attrs.at);
        add_node(g, n);
    }
}

enum { MAX = 16 };
/* "x f32 2 3; m i32 2" and values of them: floats about 0, whole numbers from 0 to 1 (i32), bytes of all
   kinds */
static const struct {
    const char *word;
    hone_dtype dtype;
} types[] = {{"f32", HONE_DTYPE_F32}, {"i32", HONE_DTYPE_I32}, {"i64", HONE_DTYPE_I64},
             {"u8", HONE_DTYPE_U8},   {"i8", HONE_DTYPE_I8},   {"f16", HONE_DTYPE_F16}};
static int add_inputs(msg *g, const char *spec, hone_value **in) {
    char copy[512], *rest = copy;
    int n = 0;
    uint32_t seed = 12345;
    snprintf(copy, sizeof copy, "%s", spec);
    while (rest && *rest) {
        char *line = rest, name[16], type[8], dims[64] = "";
        int skip = 0, rank = 0;
        int64_t dim[8];
        if ((rest = strchr(line, ';'))) *rest++ = 0;
        assert_true(sscanf(line, " %15s %7s%n", name, type, &skip) == 2);
        snprintf(dims, sizeof dims, "%s", line + skip + (line[skip] == ' '));
        size_t t = 0;
        while (strcmp(types[t].word, type) != 0) t++;
        for (char *at = dims; *at;) dim[rank++] = strtoll(at, &at, 10);
        add_input(g, name, (int)types[t].dtype, dims);
        if (!in) continue;
        assert_int_equal(hone_tensor_create(types[t].dtype, dim, rank, in + n), HONE_OK);
        for (int64_t k = 0; k < hone_value_elements(in[n]); k++) {
            void *data = hone_value_data(in[n]);
            next_linear(&seed);
            uint32_t r = seed >> 8;
            if (types[t].dtype == HONE_DTYPE_F32) ((float *)data)[k] = (float)(r % 2001) / 1000.0f - 1;
            if (types[t].dtype == HONE_DTYPE_I32) ((int32_t *)data)[k] = (int32_t)(r >> 4 & 1);
            if (types[t].dtype == HONE_DTYPE_I64) ((int64_t *)data)[k] = (int64_t)(r >> 4 & 1);
            /* ± 0.1 to 0.5 */
            if (types[t].dtype == HONE_DTYPE_F16) ((uint16_t *)data)[k] = (uint16_t)(0x3000 | (r & 0x8fff));
            if (types[t].dtype == HONE_DTYPE_U8 || types[t].dtype == HONE_DTYPE_I8)
                ((uint8_t *)data)[k] = (uint8_t)r;
        }
        n++;
    }
    return n;
}
static hone_status load(const char *inputs, const char *nodes, const char *more, int n_out,
                        hone_model **out) {
    msg g = {0}, m;
    add_nodes(&g, nodes);
    add_nodes(&g, more);
    add_inputs(&g, inputs, NULL);
    for (int k = 0; k < n_out; k++) add_output(&g, (char[]){'y', (char)('0' + k), 0});
    m = model_of(g, 25);
    sub(&m, 8, opset("com.microsoft", 1));
    hone_status s = hone_model_load_memory(m.at, m.n, out);
    free(m.at);
    return s;
}
static void run(const char *inputs, const char *nodes, const char *more, int n_out, bool interpret,
                hone_value *const *in, hone_value **out) {
    hone_model *m = NULL;
    hone_session *s = NULL;
    hone_options o;
    if (load(inputs, nodes, more, n_out, &m)) fail_msg("%s\n%s", more, hone_error());
    hone_options_default(&o);
    o.interpret = interpret;
    if (hone_session_create(m, &o, &s) || hone_session_run(s, in, out))
        fail_msg("%s\n%s", more, hone_error());
    hone_session_free(s);
    hone_model_free(m);
}

/* ---- the same in ONNX's ops ---- */
#define SCALES                                                                                        \
    "Constant -> s value_float=0.05; Constant -> t value_float=0.07; Constant -> r value_float=0.1; " \
    "Constant -> n value_int=5; Cast n -> "                                                           \
    "z to=2; Cast n -> v to=3;"
#define ALL_EXPERTS(w, h) "Einsum x," w " -> " h " equation='tj,eij->tei';"
#define MIXED                                                                                    \
    "Softmax r -> p0; Constant -> last value_ints=-1:; Unsqueeze p0,last -> p; Einsum a,v -> o " \
    "equation='tei,eji->tej';"
#define SUMMED "Constant -> mid value_ints=1:; ReduceSum s,mid -> y0 keepdims=0;"
#define NUMBER(name, v) "Constant -> " name " value_float=" v ";"
#define HEADS(x, y, n)                                                                                       \
    "Constant -> sh" y " value_ints=0:0:" n ":-1; Reshape " x ",sh" y " -> rs" y "; Transpose rs" y " -> " y \
    " perm=0:2:1:3;"
#define JOIN(x, y)                                                                                         \
    "Constant -> jn" y " value_ints=0:0:-1; Transpose " x " -> tr" y " perm=0:2:1:3; Reshape tr" y ",jn" y \
    " -> " y ";"
static const struct {
    const char *inputs, *both, *contrib, *standard;
    int outputs;
    double atol;
} cases[] = {
    {"x f32 2 4 7 6; w f32 6 2 3 3; b f32 6; a f32 2 6 7 6", "",
     "M.FusedConv x,w,b,a -> y0 group=2 pads=1:1:1:1 activation='Relu'",
     "Conv x,w,b -> c group=2 pads=1:1:1:1; Add c,a -> d; Relu d -> y0", 1, 1e-5},
    {"x f32 2 4 7 6; w f32 6 4 3 3", "",
     "M.FusedConv x,w -> y0 activation='Clip' activation_params=-0.5:0.75",
     "Constant -> lo value_float=-0.5; Constant -> hi value_float=0.75; Conv x,w -> c; Clip c,lo,hi -> y0", 1,
     1e-5},
    {"x f32 2 7 6 4; w f32 6 4 3 3", "",
     "M.NhwcFusedConv x,w -> y0 activation='LeakyRelu' activation_params=0.25:",
     "Transpose x -> t perm=0:3:1:2; Conv t,w -> c; LeakyRelu c -> d alpha=0.25; Transpose d -> y0 "
     "perm=0:2:3:1",
     1, 1e-5},
    {"a f32 5 3; b f32 7 5; c f32 7", "",
     "M.FusedGemm a,b,c -> y0 transA=1 transB=1 alpha=0.5 beta=2.0 activation='Elu' activation_alpha=0.7",
     "Gemm a,b,c -> g transA=1 transB=1 alpha=0.5 beta=2.0; Elu g -> y0 alpha=0.7", 1, 1e-5},
    {"a f32 2 5 3; b f32 2 7 5", "Constant -> h value_float=0.5;",
     "M.FusedMatMul a,b -> y0 transA=1 transB=1 alpha=0.5",
     "Transpose a -> p perm=0:2:1; Transpose b -> q perm=0:2:1; MatMul p,q -> m; Mul m,h -> y0", 1, 1e-5},
    {"a f32 3 2 5; b f32 2 5 4", "", "M.FusedMatMul a,b -> y0 transBatchA=1",
     "Transpose a -> p perm=1:0:2; MatMul p,b -> y0", 1, 1e-5},
    {"x f32 2 3 9; b f32 9", "", "M.BiasGelu x,b -> y0; M.FastGelu x,b -> y1; M.Gelu x -> y2",
     "Add x,b -> c; Gelu c -> y0; Gelu c -> y1 approximate='tanh'; Gelu x -> y2", 3, 1e-5},
    {"x f32 2 3 9", "Constant -> h value_float=1.5;", "M.QuickGelu x -> y0 alpha=1.5",
     "Mul x,h -> a; Sigmoid a -> g; Mul x,g -> y0", 1, 1e-5},
    {"x f32 2 3 8; b f32 8; r f32 2 3 8", "",
     "M.BiasAdd x,b,r -> y0; M.BiasDropout x,b,r -> y1; M.BiasSplitGelu x,b -> y2",
     "Add x,b -> c; Add c,r -> y0; Add c,r -> y1; Split c -> l,g num_outputs=2 axis=-1; Gelu g -> h; Mul l,h "
     "-> y2",
     3, 1e-5},
    {"x f32 2 3 4 5; b f32 2 1 1 5", "", "M.BiasSoftmax x,b -> y0 axis=3 is_inner_broadcast=1",
     "Add x,b -> c; Softmax c -> y0 axis=-1", 1, 1e-5},
    {"x f32 2 3 4; w f32 4 5; b f32 5", "", "M.GemmFastGelu x,w,b -> y0",
     "MatMul x,w -> m; Add m,b -> c; Gelu c -> y0 approximate='tanh'", 1, 1e-5},
    {"x f32 2 3 7; s f32 3 7; g f32 7; b f32 7; c f32 7", "",
     "M.SkipLayerNormalization x,s,g,b,c -> y0,,,y1 epsilon=0.001",
     "Add x,s -> d; Add d,c -> y1; LayerNormalization y1,g,b -> y0 epsilon=0.001", 2, 1e-5},
    {"x f32 2 3 7; s f32 2 3 7; g f32 7", "",
     "M.SkipSimplifiedLayerNormalization x,s,g -> y0,,,y1 epsilon=0.001; SimplifiedLayerNormalization x,g -> "
     "y2 epsilon=0.001",
     "Add x,s -> y1; RMSNormalization y1,g -> y0 epsilon=0.001; RMSNormalization x,g -> y2 epsilon=0.001", 3,
     1e-5},
    {"x f32 2 3 5 8; g f32 8; b f32 8; k f32 2 8", "Constant -> sh value_ints=0:1:1:-1; Reshape k,sh -> k4;",
     "M.GroupNorm x,g,b -> y0 groups=4 activation=1; M.SkipGroupNorm x,g,b,k -> y1,y2 groups=2 activation=0",
     "Transpose x -> t perm=0:3:1:2; GroupNormalization t,g,b -> n num_groups=4; Sigmoid n -> q; Mul n,q -> "
     "a; Transpose a -> y0 "
     "perm=0:2:3:1;"
     "Add x,k4 -> y2; Transpose y2 -> u perm=0:3:1:2; GroupNormalization u,g,b -> m num_groups=2; Transpose "
     "m -> y1 perm=0:2:3:1",
     3, 1e-5},
    {"i i32 2 5; e i32 2 5; w f32 4 8; p f32 5 8; k f32 2 8; g f32 8; b f32 8; m i32 2 5",
     "Constant -> ax value_ints=1:;",
     "M.EmbedLayerNormalization i,e,w,p,k,g,b,m -> y0,c,y1 epsilon=0.001; Cast c -> y2 to=1",
     "Gather w,i -> a; Add a,p -> d; Gather k,e -> f; Add d,f -> y1; LayerNormalization y1,g,b -> y0 "
     "epsilon=0.001; ReduceSum m,ax -> c "
     "keepdims=0; Cast c -> y2 to=1",
     3, 1e-5},
    /* attention */
    {"x f32 2 5 12; w f32 12 48; b f32 48; m i32 2 5",
     "Constant -> zero value_float=0.0; Constant -> low value_float=-10000.0; Constant -> ax value_ints=1:2; "
     "Cast m -> mb to=9; Where "
     "mb,zero,low -> mf; Unsqueeze mf,ax -> mm;",
     "M.Attention x,w,b,m -> y0 num_heads=2 unidirectional=1",
     "MatMul x,w -> a; Add a,b -> c; Split c -> q,k,v num_outputs=3 axis=-1;" HEADS("q", "q4", "2") HEADS(
         "k", "k4", "2") HEADS("v", "v4", "2") "Attention q4,k4,v4,mm -> o is_causal=1;" JOIN("o", "y0"),
     1, 1e-4},
    {"q f32 2 3 16; k f32 2 4 16; v f32 2 4 16; pk f32 2 2 3 8; pv f32 2 2 3 8; a f32 1 2 3 7", "",
     "M.MultiHeadAttention q,k,v,,,a,pk,pv -> y0,y1,y2 num_heads=2 scale=0.25",
     HEADS("q", "q4", "2") HEADS("k", "k4", "2")
         HEADS("v", "v4", "2") "Attention q4,k4,v4,a,pk,pv -> o,y1,y2 scale=0.25;" JOIN("o", "y0"),
     3, 1e-4},
    {"q f32 2 3 2 3 8", "Constant -> i0 value_int=0; Constant -> i1 value_int=1; Constant -> i2 value_int=2;",
     "M.MultiHeadAttention q -> y0 num_heads=2",
     "Gather q,i0 -> a axis=3; Gather q,i1 -> b axis=3; Gather q,i2 -> c axis=3; Transpose a -> q4 "
     "perm=0:2:1:3; Transpose b -> k4 "
     "perm=0:2:1:3;"
     "Transpose c -> v4 perm=0:2:1:3; Attention q4,k4,v4 -> o;" JOIN("o", "y0"),
     1, 1e-4},
    {"x f32 2 3 4 8; p i64 2 4; c f32 6 4; s f32 6 4", "", "M.RotaryEmbedding x,p,c,s -> y0 interleaved=1",
     "RotaryEmbedding x,c,s,p -> y0 interleaved=1", 1, 1e-5},
    /* a prompt, then one more token behind a past */
    {"q f32 2 5 32; k f32 2 5 16; v f32 2 5 16",
     "Constant -> l8 value_ints=4:4; Cast l8 -> l to=6; Constant -> t8 value_int=5; Cast t8 -> t to=6;",
     "M.GroupQueryAttention q,k,v,,,l,t -> y0,y1,y2 num_heads=4 kv_num_heads=2",
     HEADS("q", "q4", "4") HEADS("k", "k4", "2")
         HEADS("v", "v4", "2") "Attention q4,k4,v4 -> o,y1,y2 is_causal=1;" JOIN("o", "y0"),
     3, 1e-4},
    {"q f32 2 1 32; k f32 2 1 16; v f32 2 1 16; pk f32 2 2 6 8; pv f32 2 2 6 8",
     "Constant -> l8 value_ints=6:6; Cast l8 -> l to=6; Constant -> t8 value_int=7; Cast t8 -> t to=6;",
     "M.GroupQueryAttention q,k,v,pk,pv,l,t -> y0,y1,y2 num_heads=4 kv_num_heads=2 softcap=2.0 "
     "local_window_size=4",
     HEADS("q", "q4", "4") HEADS("k", "k4", "2") HEADS(
         "v", "v4",
         "2") "Attention q4,k4,v4,,pk,pv -> o,y1,y2 is_causal=1 softcap=2.0 left_window_size=3;" JOIN("o",
                                                                                                      "y0"),
     3, 1e-4},
    /* mixtures of all experts there are: every form, those too that ONNX Runtime's CPU refuses */
    {"x f32 5 4; r f32 5 3; w f32 3 6 4; b f32 3 6; v f32 3 4 6; c f32 3 4", "",
     "M.MoE x,r,w,b,v,c -> y0 k=3 activation_type='silu'",
     ALL_EXPERTS("w", "h") "Add h,b -> i; Sigmoid i -> j; Mul i,j -> a;" MIXED
                           "Add o,c -> q; Mul q,p -> s;" SUMMED,
     1, 1e-4},
    {"x f32 5 4; r f32 5 3; w f32 3 6 4; v f32 3 4 6; u f32 3 6 4; d f32 3 6", "",
     "M.MoE x,r,w,,v,,u,d -> y0 k=3 activation_type='swiglu' activation_alpha=1.5 activation_beta=0.25 "
     "swiglu_limit=0.5",
     ALL_EXPERTS("w", "h") ALL_EXPERTS("u", "l") NUMBER("half", "0.5") NUMBER("low", "-0.5") NUMBER(
         "a2", "1.5") NUMBER("b2", "0.25") "Min h,half -> g; Mul g,a2 -> g1; Sigmoid g1 -> g2;"
                                           "Mul g,g2 -> g3; Add l,d -> l1; Clip l1,low,half -> l2; Add l2,b2 "
                                           "-> l3; Mul g3,l3 -> a;" MIXED "Mul o,p -> s;" SUMMED,
     1, 1e-4},
    {"x f32 5 4; r f32 5 3; w f32 3 12 4; v f32 3 4 6", "",
     "M.MoE x,r,w,,v -> y0 k=3 activation_type='swiglu' swiglu_fusion=2 normalize_routing_weights=1",
     ALL_EXPERTS(
         "w",
         "h") "Split h -> g,l axis=-1 num_outputs=2; Sigmoid g -> g2; Mul g,g2 -> g3; Mul g3,l -> a;" MIXED
              "Mul o,p -> s;" SUMMED,
     1, 1e-4},
    {"x f32 2 3 4; r f32 6 3; w8 u8 3 6 4; t f32 3 6; v8 u8 3 4 6; k f32 3 4; c f32 3 4", "",
     "M.QMoE x,r,w8,t,,v8,k,c -> y6 k=3 expert_weight_bits=8 activation_type='gelu'; Constant -> six "
     "value_ints=6:4; Reshape y6,six -> y0",
     NUMBER("z",
            "128.0") "Constant -> one value_ints=-1:; Constant -> all value_ints=6:4; Reshape x,all -> x6;"
                     "Cast w8 -> w1 to=1; Sub w1,z -> w2; Unsqueeze t,one -> t1; Mul w2,t1 -> w; Cast v8 -> "
                     "v1 to=1; Sub v1,z -> v2;"
                     "Unsqueeze k,one -> k1; Mul v2,k1 -> v; Einsum x6,w -> h equation='tj,eij->tei'; Gelu h "
                     "-> a approximate='tanh';" MIXED "Add o,c -> q; Mul q,p -> s;" SUMMED,
     1, 1e-1},
    {"q f32 2 1 16; k f32 2 1 16; v f32 2 1 16; pk f32 2 2 6 8; pv f32 2 2 6 8",
     "Constant -> l8 value_ints=6:; Cast l8 -> l to=6;",
     "M.DecoderMaskedMultiHeadAttention q,k,v,,,pk,pv,l -> y0,y1,y2 num_heads=2 past_present_share_buffer=1",
     HEADS("q", "q4", "2") HEADS("k", "k4", "2")
         HEADS("v", "v4", "2") "Attention q4,k4,v4,,pk,pv -> o,y1,y2;" JOIN("o", "y0"),
     3, 1e-4},
    /* others */
    {"x f32 2 3 5 4; g f32 2 3 6 2", "Constant -> a value_int=1;",
     "M.ExpandDims x,a -> y0; M.Trilu x -> y1 upper=0; M.GridSample x,g -> y2 mode='bicubic'",
     "Unsqueeze x,a -> y0; Trilu x -> y1 upper=0; GridSample x,g -> y2 mode='cubic'", 3, 1e-5},
    {"x f32 2 3 7 8",
     "Constant -> h value_float=0.5; Constant -> w value_float=2.0; Constant -> st value_ints=2:1; Constant "
     "-> en value_ints=6:5; Constant "
     "-> ax value_ints=2:3;",
     "Affine x -> a alpha=2.0 beta=0.5; Scale a -> y0 scale=0.5; ScaledTanh x -> y1 alpha=2.0 beta=0.5; Crop "
     "x -> y2 border=1:2:3:1",
     "Mul x,w -> m; Add m,h -> a; Mul a,h -> y0; Mul x,h -> t; Tanh t -> u; Mul u,w -> y1; Slice x,st,en,ax "
     "-> y2",
     3, 1e-5},
    /* bytes */
    {"a u8 2 3 5; b u8 3 1", SCALES,
     "M.QLinearAdd a,s,z,b,t,z,r,z -> c; M.QLinearMul a,s,z,b,t,z,r,z -> d; Cast c -> y0 to=1; Cast d -> y1 "
     "to=1",
     "DequantizeLinear a,s,z -> fa; DequantizeLinear b,t,z -> fb; Add fa,fb -> e; Mul fa,fb -> f; "
     "QuantizeLinear e,r,z -> c; "
     "QuantizeLinear f,r,z -> d; Cast c -> y0 to=1; Cast d -> y1 to=1",
     2, 1},
    {"a i8 2 3 5", SCALES,
     "M.QLinearSigmoid a,s,v,t,v -> c; M.QLinearLeakyRelu a,s,,t -> d alpha=0.25; M.QLinearSoftmax a,s,v,t,v "
     "-> e axis=-1 opset=13; Cast c "
     "-> y0 to=1; Cast d -> y1 to=1; Cast e -> y2 to=1",
     "DequantizeLinear a,s,v -> f; DequantizeLinear a,s -> g; Sigmoid f -> h; LeakyRelu g -> i alpha=0.25; "
     "Softmax f -> j axis=-1; "
     "Constant -> o value_int=0; Cast o -> v0 to=3;"
     "QuantizeLinear h,t,v -> c; QuantizeLinear i,t,v0 -> d; QuantizeLinear j,t,v -> e; Cast c -> y0 to=1; "
     "Cast d -> y1 to=1; Cast e -> y2 "
     "to=1",
     3, 1},
    {"a u8 2 3 5; b u8 2 4 5; m i32 2 1 1", SCALES "Cast m -> mb to=9; Constant -> ax value_ints=1:2;",
     "M.QLinearConcat r,z,a,s,z,b,t,z -> c axis=1; M.QLinearWhere mb,a,s,z,a,t,z,r,z -> d; "
     "M.QLinearReduceMean a,s,z,r,z -> e axes=1:2 "
     "keepdims=0; Cast c -> y0 to=1; Cast d -> y1 to=1; Cast e -> y2 to=1",
     "DequantizeLinear a,s,z -> fa; DequantizeLinear b,t,z -> fb; DequantizeLinear a,t,z -> fc; Concat fa,fb "
     "-> g axis=1; Where mb,fa,fc "
     "-> h; ReduceMean fa,ax -> i keepdims=0;"
     "QuantizeLinear g,r,z -> c; QuantizeLinear h,r,z -> d; QuantizeLinear i,r,z -> e; Cast c -> y0 to=1; "
     "Cast d -> y1 to=1; Cast e -> y2 "
     "to=1",
     3, 1},
    {"a u8 2 6 5 3", SCALES,
     "M.QLinearAveragePool a,s,z,r,z -> c kernel_shape=2:2 channels_last=1; M.QLinearGlobalAveragePool "
     "a,s,z,r,z -> d channels_last=1; "
     "M.NhwcMaxPool a -> e kernel_shape=3:2; Cast c -> y0 to=1; Cast d -> y1 to=1; Cast e -> y2 to=1",
     "Transpose a -> b perm=0:3:1:2; DequantizeLinear b,s,z -> f; AveragePool f -> g kernel_shape=2:2; "
     "GlobalAveragePool f -> h; MaxPool b "
     "-> i kernel_shape=3:2; QuantizeLinear g,r,z -> j; QuantizeLinear h,r,z -> k;"
     "Transpose j -> c perm=0:2:3:1; Transpose k -> d perm=0:2:3:1; Transpose i -> e perm=0:2:3:1; Cast c -> "
     "y0 to=1; Cast d -> y1 to=1; "
     "Cast e -> y2 to=1",
     3, 1},
    {"x u8 2 7 6 4; w i8 6 4 3 3", SCALES "Constant -> b8 value_ints=9:-9:99:0:5:-70; Cast b8 -> b to=6;",
     "M.QLinearConv x,s,z,w,t,v,r,z,b -> c channels_last=1 pads=1:1:1:1; Cast c -> y0 to=1",
     "Transpose x -> xt perm=0:3:1:2; QLinearConv xt,s,z,w,t,v,r,z,b -> ct pads=1:1:1:1; Transpose ct -> c "
     "perm=0:2:3:1; Cast c -> y0 to=1",
     1, 1},
    {"a u8 5 6; b i8 9 6",
     SCALES "Constant -> c8 value_ints=9:-9:99:0:5:-70:3:8:-1; Cast c8 -> c to=6; Constant -> st "
            "value_float=0.0035; Constant -> h "
            "value_float=0.5;",
     "M.QGemm a,s,z,b,t,v,c -> y0 transB=1; M.QGemm a,s,z,b,t,v,c,h,z -> q transB=1; Cast q -> y1 to=1",
     "DequantizeLinear a,s,z -> fa; DequantizeLinear b,t,v -> fb; DequantizeLinear c,st -> fc; Gemm fa,fb,fc "
     "-> y0 transB=1; "
     "QuantizeLinear y0,h,z -> q; Cast q -> y1 to=1",
     2, 1.0001},
    {"a u8 2 5 6; b i8 6 9; x f32 2 5 6; c f32 9", SCALES,
     "M.MatMulIntegerToFloat a,b,s,t,z,v,c -> y0; M.DynamicQuantizeMatMul x,b,t,v,c -> y1",
     "Mul s,t -> st; MatMulInteger a,b,z,v -> i; Cast i -> f to=1; Mul f,st -> g; Add g,c -> y0; "
     "DynamicQuantizeLinear x -> xq,xs,xz; "
     "MatMulInteger xq,b,xz,v -> j; Cast j -> h to=1;"
     "Mul xs,t -> xt; Mul h,xt -> k; Add k,c -> y1",
     2, 1e-4},
    {"x u8 2 5 12; w i8 12 48; b f32 48", SCALES, "M.QAttention x,w,b,s,t,,z,v -> y0 num_heads=2",
     "Mul s,t -> st; MatMulInteger x,w,z,v -> i; Cast i -> f to=1; Mul f,st -> g; Add g,b -> c; Split c -> "
     "q,k,u num_outputs=3 "
     "axis=-1;" HEADS("q", "q4", "2") HEADS("k", "k4", "2")
         HEADS("u", "v4", "2") "Attention q4,k4,v4 -> o;" JOIN("o", "y0"),
     1, 1e-4},
    {"x f32 4 3 5; w i8 1 5 32; r i8 1 8 32; b f32 1 64",
     "Constant -> s1 value_floats=0.005:; Constant -> z8 value_ints=0:; Cast z8 -> z1 to=3; Constant -> s0 "
     "value_float=0.005;",
     "M.DynamicQuantizeLSTM x,w,r,b,,,,,s1,z1,s1,z1 -> y0,y1,y2 hidden_size=8",
     "DequantizeLinear w,s0 -> fw; DequantizeLinear r,s0 -> fr; Transpose fw -> tw perm=0:2:1; Transpose fr "
     "-> tr perm=0:2:1; LSTM "
     "x,tw,tr,b -> y0,y1,y2 hidden_size=8",
     3, 1e-4},
};

static void same(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        hone_value *in[MAX] = {0}, *want[MAX] = {0};
        msg none = {0};
        int n = add_inputs(&none, cases[k].inputs, in);
        free(none.at);
        run(cases[k].inputs, cases[k].both, cases[k].standard, cases[k].outputs, true, in, want);
        for (int interpret = 0; interpret < 2; interpret++) {
            hone_value *out[MAX] = {0};
            run(cases[k].inputs, cases[k].both, cases[k].contrib, cases[k].outputs, interpret, in, out);
            for (int q = 0; q < cases[k].outputs; q++) {
                hone_difference d;
                hone_compare(out[q], want[q], 1e-4, cases[k].atol, &d);
                if (!d.ok)
                    fail_msg("%s: output %d%s: %s", cases[k].contrib, q,
                             interpret ? " by its definition" : "", d.why);
                hone_value_free(out[q]);
            }
        }
        for (int q = 0; q < n; q++) hone_value_free(in[q]);
        for (int q = 0; q < cases[k].outputs; q++) hone_value_free(want[q]);
    }
}

/* ---- numbers known by hand ---- */
static void known(void **state) {
    (void)state;
    static const struct {
        const char *nodes;
        int n;
        double want[4];
    } rows[] = {
        /* (200 - 5) * 0.05 + (21 - 5) * 0.07 = 10.87, of 0.1 a step, + 5 */
        {"Constant -> a8 value_ints=200:5:; Cast a8 -> a to=2; Constant -> b8 value_ints=21:; Cast b8 -> b "
         "to=2; M.QLinearAdd "
         "a,s,z,b,t,z,r,z -> c; Cast c -> y0 to=1",
         2,
         {114, 16}},
        {"Constant -> a8 value_ints=25:5:; Cast a8 -> a to=2; M.QLinearMul a,s,z,a,s,z,r,z -> c; Cast c -> "
         "y0 to=1",
         2,
         {15, 5}},
        {"Constant -> x value_floats=3.0:-4.0:; Constant -> w value_floats=1.0:2.0:; "
         "SimplifiedLayerNormalization x,w -> y0 epsilon=0.0",
         2,
         {0.84852814, -2.2627417}},
        {"Constant -> x value_floats=1.0:2.0:; M.QuickGelu x -> y0 alpha=0.0", 2, {0.5, 1}},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        hone_value *out = NULL;
        run("", SCALES, rows[k].nodes, 1, false, NULL, &out);
        assert_int_equal(hone_value_elements(out), rows[k].n);
        for (int q = 0; q < rows[k].n; q++)
            if (fabs(hone_value_number(out, q) - rows[k].want[q]) > 1e-5)
                fail_msg("%s: %g, not %g", rows[k].nodes, hone_value_number(out, q), rows[k].want[q]);
        hone_value_free(out);
    }
}

/* ---- what is refused ---- */
static void refused(void **state) {
    (void)state;
    static const struct {
        const char *inputs, *nodes, *says;
    } rows[] = {
        {"x f32 2", "M.NoSuchOp x -> y0", "unknown op"},
        {"x f32 2", "M.Gelu x -> y0 gamma=1", "unknown attribute 'gamma'"},
        {"x f32 2", "M.Gelu x -> y0 =1", "unknown attribute ''"},
        {"x f32 2", "M.BiasGelu x -> y0", "it has 1 inputs and 1 outputs; 2 to 2 and at most 1 are expected"},
        {"x f32 2 4 5 5; w f32 2 4 1 1", "M.FusedConv x,w -> y0 activation='Odd'",
         "activation 'Odd' is not known"},
        {"x f32 2; w f32 2", "M.FusedMatMul x,w -> y0 transBatchA=1", "its rank is below 3"},
        {"x f32 2 5 12; w f32 12 48; b f32 48", "M.Attention x,w,b -> y0 num_heads=0",
         "num_heads must be positive"},
        {"x f32 2 5 12; w f32 12 48; b f32 48", "M.Attention x,w,b -> y0 num_heads=2 do_rotary=1",
         "do_rotary"},
        {"x f32 2 5 12; w f32 12 48; b f32 48; m i32 2 1 5 5", "M.Attention x,w,b,m -> y0 num_heads=2",
         "a mask of 4 dims"},
        {"q f32 2 5 16; l i32 2; t i32",
         "M.GroupQueryAttention q,,,,,l,t -> y0 num_heads=2 kv_num_heads=1 sliding_window_cache=1 "
         "local_window_size=2",
         "sliding_window_cache"},
        {"q f32 2 5 16; l i32 2; t i32",
         "M.GroupQueryAttention q,,,,,l,t -> y0 num_heads=2 kv_num_heads=1 k_quant_type='PER_TENSOR'",
         "a quantized cache"},
        {"q f32 2 5 16; l i32 2; t i32",
         "M.GroupQueryAttention q,,,,,l,t -> y0 num_heads=2 kv_num_heads=1 do_rotary=1",
         "needs cos_cache and sin_cache"},
        {"x f32 5 4; r f32 5 3; w f32 3 6 4; v f32 3 4 6", "M.MoE x,r,w,,v -> y0 use_sparse_mixer=1",
         "use_sparse_mixer"},
        {"x f32 5 4; r f32 5 3; w f32 3 6 4; v f32 3 4 6", "M.MoE x,r,w,,v -> y0 activation_type='swiglu'",
         "without fc3"},
        {"x f32 5 4; r f32 5 3; w f32 3 6 4; v f32 3 4 6", "M.MoE x,r,w,,v,,w -> y0",
         "where the activation has no use for them"},
        {"x f32 5 4; r f32 5 3; w f32 3 6 4; v f32 3 4 6", "M.MoE x,r,w,,v -> y0 activation_type='odd'",
         "an activation_type other than"},
        {"x f32 5 4; r f32 5 3; w u8 3 6 2; s f32 3 6; v u8 3 4 3; t f32 3 4",
         "M.QMoE x,r,w,s,,v,t -> y0 quant_type='fp4'", "quant_type"},
        {"x f32 5 4; r f32 5 3; w u8 3 6 3; s f32 3 6; v u8 3 4 3; t f32 3 4", "M.QMoE x,r,w,s,,v,t -> y0",
         "as many values as the input"},
        {"s f32; z u8; x u8 2", "M.QLinearConcat s,z,x,s -> y0 axis=0", "inputs come in threes"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        hone_model *m = NULL;
        assert_int_not_equal(load(rows[k].inputs, "", rows[k].nodes, 1, &m), HONE_OK);
        if (!strstr(hone_error(), rows[k].says)) fail_msg("%s says: %s", rows[k].nodes, hone_error());
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same), cmocka_unit_test(known),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
