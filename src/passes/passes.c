/* SPDX-License-Identifier: Apache-2.0
   passes: the pipeline. Folding twice: a body learns its captured constants the first time, and what they are
   good for the second. Patterns are looked for when equal nodes are one and views are joined, and views once
   more where patterns left some. */
#include "passes/passes.h"

/* clang-format off */
static const struct {
    const char *name;
    hone_pass_fn *run;
} pipeline[] = {
    {"carried", hone_pass_carried}, /* before anything asks which weights are constants */
    {"infer", hone_pass_infer},
    {"stored", hone_pass_stored},
    {"settle", hone_pass_settle}, /* scales and weights that the model computes */
    {"identity", hone_pass_identity}, /* exporters share equal biases through Identity */
    {"moves", hone_pass_moves},
    {"settle", hone_pass_settle}, /* weights that were transposed */
    {"quant", hone_pass_quant}, /* before weights are folded to f32 */
    {"means", hone_pass_means},
    {"blocks", hone_pass_blocks}, /* likewise, and where nothing else is quantized */
    {"table", hone_pass_table},
    {"fold", hone_pass_fold},
    {"dead", hone_pass_dead},
    {"identity", hone_pass_identity},
    {"infer", hone_pass_infer},
    {"fold", hone_pass_fold},
    {"half", hone_pass_half}, /* before patterns, which then see f32 */
    {"views", hone_pass_views},
    {"identity", hone_pass_identity},
    {"same", hone_pass_same},
    {"dead", hone_pass_dead},
    {"pad", hone_pass_pad},
    {"stride", hone_pass_stride},
    {"sink", hone_pass_sink}, /* before weights take scales and shifts in */
    {"activation", hone_pass_activation}, /* before a factor of theirs goes into the next weights */
    {"affine", hone_pass_affine},
    {"norm", hone_pass_norm},
    {"lookup", hone_pass_lookup}, /* which leaves activations of tables to be computed */
    {"fold", hone_pass_fold},
    {"sink", hone_pass_sink}, /* and when activations are one op each */
    {"rotary", hone_pass_rotary},
    {"attention", hone_pass_attention},
    {"masks", hone_pass_masks},
    {"transposes", hone_pass_transposes}, /* when what attention reads is known */
    {"views", hone_pass_views},
    {"identity", hone_pass_identity},
    {"same", hone_pass_same},
    {"joins", hone_pass_joins},
    {"dead", hone_pass_dead},
    {"infer", hone_pass_infer},
    {"widen", hone_pass_widen},
    {"unsigned", hone_pass_unsigned}, /* before padded products are seen not to fit */
    {"floats", hone_pass_floats},
    {"abreast", hone_pass_abreast},
    {"fuse", hone_pass_fuse},
    {"layout", hone_pass_layout},
};
/* clang-format on */
enum { ALL = sizeof pipeline / sizeof *pipeline };
static hone_status run(hone_passing with, bool (*takes)(hone_pass_fn *), hone_text *report) {
    hone_graph *g = with.graph;
    /* since shapes were inferred; bodies do not tell what they learn from each other */
    bool news = true, bodies = false, any = false;
    for (int k = 0; k < g->node.n; k++) bodies |= g->node.at[k]->n_body > 0;
    hone_text_put(report, "[");
    for (size_t k = 0; k < ALL; k++) {
        hone_passing p = with;
        const bool infers = pipeline[k].run == hone_pass_infer;
        int before = g->node.n;
        if (takes && !takes(pipeline[k].run)) continue;
        hone_status s = infers && !news && !bodies ? HONE_OK : pipeline[k].run(&p);
        if (s) return s;
        hone_graph_index(g);
        news = infers ? false : news || p.changed;
#ifndef NDEBUG
        HONE_TRY(hone_graph_verify(g));
#endif
        hone_text_put(report, "%s{\"pass\": \"%s\", \"changed\": %d, \"before\": %d, \"nodes\": %d}",
                      any ? ", " : "", pipeline[k].name, p.changed, before, g->node.n);
        any = true;
    }
    if (!hone_graph_drop_vars(g)) return hone_fail(HONE_NO_MEMORY, "no memory to compile");
    hone_text_put(report, "]");
    return HONE_OK;
}
hone_status hone_passes_run(hone_graph *g, hone_instances *instances, const hone_target *target,
                            hone_text *report) {
    return run((hone_passing){.graph = g, .instances = instances, .target = target}, NULL, report);
}
static bool asks_target(hone_pass_fn *pass) {
    return pass == hone_pass_unsigned || pass == hone_pass_floats || pass == hone_pass_abreast ||
           pass == hone_pass_fuse || pass == hone_pass_layout;
}
hone_status hone_passes_place(hone_graph *g, hone_instances *instances, const hone_target *target,
                              hone_dtype precision, hone_text *report) {
    return run((hone_passing){.graph = g, .instances = instances, .target = target, .precision = precision},
               asks_target, report);
}
static bool stays_plain(hone_pass_fn *pass) {
    static hone_pass_fn *const plain[] = {
        hone_pass_infer, hone_pass_fold, hone_pass_dead, hone_pass_identity,   hone_pass_views,
        hone_pass_same,  hone_pass_pad,  hone_pass_sink, hone_pass_activation, hone_pass_affine};
    for (size_t k = 0; k < sizeof plain / sizeof *plain; k++)
        if (pass == plain[k]) return true;
    return false;
}
hone_status hone_passes_settle(hone_graph *g, hone_instances *instances) {
    hone_text report = {0};
    hone_status s = run((hone_passing){.graph = g, .instances = instances}, stays_plain, &report);
    hone_text_free(&report);
    return s;
}
hone_status hone_pass_infer(hone_passing *p) { return hone_graph_infer_by(p->graph, p->instances); }
