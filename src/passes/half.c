/* SPDX-License-Identifier: Apache-2.0
   half: models whose tensors are f16 or bf16 are computed in f32. The standard rounds every result to its
   type; here values between nodes stay f32, so no result is further from exact arithmetic than it was, and
   everything that makes f32 fast applies. Inputs and outputs of graphs and of bodies keep their types.

        x: f16 ─Cast─▶ f32 ─▶ Conv ─▶ Relu ─▶ … ─Cast─▶ y: f16       Casts that converters wrote in between
                                                                     hand on their input now, and go

   What stays in halves, as the standard has it, with Casts around it:
   - decisions: what makes integers or bools of halves (comparisons, ArgMax, IsInf, Cast, QuantizeLinear, …),
     bits (BitCast), sizes (Range), chance, host ops, bodies;
   - what leads to a truncation (Floor, Round, Mod, Cast to an integer) element by element: log(16)/log(2) is
     4 in halves, and 3.999 in f32 with the halves' log(2);
   - what is only looked up in a large table: rows of it are widened, not the table;
   - large constant factors of products: MatMul(x: f32, w: f16) is allowed from here on, and w is widened
     while it is packed;
   - a Cast to halves that nothing but Casts back read: that is a rounding which somebody wants.

   A mask is large and negative so that nothing is left of what it is added to; f16 has no number so large
   but it also has few digits: 5 - 65504 is -65504. In f32 it is -65499, and a row that is masked throughout
   would see through its mask. So where all that becomes of a constant of at most -10000 goes into a Softmax,
   it is f32's lowest number. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "passes/passes.h"
#include "passes/rewrite.h"

enum {
    TABLE = 1 << 16,
    FACTOR = 1 << 13
}; /* elements from which on a table is not widened for a few rows of it, nor a factor before it is packed */
typedef hone_vec(hone_node *) nodes;
typedef struct {
    hone_passing *pass;
    hone_graph *graph;
    const hone_program *cast;
    int n;                     /* vars that there were */
    hone_vid *wide, *narrow;   /* of each: itself in f32, in its own type; -1: not made yet */
    uint8_t *half, *is_output; /* its type where that is f16 or bf16, else 0; leaves the graph */
    /* all that becomes of it goes into a Softmax; whole numbers of a comparison or a mask */
    uint8_t *masks, *whole;
    uint8_t *computed; /* something other than a Cast reads it */
    uint8_t *stays;    /* one a node */
    nodes done;
} widening;

static hone_status no_memory(void) { return hone_fail(HONE_NO_MEMORY, "no memory to widen halves"); }
static bool is_half(hone_dtype t) { return t == HONE_DTYPE_F16 || t == HONE_DTYPE_BF16; }
static bool is_float(hone_dtype t) { return is_half(t) || t == HONE_DTYPE_F32 || t == HONE_DTYPE_F64; }
static bool runs(const hone_node *n, const char *how) {
    return n->program->runs == HONE_RUNS_VIEW && !strcmp(n->program->how, how);
}
static bool listed(const hone_node *n, const char *const *list) {
    if (*n->program->domain) return false;
    for (; *list; list++)
        if (!strcmp(*list, n->program->name)) return true;
    return false;
}

/* ---- which nodes --------------------------------------------------------------------------------------- */
/* Decisions that make a half of a half. */
static const char *const steps[] = {"Floor", "Ceil", "Round", "Mod", NULL};
static const char *const others[] = {"BitCast",     "CastLike", "Hardmax", "Bernoulli",
                                     "Multinomial", "EyeLike",  NULL};
