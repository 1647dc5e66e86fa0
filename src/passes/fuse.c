/* SPDX-License-Identifier: Apache-2.0
   fuse: element-wise chains, and what follows a sum, become one node. The result of a first node of any kind
   and the element-wise nodes over it, as far as nothing but the last value is read outside. The domains
   decide, not names of ops. */
#include "loops/fuse.h"

#include <string.h>

#include "passes/passes.h"

enum { MAX_PARTS = 24 };
typedef struct done done;
struct done {
    const hone_fuse_part *part;
    int n;
    hone_fused *fused;
    done *next;
}; /* fused NULL: they do not fit together */
typedef struct {
    hone_passing *p;
    hone_graph *g;
    const hone_instance **instance; /* one a node; NULL: cannot take part */
    hone_arena *scratch;
    int *use0, *use; /* readers of each var: use[use0[v] … use0[v + 1]) are node numbers */
    int *made;       /* the node that makes each var, plus 1; 0: none that can take part */
    uint8_t *is_output, *taken;
    done *done; /* layers that are alike share what was made, and so do their steps at bind */
} fusing;

static hone_status no_memory(void) { return hone_fail(HONE_NO_MEMORY, "no memory to fuse"); }

static hone_status find_instances(fusing *f) {
    hone_graph *g = f->g;
    for (int k = 0; k < g->node.n; k++) {
        hone_node *n = g->node.at[k];
        if (n->program->runs != HONE_RUNS_PROGRAM || n->n_body || n->n_capture) continue;
        hone_fact *facts = HONE_NEW_N(f->scratch, hone_fact, n->n_in + n->n_out + 1);
        const hone_fact **in = HONE_NEW_N(f->scratch, const hone_fact *, n->n_in + 1);
        if (!facts || !in) return no_memory();
        bool plain = true;
        for (int q = 0; q < n->n_in; q++) {
            facts[q] = hone_fact_unknown, in[q] = facts + q;
            if (n->in[q] < 0) continue;
            const hone_var *v = g->var.at + n->in[q];
            plain &= v->tag == HONE_TAG_TENSOR && v->rank >= 0 && v->dtype && v->dtype != HONE_DTYPE_STRING;
            facts[q] = hone_fact_of_var(v);
        }
        int outs = 0;
        for (int q = 0; q < n->n_out; q++) outs += n->out[q] >= 0;
        if (!plain || outs != 1 || n->out[0] < 0) continue;
        hone_inferring w = {f->scratch, g->dims, f->p->instances, NULL};
        hone_call *call;
        hone_param *param;
        HONE_TRY(hone_node_infer(&w, n, in, NULL, facts + n->n_in, &f->instance[k], &call, &param));
        /* numbers: no step to fuse */
        if (f->instance[k] && g->var.at[n->out[0]].contents) f->instance[k] = NULL;
    }
    return HONE_OK;
}
static bool index_uses(fusing *f) {
    hone_graph *g = f->g;
    f->use0 = HONE_NEW_N(f->scratch, int, g->var.n + 2);
    f->is_output = HONE_NEW_N(f->scratch, uint8_t, g->var.n + 1);
    f->made = HONE_NEW_N(f->scratch, int, g->var.n + 1);
    if (!f->use0 || !f->is_output || !f->made) return false;
    int total = 0;
    for (int pass = 0; pass < 2; pass++) {
        int *fill = pass ? HONE_NEW_N(f->scratch, int, g->var.n + 1) : NULL;
        if (pass && !fill) return false;
        for (int k = 0; k < g->node.n; k++)
            for (int q = 0; q < g->node.at[k]->n_in; q++) {
                hone_vid v = g->node.at[k]->in[q];
                if (v < 0) continue;
                if (!pass) f->use0[v + 1]++, total++;
                else f->use[f->use0[v] + fill[v]++] = k;
            }
        if (pass) break;
        for (int v = 0; v < g->var.n; v++) f->use0[v + 1] += f->use0[v];
        if (!(f->use = HONE_NEW_N(f->scratch, int, total + 1))) return false;
    }
    for (int k = 0; k < g->out.n; k++) f->is_output[g->out.at[k]] = 1;
    return true;
}
static bool same_shape(const hone_graph *g, hone_vid a, hone_vid b) {
    const hone_var *p = g->var.at + a, *q = g->var.at + b;
    if (p->rank != q->rank) return false;
    for (int k = 0; k < p->rank; k++)
        if (p->dim[k] != q->dim[k] || p->dim[k] == HONE_DIM_UNKNOWN) return false;
    return true;
}
static int position(const int *group, int n, int node) {
    for (int k = 0; k < n; k++)
        if (group[k] == node) return k;
    return -1;
}
/* Which member makes input q of node `c`; -1: none. */
static int maker(const fusing *f, const int *group, int n, const hone_node *c, int q) {
    for (int k = 0; k < n; k++)
        if (f->g->node.at[group[k]]->out[0] == c->in[q]) return k;
    return -1;
}
/* Does it round what it computed to 8 bits? */
static bool rounds(const fusing *f, int node) {
    const hone_instance *in = f->instance[node];
    if (hone_fuse_looks_up(in)) return true;
    return in->n_stage && in->stage[in->n_stage - 1].saturate &&
           hone_dtypes[f->g->var.at[f->g->node.at[node]->out[0]].dtype].bytes == 1;
}
/* A product of bytes that rounds its own sums is fast with a residual, and rounding once more, behind it; or
   alone. */
