/* SPDX-License-Identifier: Apache-2.0
   print_kernel: what the files that print one kernel share: the kernel in the making (print_body.c writes
   what happens at a place of the domain, print_kernel.c what threads, lanes and groups do, kernel.c arguments
   and launches). */
#ifndef HONE_LOOPS_PRINT_KERNEL_H
#define HONE_LOOPS_PRINT_KERNEL_H
#include "loops/print_target.h"

typedef struct { /* a number that the kernel takes */
    const char *name;
    hone_karg_kind kind;
    int64_t i;
    double f;
} hone_kernel_number;
typedef struct {
    hone_printer p;
    const hone_kernel_target *target;
    const hone_print_target *row;
    const hone_param *param;
    const int64_t *stride;
    const hone_schedule *s;
    int first;              /* stage */
    const hone_knows *know; /* one a stage of the kernel */
    hone_text *shared;      /* declarations of shared memory */
    int shared_bytes;
    hone_vec(hone_kernel_number) number;
    int scratch; /* number of the scratch that it uses, or -1 */
    bool scratch_written, failed;
    uint8_t *written; /* tensors that it stores */
    hone_ctype scratch_type;
} hone_kernel;

/* A number under this name, once. */
void hone_kernel_number_add(hone_kernel *, const char *name, int64_t i);
const char *hone_kernel_count(const hone_kernel *); /* the type of counts */

/* ---- print_body.c: at one place of the domain ---- */
void hone_body_survey(hone_kernel *, const hone_stage *);
/* Declares indices (names given) of the flat position `from`, the last of ids fastest. */
void hone_body_decode(hone_kernel *, const char *from, const int32_t *ids, int n);
/* the type that a reduction accumulates in */
hone_ctype hone_body_acc(const hone_kernel *, const hone_stage *);
void hone_body_acc_open(hone_kernel *, const hone_stage *, bool lanes);
void hone_body_acc_close(hone_kernel *, const hone_stage *, bool lanes);
/* One term: at the indices that are declared, or (source) what it says. `lanes`: the place of an extreme is
   kept as its term's number. */
void hone_body_term(hone_kernel *, const hone_stage *, bool lanes, const char *source);
void hone_body_serial(hone_kernel *, const hone_stage *); /* the whole reduction in nested loops */
/* acc and another one */
void hone_body_join(hone_kernel *, const hone_stage *, const char *other, const char *other_term);
void hone_body_pick(hone_kernel *, const hone_stage *); /* lanes: the value at the term that won */
/* What the stage stores: stored, or kept in the variable `held`. */
void hone_body_store(hone_kernel *, const hone_stage *, const char *held);
/* `value`, of this type, as an element of the target: an expression */
void hone_body_element(hone_kernel *, const hone_stage *, hone_ctype from, const char *value);
void hone_body_scatter(hone_kernel *, const hone_stage *); /* if it is this thread's to store */
int hone_body_loops(hone_kernel *, const int32_t *ids, int n, int32_t fixed);
void hone_body_end(hone_kernel *, int made);

/* ---- print_kernel.c: one kernel's body ---- */
/* a line */
void hone_kernel_put(hone_kernel *, const char *format, ...) HONE_PRINTF(2, 3);
void hone_kernel_open(hone_kernel *, const char *text); /* a line that opens a brace */
/* The terms from `from` up to `to`, every so many lanes one; then what the lanes have meets in lane 0, and in
   all where it is asked for. */
void hone_kernel_terms(hone_kernel *, const hone_stage *, const char *from, const char *to, int lanes,
                       const char *source);
void hone_kernel_tree(hone_kernel *, const hone_stage *, int lanes, bool all);
int64_t hone_kernel_product(const hone_kernel *, const int32_t *ids, int n); /* of extents */
/* The stages of the kernel at this place, one after another; what only the next one reads stays in a
   variable. into: the variable that gets what the last one stores; NULL: it is stored. */
void hone_kernel_stages(hone_kernel *, bool reduced, const char *into);
void hone_kernel_vector(hone_kernel *); /* print_vector.c */
void hone_kernel_tiles(hone_kernel *);  /* print_tiles.c */
void hone_kernel_rows(hone_kernel *);   /* print_rows.c */
void hone_kernel_blocks(hone_kernel *); /* print_product.c */
void hone_kernel_body(hone_kernel *, bool second_pass);
#endif
