/* SPDX-License-Identifier: Apache-2.0
   match: see match.h. A pattern is parsed into a small tree; matching is a search over goals (this pattern at
   that var) that backs up where an alternative or an order of operands fails. Patterns are short and ours, so
   the search is. */
#include "passes/match.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NODES = 48, MAX_NAMES = 24, MAX_ARGS = 9, MAX_EMITTED = 16, MOST_ELEMENTS = 200000000 };

/* ---- patterns ------------------------------------------------------------------------------------------ */
typedef enum { PAT_OP, PAT_NAME, PAT_CONSTANT, PAT_NUMBER, PAT_EITHER } pat_kind;
typedef struct pat pat;
struct pat {
    pat_kind kind;
    int name; /* in the list of names, or -1 */
    /* of ai.onnx. By name: most ops of most patterns are in no graph, and need not be parsed */
    const char *op;
    bool either_order;
    double number;
    pat *arg[MAX_ARGS];
    int n_arg;
};
typedef struct {
    hone_arena *arena;
    const hone_library *library;
    const char *at;
    char name[MAX_NAMES][16];
    int n_name;
    bool failed, no_memory;
} reading;

static void skip(reading *r) {
    while (*r->at == ' ') r->at++;
}
static bool take(reading *r, char c) {
    skip(r);
    if (*r->at != c) return false;
    r->at++;
    return true;
}
static int name_of(reading *r, const char *text, size_t n) {
    for (int k = 0; k < r->n_name; k++)
        if (strlen(r->name[k]) == n && !memcmp(r->name[k], text, n)) return k;
    if (r->n_name == MAX_NAMES || n >= sizeof r->name[0]) {
        r->failed = true;
        return 0;
    }
    memcpy(r->name[r->n_name], text, n);
    return r->n_name++;
}
static const hone_program *row_of(const hone_library *l, const char *op) {
    /* rows that only passes write; what import leaves as it is */
    static const char *const domains[] = {"hone", "com.microsoft"};
    for (size_t k = 0; k < sizeof domains / sizeof *domains; k++) {
        const size_t n = strlen(domains[k]);
        if (!strncmp(op, domains[k], n) && op[n] == '.') return hone_library_find(l, domains[k], op + n + 1);
    }
    return hone_library_find(l, "", op);
}
static pat *read_pattern(reading *r);
static void read_args(reading *r, pat *p, char between, char end) {
    do {
        if (p->n_arg == MAX_ARGS) r->failed = true;
        else p->arg[p->n_arg++] = read_pattern(r);
    } while (!r->failed && take(r, between));
    if (!take(r, end)) r->failed = true;
}
static pat *read_pattern(reading *r) {
    static const char *const any_order[] = {"Add", "Mul"};
    pat *p = HONE_NEW(r->arena, pat);
    if (!p) r->failed = r->no_memory = true;
    if (r->failed) return NULL;
    p->name = -1;
    skip(r);
    if (take(r, '{')) {
        p->kind = PAT_EITHER;
        read_args(r, p, '|', '}');
        return p;
    }
    if (isdigit((unsigned char)*r->at) || *r->at == '-') {
        char *end;
        p->kind = PAT_NUMBER, p->number = strtod(r->at, &end), r->at = end;
        return p;
    }
    bool constant = take(r, '$');
    size_t n = 0;
    while (isalnum((unsigned char)r->at[n]) || (n && r->at[n] == '.')) n++; /* hone.X is a row's name, too */
    const char *word = r->at;
    r->at += n;
    if (!constant && take(r, '=')) { /* a name for what follows */
        p = read_pattern(r);
        if (p) p->name = name_of(r, word, n);
        return p;
    }
    if (!take(r, '(')) {
        p->kind = constant ? PAT_CONSTANT : PAT_NAME, p->name = name_of(r, word, n);
        return p;
    }
    char op[64] = {0};
    memcpy(op, word, n < sizeof op ? n : sizeof op - 1);
    p->kind = PAT_OP, p->op = hone_arena_text(r->arena, "%s", op);
    r->no_memory |= !p->op;
    if (!p->op || !row_of(r->library, op)) r->failed = true;
    for (size_t k = 0; k < sizeof any_order / sizeof *any_order; k++)
        p->either_order |= !strcmp(op, any_order[k]);
    read_args(r, p, ',', ')');
    return p;
}

