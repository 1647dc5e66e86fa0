/* SPDX-License-Identifier: Apache-2.0
   build: how an instance comes to be, shared by the files that make and solve it. Private to loops.

   build_call.c   types, ranks, and the operands' dims as slots
   build_expr.c   trees into typed expressions
   build_stage.c  lines into stages; reductions hoisted; everything packed
   solve.c        parameters from a call

   While building, an expression's type may be weak: a literal or an attribute that takes the type it meets.
   Weak types vanish before the end. */
#ifndef HONE_LOOPS_BUILD_H
#define HONE_LOOPS_BUILD_H
#include <setjmp.h>

#include "loops/instance.h"

enum { HONE_WEAK_INT = HONE_CTYPES, HONE_WEAK_REAL = HONE_CTYPES + 1 };
/* Expressions that only a solver sees: always inside a parameter. */
enum {
    HONE_XS_SLOT = 32, /* a: operand, b: slot: the actual dim */
    HONE_XS_WIDEST,    /* a: first in list of (operand, slot) pairs, b: how many: numpy's broadcast of them */
    HONE_XS_EXACT,     /* a / b, where the division must be exact (else the check of the dim fails) */
    HONE_XS_VECTOR,    /* a: vector, b: position */
    HONE_XS_FIND       /* a: vector, b: wanted, c: what negatives count from */
};

typedef enum {
    HONE_VECTOR_ATTR,
    HONE_VECTOR_CONTENT,
    HONE_VECTOR_DIMS,
    HONE_VECTOR_RESHAPE,
    HONE_VECTOR_SQUEEZE,
    HONE_VECTOR_UNSQUEEZE,
    HONE_VECTOR_BROADCAST
} hone_vector_kind;
typedef struct {
    hone_vector_kind kind;
    int operand;           /* CONTENT, DIMS */
    const hone_attr *attr; /* ATTR; may be NULL: absent */
    bool real;
    int64_t fallback_i; /* beyond the end */
    double fallback_f;
    bool flag;      /* RESHAPE: allowzero; ATTR: where absent, r - 1 … 0 instead of 0 … r - 1 */
    int arg0, arg1; /* the others: vectors */
} hone_vector;

typedef struct { /* one actual dim of an operand, or several members' worth of ones */
    bool ones, free_dim, broadcast;
    int at;            /* vector of axes, or -1 */
    int nth;           /* at >= 0: the nth of them; -1 - n: the nth dim that is not among them */
    int axis;          /* at < 0: the actual axis, or -1: missing (broadcast) */
    int part0, n_part; /* program dims: numbers in the tensor's dims */
} hone_slot;
typedef struct {
    hone_slot *slot;
    int n;
} hone_slots;

typedef struct {
    int32_t x;
    const char *text;
} hone_need;
typedef struct {
    int operand, slot;
    int32_t size; /* expression */
    bool broadcast;
    const char *text;
} hone_check;
/* broken.c: the messages of rules that are broken */
hone_status hone_broken_need(const hone_call *, const char *text);
hone_status hone_broken_size(const hone_call *, const hone_check *, int axis, int64_t actual, int64_t want);
void hone_broken_ranks(const hone_call *, hone_text *); /* "a has 0 dims, b 2" */
struct hone_solver {
    const hone_x *x;
    const int32_t *list;
    const int32_t *param; /* n_param: defining expressions */
    const hone_vector *vector;
    const hone_slots *slots; /* one an operand */
    const hone_check *check;
    const hone_need *need;
    int n_x, n_vector, n_check, n_need;
    const int *operand_tensor; /* operand → tensor, -1 none */
};

typedef struct hone_env hone_env;
struct hone_env { /* names of the place of use: indices, and parameters of abbreviations */
    const hone_env *up;
    const char *name;
    bool group;
    const int32_t *index; /* indices (n of them; one if not a group), or … */
    int n;
    const hone_tree *tree; /* … a tree to build in `where` */
    const hone_env *where;
};
typedef struct {
    const char *name;
    int rank;
} hone_group_rank;
typedef struct {
    const char *name;
    int member;
    int32_t x;
    bool busy;
} hone_dim_memo;

