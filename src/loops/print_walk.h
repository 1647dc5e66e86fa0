/* SPDX-License-Identifier: Apache-2.0
   print_walk: the walker that all printers share: an instance's expressions as text in a C-like language.
   Knows names, sharing (what an expression uses twice is named once, e12, unless it might fail where it is
   not reached), checks of loads, and how elements are read; a table a target says the rest
   (hone_print_words). Loops, grids, reductions and stores are the printers' (print_c.c, print_kernel.c). */
#ifndef HONE_LOOPS_PRINT_WALK_H
#define HONE_LOOPS_PRINT_WALK_H
#include "loops/instance.h"
#include "loops/tile_know.h"

/* A target's own words. */
typedef struct {
    const char *name;
    bool by_value;        /* elements: hone_get_f16(x[i]), not hone_load_f16(x + i) */
    const char *wide;     /* what ends an integer of 64 bits */
    const char *reserved; /* names that are taken, a space before and behind each */
} hone_print_words;

extern const char *const hone_print_types[HONE_CTYPES]; /* of compute types */
/* How elements lie: the C type of a pointer; `plain`: a load is just x[i]; `same`: the compute type from
   which a store is just x[i] = v. */
typedef struct {
    const char *c;
    bool plain;
    int same;
} hone_print_element;
hone_print_element hone_print_element_of(hone_dtype);

typedef struct {
    const hone_print_words *words;
    const hone_instance *in;
    /* of the stage being printed: loads that are surely inside need no check; or NULL */
    const hone_knows *knows;
    hone_text *out;
    hone_arena *arena;
    const char **param, **tensor, **index; /* names; NULL: not used (yet) */
    /* tensors: the variable that has the value which a load would give, or NULL */
    const char **held;
    const char **taken;
    int n_taken;
    uint8_t *loaded, *stored;        /* tensors */
    uint8_t *flat, *strided;         /* tensors: how they are indexed */
    int32_t *uses;                   /* expressions, of the roots being printed */
    uint8_t *always, *total, *named; /* reached whatever the conditions; cannot fail; has a name e12 */
    int n_temp;                      /* v0, v1 …: subscripts, in the block being printed */
    int depth;                       /* of indentation */
    bool can_fail;
    /* written into the text: parameters (a float one: 1 as f32, 2 as f64), strides (HONE_MAX_RANK a tensor),
       sizes of tensors */
    uint8_t *param_used, *stride_used, *size_used;
    uint8_t *given;    /* expressions that a variable e12 holds already */
    const char **said; /* expressions: the text that stands for one, or NULL */
    bool f64;          /* something was written that is a double */
} hone_printer;

/* False: no memory. The arena is the printer's. */
bool hone_printer_open(hone_printer *, const hone_print_words *, const hone_instance *, hone_text *out);

/* ---- names ---- */
/* base, or base_1, base_2 …: a name that nothing else has */
const char *hone_print_unique(hone_printer *, const char *base);
const char *hone_print_param(hone_printer *, int k);
/* with its strides, x_0 …, and its size, x_size */
void hone_print_name_tensor(hone_printer *, int t);
void hone_print_name_indices(hone_printer *, const hone_stage *); /* all but the over index */

/* ---- what is used ---- */
/* A subscript is an expression, or ~i: index i itself, where a stage stores at its own indices. */
/* an index over this very dim */
bool hone_print_safe(const hone_printer *, const hone_tensor *, int k, int32_t sub);
/* marks what is used: params, tensors; each expression once (`uses`) */
void hone_print_note(hone_printer *, int32_t x);
bool hone_print_fails(const hone_printer *, int32_t x);

/* ---- expressions ---- */
enum { HONE_AT_SELECT = 1, HONE_AT_COMPARE, HONE_AT_ADD, HONE_AT_MUL, HONE_AT_ATOM };
void hone_print_expr(hone_printer *, int32_t x);
void hone_print_child(hone_printer *, int32_t x, int at_least); /* in brackets where it binds less strongly */
bool hone_print_simple(const hone_printer *, int32_t x);
/* Subscripts as they will be written more than once: simple ones as they are, others assigned to a temporary
   first ("v3 = …, "). */
typedef struct {
    int32_t sub[HONE_MAX_RANK];
    int temp[HONE_MAX_RANK];
    int n;
} hone_print_places;
/* a && b …: they are inside */
void hone_print_inside(hone_printer *, const hone_tensor *, int t, bool flat, const hone_print_places *);
void hone_print_at(hone_printer *, int t, bool flat, const hone_print_places *); /* the element's number */

/* ---- blocks ---- */
void hone_print_line(hone_printer *);
void hone_print_limit(hone_printer *, hone_ctype, bool highest);
/* Opens a block that evaluates these roots. Temporaries are declared when the block is closed, so its text is
   made aside: p->out = &block.text. */
typedef struct {
    hone_text text, *out;
    int n_temp;
} hone_print_block;
hone_print_block hone_print_open(hone_printer *, const int32_t *root, int n);
void hone_print_name_shared(hone_printer *); /* names what is used more than once */
void hone_print_close(hone_printer *, hone_print_block *);
/* Of an ARGMAX or ARGMIN: `value` becomes `acc`, and `pick` what goes with it, where it is the first of the
   largest (least); NaN counts as larger (less) than all. `begun`: there was a term. */
void hone_print_arg(hone_printer *, const hone_stage *);
#endif