static bool has_half(const widening *w, const hone_node *n) {
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] >= 0 && n->in[k] < w->n && w->half[n->in[k]]) return true;
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0 && w->half[n->out[k]]) return true;
    return false;
}
static bool truncates(const widening *w, const hone_node *n) {
    if (listed(n, steps)) return true;
    for (int k = 0; k < n->n_in && k < n->program->n_in; k++) /* numbers that decide sizes */
        if (n->in[k] >= 0 && w->half[n->in[k]] && n->program->operand[k].contents) return true;
    return n->program == w->cast && w->half[n->in[0]] && n->out[0] >= 0 &&
           !is_float(w->graph->var.at[n->out[0]].dtype);
}
/* The row's own answer: with f32 for halves, are the results f32 for halves and everything else as it was? */
static hone_status row_allows(const widening *w, hone_arena *a, const hone_node *n, bool *yes) {
    const hone_graph *g = w->graph;
    *yes = false;
    if (runs(n, "concat") || runs(n, "split")) {
        *yes = true;
        return HONE_OK;
    }
    hone_fact *fact = HONE_NEW_N(a, hone_fact, n->n_in + 1);
    const hone_fact **in = HONE_NEW_N(a, const hone_fact *, n->n_in + 1);
    hone_dtype *type = HONE_NEW_N(a, hone_dtype, n->program->n_out + 1);
    hone_call *call;
    if (!fact || !in || !type) return no_memory();
    for (int k = 0; k < n->n_in; k++) {
        if (n->in[k] >= 0) fact[k] = hone_fact_of_var(g->var.at + n->in[k]);
        else fact[k] = hone_fact_unknown;
        if (n->in[k] >= 0 && w->half[n->in[k]]) fact[k].dtype = HONE_DTYPE_F32;
        in[k] = fact + k;
    }
    hone_inferring i = {a, g->dims, w->pass->instances, NULL};
    HONE_TRY(hone_node_call(&i, n, in, &call));
    if (hone_call_dtypes(call, type)) return HONE_OK;
    for (int k = 0; k < n->n_out && k < n->program->n_out; k++)
        if (n->out[k] >= 0 && type[k] != (w->half[n->out[k]] ? HONE_DTYPE_F32 : g->var.at[n->out[k]].dtype))
            return HONE_OK;
    *yes = n->n_out <= n->program->n_out && n->n_in <= n->program->n_in;
    return HONE_OK;
}
static bool table(const widening *w, const hone_node *n) {
    const hone_value *v =
        !*n->program->domain && !strcmp(n->program->name, "Gather") ? w->graph->var.at[n->in[0]].value : NULL;
    return v && hone_value_count(v) >= TABLE;
}
/* A constant, or one seen another way, that is so large that it stays as it is. */
static bool large(const widening *w, hone_vid v) {
    const hone_graph *g = w->graph;
    for (int deep = 0; deep < 8 && v >= 0 && v < w->n && w->half[v]; deep++) {
        const hone_var *x = g->var.at + v;
        if (x->value) return hone_value_count(x->value) >= FACTOR;
        const hone_node *n = x->producer >= 0 ? g->node.at[x->producer] : NULL;
        if (!n || n->program->runs != HONE_RUNS_VIEW || runs(n, "concat") || runs(n, "split") ||
            runs(n, "bitcast"))
            return false;
        v = n->in[0];
    }
    return false;
}
/* Factors of sums of products: kernels widen them while they pack them. */
static bool packed(const hone_node *n, int k) {
    static const struct {
        const char *op;
        int first, last;
    } factors[] = {{"MatMul", 0, 1}, {"Gemm", 0, 1}, {"Conv", 1, 1},
                   {"LSTM", 1, 2},   {"GRU", 1, 2},  {"RNN", 1, 2}};
    for (size_t q = 0; q < sizeof factors / sizeof *factors; q++)
        if (!*n->program->domain && !strcmp(n->program->name, factors[q].op))
            return k >= factors[q].first && k <= factors[q].last &&
                   hone_attr_int(n->attr, n->n_attr, "group", 1) == 1;
    return false;
}
/* A cache that comes in as halves and goes out longer: what is new is rounded, what is there is not read
   twice. */