typedef struct {
    hone_arena *arena; /* of the result */
    hone_arena *heap;  /* of the work */
    const hone_call *call;
    const hone_program *p;
    jmp_buf fail;
    hone_status status;
    bool not_yet;  /* failed only because something is not known yet */
    int weak_real; /* what a weak real becomes when it meets nothing */
    hone_vec(hone_group_rank) ranks;
    hone_vec(hone_dim_memo) dims;
    hone_vec(const hone_line *) lines; /* active ones, `when` resolved; over blocks stay nested */
    hone_vec(hone_x) x;
    hone_vec(uint8_t) pure; /* beside x: made of constants and parameters only */
    hone_vec(int32_t) list;
    hone_vec(int32_t) table; /* hash-consing */
    hone_vec(int32_t) param; /* defining expression of each */
    hone_vec(const char *) param_name;
    hone_vec(hone_tensor) tensor;
    hone_vec(hone_index) index;
    hone_vec(hone_stage) stage;
    hone_vec(hone_vector) vector;
    hone_vec(hone_check) check;
    hone_vec(hone_need) need;
    hone_slots *slots;
    int *operand_tensor;
    int depth;
    const hone_instance *made;
    /* the line being built */
    int over;
    int32_t over_index;
    hone_vec(int) over_tensor; /* written in the over group */
    int over_stage0;           /* what does not depend on them goes before this stage */
    hone_vec(int32_t) domain;
    hone_vec(const hone_line *) block; /* of the over group */
    /* packed: what stays; here, so that a failure half-way leaves nothing behind */
    hone_vec(hone_x) kept_x;
    hone_vec(int32_t) kept_list;
    hone_vec(hone_stage) kept_stage;
} hone_builder;

void hone_build_fail(hone_builder *, int line, const char *format, ...) __attribute__((noreturn))
HONE_PRINTF(3, 4);
void hone_build_memory(hone_builder *) __attribute__((noreturn));
void hone_build_later(hone_builder *) __attribute__((noreturn)); /* not known yet: ask again at bind */

/* build_call.c */
void hone_build_types(hone_builder *);
void hone_build_ranks(hone_builder *);                          /* and the active lines */
void hone_build_slots(hone_builder *);                          /* operands become tensors */
int hone_build_rank(hone_builder *, const char *group);         /* -1: unknown */
int hone_build_operand(const hone_builder *, const char *name); /* number, -1 */
const hone_attr_spec *hone_build_attr(const hone_builder *, const char *alias);
const hone_attr *hone_build_attr_given(const hone_builder *, const hone_attr_spec *);
hone_dtype hone_build_type(hone_builder *, const hone_operand *);

/* build_expr.c */
int32_t hone_build_expr(hone_builder *, const hone_tree *, const hone_env *, int member);
/* must be made of parameters; an i64 or a real */
int32_t hone_build_pure(hone_builder *, const hone_tree *, const hone_env *, int member);
/* expression of a dim */
int32_t hone_build_dim(hone_builder *, const char *name, int member, int line);
int32_t hone_build_param(hone_builder *, int32_t x, const char *name); /* → number of the parameter */
int32_t hone_build_typed(hone_builder *, int32_t x, int type);         /* converted to a strong type */
int32_t hone_build_x(hone_builder *, hone_x, bool pure);
int32_t hone_build_int(hone_builder *, int64_t);
int32_t hone_build_fn(hone_builder *, hone_fn, int32_t a, int32_t b, int32_t c);
int32_t hone_build_select(hone_builder *, int32_t c, int32_t a, int32_t b);
int32_t hone_build_vector_at(hone_builder *, int vector, const hone_tree *at, const hone_env *, int member);
int hone_build_subscripts(hone_builder *, hone_tree *const *arg, int n, const hone_env *, int want, int line,
                          int32_t *out);
bool hone_build_const(const hone_builder *, int32_t x, double *value); /* a constant's value */
/* members an expression has; -1: no group in it */
int hone_build_spread(hone_builder *, const hone_tree *, const hone_env *);
const hone_line *hone_build_short(const hone_builder *, const char *name, bool group);
const hone_env *hone_build_lookup(const hone_env *, const char *name, bool group);
int hone_build_vector(hone_builder *, const hone_tree *); /* number of a vector, -1: the tree is none */
/* 1: the tree is a known text */
int hone_build_strings(const hone_builder *, const hone_tree *, const hone_env *, const char **out);

/* build_stage.c */
int32_t hone_build_reduce(hone_builder *, const hone_tree *, const hone_env *, int member);
int hone_build_tensor(const hone_builder *, const char *name);        /* -1 */
int32_t hone_build_push(hone_builder *, const int32_t *items, int n); /* into list; returns its place */

/* solve.c */
typedef struct {
    bool real;
    hone_dim i;
    double f;
} hone_number;
int64_t hone_vector_length(const hone_vector *all, int v, const hone_call *); /* -1: unknown */
hone_number hone_vector_at(const hone_vector *all, int v, const hone_call *, int64_t k);
#endif