static bool is_product(const fusing *f, int node) {
    return f->instance[node]->n_stage > 1 && rounds(f, node);
}
static bool behind_product(const hone_node *n) {
    static const char *const ops[] = {"DequantizeLinear", "QuantizeLinear", "Add", "Relu", "Clip"};
    bool is = false;
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) is |= !strcmp(n->program->name, ops[k]);
    return is && !*n->program->domain;
}
static bool may_join(const fusing *f, const int *group, int n, int node) {
    const hone_node *c = f->g->node.at[node];
    const hone_instance *in = f->instance[node];
    if (c->unit != f->g->node.at[group[0]]->unit) return false; /* no group crosses devices */
    if (!in || f->taken[node] || !same_shape(f->g, c->out[0], f->g->node.at[group[0]]->out[0])) return false;
    if (hone_fuse_looks_up(in) && !(n == 1 && hone_fuse_sums_bytes(f->instance[group[0]]))) return false;
    if (is_product(f, group[0]) && !behind_product(c) && !hone_fuse_looks_up(in)) return false;
    /* norms and their kind have kernels for floats */
    if (rounds(f, node) && f->instance[group[0]]->n_stage > 2) return false;
    bool any = false;
    for (int q = 0; q < c->n_in; q++) {
        if (c->in[q] < 0 || maker(f, group, n, c, q) < 0) continue;
        if (c->program->operand[q].contents || !hone_fuse_can_follow(in, q)) return false;
        any = true;
    }
    return any;
}
/* Does this node only widen, element by element (bytes made floats), what it reads? */
static bool widens(const fusing *f, int node) {
    const hone_node *c = f->g->node.at[node];
    if (!f->instance[node] || !c->n_in || c->in[0] < 0 || c->program->operand[0].contents ||
        !hone_fuse_can_follow(f->instance[node], 0))
        return false;
    return hone_dtypes[f->g->var.at[c->in[0]].dtype].bytes < hone_dtypes[f->g->var.at[c->out[0]].dtype].bytes;
}
/* A node that widens for `reader` alone: it comes along, and what it reads is read as it is. -1: none. */
static int widened_for(const fusing *f, const int *group, int n, int reader) {
    const hone_node *c = f->g->node.at[reader];
    for (int q = 0; q < c->n_in; q++) {
        const hone_vid v = c->in[q];
        if (v < 0 || maker(f, group, n, c, q) >= 0 || f->is_output[v] || f->use0[v + 1] - f->use0[v] != 1 ||
            !f->made[v])
            continue;
        const int w = f->made[v] - 1;
        if (w < reader && !f->taken[w] && f->g->node.at[w]->unit == c->unit && widens(f, w) &&
            !c->program->operand[q].contents && hone_fuse_can_follow(f->instance[reader], q) &&
            same_shape(f->g, v, f->g->node.at[group[0]]->out[0]))
            return w;
    }
    return -1;
}
/* Which turn a node begins a group in: what widens in the second, what works on that, element by element, in
   the third. */
