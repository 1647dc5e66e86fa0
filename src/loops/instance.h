/* SPDX-License-Identifier: Apache-2.0
   instance: a program for one set of ranks, types, presence and attributes. This small thing is all that
   executors see.

   Groups are expanded, abbreviations substituted, conditions folded; every reduction is a stage of its own
   over just the indices it needs; every number that only shapes and contents decide is a parameter. Extents
   and strides are still open, so one instance serves all shapes.

   A call says what is known of a node's operands: symbolically at compile, in numbers at bind. The same code
   solves both. */
#ifndef HONE_LOOPS_INSTANCE_H
#define HONE_LOOPS_INSTANCE_H
#include "base/dim.h"
#include "loops/program.h"

/* ---- the call ------------------------------------------------------------------------------------------ */
typedef struct {
    bool present;     /* input: given; output: wanted */
    hone_dtype dtype; /* inputs: known, else the instance cannot be made; outputs: ignored */
    int8_t rank;      /* -1: unknown */
    const hone_dim *dim;
    int64_t n_content;       /* `contents` operands: how many numbers; -1: not known */
    const hone_dim *content; /* integers (and bools), possibly symbolic; NULL if float or not known */
    const double *content_f; /* floats */
} hone_arg;
typedef struct {
    const hone_program *program;
    const hone_attr *attr;
    int n_attr;
    const hone_arg *arg; /* program->n_in inputs, then program->n_out outputs */
    hone_dims *dims;     /* NULL when all are numbers */
    bool mixed;          /* f16 and bf16 may stand where others of the same type are f32 */
} hone_call;

/* ---- functions ----------------------------------------------------------------------------------------- */
typedef enum {
#define HONE_FN(name, arity, types, result) HONE_FN_##name,
#include "loops/fn.def"
#undef HONE_FN
    HONE_FN_COUNT
} hone_fn;
typedef struct {
    const char *name;
    int arity;
    char types;
    char result; /* 'S' same, 'B' bool, 'F' f32 */
} hone_fn_row;
extern const hone_fn_row hone_fns[HONE_FN_COUNT];
/* one value: the definition (fn_eval.c, compiled with fn.h) */
hone_scalar hone_fn_eval(hone_fn, hone_ctype args, const hone_scalar *a);

/* ---- expressions --------------------------------------------------------------------------------------- */
typedef enum {
    HONE_X_CONST, /* k, of `type` */
    HONE_X_INDEX, /* a: number in instance.index; i64 */
    HONE_X_PARAM, /* a: number in instance.param; i64 or f64 */
    /* a: tensor; b: first of its subscripts in instance.list (as many as the tensor has dims; 1 where
       `flat`); c: value outside, or -1: then checked */
    HONE_X_LOAD,
    HONE_X_FN,     /* fn of a, b, c; `type` is the result's, args' type is that of a */
    HONE_X_SELECT, /* a (i32) ? b : c */
    HONE_X_CAST,   /* a to `type` */
    HONE_X_ROUND   /* a as storage of dtype `fn` would hold it; type unchanged */
} hone_xkind;
typedef struct {
    uint8_t kind, type; /* hone_xkind, hone_ctype */
    bool flat;
    uint16_t fn;
    int32_t a, b, c;
    hone_scalar k;
} hone_x;