static bool cache(const widening *w, const hone_node *n) {
    bool old = false;
    for (int k = 0; runs(n, "concat") && k < n->n_in; k++)
        old |= n->in[k] >= 0 && w->half[n->in[k]] && w->graph->var.at[n->in[k]].producer < 0;
    return old && n->out[0] >= 0 && w->is_output[n->out[0]];
}
static hone_status allowed(const widening *w, hone_arena *a, const hone_node *n, bool *yes) {
    *yes = false;
    if (n->n_body || n->part || n->program->random || n->program->runs == HONE_RUNS_HOST ||
        n->program->runs == HONE_RUNS_CONTROL)
        return HONE_OK;
    if (truncates(w, n) || listed(n, others) || table(w, n) || cache(w, n)) return HONE_OK;
    /* its readers take it as it is */
    if (n->program->runs == HONE_RUNS_VIEW && n->n_out == 1 && large(w, n->out[0])) return HONE_OK;
    /* there and back, with nothing in between, is a rounding that somebody wants; so is a half as another */
    if (n->program == w->cast) {
        const uint8_t from = w->half[n->in[0]], to = w->half[n->out[0]];
        *yes = w->computed[n->out[0]] || (from && (!to || from == to));
        return HONE_OK;
    }
    bool halves = false;
    for (int k = 0; k < n->n_out; k++) {
        if (n->out[k] < 0) continue;
        if (!is_float(w->graph->var.at[n->out[k]].dtype) && !runs(n, "shape") && !runs(n, "size"))
            return HONE_OK;
        halves |= w->half[n->out[k]];
    }
    for (int k = 0; k < n->n_in; k++) halves |= n->in[k] >= 0 && w->half[n->in[k]];
    return halves ? row_allows(w, a, n, yes) : HONE_OK;
}
static hone_status element_wise(const widening *w, hone_arena *a, const hone_node *n, bool *yes) {
    const hone_graph *g = w->graph;
    *yes = n->program->runs == HONE_RUNS_VIEW;
    if (*yes || n->program->runs != HONE_RUNS_PROGRAM || n->n_body || n->part) return HONE_OK;
    hone_fact *fact = HONE_NEW_N(a, hone_fact, n->n_in + n->n_out + 1);
    const hone_fact **in = HONE_NEW_N(a, const hone_fact *, n->n_in + 1);
    const hone_instance *instance = NULL;
    hone_call *call;
    hone_param *param;
    if (!fact || !in) return no_memory();
    for (int k = 0; k < n->n_in; k++) {
        if (n->in[k] >= 0) fact[k] = hone_fact_of_var(g->var.at + n->in[k]);
        else fact[k] = hone_fact_unknown;
        in[k] = fact + k;
    }
    hone_inferring i = {a, g->dims, w->pass->instances, NULL};
    hone_status s = hone_node_infer(&i, n, in, NULL, fact + n->n_in, &instance, &call, &param);
    if (s == HONE_NO_MEMORY) return s;
    *yes = !s && instance;
    for (int k = 0; *yes && k < instance->n_stage; k++) *yes = instance->stage[k].reduce == HONE_REDUCE_NONE;
    return HONE_OK;
}
/* Which nodes stay as they are: those that must, and what leads to a truncation. Nodes that touch no half
   need nothing. */
static hone_status choose(widening *w, hone_arena *a) {
    hone_graph *g = w->graph;
    uint8_t *exact = hone_alloc((size_t)w->n + 1); /* vars that a truncation is made of */
    if (!exact) return no_memory();
    hone_status s = HONE_OK;
    for (int k = g->node.n - 1; k >= 0 && !s; k--) {
        const hone_node *n = g->node.at[k];
        if (!has_half(w, n)) {
            w->stays[k] = 1;
            continue;
        }
        hone_arena_reset(a);
        bool wanted = false, may = false, each = false;
        for (int q = 0; q < n->n_out; q++) wanted |= n->out[q] >= 0 && exact[n->out[q]];
        s = allowed(w, a, n, &may);
        if (!s && wanted) s = element_wise(w, a, n, &each);
        w->stays[k] = !may || each;
        for (int q = 0; !s && (each || truncates(w, n)) && q < n->n_in; q++)
            if (n->in[q] >= 0) exact[n->in[q]] = 1;
    }
    hone_free(exact);
    return s;
}

/* ---- masks --------------------------------------------------------------------------------------------- */
static const double mask_from = -10000;
static const char *const on_the_way[] = {"Add",    "Sub",   "Mul",      "Where",     "Min",
                                         "Max",    "Clip",  "Cast",     "ReduceMax", "ConstantOfShape",
                                         "Trilu",  "Tile",  "Reshape",  "Expand",    "Transpose",
                                         "Concat", "Slice", "Gather",   "Squeeze",   "Unsqueeze",
                                         "Split",  "Pad",   "Identity", NULL};
static const char *const ends[] = {"Softmax", "Exp", NULL};
static const char *const keeps_whole[] = {"Sub",      "Reshape", "Expand",    "Transpose", "Concat", "Slice",
                                          "Gather",   "Squeeze", "Unsqueeze", "Split",     "Where",  "Cast",
                                          "Identity", "Tile",    "Trilu",     NULL};
