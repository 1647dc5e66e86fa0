/* SPDX-License-Identifier: Apache-2.0
   fuzz_ops: any text as op rows: parsed, and each row made into an instance, solved, printed as C and
   interpreted on small tensors. */
#include "../tests/walk.h"

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)walk_case; /* walk.h has more than is needed here */
    hone_alloc_limit(256 << 20);
    return 0;
}
static hone_value *tensor(const hone_program *p, const hone_operand *o, int rank, int number) {
    int64_t dim[HONE_MAX_RANK];
    hone_dtype t = o->of == HONE_OF_DTYPE ? o->dtype : HONE_DTYPE_F32;
    uint32_t allowed = 0;
    for (int k = 0; o->of == HONE_OF_VAR && k < p->n_type; k++)
        if (!strcmp(p->type[k].name, o->type)) allowed = p->type[k].allowed;
    for (int k = 1; allowed && !(allowed >> t & 1); k++) t = (hone_dtype)k;
    if (!t || t >= HONE_DTYPE_COUNT || t == HONE_DTYPE_STRING) return NULL;
    if (o->contents) rank = 1;
    else if (o->shaped && o->n_entry > rank) rank = o->n_entry < HONE_MAX_RANK ? o->n_entry : HONE_MAX_RANK;
    for (int d = 0; d < rank; d++) dim[d] = d < 3 ? 2 : 1;
    hone_value *v = NULL;
    if (hone_value_tensor(t, dim, rank, &v)) return NULL;
    for (int64_t k = 0; k < hone_value_count(v); k++) {
        hone_scalar x = {.i64 = (k + number) % 3};
        hone_dtype_store(t, (char *)v->data + (size_t)k * hone_dtypes[t].bytes, HONE_I64, x, true);
    }
    return v;
}
/* Steps of all loops; an interpreter is slow, so only small calls are made. */
static double work(const hone_instance *in, const hone_param *p) {
    double total = 0;
    for (int s = 0; s < in->n_stage; s++) {
        double n = 1 + in->n_x;
        for (int k = 0; k < in->stage[s].n_index + in->stage[s].n_reduce; k++)
            n *= 1 + (double)p[in->index[in->list[in->stage[s].index0 + k]].extent].i;
        total += n;
    }
    return total;
}
static void attempt(const hone_program *p, int rank) {
    hone_value *in[WALK_MAX] = {NULL};
    if (p->n_in + p->n_out > WALK_MAX || p->runs != HONE_RUNS_PROGRAM) return;
    for (int k = 0; k < p->n_in; k++) in[k] = tensor(p, p->operand + k, rank, k);
    walk_call w;
    if (walk_call_make(&w, p, NULL, 0, in, p->n_in, NULL, p->n_out) == HONE_OK) {
        hone_text t = {0};
        hone_print_c(w.in, "f", &t);
        hone_text_free(&t);
        if (work(w.in, w.param) < 1e6) (void)!hone_interpret(w.in, w.param, w.place);
    }
    walk_call_free(&w);
    for (int k = 0; k < p->n_in; k++) hone_value_drop(in[k]);
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hone_library *l;
    if (hone_library_create(&l) != HONE_OK) return 0;
    if (hone_library_add(l, "text", (const char *)data, size) == HONE_OK)
        for (int k = 0; k < hone_library_count(l) && k < 8; k++)
            for (int rank = 0; rank < 3; rank++) attempt(hone_library_at(l, k), rank);
    hone_library_destroy(l);
    return 0;
}