typedef enum { HONE_ROLE_IN, HONE_ROLE_OUT, HONE_ROLE_TEMP } hone_role;
typedef struct {
    const char *name;
    hone_role role;
    int operand;                   /* IN, OUT: number in the program's operands; fused: in the fused node's */
    hone_dtype dtype;              /* TEMP: the storage type of its compute type */
    int rank;                      /* dims as the program sees them: split, permuted, without ones */
    int32_t dim[HONE_MAX_RANK];    /* parameter of each extent */
    bool broadcast[HONE_MAX_RANK]; /* may be 1 in fact: then its stride is 0 */
    bool dense;                    /* must be row-major and without gaps (flat loads) */
} hone_tensor;
typedef struct {
    const char *name;
    int32_t extent; /* parameter */
} hone_index;
typedef enum {
    HONE_REDUCE_NONE,
    HONE_REDUCE_SUM,
    HONE_REDUCE_PROD,
    HONE_REDUCE_MAX,
    HONE_REDUCE_MIN,
    HONE_REDUCE_ARGMAX,
    HONE_REDUCE_ARGMIN
} hone_reduce;
typedef enum { HONE_STORE_SET, HONE_STORE_ADD, HONE_STORE_MUL, HONE_STORE_MAX, HONE_STORE_MIN } hone_store;
typedef struct {
    int32_t tensor; /* the target */
    int32_t index0; /* instance.list: the domain's indices, outermost first, then the reduction's */
    int n_index, n_reduce;
    hone_reduce reduce;
    hone_store how;
    bool identity; /* stores at its domain's indices, in the target's order of dims: no two values meet */
    /* no two values meet (identity, or a permutation of indices): tiles may run on any thread */
    bool distinct;
    bool saturate, skip;
    /* number of the over group, -1 none. Stages of a group are adjacent; index `over_index`, anywhere in
       their domains, is fixed from outside */
    int over;
    int32_t over_index;
    int32_t value, pick; /* expression; pick: ARGMAX, ARGMIN: what is taken */
    int32_t sub0;        /* instance.list: target subscripts, one a dim, where not identity */
    uint64_t uses;       /* tensors it touches, a bit each; the 64th stands for all after it */
    /* alone reads the temporary of the stage before, and only at its own indices: may run on finished blocks
       of it */
    bool follows;
} hone_stage;
/* Reductions over nothing: sum 0, prod 1, max -inf or the lowest integer, min +inf or the highest, arg 0. */

typedef struct hone_solver hone_solver; /* how parameters follow from a call; private to loops */
typedef struct hone_instance {
    const hone_program *program;
    const hone_tensor *tensor;
    const hone_index *index;
    const hone_stage *stage;
    const hone_x *x;     /* arguments stand before what uses them */
    const int32_t *list; /* pool of index numbers and subscript expressions */
    int n_tensor, n_index, n_stage, n_x, n_list;
    int n_param;
    const bool *param_real;        /* parameter is a float */
    const char *const *param_name; /* "" where made up */
    /* NULL in a fused instance: its parts' parameters are concatenated, part by part */
    const hone_solver *solver;
} hone_instance;

/* What a finished list of stages says of itself: fills uses and follows. */
void hone_stages_know(const hone_instance *, hone_stage *);
/* Makes the instance. *out = NULL with HONE_OK: a rank or a needed content is not known yet; ask again at
   bind. */
hone_status hone_instance_make(hone_arena *, const hone_call *, const hone_instance **out) HONE_CHECKED;
/* Two calls with equal keys have equal instances (text, in the arena). NULL where hone_instance_make would
   say "not yet". */
hone_status hone_instance_key(hone_arena *, const hone_call *, const char **out) HONE_CHECKED;

/* Output dtypes from the row alone (needs input dtypes); NONE where not decided by them. */
hone_status hone_call_dtypes(const hone_call *, hone_dtype *out /* program->n_out */) HONE_CHECKED;

/* ---- solving ------------------------------------------------------------------------------------------- */
typedef union {
    hone_dim i;
    double f;
} hone_param;
typedef int64_t hone_strides[HONE_MAX_RANK]; /* of a tensor, in elements */
/* No two places of a box of n (at most 64) indices are the same: by size, each step passes over all that the
   smaller ones reach. */
bool hone_is_injective(const int64_t *step, const int64_t *extent, int n);
/* In which order a stage's domain is walked, outermost first: as its target lies in memory, where no two
   values meet; false: some do, or it is not known that none do. order: n_index places of the domain. */
bool hone_stage_order(const hone_instance *, const hone_stage *, const hone_param *, const int64_t *stride,
                      int *order);
/* Windows that move over images, one after another: every stage makes image n of what it makes of image
   n of what it reads, so that the work for one of them is all that is to be known (device/cpu/batch_axis.c).
   False: it is not so, or it reads no windows; no memory counts as that too. */
typedef struct {
    const int8_t *dim;    /* of each tensor: which of its dims counts images; -1: it has none */
    const int32_t *param; /* these are all their number; */
    const int32_t *pixel; /* these, how far a window moves */
    int n_param, n_pixel;
} hone_batch_axis;
bool hone_instance_batch_axis(hone_arena *, const hone_instance *, hone_batch_axis *out);
/* Parameters of this call, and the actual shapes of the outputs. Unknown values are HONE_DIM_UNKNOWN (NaN for
   floats); a broken rule is an error that names the operand. */