/* ---- the graph, while it changes ----------------------------------------------------------------------- */
struct hone_matching {
    hone_passing *pass;
    hone_graph *graph;
    hone_arena *scratch; /* of a graph; of a match */
    hone_vec(hone_node *) maker;
    hone_vec(int) uses;
    hone_vec(hone_node *) done; /* the new list of nodes */
    const reading *names;
    hone_node *root;
    hone_vid bound[MAX_NAMES];
    hone_node *part[MAX_NODES]; /* nodes of the pattern, the root included */
    int n_part;
    hone_node *emitted[MAX_EMITTED];
    int n_emitted;
    bool refused, failed /* no memory */;
};
static bool know_vars(hone_matching *m) {
    while (m->maker.n < m->graph->var.n)
        if (!hone_push(&m->maker, NULL)) return false;
    while (m->uses.n < m->graph->var.n)
        if (!hone_push(&m->uses, 0)) return false;
    return true;
}
static void read_by(hone_matching *m, const hone_node *n, int by) {
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] >= 0) m->uses.at[n->in[k]] += by;
}
static bool index_graph(hone_matching *m) {
    if (!know_vars(m)) return false;
    for (int k = 0; k < m->graph->node.n; k++) {
        hone_node *n = m->graph->node.at[k];
        if (n->dead) continue;
        read_by(m, n, 1);
        for (int q = 0; q < n->n_out; q++)
            if (n->out[q] >= 0) m->maker.at[n->out[q]] = n;
    }
    for (int k = 0; k < m->graph->out.n; k++) m->uses.at[m->graph->out.at[k]]++;
    return true;
}
/* A node goes, and with it who worked for it alone. */
static void let_go(hone_matching *m, hone_node *n) {
    hone_node *stack[MAX_NODES] = {n};
    int top = 1;
    n->dead = true;
    while (top) {
        hone_node *at = stack[--top];
        read_by(m, at, -1);
        for (int k = 0; k < at->n_in; k++) {
            hone_var *v = at->in[k] < 0 ? NULL : m->graph->var.at + at->in[k];
            if (v && v->value && !m->uses.at[at->in[k]]) { /* weights that were replaced are not held twice */
                hone_value_drop(v->value);
                v->value = NULL;
            }
            hone_node *from = at->in[k] < 0 ? NULL : m->maker.at[at->in[k]];
            bool read = false;
            for (int q = 0; from && q < from->n_out; q++)
                read |= from->out[q] >= 0 && m->uses.at[from->out[q]] > 0;
            /* the dead pass takes what is left */
            if (!from || from->dead || read || from->n_body || top == MAX_NODES) continue;
            from->dead = true, stack[top++] = from;
        }
    }
}

