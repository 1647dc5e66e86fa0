/* SPDX-License-Identifier: Apache-2.0
   contract_pack: constant operands of contractions in panels: which can be, how large they are, and their
   filling, part by part. Packed once and kept with the model; the contraction knows only the ref, so that
   one serves all weights of its shape. What the panels of each kind are is that kind's business. */
#include "base/file.h"
#include "base/round.h"
#include "device/cpu/contract_dwconv.h"
#include "device/cpu/contract_half.h"
#include "device/cpu/contract_int.h"
#include "device/cpu/direct_conv.h"
#include "device/cpu/winograd.h"

#include <string.h>

typedef struct {
    const hone_contract *d;
    bool a;
    const void *source;
} packing;
/* Of panels of f32 a part is a run of them; all else is one part. */
static void fill_panels(const void *arg, void *dst, int part, int parts) {
    const packing *w = arg;
    const hone_contract *d = w->d;
    const void *source = w->source; /* f32, f16 or bf16: what fills panels widens it */
    if (d->of.integers) {
        hone_contract_int_fill(d, w->a, source, dst);
        return;
    }
    if (d->half) {
        hone_contract_half_fill(d, source, dst);
        return;
    }
    if (d->winograd) {
        hone_winograd_fill(d, source, dst, part, parts);
        return;
    }
    if (d->direct_conv) {
        hone_direct_conv_fill(d, w->a, source, dst);
        return;
    }
    if (d->dwconv_nhwc) {
        hone_contract_dwconv_rows_fill(d, source, dst);
        return;
    }
    for (int64_t b = 0; w->a && b < d->of.batch_a; b++)
        hone_contract_pack_a(d, hone_element(source, d->of.stored_a, hone_contract_own(d, b, true)), NULL, 0,
                             d->of.m, (float *)dst + b * d->of.m * d->of.k);
    int64_t width = hone_contract_columns(d);
    /* columns one after another: a mapped file's pages need not stay until the last one is read */
    const bool apart = d->of.run_step == d->of.k && d->of.run == d->of.n;
    const int64_t panels = hone_ceil_div(d->of.n, d->nr), all = w->a ? 0 : d->of.batch_b * panels;
    for (int64_t q = all * part / parts; q < all * (part + 1) / parts; q++) {
        const int64_t b = q / panels, n0 = q % panels * d->nr;
        const void *from = hone_element(source, d->of.stored_b, hone_contract_own(d, b, false));
        hone_contract_pack_b(d, from, n0, d->nr, 0, d->of.k, d->of.k,
                             (float *)dst + (b * width + n0) * d->of.k, NULL);
        const int64_t read =
            (d->of.stored_b ? 2 : 4) * (d->of.n - n0 < d->nr ? d->of.n - n0 : d->nr) * d->of.k;
        if (apart && read > 1 << 16)
            hone_file_forget(hone_element(from, d->of.stored_b, n0 * d->of.k), (size_t)read);
    }
}
static int64_t packed_rows(const hone_contract *d, bool a) {
    if (d->dwconv_i8) return d->of.n;
    if (d->direct_conv) return hone_direct_conv_rows(d) * (a ? d->of.batch_a : d->of.batch_b);
    if (!d->of.integers) return a ? d->of.m * d->of.batch_a : hone_contract_columns(d) * d->of.batch_b;
    return a ? hone_round_up(d->of.m, d->mr) * d->of.batch_a : hone_round_up(d->of.n, d->nr) * d->of.batch_b;
}
/* How many parts are filled by themselves. */
static int packed_parts(const hone_contract *d, bool a, size_t bytes) {
    enum { PART = 1 << 19 /* bytes */, MOST = 64 };
    const bool one = a || d->of.integers || d->half || d->direct_conv || d->dwconv_nhwc ||
                     (d->winograd && d->winograd->half);
    const int64_t panels = hone_ceil_div(d->of.n, d->nr) * (d->winograd ? 1 : d->of.batch_b),
                  most = one             ? 1
                         : panels < MOST ? panels
                                         : MOST,
                  parts = (int64_t)(bytes / PART);
    return (int)(parts < 1 ? 1 : parts < most ? parts : most);
}
/* Of an operand in panels, all batches. */
size_t hone_contract_packed_bytes(const hone_contract *d, bool a) {
    if (d->winograd) return hone_winograd_bytes(d);
    if (d->half) return hone_contract_half_bytes(d);
    if (d->dwconv_i8) return hone_dwconv_int_bytes(d);
    if (!d->i8) return sizeof(float) * (size_t)(packed_rows(d, a) * d->of.k);
    return (size_t)packed_rows(d, a) * (size_t)((hone_contract_int_depth(d) + d->i8->kernel->deep - 1) /
                                                    d->i8->kernel->deep * d->i8->kernel->deep +
                                                4); /* and a sum for each row or column, after all panels */
}
bool hone_contract_packable(const hone_cpu_call *c, const hone_contract *d, bool a, int ref) {
    const hone_affine_load *l = a ? &d->a : &d->b;
    return hone_cpu_constant(c, l->tensor) && !l->n_bounded && ref < HONE_MAX_REFS &&
           packed_rows(d, a) <= ((int64_t)1 << 40) / (d->of.k + 1);
}
hone_status hone_contract_keep_packed(hone_template_builder *s, const hone_contract *d) {
    if (d->packed_a && !hone_push(&s->packed, ((hone_packed){.of = d, .a = true, .ref = d->packed_a})))
        return hone_steps_no_memory();
    if (d->packed_b && !hone_push(&s->packed, ((hone_packed){.of = d, .ref = d->packed_b})))
        return hone_steps_no_memory();
    s->n_ref += !!d->packed_a + !!d->packed_b;
    return HONE_OK;
}
hone_status hone_contract_packed(const hone_cpu_call *c, const hone_packed *p, hone_ref *out) {
    const hone_contract *d = p->of;
    const hone_affine_load *l = p->a ? &d->a : &d->b;
    const char *source = hone_cpu_constant(c, l->tensor);
    /* weights in another order */
    const bool ordered = d->i8 && (d->i8->dot4_groups || (d->dwconv_i8 && d->dwconv_i8->stride));
    int64_t key[10 + 2 * HONE_MAX_SLOTS] = {
        p->a + (d->winograd ? 2 * (int64_t)hone_winograd_bytes(d) + 2 * d->winograd->by_place : 0),
        p->a ? d->of.stored_a : d->of.stored_b,
        d->i8 ? 4 * d->mr + 2 * d->i8->a_signed + (d->dwconv_i8 != NULL)
        : d->half
            ? -((int64_t)(d->half->first_layer.lines > 0) << 24 |
                (int64_t)(d->half->implicit_gemm.lines > 0) << 25 | (int64_t)d->half->kernel->dtype << 16 |
                d->half->kernel->deep << 8 | d->half->kernel->group)
            : d->direct_conv != NULL,
        d->nr,
        p->a ? d->of.m : d->of.n,
        d->of.k,
        p->a ? d->of.batch_a : d->of.batch_b,
        l->at.c,
        d->of.slots.n,
        ordered ? -1 - d->of.k_order : d->of.k_order};
    for (int k = 0; k < d->of.slots.n; k++)
        key[10 + 2 * k] = l->at.k[k], key[11 + 2 * k] = hone_match_depends(l, k) ? d->of.slots.extent[k] : 0;
    const int64_t size = d->i8 ? 1 : (p->a ? d->of.stored_a : d->of.stored_b) ? 2 : 4;
    packing w = {d, p->a, source + l->at.c * size};
    hone_packing of = {.source = source,
                       .bytes = hone_contract_packed_bytes(d, p->a),
                       .fill = fill_panels,
                       .arg = &w,
                       .arg_bytes = sizeof w};
    of.source_bytes = (size_t)((p->a ? d->of.m * d->of.batch_a : d->of.n * d->of.batch_b) * d->of.k * size);
    of.parts = packed_parts(d, p->a, of.bytes);
    *out = (hone_ref){hone_packs_get(c->packs, key, 10 + 2 * d->of.slots.n, &of), -1, 0};
    return out->base ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory to pack weights");
}
