/* SPDX-License-Identifier: Apache-2.0
   Printed C against the interpreter, bit for bit: programs are printed, compiled by the system's C compiler, loaded and run on the same
   data. Calls come from three places: a table of examples, calls made up at random for every row, and ONNX's conformance cases node by
   node. NaNs count as equal whatever their bits: which operand's NaN survives is the compiler's choice. HONE_TEST_SEED repeats a run. */
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "loops/storage.h"
#include "walk.h"

extern const char hone_fn_text[], hone_storage_text[];

/* What is printed is compiled by the release build's test. Printing, and the definition, are what a sanitizer can find something in; the examples are compiled there too. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(HONE_EMULATED)
enum { SLOW = 1 };
#else
enum { SLOW = 0 };
#endif
enum {
    BATCH = 300 /* functions a file */,
    HELD = 100000000 /* bytes of calls that wait */,
    WORK = 2000000 /* operations that a call may take */
};
typedef int printed_fn(void *const *, const long long *, const long long *, const double *);
typedef struct {
    walk_call call;
    hone_value *in[WALK_MAX], *want[WALK_MAX];
    int n_in, n_out, function;
    bool failed;
    char what[160];
} job;
typedef struct {
    char *body;
    printed_fn *fn;
} function; /* printed without a name, so that equal ones are compiled once; NULL: not compiled */
static struct {
    char folder[64];
    bool works;     /* there is a compiler, and what it makes runs here */
    bool print;     /* and no more: it is not compiled */
    hone_text text; /* of the file in the making */
    hone_vec(function) functions;
    hone_vec(void *) libraries;
    hone_vec(job *) jobs; /* that wait for it; jobs of compiled functions run at once */
    size_t held;
    int compiled, calls, failures;
} batch;
static uint64_t seed;
static uint64_t random_bits(void) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed;
}
static int64_t below(int64_t n) { return (int64_t)(random_bits() >> 11) % n; }