/* ---- matching ------------------------------------------------------------------------------------------ */
typedef struct goal goal;
struct goal {
    const pat *p;
    hone_vid var;
    const goal *next;
};
bool hone_match_number(const hone_value *v, double *out) {
    if (!v || v->tag != HONE_TAG_TENSOR || v->dtype == HONE_DTYPE_STRING || hone_value_count(v) != 1)
        return false;
    *out = hone_value_f64(v, 0);
    return true;
}
static bool is_number(const hone_value *v, double want) {
    double got;
    if (!hone_match_number(v, &got)) return false;
    /* what rounding leaves of a constant */
    double slack = v->dtype == HONE_DTYPE_F16 ? 1e-3 : v->dtype == HONE_DTYPE_BF16 ? 8e-3 : 1e-6;
    return fabs(got - want) <= slack * fabs(want);
}
static bool solve(hone_matching *m, const goal *g);
static bool solve_args(hone_matching *m, const pat *p, const hone_node *n, bool turned, const goal *next) {
    goal at[MAX_ARGS];
    /* the last first: each goal is followed by the one made before */
    for (int k = p->n_arg - 1; k >= 0; k--) {
        int from = turned && k < 2 ? 1 - k : k;
        if (n->in[from] < 0) return false;
        at[k] = (goal){p->arg[k], n->in[from], next};
        next = at + k;
    }
    return solve(m, next);
}
static bool solve_op(hone_matching *m, const pat *p, hone_node *n, const goal *next) {
    if (!n || n->dead || n->part || !hone_node_is(n, p->op) || n->n_in < p->n_arg || m->n_part == MAX_NODES)
        return false;
    for (int k = p->n_arg; k < n->n_in; k++)
        if (n->in[k] >= 0) return false;
    m->part[m->n_part++] = n;
    if (solve_args(m, p, n, false, next) || (p->either_order && solve_args(m, p, n, true, next))) return true;
    m->n_part--;
    return false;
}
static bool solve_pattern(hone_matching *m, const goal *g) {
    const hone_value *value = m->graph->var.at[g->var].value;
    switch (g->p->kind) {
    case PAT_NAME: return solve(m, g->next);
    case PAT_CONSTANT: return value && value->tag == HONE_TAG_TENSOR && solve(m, g->next);
    case PAT_NUMBER: return is_number(value, g->p->number) && solve(m, g->next);
    case PAT_OP: return solve_op(m, g->p, m->maker.at[g->var], g->next);
    case PAT_EITHER:
        for (int k = 0; k < g->p->n_arg; k++) {
            goal one = {g->p->arg[k], g->var, g->next};
            if (solve(m, &one)) return true;
        }
        return false;
    }
    return false;
}
static bool solve(hone_matching *m, const goal *g) {
    if (!g) return true;
    int name = g->p->name;
    if (name < 0) return solve_pattern(m, g);
    hone_vid before = m->bound[name];
    if (before >= 0 && before != g->var) return false;
    m->bound[name] = g->var;
    if (solve_pattern(m, g)) return true;
    m->bound[name] = before;
    return false;
}
/* Nothing inside is read from outside, but views, which may stay. */
static bool is_closed(hone_matching *m) {
    for (int k = 1; k < m->n_part; k++) {
        const hone_node *n = m->part[k];
        bool met = n == m->part[0];
        for (int q = 1; q < k; q++) met |= m->part[q] == n;
        if (met || n->program->runs == HONE_RUNS_VIEW) continue;
        for (int q = 0; q < n->n_out; q++) {
            if (n->out[q] < 0) continue;
            int inside = 0;
            for (int p = 0; p < m->n_part; p++) {
                bool again = false;
                for (int o = 0; o < p; o++) again |= m->part[o] == m->part[p];
                for (int i = 0; i < m->part[p]->n_in && !again; i++) inside += m->part[p]->in[i] == n->out[q];
            }
            if (inside != m->uses.at[n->out[q]]) return false;
        }
    }
    return true;
}

/* ---- what was found ------------------------------------------------------------------------------------ */
hone_graph *hone_match_graph(hone_matching *m) { return m->graph; }
const hone_target *hone_match_target(hone_matching *m, hone_dtype *counts_as) {
    const hone_passing *p = m->pass;
    *counts_as = p->precision && m->root->unit ? p->precision : HONE_DTYPE_F32;
    return p->target ? p->target + m->root->unit : NULL;
}
hone_node *hone_match_root(hone_matching *m) { return m->root; }
hone_vid hone_match_var(const hone_matching *m, const char *name) {
    for (int k = 0; k < m->names->n_name; k++)
        if (!strcmp(m->names->name[k], name)) return m->bound[k];
    return -1;
}
const hone_value *hone_match_value(const hone_matching *m, const char *name) {
    hone_vid v = hone_match_var(m, name);
    return v < 0 ? NULL : m->graph->var.at[v].value;
}
hone_node *hone_match_maker(const hone_matching *m, hone_vid v) { return v < 0 ? NULL : m->maker.at[v]; }
hone_node *hone_match_node(const hone_matching *m, const char *name) {
    return hone_match_maker(m, hone_match_var(m, name));
}
int hone_match_uses(const hone_matching *m, hone_vid v) { return v < 0 ? 0 : m->uses.at[v]; }
bool hone_node_is(const hone_node *n, const char *op) {
    const char *dot = strrchr(op, '.');
    const size_t domain = dot ? (size_t)(dot - op) : 0;
    return n && !n->part && strlen(n->program->domain) == domain &&
           !strncmp(n->program->domain, op, domain) && !strcmp(n->program->name, dot ? dot + 1 : op);
}
uint32_t hone_match_axes(const hone_value *axes, int rank) {
    uint32_t bits = 0;
    if (!axes || axes->tag != HONE_TAG_TENSOR || rank < 0 || rank > HONE_MAX_RANK) return 0;
    if (axes->dtype != HONE_DTYPE_I64 && axes->dtype != HONE_DTYPE_I32) return 0;
    for (int64_t k = 0, n = hone_value_count(axes); k < n; k++) {
        int64_t a = hone_value_i64(axes, k);
        a += a < 0 ? rank : 0;
        if (a < 0 || a >= rank) return 0;
        bits |= (uint32_t)1 << a;
    }
    return bits;
}