static bool attends(const hone_node *n, int k) {
    return !strcmp(n->program->name, "Attention") && !*n->program->domain && k == 3;
}
static bool whole_constant(const hone_value *v) {
    const int64_t n = v->tag == HONE_TAG_TENSOR && is_float(v->dtype) ? hone_value_count(v) : -1;
    for (int64_t k = 0; k < n; k++)
        if (hone_value_f64(v, k) != 0 && hone_value_f64(v, k) != 1) return false;
    return n >= 0 && n < TABLE;
}
static void find_masks(widening *w) {
    const hone_graph *g = w->graph;
    for (hone_vid v = 0; v < w->n; v++) {
        const hone_var *x = g->var.at + v;
        w->masks[v] = !w->is_output[v];
        w->whole[v] = x->value ? whole_constant(x->value) : x->dtype && !is_float(x->dtype);
    }
    for (int k = 0; k < g->node.n; k++) {
        const hone_node *n = g->node.at[k];
        bool all = listed(n, keeps_whole);
        for (int q = 0; q < n->n_in; q++) all &= n->in[q] < 0 || w->whole[n->in[q]];
        for (int q = 0; all && q < n->n_out; q++)
            if (n->out[q] >= 0) w->whole[n->out[q]] = 1;
    }
    for (int k = g->node.n - 1; k >= 0; k--) {
        const hone_node *n = g->node.at[k];
        bool passes = listed(n, on_the_way), end = listed(n, ends);
        for (int q = 0; q < n->n_out; q++) passes &= n->out[q] < 0 || w->masks[n->out[q]];
        const bool product = !strcmp(n->program->name, "Mul"); /* of a mask's zeros and ones only */
        for (int q = 0; q < n->n_in; q++) {
            if (n->in[q] < 0) continue;
            const bool beside =
                product && !(n->in[1 - q] >= 0 && w->whole[n->in[1 - q]]) && !w->whole[n->in[q]];
            if (!(passes && !beside) && !end && !attends(n, q)) w->masks[n->in[q]] = 0;
        }
    }
}
static bool is_mask(const widening *w, hone_vid v) {
    const hone_value *x = w->graph->var.at[v].value;
    if (!w->masks[v] || x->dtype != HONE_DTYPE_F16) return false;
    for (int64_t k = 0, n = hone_value_count(x); k < n; k++)
        if (hone_value_f64(x, k) <= mask_from) return true;
    return false;
}

/* ---- forms of a var ------------------------------------------------------------------------------------ */
static hone_vid like(hone_graph *g, hone_vid v, hone_dtype t) { /* a new var of the same shape */
    hone_vid made = hone_graph_var(g, g->var.at[v].name);
    if (made < 0) return -1;
    const hone_var *from = g->var.at + v;
    hone_var *to = g->var.at + made;
    to->tag = from->tag, to->dtype = t, to->rank = from->rank, to->producer = -1;
    memcpy(to->dim, from->dim, sizeof to->dim);
    return made;
}
static bool put_cast(widening *w, hone_vid from, hone_vid to, hone_dtype t) {
    const hone_attr attr = {.name = "to", .kind = HONE_ATTR_TYPE, .n = 1, .i = (const int64_t[]){t}};
    hone_node *n = hone_graph_node(w->graph, w->cast, w->graph->var.at[to].name, &from, 1, &to, 1);
    if (!n) return false;
    w->graph->node.n--; /* it stands in `done` */
    return hone_node_attrs(w->graph, n, &attr, 1) && hone_push(&w->done, n);
}
/* Numbers that formulas are known by: a constant that is one of them as far as its type goes is that one. */
static const double known[] = {1.4142135623730951, 0.7071067811865476,  0.7978845608028654,
                               0.044715,           0.16666666666666666, 1.702};