/* ---- compiling and running ---------------------------------------------------------------------------------------------------------- */
static bool compile(const char *text, const char *stem, void **library) {
    char path[160], command[512];
    snprintf(path, sizeof path, "%s/%s.c", batch.folder, stem);
    FILE *f = fopen(path, "w");
    if (!f) return false;
    fputs(text, f);
    if (fclose(f)) return false;
    snprintf(command, sizeof command,
             "cc -O0 -std=c11 -Wall -Wextra -Werror -ffp-contract=off -shared -fPIC -o %s/%s.so %s -lm > %s/%s.log 2>&1", batch.folder,
             stem, path, batch.folder, stem);
    if (system(command)) return false;
    snprintf(path, sizeof path, "%s/%s.so", batch.folder, stem);
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return *library != NULL;
}
static int set_up(void **state) {
    (void)state;
    const char *s = getenv("HONE_TEST_SEED"), *t = getenv("TMPDIR");
    seed = s ? strtoull(s, NULL, 0) : 0x9e3779b97f4a7c15u;
    snprintf(batch.folder, sizeof batch.folder, "%.40s/hone-printer-XXXXXX", t ? t : "/tmp");
    if (!mkdtemp(batch.folder)) return -1;
    void *library = NULL;
    batch.works = compile("int probe(void);\nint probe(void) { return 1; }\n", "probe", &library);
    if (library) dlclose(library);
    return 0;
}
static int tear_down(void **state) {
    (void)state;
    for (int k = 0; k < batch.libraries.n; k++)
        if (batch.libraries.at[k]) dlclose(batch.libraries.at[k]);
    for (int k = 0; k < batch.functions.n; k++) free(batch.functions.at[k].body);
    hone_vec_free(&batch.libraries);
    hone_vec_free(&batch.functions);
    if (batch.failures) { /* keep what failed, for reading */
        fprintf(stderr, "printed C is kept in %s\n", batch.folder);
        return 0;
    }
    DIR *d = opendir(batch.folder);
    char path[400];
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", batch.folder, e->d_name);
        if (*e->d_name != '.') unlink(path);
    }
    if (d) closedir(d);
    rmdir(batch.folder);
    return 0;
}
static bool same_bits(const hone_value *a, const hone_value *b, int64_t *at) {
    size_t each = hone_dtypes[a->dtype].bytes;
    for (int64_t k = 0; k < hone_value_count(a); k++) {
        const char *p = (const char *)a->data + (size_t)k * each, *q = (const char *)b->data + (size_t)k * each;
        *at = k;
        if (!memcmp(p, q, each)) continue;
        if (hone_dtypes[a->dtype].kind != HONE_KIND_FLOAT) return false;
        hone_ctype c = hone_dtypes[a->dtype].ctype;
        if (!isnan(hone_scalar_f64(c, hone_dtype_load(a->dtype, p))) || !isnan(hone_scalar_f64(c, hone_dtype_load(a->dtype, q))))
            return false;
    }
    return true;
}
static void complain(const job *j, const char *format, ...) {
    va_list v;
    va_start(v, format);
    fprintf(stderr, "f%d, %s: ", j->function, j->what);
    vfprintf(stderr, format, v);
    fputc('\n', stderr);
    va_end(v);
    batch.failures++;
}
static void run_job(job *j, printed_fn *fn) { /* and frees it */
    const hone_instance *in = j->call.in;
    void **t = calloc((size_t)in->n_tensor + 1, sizeof *t);
    long long *s = calloc((size_t)in->n_tensor * HONE_MAX_RANK + 1, sizeof *s), *p = calloc((size_t)in->n_param + 1, sizeof *p);
    double *pf = calloc((size_t)in->n_param + 1, sizeof *pf);
    for (int k = 0; k < in->n_tensor; k++) {
        t[k] = j->call.place[k].at;
        for (int d = 0; d < in->tensor[k].rank; d++) s[k * HONE_MAX_RANK + d] = j->call.place[k].stride[d];
    }
    for (int k = 0; k < in->n_param; k++) {
        if (in->param_real[k]) pf[k] = j->call.param[k].f;
        else p[k] = j->call.param[k].i;
    }
    int rc = fn ? fn(t, s, p, pf) : 0;
    int64_t at = 0;
    batch.calls++;
    if (!fn) j->n_out = 0; /* its file did not compile, which is a failure already */
    else if ((rc != 0) != j->failed) complain(j, "printed C returned %d, the interpreter %s", rc, j->failed ? "failed" : "did not fail");
    else if (rc < 0 || rc > in->n_tensor) complain(j, "printed C returned %d; there are %d tensors", rc, in->n_tensor);
    for (int k = 0; !j->failed && !rc && k < j->n_out; k++)
        if (j->want[k] && !same_bits(j->call.out[k], j->want[k], &at)) {
            complain(j, "output %d differs at %lld: %g, must be %g", k, (long long)at,
                     hone_dtypes[j->want[k]->dtype].kind == HONE_KIND_FLOAT ? hone_value_f64(j->call.out[k], at)
                                                                            : (double)hone_value_i64(j->call.out[k], at),
                     hone_dtypes[j->want[k]->dtype].kind == HONE_KIND_FLOAT ? hone_value_f64(j->want[k], at)
                                                                            : (double)hone_value_i64(j->want[k], at));
            break;
        }
    free(t), free(s), free(p), free(pf);
    for (int i = 0; i < WALK_MAX; i++) hone_value_drop(j->in[i]), hone_value_drop(j->want[i]);
    walk_call_free(&j->call);
    free(j);
}
static void flush(void) {
    char stem[32];
    hone_text file = {0};
    void *library = NULL;
    if (batch.compiled < batch.functions.n) {
        snprintf(stem, sizeof stem, "batch%d", batch.libraries.n);
        hone_text_put(&file, "%s\n%s\n%s", hone_fn_text, hone_storage_text, batch.text.text);
        assert_false(file.failed);
        if (!compile(file.text, stem, &library)) {
            batch.failures++;
            fprintf(stderr, "%s/%s.c does not compile; see %s.log\n", batch.folder, stem, stem);
        }
        assert_true(hone_push(&batch.libraries, library));
    }
    for (; batch.compiled < batch.functions.n; batch.compiled++) {
        snprintf(stem, sizeof stem, "f%d", batch.compiled);
        void *symbol = library ? dlsym(library, stem) : NULL;
        memcpy(&batch.functions.at[batch.compiled].fn, &symbol, sizeof symbol);
    }
    for (int k = 0; k < batch.jobs.n; k++) run_job(batch.jobs.at[k], batch.functions.at[batch.jobs.at[k]->function].fn);
    batch.held = 0;
    hone_text_free(&file);
    hone_text_free(&batch.text);
    hone_vec_free(&batch.jobs);
}
/* Takes `c`, made but not run, for the next file; `want` are the interpreter's outputs. */
static void add(walk_call *c, hone_value *const *in, int n_in, hone_value *const *want, int n_out, bool failed, const char *what) {
    hone_text body = {0};
    int f = 0;
    if (batch.print) {
        hone_print_c(c->in, "f", &body);
        assert_false(body.failed);
        batch.calls++;
        hone_text_free(&body);
        walk_call_free(c);
        return;
    }
    job *j = calloc(1, sizeof *j);
    j->call = *c, j->n_in = n_in, j->n_out = n_out, j->failed = failed;
    snprintf(j->what, sizeof j->what, "%s", what);
    for (int k = 0; k < n_in; k++) j->in[k] = in[k] ? hone_value_hold(in[k]) : NULL;
    for (int k = 0; k < n_out; k++) j->want[k] = want[k] ? hone_value_hold(want[k]) : NULL;
    hone_print_c(c->in, "", &body);
    assert_false(body.failed);
    while (f < batch.functions.n && strcmp(batch.functions.at[f].body, body.text)) f++;
    j->function = f;
    if (f == batch.functions.n) {
        char name[32];
        snprintf(name, sizeof name, "f%d", f);
        assert_true(hone_push(&batch.functions, ((function){strdup(body.text), NULL})));
        hone_text_put(&batch.text, "int %s(void *const *, const long long *, const long long *, const double *);\n/* %s */\n", name, what);
        hone_print_c(c->in, name, &batch.text);
    }
    hone_text_free(&body);
    if (f < batch.compiled) {
        run_job(j, batch.functions.at[f].fn);
        return;
    }
    assert_true(hone_push(&batch.jobs, j));
    for (int t = 0; t < c->in->n_tensor; t++) batch.held += 2 * c->bytes[t];
    if (batch.functions.n - batch.compiled == BATCH || batch.held > HELD) flush();
}