/* ---- what takes its place ------------------------------------------------------------------------------ */
static hone_vid refuse(hone_matching *m, bool memory) {
    m->refused = true, m->failed |= memory;
    return -1;
}
bool hone_match_spend(hone_matching *m, int64_t elements) {
    if (elements > MOST_ELEMENTS - m->pass->spent) return false;
    m->pass->spent += elements;
    return true;
}
bool hone_match_no_memory(hone_matching *m) { return refuse(m, true) >= 0; }
hone_vid hone_match_constant(hone_matching *m, const char *name, hone_value *take) {
    hone_vid v = take ? hone_graph_const(m->graph, name, take) : -1;
    return v < 0 || !know_vars(m) ? refuse(m, true) : v;
}
hone_vid hone_match_ints(hone_matching *m, const char *name, const int64_t *at, int n) {
    hone_value *v = NULL;
    if (hone_value_tensor(HONE_DTYPE_I64, (const int64_t[]){n}, 1, &v) == HONE_OK && n)
        memcpy(v->data, at, sizeof *at * (size_t)n);
    return hone_match_constant(m, name, v);
}
/* The facts of the node's results; where it takes the place of what is known already they must agree. */
static bool infer_emitted(hone_matching *m, const hone_node *n) {
    hone_fact *facts = HONE_NEW_N(m->scratch, hone_fact, n->n_in + n->n_out);
    const hone_fact **in = HONE_NEW_N(m->scratch, const hone_fact *, n->n_in + 1);
    const hone_instance *instance;
    hone_call *call;
    hone_param *param;
    if (!facts || !in) return hone_match_no_memory(m);
    for (int k = 0; k < n->n_in; k++) {
        facts[k] = n->in[k] < 0 ? hone_fact_unknown : hone_fact_of_var(m->graph->var.at + n->in[k]);
        in[k] = facts + k;
    }
    hone_inferring w = {m->graph->arena, m->graph->dims, m->pass->instances, NULL};
    hone_fact *out = facts + n->n_in;
    hone_status s = hone_node_infer(&w, n, in, NULL, out, &instance, &call, &param);
    if (s) return s == HONE_NO_MEMORY ? hone_match_no_memory(m) : false;
    hone_var *y = m->graph->var.at + n->out[0];
    if (!out->dtype || out->rank < 0 || out->tag != HONE_TAG_TENSOR) return false;
    if (n->out[0] != m->root->out[0]) {
        y->tag = out->tag, y->dtype = out->dtype, y->rank = out->rank, y->contents = out->contents,
        y->n_content = out->n_content;
        memcpy(y->dim, out->dim, sizeof y->dim);
        return true;
    }
    if (y->dtype != out->dtype || y->rank != out->rank) return false;
    for (int d = 0; d < y->rank; d++)
        if (y->dim[d] != out->dim[d] || y->dim[d] == HONE_DIM_UNKNOWN) return false;
    return true;
}
hone_vid hone_match_emit(hone_matching *m, const char *op, hone_vid out, const hone_vid *in, int n_in,
                         const hone_attr *attr, int n_attr) {
    const hone_program *p = row_of(m->names->library, op);
    hone_graph *g = m->graph;
    if (m->refused) return -1;
    if (!p || m->n_emitted == MAX_EMITTED) return refuse(m, false);
    while (n_in && in[n_in - 1] < 0) n_in--;
    if (out == HONE_MATCH_NEW) out = hone_graph_var(g, g->var.at[m->root->out[0]].name);
    hone_node *n = out < 0 || !know_vars(m) ? NULL : hone_graph_node(g, p, m->root->name, in, n_in, &out, 1);
    if (!n) return refuse(m, true);
    g->node.n--; /* it goes to `done` where all is well */
    n->unit = m->root->unit;
    if (!hone_node_attrs(g, n, attr, n_attr)) return refuse(m, true);
    if (!infer_emitted(m, n)) return refuse(m, false);
    m->emitted[m->n_emitted++] = n;
    return out;
}

