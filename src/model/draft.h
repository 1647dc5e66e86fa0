/* SPDX-License-Identifier: Apache-2.0
   draft: a node while it is being imported, in whatever version the model wrote it; and the few tools with
   which up-converters edit it.

   A draft ends as nodes of the graph, through hone_draft_place: the table of upgrade.c is applied, then its
   row is looked up. An up-converter either changes the draft, or adds nodes around it: those it wants before
   are simply made (hone_edit_node); where some come after, it places the draft itself and goes on. On
   trouble (no memory, no row) a problem is noted and ids come out as -1: an up-converter may carry on, the
   import fails at its end. */
#ifndef HONE_MODEL_DRAFT_H
#define HONE_MODEL_DRAFT_H
#include "ir/infer.h"
#include "model/tensor.h"

enum { HONE_NEWEST = INT32_MAX };

typedef struct hone_import { /* one load */
    const hone_library *library;
    hone_graph *root;
    hone_arena *scratch;
    hone_onnx_files *files;
    const char *const *open; /* defaults that are to be inputs, by name */
    int n_open;
    hone_text problems; /* a line each */
    int n_problem;
    hone_text forgiven; /* what was wrong and did not matter, a line each, none twice */
    int n_forgiven;
    hone_status worst;
    /* read and made so far, functions inlined: bounded, for functions of functions grow without end */
    int64_t n_node;
    uint64_t inlined_bytes, inlined_limit; /* of file, read again for each call */
    int serial;                            /* of inlined calls */
    hone_instances *instances;             /* of what was inferred on the way, or NULL */
    hone_vec(hone_value *) loose;          /* held for the load only: tensors of attributes */
} hone_import;

typedef struct {
    const char *domain, *op, *name;
    int version;                /* of its domain's opset; HONE_NEWEST: the newest form already */
    hone_vec(hone_vid) in, out; /* captures not among them */
    hone_vec(hone_attr) attr;
    hone_graph *body[2];
    int n_body;
    hone_vec(hone_vid) capture;
    bool placed; /* nothing left to do */
} hone_draft;
typedef struct {
    hone_import *im;
    hone_graph *g;
    hone_draft *node;
} hone_edit;

void hone_import_problem(hone_import *, hone_status, const char *format, ...) HONE_PRINTF(3, 4);
void hone_import_no_memory(hone_import *);
void hone_import_forgive(hone_import *, const char *format, ...) HONE_PRINTF(2, 3);
bool hone_import_count(hone_import *, size_t inlined_bytes); /* one node more; false: stop */
/* there is enough to report, or too much to import */
bool hone_import_stop(const hone_import *);
/* A problem of the node at hand: the line starts with its name, op, domain and version. */
void hone_edit_problem(hone_edit *, hone_status, const char *format, ...) HONE_PRINTF(3, 4);

void hone_draft_place(hone_edit *); /* upgrade, look up, make the node */
void hone_draft_free(hone_draft *);
void hone_upgrade(hone_edit *); /* upgrade.c: the newest form, or placed */
bool hone_upgrade_knows(const char *domain, const char *op);

/* ---- the draft ----------------------------------------------------------------------------------------- */
static inline hone_vid hone_draft_in(const hone_draft *n, int k) { return k < n->in.n ? n->in.at[k] : -1; }
static inline hone_vid hone_draft_out(const hone_draft *n, int k) { return k < n->out.n ? n->out.at[k] : -1; }
void hone_edit_set_in(hone_edit *, int k, hone_vid);                  /* grows the list by absent ones */
const hone_attr *hone_edit_attr(const hone_edit *, const char *name); /* NULL: absent */
int64_t hone_edit_int(const hone_edit *, const char *name, int64_t otherwise);
double hone_edit_float(const hone_edit *, const char *name, double otherwise);
const char *hone_edit_text(const hone_edit *, const char *name, const char *otherwise);
void hone_edit_drop(hone_edit *, const char *name);
/* replaces one of that name; what it points to must outlive the load (arena, literal) */
void hone_edit_set(hone_edit *, hone_attr);

/* ---- attributes, constants and nodes that are added ---------------------------------------------------- */
hone_attr hone_attr_of_int(hone_import *, const char *name, int64_t);
hone_attr hone_attr_of_ints(hone_import *, const char *name, const int64_t *, int n);
hone_attr hone_attr_of_floats(hone_import *, const char *name, const double *, int n);
hone_attr hone_attr_of_text(hone_import *, const char *name, const char *);

hone_vid hone_edit_const(hone_edit *, hone_value *take);      /* NULL is fine */
hone_vid hone_edit_i64(hone_edit *, int64_t);                 /* a scalar */
hone_vid hone_edit_i64s(hone_edit *, const int64_t *, int n); /* a vector */
/* a scalar of that var's type: a constant where the type is known, else CastLike */
hone_vid hone_edit_like(hone_edit *, double v, hone_vid like);
hone_vid hone_edit_scalar(hone_edit *, hone_dtype, double v);
/* A new node in the newest form; `out` -1: its output is a new var. Returns the output. */
hone_vid hone_edit_node(hone_edit *, const char *op, hone_vid out, const hone_vid *in, int n_in,
                        const hone_attr *, int n_attr);
#define HONE_IN(...) \
    (const hone_vid[]){__VA_ARGS__}, (int)(sizeof((hone_vid[]){__VA_ARGS__}) / sizeof(hone_vid))
#define HONE_WITH(...) \
    (const hone_attr[]){__VA_ARGS__}, (int)(sizeof((hone_attr[]){__VA_ARGS__}) / sizeof(hone_attr))
#define HONE_PLAIN NULL, 0
hone_vid hone_edit_var(hone_edit *); /* a new var, for an output */

/* ---- what is known without inference ------------------------------------------------------------------- */
hone_dtype hone_edit_dtype(const hone_edit *, hone_vid);        /* NONE: not known */
int hone_edit_rank(const hone_edit *, hone_vid);                /* -1: not known */
const hone_value *hone_edit_value(const hone_edit *, hone_vid); /* NULL: not a constant */
#endif