static float unrounded(hone_dtype t, float v) {
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        uint16_t half = 0;
        hone_dtype_store(t, &half, HONE_F64, (hone_scalar){.f64 = known[k]}, false);
        if (hone_dtype_load(t, &half).f32 == v) return (float)known[k];
    }
    return v;
}
static hone_vid wide_constant(widening *w, hone_vid v, bool mask) {
    const hone_value *from = w->graph->var.at[v].value;
    hone_value *to = NULL;
    if (hone_value_tensor(HONE_DTYPE_F32, from->dim, from->rank, &to)) return -1;
    const int64_t n = hone_value_count(from);
    float *at = to->data;
    hone_dtype_load_n(from->dtype, at, from->data, (size_t)n);
    if (n == 1) *at = unrounded(from->dtype, *at);
    for (int64_t k = 0; mask && k < n; k++)
        if (at[k] <= (float)mask_from && at[k] >= -65504) at[k] = -FLT_MAX;
    return hone_graph_const(w->graph, w->graph->var.at[v].name, to);
}
static hone_vid in_f32(widening *w, hone_vid v) {
    if (w->wide[v] >= 0) return w->wide[v];
    if (w->graph->var.at[v].value) return w->wide[v] = wide_constant(w, v, is_mask(w, v));
    hone_vid made = like(w->graph, v, HONE_DTYPE_F32);
    if (made < 0 || !put_cast(w, v, made, HONE_DTYPE_F32)) return -1;
    return w->wide[v] = made;
}
static hone_vid in_half(widening *w, hone_vid v) {
    if (w->narrow[v] >= 0) return w->narrow[v];
    hone_vid made = like(w->graph, v, w->half[v]);
    if (made < 0 || !put_cast(w, w->wide[v], made, w->half[v])) return -1;
    return w->narrow[v] = made;
}
static bool widen(widening *w, hone_node *n) {
    hone_graph *g = w->graph;
    const hone_vid *was = hone_arena_copy(g->arena, n->out, sizeof *was * (size_t)n->n_out);
    if (!was) return false;
    bool said = false; /* something else says that the node is f32 */
    for (int k = 0; k < n->n_in; k++)
        said |= n->in[k] >= 0 && is_float(g->var.at[n->in[k]].dtype) && !(packed(n, k) && large(w, n->in[k]));
    for (int k = 0; k < n->n_in; k++) {
        const hone_vid v = n->in[k];
        if (v < 0 || !w->half[v] || (said && packed(n, k) && large(w, v))) continue;
        if ((n->in[k] = in_f32(w, v)) < 0) return false;
    }
    for (int k = 0; k < n->n_out; k++) {
        const hone_vid y = n->out[k];
        if (y < 0 || !w->half[y]) continue;
        if (!w->is_output[y]) {
            g->var.at[y].dtype = HONE_DTYPE_F32, w->wide[y] = y, w->narrow[y] = -1;
            continue;
        }
        if ((w->wide[y] = n->out[k] = like(g, y, HONE_DTYPE_F32)) < 0) return false;
    }
    const hone_attr attr = {
        .name = "to", .kind = HONE_ATTR_TYPE, .n = 1, .i = (const int64_t[]){HONE_DTYPE_F32}};
    if (n->program == w->cast && was[0] >= 0 && w->half[was[0]] && !hone_node_attrs(g, n, &attr, 1))
        return false;
    if (!hone_push(&w->done, n)) return false;
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] != was[k] && !put_cast(w, n->out[k], was[k], w->half[was[k]])) return false;
    return true;
}