/* ---- calls from text and at random -------------------------------------------------------------------------------------------------- */
static double random_number(void) {
    static const double special[] = {0.0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, 1e30, -1e30, 1e-40, 255, 256, 65504, 7e4, 448, 3e9, 1e19};
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
        hone_dtype_store(t, (char *)v->data + (size_t)k * hone_dtypes[t].bytes, real ? HONE_F64 : HONE_I64, s, false);
    }
    return v;
}
/* Interprets a call and adds it. False when the call is none: types, ranks or attributes do not fit. */
static bool try_call(const hone_program *p, const hone_attr *attr, int n_attr, hone_value *const *in, int n_in, const bool *want,
                     const char *what) {
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
/* Inputs: dtype[dims] with random numbers, dtype{numbers}, or - where absent. Attributes: name=1, name=1,2, name=0.5, name='text',
   name=:dtype. */
static const example examples[] = {
    {"Conv", "f32[2,4,9,7] f32[6,2,3,3] f32[6]", "group=2 strides=2,1 pads=1,0,2,1 dilations=1,2"},
    {"Conv", "f32[1,3,11] f32[5,3,4] -", "auto_pad='SAME_UPPER' strides=3"},
    {"Conv", "f16[1,2,5,5] f16[3,2,3,3] -", "pads=1,1,1,1"},
    {"Conv", "f32[1,2,5,4,6] f32[3,2,2,2,3] f32[3]", ""},
    {"ConvTranspose", "f32[1,4,5,3] f32[4,2,3,2] f32[4]", "group=2 strides=2,3 pads=1,0,0,1 output_padding=1,0"},
    {"ConvTranspose", "f32[1,3,4] f32[3,2,3] -", "strides=2 auto_pad='SAME_LOWER'"},
    {"ConvTranspose", "f32[1,4,5,3] f32[4,2,4,3] f32[4]", "group=2 strides=2,3 kernel_shape=4,3 pads=1,0,0,1 output_padding=1,0"},
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
            hone_dtype_store(t, (char *)in[n]->data + (size_t)k * hone_dtypes[t].bytes, HONE_F64, (hone_scalar){.f64 = v[k]}, false);
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
static void printer_examples(void **state) {
    (void)state;
    if (!batch.works) skip();
    const hone_library *library;
    assert_int_equal(hone_library_builtin(&library), HONE_OK);
    int met = 0;
    for (size_t e = 0; e < sizeof examples / sizeof *examples; e++) {
        const hone_program *p = hone_library_find(library, "", examples[e].op);
        if (!p || !has_stage(p->lines)) continue; /* rows come and go; which ops there are is not this test's concern */
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
        hone_arena_destroy(a);
    }
    flush();
    print_message("%d functions, %d calls\n", batch.functions.n, batch.calls);
    assert_int_equal(batch.failures, 0);
    assert_true(met >= 90);
}

/* ---- every row, with made-up calls -------------------------------------------------------------------------------------------------- */
static int64_t size_named(const char *name, int member) { /* odd sizes; one a name and try, so that operands agree */
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
        v = t->kind == HONE_T_BINARY && *t->name == '+' ? v + size_of(t->arg[k], member) : v * size_of(t->arg[k], member);
    return v;
}
static hone_value *made_up(const hone_program *p, const hone_operand *o, const hone_dtype *type_of, uint64_t round) {
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
            dim[rank++] = n->tilde && size_named(o->name, m) == 1 ? 1 : d;
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
        if (s->kind == HONE_ATTR_INT || s->kind == HONE_ATTR_TYPE) out[n++] = (hone_attr){.name = s->name, .kind = s->kind, .n = 1, .i = i};
        if (s->kind == HONE_ATTR_FLOAT) out[n++] = (hone_attr){.name = s->name, .kind = s->kind, .n = 1, .f = f};
        if (s->kind == HONE_ATTR_INTS) {
            int count = 1 + (int)below(3);
            for (int q = 0; q < count; q++) i[q] = 1 + below(2);
            out[n++] = (hone_attr){.name = s->name, .kind = s->kind, .n = count, .i = i};
        }
    }
    return n;
}
static void printer_rows(void **state) {
    (void)state;
    if (!batch.works) skip();
    const hone_library *library;
    assert_int_equal(hone_library_builtin(&library), HONE_OK);
    int met = 0;
    batch.print = SLOW;
    for (int r = 0; r < hone_library_count(library); r++) {
        const hone_program *p = hone_library_at(library, r);
        if (!has_stage(p->lines) || p->n_in + p->n_out > WALK_MAX) continue;
        int done = 0;
        for (int attempt = 0; attempt < 60 && done < 6; attempt++) {
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
    flush();
    print_message("%d rows, %d functions, %d calls\n", met, batch.functions.n, batch.calls);
    assert_int_equal(batch.failures, 0);
    assert_true(met >= 120);
}

/* ---- the conformance cases ---------------------------------------------------------------------------------------------------------- */
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
static void printer_cases(void **state) {
    (void)state;
    const char *shared = getenv("HONE_SHARED_DIR");
    char folder[512];
    snprintf(folder, sizeof folder, "%.480s/onnx/node", shared ? shared : "");
    DIR *d = shared ? opendir(folder) : NULL;
    if (!d || !batch.works) {
        if (d) closedir(d);
        skip();
    }
    const hone_library *library;
    assert_int_equal(hone_library_builtin(&library), HONE_OK);
    int cases = 0, whole = 0;
    batch.print = SLOW;
    for (struct dirent *e; (e = readdir(d));) {
        if (*e->d_name == '.') continue;
        cases++;
        whole += !walk_case(folder, e->d_name, library, keep_call); /* what cannot be loaded or run yet is another test's concern */
    }
    closedir(d);
    flush();
    print_message("%d of %d cases walked, %d functions, %d calls\n", whole, cases, batch.functions.n, batch.calls);
    assert_int_equal(batch.failures, 0);
    assert_true(whole * 10 >= cases * 9);
}

/* ---- storage.h against base/dtype.h ------------------------------------------------------------------------------------------------- */
/* clang-format off */
#define EACH(X) \
    X(i8, I8) X(i16, I16) X(i32, I32) X(i64, I64) X(u8, U8) X(u16, U16) X(u32, U32) X(u64, U64) \
    X(i4, I4) X(u4, U4) X(i2, I2) X(u2, U2) X(bool, BOOL) X(f32, F32) X(f64, F64) X(f16, F16) \
    X(bf16, BF16) X(f8e4m3fn, F8E4M3FN) X(f8e4m3fnuz, F8E4M3FNUZ) X(f8e5m2, F8E5M2) X(f8e5m2fnuz, F8E5M2FNUZ) X(f4e2m1, F4E2M1) X(f8e8m0, F8E8M0)
/* clang-format on */
static void stored(hone_dtype t, hone_ctype from, hone_scalar v, int sat, const void *mine) {
    uint64_t want[2] = {0};
    hone_dtype_store(t, want, from, v, sat);
    if (memcmp(want, mine, hone_dtypes[t].bytes))
        fail_msg("store of %s from %s differs for bits %llx, sat %d", hone_dtypes[t].name, hone_ctype_names[from],
                 (unsigned long long)v.u64, sat);
}
static void storage(void **state) {
    (void)state;
    for (int round = 0; round < 40000; round++) {
        hone_scalar f = {.u64 = 0}, d = {.u64 = random_bits()}, i = {.u64 = 0}, l, u;
        uint32_t bits = (uint32_t)random_bits();
        memcpy(&f.f32, &bits, 4);
        if (round % 3) f.f32 = ldexpf(1.0f + (float)below(4096) / 4096, (int)below(60) - 30) * (below(2) ? 1.0f : -1.0f);
        if (round % 2) d.f64 = (double)f.f32 * (1 + (double)(below(3) - 1) * 1e-12);
        i.i32 = (int32_t)(random_bits() >> (32 + below(32))), l.u64 = random_bits() >> below(64), u.u64 = random_bits() >> below(64);
        if (round & 4) i.i32 = (int32_t)(0u - (uint32_t)i.i32), l.u64 = 0 - l.u64;
#define CHECK(n, N)                                                                                                     \
    for (int sat = 0; sat < 2; sat++) {                                                                                 \
        const uint64_t raw = random_bits();                                                                             \
        uint64_t mine[2];                                                                                               \
        hone_store_##n##_f32(mine, f.f32, sat), stored(HONE_DTYPE_##N, HONE_F32, f, sat, mine);                         \
        hone_store_##n##_f64(mine, d.f64, sat), stored(HONE_DTYPE_##N, HONE_F64, d, sat, mine);                         \
        hone_store_##n##_i32(mine, i.i32, sat), stored(HONE_DTYPE_##N, HONE_I32, i, sat, mine);                         \
        hone_store_##n##_i64(mine, l.i64, sat), stored(HONE_DTYPE_##N, HONE_I64, l, sat, mine);                         \
        hone_store_##n##_u64(mine, u.u64, sat), stored(HONE_DTYPE_##N, HONE_U64, u, sat, mine);                         \
        const hone_scalar want = hone_dtype_load(HONE_DTYPE_##N, &raw);                                                 \
        const __typeof__(hone_load_##n(&raw)) got = hone_load_##n(&raw);                                                \
        if (memcmp(&want, &got, sizeof got)) fail_msg("load of " #n " differs for bits %llx", (unsigned long long)raw); \
    }
        EACH(CHECK)
    }
}

/* ---- print and counts --------------------------------------------------------------------------------------------------------------- */
static void text_and_counts(void **state) {
    (void)state;
    const hone_library *library;
    assert_int_equal(hone_library_builtin(&library), HONE_OK);
    hone_value *in[2] = {random_value(HONE_DTYPE_F32, (int64_t[]){3, 4}, 2), random_value(HONE_DTYPE_F32, (int64_t[]){4, 5}, 2)};
    walk_call c;
    double flops, bytes;
    hone_text t = {0};
    assert_int_equal(walk_call_make(&c, hone_library_find(library, "", "MatMul"), NULL, 0, in, 2, NULL, 1), HONE_OK);
    hone_instance_counts(c.in, c.param, &flops, &bytes);
    assert_true(flops == 2 * 3 * 4 * 5 && bytes == 4 * (12 + 20 + 15));
    hone_instance_print(c.in, &t);
    assert_non_null(strstr(t.text, "= sum(k"));
    assert_non_null(strstr(t.text, " * b["));
    hone_text_free(&t);
    walk_call_free(&c);
    hone_value_drop(in[0]), hone_value_drop(in[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storage),      cmocka_unit_test(text_and_counts), cmocka_unit_test(printer_examples),
        cmocka_unit_test(printer_rows), cmocka_unit_test(printer_cases),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