hone_status hone_instance_solve(const hone_instance *, const hone_call *,
                                hone_param *param /* n_param */) HONE_CHECKED;
/* Output number k (of the program's outputs): rank and dims of the actual tensor, ones and splits as in
   ONNX. */
void hone_instance_out_shape(const hone_instance *, const hone_call *, const hone_param *, int k, int *rank,
                             hone_dim *dim);
/* Strides of tensor t as the program sees it, from the strides (elements) and dims of the actual tensor. All
   numbers. In two halves: which actual axis each of its dims walks follows from the call, and often at
   compile already (false: not known yet); the strides follow from that. */
typedef struct {
    int8_t axis;    /* -1: none, it does not move */
    bool broadcast; /* nor does it where that axis has one element */
    bool splits;    /* an outer part of what the next dim walks */
} hone_walks;
bool hone_instance_walks(const hone_instance *, const hone_call *, int t,
                         hone_walks *out /* HONE_MAX_RANK */);
void hone_walks_strides(const hone_walks *, const hone_tensor *, const hone_param *, const int64_t *dim,
                        const int64_t *stride, int64_t *out);
void hone_instance_strides(const hone_instance *, const hone_call *, const hone_param *, int t,
                           const int64_t *dim, const int64_t *stride, int64_t *out);
/* What solving on symbols could not decide of the rules, as dims that must not be 0 when they are numbers.
   False: it cannot be said so. */
typedef hone_vec(hone_dim) hone_conditions;
bool hone_conditions_add(hone_arena *, hone_conditions *, hone_dim);
bool hone_instance_conditions(hone_arena *, const hone_instance *, const hone_call *, const hone_param *,
                              hone_conditions *);

/* ---- counts, printing ---------------------------------------------------------------------------------- */
void hone_instance_counts(const hone_instance *, const hone_param *, double *flops, double *bytes);
/* stages as text, groups expanded: for `explain` */
void hone_instance_print(const hone_instance *, hone_text *out);

/* ---- the interpreter: the definition (interp.c) -------------------------------------------------------- */
/* tensor[t]: base address (element 0) of each tensor, temporaries included; stride: rank strides each, in
   elements. Sums accumulate in double (integers in their own type). Sequential and slow; a wrong index is
   HONE_BAD_INPUT. */
typedef struct {
    void *at;
    int64_t stride[HONE_MAX_RANK];
} hone_tensor_view;
hone_status hone_interpret(const hone_instance *, const hone_param *,
                           const hone_tensor_view *tensor) HONE_CHECKED;
/* One expression that loads nothing, where the instance's indices (n_index of them) are these. */
hone_scalar hone_interpret_x(const hone_instance *, const hone_param *, int64_t *index, int32_t x);
/* What an element-wise stage stores where the expressions that are marked have this value, and all indices
   are 0. */
hone_status hone_interpret_given(const hone_instance *, const hone_param *, const hone_tensor_view *tensor,
                                 int stage, const bool *given /* n_x */, hone_scalar value,
                                 void *to) HONE_CHECKED;
/* Only one stage (with its over group if it has one): for comparing executors stage by stage. */
hone_status hone_interpret_stage(const hone_instance *, const hone_param *, const hone_tensor_view *tensor,
                                 int stage, bool absolute /* sum |terms| instead */) HONE_CHECKED;
/* The same on dims: contents of all inputs are known as expressions; false when some needed comparison or
   index is not a number. in/out: tensors dense. */
bool hone_interpret_dims(const hone_instance *, const hone_param *, hone_dims *, hone_dim *const *tensor);

/* ---- the printer (print_c.c) --------------------------------------------------------------------------- */
/* A self-contained C11 function `int NAME(void *const *t, const long long *s, const long long *p, const
   double *pf)`: tensors, strides (HONE_MAX_RANK each, tensor by tensor), parameters (integers in p, floats in
   pf, same numbering). Returns 0, or 1 + number of the tensor that was indexed outside. Plain loops; the
   texts of fn.h and storage.h (embedded as hone_fn_text, hone_storage_text) must stand before it. */
void hone_print_c(const hone_instance *, const char *name, hone_text *out);
#endif