/* ---- graphs -------------------------------------------------------------------------------------------- */
static bool accept(hone_matching *m) {
    for (int k = 0; k < m->n_emitted; k++) {
        hone_node *n = m->emitted[k];
        read_by(m, n, 1);
        m->maker.at[n->out[0]] = n;
        if (!hone_push(&m->done, n)) return false;
    }
    let_go(m, m->root);
    m->pass->changed++;
    return true;
}
static bool try_rule(hone_matching *m, const pat *p, const hone_rule *rule, hone_node *n) {
    m->root = n, m->n_part = m->n_emitted = 0, m->refused = false;
    for (int k = 0; k < MAX_NAMES; k++) m->bound[k] = -1;
    if (n->n_out != 1 || n->out[0] < 0) return false;
    goal g = {p, n->out[0], NULL};
    if (!solve(m, &g) || !is_closed(m)) return false;
    hone_arena_reset(m->scratch);
    return rule->make(m) && !m->refused && m->n_emitted && m->emitted[m->n_emitted - 1]->out[0] == n->out[0];
}
static bool may_be(const pat *p, const hone_node *n) {
    if (!p) return false;
    if (p->kind == PAT_OP) return hone_node_is(n, p->op);
    for (int k = 0; k < p->n_arg; k++)
        if (may_be(p->arg[k], n)) return true;
    return false;
}
static hone_status match_graph(hone_passing *pass, hone_graph *g, const hone_rule *rule, const pat *p,
                               const reading *names) {
    hone_matching m = {.pass = pass, .graph = g, .names = names};
    bool any = false;
    for (int k = 0; k < g->node.n; k++) {
        any |= !g->node.at[k]->dead && may_be(p, g->node.at[k]);
        for (int b = 0; b < g->node.at[k]->n_body; b++)
            HONE_TRY(match_graph(pass, g->node.at[k]->body[b], rule, p, names));
    }
    if (!any) return HONE_OK;
    bool ok = (m.scratch = hone_arena_create()) && index_graph(&m);
    for (int k = 0; ok && k < g->node.n; k++) {
        hone_node *n = g->node.at[k];
        if (n->dead) continue;
        if (may_be(p, n) && !n->part && try_rule(&m, p, rule, n)) ok = accept(&m);
        else ok = !m.failed && hone_push(&m.done, n);
    }
    hone_arena_destroy(m.scratch);
    hone_vec_free(&m.maker);
    hone_vec_free(&m.uses);
    if (!ok) {
        hone_vec_free(&m.done);
        return hone_fail(HONE_NO_MEMORY, "no memory to look for patterns");
    }
    hone_free(g->node.at);
    g->node.at = m.done.at, g->node.n = m.done.n, g->node.room = m.done.room;
    hone_graph_compact(g);
    return HONE_OK;
}
hone_status hone_match_rules(hone_passing *pass, const hone_rule *rule, int n) {
    const hone_library *library;
    HONE_TRY(hone_library_builtin(&library));
    hone_arena *arena = hone_arena_create();
    hone_status s = arena ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory to look for patterns");
    for (int k = 0; k < n && !s; k++) {
        reading r = {.arena = arena, .library = library, .at = rule[k].pattern};
        const pat *p = read_pattern(&r);
        skip(&r);
        if (r.no_memory) s = hone_fail(HONE_NO_MEMORY, "no memory to look for patterns");
        else if (r.failed || *r.at) s = hone_fail(HONE_BUG, "a pattern cannot be read at '%.20s'", r.at);
        else s = match_graph(pass, pass->graph, rule + k, p, &r);
    }
    hone_arena_destroy(arena);
    hone_graph_index(pass->graph);
    return s;
}