/* ---- graphs -------------------------------------------------------------------------------------------- */
static bool open(widening *w) {
    const hone_graph *g = w->graph;
    const size_t n = (size_t)g->var.n + 1;
    w->n = g->var.n;
    w->wide = hone_alloc(sizeof *w->wide * n), w->narrow = hone_alloc(sizeof *w->narrow * n);
    w->half = hone_alloc(n), w->is_output = hone_alloc(n), w->masks = hone_alloc(n), w->whole = hone_alloc(n);
    w->computed = hone_alloc(n), w->stays = hone_alloc((size_t)g->node.n + 1);
    if (!w->wide || !w->narrow || !w->half || !w->is_output || !w->masks || !w->whole || !w->computed ||
        !w->stays)
        return false;
    for (hone_vid v = 0; v < w->n; v++) {
        const hone_var *x = g->var.at + v;
        w->half[v] = x->tag == HONE_TAG_TENSOR && is_half(x->dtype) ? (uint8_t)x->dtype : 0;
        w->wide[v] = -1, w->narrow[v] = v;
    }
    for (int k = 0; k < g->out.n; k++) w->is_output[g->out.at[k]] = 1;
    for (int k = 0; k < g->node.n; k++)
        for (int q = 0; q < g->node.at[k]->n_in; q++)
            if (g->node.at[k]->in[q] >= 0 && g->node.at[k]->program != w->cast)
                w->computed[g->node.at[k]->in[q]] = 1;
    return true;
}
static void close(widening *w) {
    hone_free(w->wide);
    hone_free(w->narrow);
    hone_free(w->half);
    hone_free(w->is_output);
    hone_free(w->masks);
    hone_free(w->whole);
    hone_free(w->computed);
    hone_free(w->stays);
}
static bool rewrite(widening *w) {
    hone_graph *g = w->graph;
    for (int k = 0; k < g->node.n; k++) {
        hone_node *n = g->node.at[k];
        if (!w->stays[k]) {
            if (!widen(w, n)) return false;
            w->pass->changed++;
            continue;
        }
        for (int q = 0; q < n->n_in; q++)
            if (n->in[q] >= 0 && w->half[n->in[q]] && (n->in[q] = in_half(w, n->in[q])) < 0) return false;
        if (!hone_push(&w->done, n)) return false;
    }
    return true;
}
static hone_status widen_graph(hone_passing *p, hone_graph *g, const hone_program *cast) {
    bool any = false;
    for (hone_vid v = 0; v < g->var.n; v++) any |= is_half(g->var.at[v].dtype);
    for (int k = 0; k < g->node.n; k++)
        for (int b = 0; b < g->node.at[k]->n_body; b++)
            HONE_TRY(widen_graph(p, g->node.at[k]->body[b], cast));
    if (!any) return HONE_OK;
    widening w = {.pass = p, .graph = g, .cast = cast};
    hone_arena *a = hone_arena_create();
    hone_graph *top = g;
    while (top->outer) top = top->outer;
    top->mixed = true;
    hone_instances_mix(p->instances);
    hone_status s = a && open(&w) ? choose(&w, a) : no_memory();
    if (!s) find_masks(&w);
    if (!s && !rewrite(&w)) s = no_memory();
    if (s) hone_vec_free(&w.done);
    else {
        hone_free(g->node.at);
        g->node.at = w.done.at, g->node.n = w.done.n, g->node.room = w.done.room;
    }
    close(&w);
    hone_arena_destroy(a);
    return s;
}
hone_status hone_pass_half(hone_passing *p) {
    const hone_library *library;
    HONE_TRY(hone_library_builtin(&library));
    const hone_program *cast = hone_library_find(library, "", "Cast");
    if (!cast) return hone_fail(HONE_BUG, "the library has no Cast");
    hone_graph_index(p->graph);
    return widen_graph(p, p->graph, cast);
}

/* ---- weights that are cast ----------------------------------------------------------------------------- */
/* MatMul(x, Cast(w: f16)) takes w as it is, before folding would make an f32 of it; so it is in what `hone
   compile` writes of such models. */
static bool is_stored(const hone_graph *g, const hone_node *n, int k, const hone_program *cast,
                      hone_vid *from) {
    const hone_vid v = n->in[k];
    const hone_node *maker =
        v >= 0 && packed(n, k) && g->var.at[v].producer >= 0 ? g->node.at[g->var.at[v].producer] : NULL;
    if (!maker || maker->program != cast || g->var.at[v].dtype != HONE_DTYPE_F32) return false;
    const hone_value *x = g->var.at[maker->in[0]].value;
    *from = maker->in[0];
    return x && x->tag == HONE_TAG_TENSOR && is_half(x->dtype) && hone_value_count(x) >= FACTOR;
}
static void take_stored(hone_passing *p, hone_graph *g, const hone_program *cast, bool *any) {
    for (int q = 0; q < g->node.n; q++) {
        hone_node *n = g->node.at[q];
        for (int b = 0; b < n->n_body; b++) take_stored(p, n->body[b], cast, any);
        hone_vid from = -1;
        bool said = false; /* something else says that the node is f32 */
        for (int k = 0; k < n->n_in && k < 2; k++)
            said |= n->in[k] >= 0 && g->var.at[n->in[k]].dtype == HONE_DTYPE_F32 &&
                    !is_stored(g, n, k, cast, &from);
        for (int k = 0; said && k < n->n_in && k < 3; k++)
            if (is_stored(g, n, k, cast, &from)) n->in[k] = from, *any = true, p->changed++;
    }
}
hone_status hone_pass_stored(hone_passing *p) {
    const hone_library *library;
    HONE_TRY(hone_library_builtin(&library));
    const hone_program *cast = hone_library_find(library, "", "Cast");
    bool any = false;
    hone_graph_index(p->graph);
    take_stored(p, p->graph, cast, &any);
    if (!any) return HONE_OK;
    p->graph->mixed = true;
    hone_instances_mix(p->instances);
    return HONE_OK;
}