static uint8_t order_of(const fusing *f, const uint8_t *order, int node) {
    const hone_node *c = f->g->node.at[node];
    if (widens(f, node)) return 1;
    for (int q = 0; q < c->n_in; q++) {
        const int from = c->in[q] < 0 ? 0 : f->made[c->in[q]];
        if (!from || !order[from - 1] || c->program->operand[q].contents ||
            !hone_fuse_can_follow(f->instance[node], q))
            continue;
        if (f->use0[c->in[q] + 1] - f->use0[c->in[q]] == 1 && same_shape(f->g, c->in[q], c->out[0])) return 2;
    }
    return 0;
}
/* Does nothing but the last of the first n members' results leave the group? */
static bool closed(const fusing *f, const int *group, int n) {
    for (int k = 0; k < n - 1; k++) {
        hone_vid v = f->g->node.at[group[k]]->out[0];
        if (f->is_output[v]) return false;
        for (int u = f->use0[v]; u < f->use0[v + 1]; u++)
            if (position(group, n, f->use[u]) < 0) return false;
    }
    return true;
}
static bool alike(const hone_fuse_part *a, const hone_fuse_part *b, int n) {
    for (int k = 0; k < n; k++)
        if (a[k].instance != b[k].instance ||
            memcmp(a[k].source, b[k].source, sizeof *a[k].source * (size_t)a[k].instance->program->n_in))
            return false;
    return true;
}
static hone_status fused_of(fusing *f, const hone_fuse_part *part, int n, hone_fused **out) {
    for (const done *d = f->done; d; d = d->next)
        if (d->n == n && alike(d->part, part, n)) {
            *out = d->fused;
            return HONE_OK;
        }
    hone_arena *a = hone_instances_lock(f->p->instances);
    hone_status s = hone_fuse(a, part, n, out);
    hone_instances_unlock(f->p->instances);
    done *d = s ? NULL : HONE_NEW(f->scratch, done);
    if (d) *d = (done){part, n, *out, f->done}, f->done = d;
    return s;
}
static hone_status fuse_group(fusing *f, const int *group, int n) {
    hone_graph *g = f->g;
    hone_fuse_part *part = HONE_NEW_N(f->scratch, hone_fuse_part, n);
    if (!part) return no_memory();
    hone_vid in[256];
    int n_in = 0;
    for (int k = 0; k < n; k++) {
        const hone_node *c = g->node.at[group[k]];
        int *source = HONE_NEW_N(f->scratch, int, c->program->n_in + 1);
        if (!source) return no_memory();
        for (int q = 0; q < c->program->n_in; q++)
            source[q] = q < c->n_in && c->in[q] >= 0 && k ? maker(f, group, k, c, q) : -1;
        for (int q = 0; q < c->n_in; q++) {
            if (c->in[q] < 0 || (k && maker(f, group, k, c, q) >= 0)) continue;
            bool have = false;
            for (int w = 0; w < n_in; w++) have |= in[w] == c->in[q];
            if (!have && n_in == 256) return HONE_OK;
            if (!have) in[n_in++] = c->in[q];
        }
        part[k] = (hone_fuse_part){f->instance[group[k]], source};
    }
    hone_fused *fused;
    hone_status s = fused_of(f, part, n, &fused);
    if (s || !fused) return s;
    const hone_node *last = g->node.at[group[n - 1]];
    hone_node *made = HONE_NEW(g->arena, hone_node);
    hone_node **parts = HONE_NEW_N(g->arena, hone_node *, n + 1);
    hone_vid *ins = hone_arena_copy(g->arena, in, sizeof *in * (size_t)n_in),
             *outs = hone_arena_copy(g->arena, last->out, sizeof *outs);
    const char *name = g->node.at[group[0]]->name;
    if (!made || !parts || !ins || !outs) return no_memory();
    for (int k = 0; k < n; k++) parts[k] = g->node.at[group[k]], f->taken[group[k]] = 1;
    *made = (hone_node){.program = last->program,
                        .name = name,
                        .in = ins,
                        .out = outs,
                        .n_in = n_in,
                        .n_out = 1,
                        .part = parts,
                        .n_part = n,
                        .fused = fused,
                        .unit = parts[0]->unit};
    for (int k = 0; k < n && !made->refused; k++) made->refused = parts[k]->refused;
    /* at the last one's place, where all its inputs are there; the parts leave the list, but stay as they
       are */
    for (int k = 0; k < n - 1; k++) {
        hone_node *gone = HONE_NEW(g->arena, hone_node);
        if (!gone) return no_memory();
        *gone = *parts[k], gone->dead = true, g->node.at[group[k]] = gone;
    }
    g->node.at[group[n - 1]] = made;
    f->p->changed += n - 1;
    return HONE_OK;
}
static hone_status fuse_graph(hone_passing *p, hone_graph *g) {
    fusing f = {.p = p, .g = g, .scratch = hone_arena_create()};
    if (!f.scratch) return no_memory();
    hone_status s = HONE_OK;
    f.instance = HONE_NEW_N(f.scratch, const hone_instance *, g->node.n + 1);
    f.taken = HONE_NEW_N(f.scratch, uint8_t, g->node.n + 1);
    if (!f.instance || !f.taken || !index_uses(&f)) s = no_memory();
    if (!s) s = find_instances(&f);
    for (int k = 0; k < g->node.n && !s; k++)
        if (f.instance[k]) f.made[g->node.at[k]->out[0]] = k + 1;
    /* what only widens begins none that a sum could have, but does before whoever reads it, and whoever reads
       that */
    uint8_t *order = HONE_NEW_N(f.scratch, uint8_t, g->node.n + 1);
    if (!order && !s) s = no_memory();
    for (int k = 0; k < g->node.n && !s; k++) order[k] = f.instance[k] ? order_of(&f, order, k) : 0;
    for (int turn = 0; turn < 3 * g->node.n && !s; turn++) {
        const int k = turn % g->node.n;
        if (f.taken[k] || !f.instance[k] || !hone_fuse_can_begin(f.instance[k]) ||
            order[k] != turn / g->node.n)
            continue;
        int group[MAX_PARTS] = {k}, n = 1, best = 1;
        const bool product = is_product(&f, k);
        for (bool more = true; more && n < MAX_PARTS && !hone_fuse_must_end(f.instance[group[n - 1]]);) {
            /* what reads bytes begins anew: as one step more it is fast, inside this one it would be tile
               code */
            if (n > 1 && rounds(&f, group[n - 1])) break;
            int next = -1;
            more = false;
            for (int m = 0; m < n; m++) {
                hone_vid v = g->node.at[group[m]]->out[0];
                for (int u = f.use0[v]; u < f.use0[v + 1]; u++)
                    if (f.use[u] > group[n - 1] && position(group, n, f.use[u]) < 0 &&
                        (next < 0 || f.use[u] < next) && may_join(&f, group, n, f.use[u]))
                        next = f.use[u];
            }
            const int along = next >= 0 && n + 2 <= MAX_PARTS ? widened_for(&f, group, n, next) : -1;
            if (along >= 0) group[n++] = along;
            if (next >= 0) group[n++] = next, more = true;
            if (more && closed(&f, group, n) &&
                (!product || rounds(&f, group[n - 1]) || f.is_output[g->node.at[group[n - 1]]->out[0]]))
                best = n;
        }
        if (best > 1) s = fuse_group(&f, group, best);
    }
    hone_arena_destroy(f.scratch);
    if (s) return s;
    hone_graph_compact(g);
    hone_graph_index(g);
    for (int k = 0; k < g->node.n; k++)
        for (int b = 0; b < g->node.at[k]->n_body; b++) HONE_TRY(fuse_graph(p, g->node.at[k]->body[b]));
    return HONE_OK;
}
hone_status hone_pass_fuse(hone_passing *p) { return fuse_graph(p, p->graph); }
