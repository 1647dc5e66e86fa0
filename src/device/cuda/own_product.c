/* SPDX-License-Identifier: Apache-2.0
   own_product: products, convolutions and depthwise convolutions by the tensor cores' kernels: the match
   (loops/match_product.h) as the kernel's struct, operands that do not lie as the kernel reads them copied
   before, and its launch. Products of bytes less their zero points are computed in integers, whatever
   precision was asked for: they lose nothing. */
#include "device/cuda/own_product.h"

#include <string.h>

#include "device/cuda/pack.h"
#include "loops/print_target.h"

int64_t hone_own_count(const hone_axes *a) {
    int64_t n = 1;
    for (int k = 0; k < a->n; k++) n *= a->at[k].extent;
    return n;
}

int64_t hone_own_columns_of(const hone_match_product *m) {
    return hone_own_count(&m->n) * (m->window ? hone_own_count(&m->batch) : 1);
}
bool hone_own_begins(const hone_own_product *p) {
    return p->m.integers && (p->whole >= 0 || (p->zero_a && !p->depthwise));
}
bool hone_own_is_byte(hone_dtype t) { return t == HONE_DTYPE_I8 || t == HONE_DTYPE_U8; }

/* ---- how the kernel sees it ---- */
/* neighbours that follow on in C, and in what is not copied */
static void merge(hone_axes *to, const hone_axes *from, bool a, bool b) {
    to->n = 0;
    for (int k = 0; k < from->n; k++) {
        const hone_axis *x = from->at + k;
        hone_axis *last = to->n ? to->at + to->n - 1 : NULL;
        if (last && last->c == x->c * x->extent && (a || last->a == x->a * x->extent) &&
            (b || last->b == x->b * x->extent))
            *last = (hone_axis){last->extent * x->extent, x->a, x->b, x->c};
        else to->at[to->n++] = *x;
    }
}
static bool walks(hone_own_product *p) { /* one index each for rows, columns and batches? */
    const hone_match_product *m = &p->m;
    hone_axes columns;
    merge(&columns, &m->n, true, p->constant || p->copy_b);
    if (columns.n > 1 || (columns.n && columns.at[0].c != 1)) return false;
    merge(&p->rows, &m->m, p->copy_a || m->window, true);
    hone_axes all = m->batch;
    while (p->rows.n > 1 && !m->window && !p->copy_a &&
           all.n < HONE_MAX_SLOTS) { /* all but the longest as batches, with the same columns */
        const int least = p->rows.at[0].extent <= p->rows.at[1].extent ? 0 : 1;
        memmove(all.at + 1, all.at, sizeof *all.at * (size_t)all.n++);
        all.at[0] = p->rows.at[least];
        memmove(p->rows.at + least, p->rows.at + least + 1,
                sizeof *p->rows.at * (size_t)(--p->rows.n - least));
    }
    merge(&p->batch, &all, p->copy_a || m->window, p->copy_b);
    p->columns = columns;
    return p->rows.n <= 1 && p->batch.n <= 1;
}
static bool dense(const hone_axes *k) { return k->n == 0 || (k->n == 1 && k->at[0].a == 1); }
static bool channels_last(const hone_match_window *w) { /* as the kernel reads images */
    const int64_t pixel = w->channels * w->groups;
    return (w->channels == 1 || w->channel_step == 1) && (w->groups == 1 || w->group_step == w->channels) &&
           (w->width == 1 || w->pixel_step == pixel) &&
           (w->height == 1 || w->line_step == pixel * w->width) &&
           (w->images == 1 || w->image_step == pixel * w->width * w->height);
}
static bool plain_product(hone_own_product *p) {
    const hone_match_product *m = &p->m;
    const int64_t k = hone_own_count(&m->k);
    const int64_t piece = p->piece;
    p->depth = hone_round_up(k, piece);
    hone_axes deep_b;
    merge(&deep_b, &m->k, true, false);
    p->copy_a = !dense(&m->k) || k % piece || m->at_a % piece;
    p->copy_b =
        !p->constant && (k % piece || deep_b.n > 1 || (deep_b.n && deep_b.at[0].b != 1) || m->at_b % piece);
    for (int q = 0; q < m->m.n + m->batch.n; q++)
        p->copy_a |= (q < m->m.n ? m->m.at[q] : m->batch.at[q - m->m.n]).a % piece != 0;
    for (int q = 0; q < m->n.n + m->batch.n && !p->constant; q++)
        p->copy_b |= (q < m->n.n ? m->n.at[q] : m->batch.at[q - m->n.n]).b % piece != 0;
    bool fits = walks(p);
    if (!fits) p->copy_a = true, fits = walks(p);
    if (!fits && !p->constant) p->copy_b = true, fits = walks(p);
    /* a copy has so many axes, of which only the last is padded */
    const int others = p->batch.n > m->batch.n ? p->batch.n : m->batch.n;
    if (others + m->m.n + (m->k.n ? m->k.n : 1) > HONE_OWN_COPY_AXES || (m->k.n > 1 && k % piece))
        return false;
    if (!p->constant &&
        (others + m->n.n + (deep_b.n ? deep_b.n : 1) > HONE_OWN_COPY_AXES || (deep_b.n > 1 && k % piece)))
        return false;
    return fits;
}
static bool image_product(hone_own_product *p) {
    const hone_match_window *w = &p->m.w;
    if (!p->constant || p->m.batch.n > 1) return false;
    const int64_t pads = w->pad_y < w->pad_x ? w->pad_y : w->pad_x;
    if (pads < 0 || w->kernel_y * w->kernel_x > 1024 || w->pad_y > 120 || w->pad_x > 120) return false;
    if (w->groups == 1)
        p->channels = hone_round_up(w->channels, p->piece),
        p->copy_a = !channels_last(w) || w->channels % p->piece;
    else p->channels = w->channels, p->copy_a = !channels_last(w);
    p->depth = w->kernel_y * w->kernel_x * p->channels;
    return walks(p) && (w->groups == 1 || !p->batch.n || p->batch.at[0].c == hone_own_count(&p->m.n));
}
/* A match's window as kernels have it, of channels that are counted as each kernel counts them. */
static hone_cuda_window window_of(const hone_match_window *w, int64_t channels) {
    return (hone_cuda_window){.batch = (int)w->images,
                              .height = (int)w->height,
                              .width = (int)w->width,
                              .channels = (int)channels,
                              .out_height = (int)w->out_height,
                              .out_width = (int)w->out_width,
                              .kernel_y = (int)w->kernel_y,
                              .kernel_x = (int)w->kernel_x,
                              .stride_y = (int)w->stride_y,
                              .stride_x = (int)w->stride_x,
                              .pad_y = (int)w->pad_y,
                              .pad_x = (int)w->pad_x,
                              .dilation_y = (int)w->dilation_y,
                              .dilation_x = (int)w->dilation_x};
}
/* An image of few channels, whatever the order of its elements. */
static hone_cuda_first_layer first_layer(const hone_own_product *p, hone_dtype image, hone_dtype out) {
    const hone_match_window *w = &p->m.w;
    return (hone_cuda_first_layer){
        .in = hone_own_type(p->half),
        .out = hone_own_type(out),
        .image = hone_own_type(image),
        .epilogue = p->epilogue,
        .p = {.p = {.m = (int)hone_own_count(&p->m.m),
                    .n = (int)hone_own_count(&p->m.n),
                    .k = (int)hone_own_count(&p->m.k),
                    .batches = 1,
                    .splits = 1,
                    .alpha = (float)p->m.alpha,
                    .pitch_c = p->rows.n ? p->rows.at[0].c : hone_own_count(&p->m.n)},
              .w = window_of(w, w->channels),
              .image = w->image_step,
              .line = w->line_step,
              .pixel = w->pixel_step,
              .channel = w->channel_step}};
}
static bool few_channels(hone_own_product *p, const hone_cuda_facts *gpu) {
    const hone_match_window *w = &p->m.w;
    hone_cuda_first_way way;
    if (p->half == HONE_DTYPE_F32 || p->m.integers || !p->constant || w->groups != 1 || w->channels > 4 ||
        w->pad_y < 0 || w->pad_x < 0)
        return false;
    p->copy_a = true; /* how A lies is no matter */
    if (!walks(p) || p->batch.n) return false;
    const hone_cuda_first_layer f = first_layer(p, HONE_DTYPE_F32, HONE_DTYPE_F32);
    if (!hone_cuda_first_best(&f, gpu, &way)) return false;
    p->copy_a = false, p->channels = w->channels;
    p->depth = (int64_t)hone_cuda_pack_first_layer(NULL, 1, (size_t)w->kernel_y, (size_t)w->kernel_x,
                                                   (size_t)w->channels, NULL);
    return true;
}
static bool pointwise(const hone_match_window *w) { /* a product of pixels */
    return w->kernel_y == 1 && w->kernel_x == 1 && w->stride_y == 1 && w->stride_x == 1 && !w->pad_y &&
           !w->pad_x && w->groups == 1;
}
/* Large patches that share no pixel: each is a row of A when it has been copied. */
static bool patches(const hone_match_product *m) {
    enum { LEAST = 256 };
    const hone_match_window *w = &m->w;
    return w->groups == 1 && w->channels <= 4 && w->kernel_y == w->stride_y && w->kernel_x == w->stride_x &&
           !w->pad_y && !w->pad_x && w->dilation_y == 1 && w->dilation_x == 1 && !m->batch.n &&
           w->kernel_y * w->kernel_x * w->channels >= LEAST && w->out_height * w->stride_y <= w->height &&
           w->out_width * w->stride_x <= w->width;
}
static bool depthwise(hone_own_product *p) {
    const hone_match_window *w = &p->m.w;
    if (!p->constant || w->channels != 1 || p->m.n.n || p->m.batch.n != 1 || p->m.batch.at[0].c != 1)
        return false;
    if (w->stride_y != w->stride_x || w->dilation_y != w->dilation_x || w->pad_y < 0 || w->pad_x < 0 ||
        w->kernel_y * w->kernel_x > 49)
        return false;
    p->batch = p->m.batch, p->copy_a = !channels_last(w);
    merge(&p->rows, &p->m.m, true, true);
    return p->rows.n <= 1 && (!p->rows.n || p->rows.at[0].c == w->groups);
}

/* ---- the match ---- */
static bool fits(hone_own_product *p, const hone_cuda_facts *gpu) {
    enum { LEAST_WORK = 1 << 15, MOST = 1 << 30 };
    const hone_match_product *m = &p->m;
    const double work = (double)hone_own_count(&m->m) * (double)hone_own_count(&m->n) *
                        (double)hone_own_count(&m->k) * (double)hone_own_count(&m->batch);
    if (work < LEAST_WORK || hone_own_count(&m->m) > MOST || hone_own_count(&m->n) > MOST ||
        hone_own_count(&m->k) > MOST || hone_own_count(&m->batch) > 65535 * 16)
        return false;
    p->depthwise = m->window && m->shares_columns;
    if (p->depthwise) return depthwise(p);
    if (!m->n.n && m->window) return false;
    if (m->window && p->constant && patches(m)) p->m.window = false;
    p->first = m->window && gpu && few_channels(p, gpu);
    if (p->first) return true;
    return m->window ? image_product(p) : plain_product(p);
}
/* ---- bytes ---- */
bool hone_own_number(const hone_device_call *c, int tensor, int *out) {
    const hone_tensor *t = c->instance->tensor + tensor;
    const hone_ref r = c->ref[tensor];
    if (!c->constant || !c->constant[tensor] || !hone_base_is_constant(r.base) || !hone_own_is_byte(t->dtype))
        return false;
    const char *v = (const char *)hone_packs_constant(c->packs, r.base) + r.offset;
    int64_t n = 1; /* of constants the elements lie one behind the other */
    for (int k = 0; k < t->rank; k++) n *= c->stride[tensor][k] ? c->param[t->dim[k]].i : 1;
    for (int64_t k = 0; k < n; k++) {
        const int one = t->dtype == HONE_DTYPE_I8 ? ((const int8_t *)v)[k] : ((const uint8_t *)v)[k];
        if (k && one != *out) return false;
        *out = one;
    }
    return n > 0;
}
/* Where windows reach outside of the image A is its zero point, and the kernel reads zeros. */
static bool reaches_outside(const hone_match_window *w) {
    return w->pad_y > 0 || w->pad_x > 0 ||
           (w->out_height - 1) * w->stride_y + (w->kernel_y - 1) * w->dilation_y - w->pad_y >= w->height ||
           (w->out_width - 1) * w->stride_x + (w->kernel_x - 1) * w->dilation_x - w->pad_x >= w->width;
}
/* Zero points are numbers; what they are taken away from stays bytes. */
static bool bytes_fit(const hone_device_call *c, hone_own_product *p) {
    const hone_instance *in = c->instance;
    const hone_match_product *m = &p->m;
    if (!p->constant || (m->zero_a >= 0 && !hone_own_number(c, in->x[m->zero_a].a, &p->zero_a)) ||
        (m->zero_b >= 0 && !hone_own_number(c, in->x[m->zero_b].a, &p->zero_b)))
        return false;
    if (p->depthwise) return in->tensor[m->c].dtype == p->half && m->w.kernel_y * m->w.kernel_x <= 49;
    if (p->zero_a && (m->window ? reaches_outside(&m->w) : p->batch.n && p->batch.at[0].b)) return false;
    return hone_own_weights_fit(c, p);
}
hone_status hone_own_product_match(hone_arena *arena, const hone_cuda_facts *gpu, const hone_device_call *c,
                                   int stage, int ref, hone_own_product **out, hone_ref *packed,
                                   int64_t *bytes, bool *beyond) {
    const hone_instance *in = c->instance;
    *out = NULL;
    hone_own_product *p = HONE_NEW(arena, hone_own_product);
    if (!p) return hone_steps_no_memory();
    if (!hone_match_product_of(&c->sized, stage, &p->m)) return HONE_OK;
    const hone_ref b = c->ref[p->m.b];
    const hone_dtype a_type = in->tensor[p->m.a].dtype, c_type = in->tensor[p->m.c].dtype;
    const bool integers = p->m.integers;
    p->half = integers ? a_type : c->how.precision == HONE_PRECISION_TF32 ? HONE_DTYPE_F32 : c->how.precision;
    if (p->half == HONE_DTYPE_NONE) return HONE_OK; /* products of floats are printed, and exact */
    p->piece = 16 / hone_dtypes[p->half].bytes;
    p->constant = c->packs && c->constant && c->constant[p->m.b] && hone_base_is_constant(b.base);
    p->ref = p->constant ? ref : -1;
    if ((!integers && a_type != HONE_DTYPE_F32) ||
        (!p->constant && in->tensor[p->m.b].dtype != HONE_DTYPE_F32) ||
        (c_type != HONE_DTYPE_F32 && !hone_own_is_byte(c_type) && !(integers && c_type == HONE_DTYPE_I32)) ||
        !fits(p, gpu) || (integers && !bytes_fit(c, p)))
        return HONE_OK;
    HONE_TRY(hone_own_end(arena, c, stage, p));
    if (!p->epilogue) return HONE_OK;
    if (p->first && p->residual >= 0 && !fits(p, NULL)) return HONE_OK;
    if (p->depthwise &&
        (p->residual >= 0 || strstr(p->epilogue, "a->") || (!integers && hone_own_is_byte(c_type))))
        return HONE_OK; /* its kernel has one type for x and y */
    const int64_t size[] = {hone_own_count(&p->m.m), hone_own_count(&p->m.n), hone_own_count(&p->m.k),
                            hone_own_count(&p->m.batch)};
    p->ends = -1;
    if (!p->depthwise && !p->first && !integers && (!p->m.window || pointwise(&p->m.w)))
        p->blas =
            hone_own_blas_wanted(c, gpu, &p->m, stage, p->bias, p->residual, size, &p->decision, &p->ends);
    p->chooses = p->ends >= 0 && p->decision.problem.kind == HONE_PROBLEM_PRODUCT;
    if (p->blas && p->bias >= 0 && p->half != HONE_DTYPE_F32) { /* it reads a bias as C is stored */
        p->packed_bias = p->constant && hone_base_is_constant(c->ref[p->bias].base);
        p->blas = p->packed_bias != 0;
    }
    *beyond = p->constant && !p->depthwise && p->half == HONE_DTYPE_F16 && hone_own_weights_leave_range(c, p);
    if (*beyond) return HONE_OK;
    if (p->constant) HONE_TRY(hone_own_weights(c, p, packed, bytes));
    *out = p;
    return HONE_OK;
}
hone_decision *hone_own_product_decision(hone_own_product *p) { return p->chooses ? &p->decision : NULL; }
int hone_own_product_stages(const hone_own_product *p) { return p->m.stages; }
uint64_t hone_own_product_unread(const hone_own_product *p) {
    return p->constant ? (uint64_t)1 << p->m.b : 0;
}

/* ---- launches ---- */
static void prelude(hone_text *t) { /* what epilogues may say */
    const hone_kernel_target target = {.lang = HONE_LANG_CUDA};
    hone_kernel_prelude(&target, false, t);
}
static hone_own_place bias_of(const hone_own_product *p) {
    if (p->scale) return (hone_own_place){p->ref, false, p->packed_scale};
    return (hone_own_place){p->bias, false, p->bias_at * 4};
}
static hone_own_place whole_of(const hone_own_product *p) {
    return (hone_own_place){p->packed_whole ? p->ref : -1, false, p->packed_whole};
}
/* which: 0 A, 1 B, 2 C */
static bool axes_of(hone_own_copy *c, const hone_axes *const *part, int n, int which) {
    int at = HONE_OWN_COPY_AXES;
    for (int k = 0; k < HONE_OWN_COPY_AXES; k++) c->extent[k] = 1, c->stride[k] = 0;
    for (int q = n - 1; q >= 0; q--) {
        for (int k = part[q]->n - 1; k >= 0; k--) {
            const hone_axis *x = part[q]->at + k;
            if (!at) return false;
            at--;
            c->extent[at] = x->extent, c->stride[at] = which == 0 ? x->a : which == 1 ? x->b : x->c;
        }
        if (q == n - 1 && !part[q]->n) at--; /* the last axis is padded, and always there */
    }
    return true;
}
static hone_status take_depthwise(hone_arena *arena, const hone_cuda_facts *gpu, const hone_own_product *p,
                                  const hone_instance *in, const hone_ref *ref, hone_taken *out) {
    const hone_match_window *w = &p->m.w;
    const hone_dtype x = in->tensor[p->m.a].dtype, y = in->tensor[p->m.c].dtype;
    hone_own_launch own = {.kind = HONE_OWN_WINDOW, .aligned = (int)hone_dtypes[y].bytes};
    own.a = (hone_own_place){p->m.a, false, p->m.at_a * hone_dtypes[x].bytes};
    own.b = (hone_own_place){p->ref, false, 0},
    own.c = (hone_own_place){p->m.c, false, p->m.at_c * hone_dtypes[y].bytes};
    own.bias = bias_of(p), own.whole = whole_of(p);
    own.residual = own.workspace = own.v = (hone_own_place){-1, false, 0};
    if (p->copy_a || x != y) {
        const hone_own_copy c = {.extent = {1, 1, w->images, w->height, w->width, w->groups},
                                 .stride = {0, 0, w->image_step, w->line_step, w->pixel_step, w->group_step},
                                 .padded = w->groups,
                                 .from = x,
                                 .to = y};
        HONE_TRY(hone_own_copied(arena, &c, &own.a, out));
    }
    own.windowed = (hone_cuda_windowed){
        .kind = HONE_CUDA_DEPTHWISE, .type = hone_own_type(y), .zero = p->zero_a, .epilogue = p->epilogue};
    hone_cuda_window *window = &own.windowed.p;
    *window = window_of(w, w->groups);
    window->x = own.a.scratch ? 0 : hone_own_stands(ref, own.a);
    window->y = hone_own_stands(ref, own.c);
    window->bias = own.bias.which < 0 ? 0 : hone_own_stands(ref, own.bias);
    window->pitch_x = window->pitch_y = (int)w->groups;
    const hone_cuda_window_way way = hone_cuda_window_best(&own.windowed, gpu);
    own.aligned = way.width * (int)hone_dtypes[y].bytes;
    own.shape = hone_cuda_window_launch(&own.windowed, &way);
    hone_text text = {0};
    prelude(&text);
    hone_status s = hone_cuda_window_print(&text, &own.windowed, &way);
    if (!s) s = hone_own_finish(arena, &text, "hone_window", &own, out->launch + out->n_launch++);
    else hone_text_free(&text);
    if (!s) out->n_stage = p->m.stages;
    return s;
}
static hone_status take_first(hone_arena *arena, const hone_cuda_facts *gpu, const hone_own_product *p,
                              const hone_instance *in, hone_taken *out) {
    const hone_match_product *m = &p->m;
    const hone_dtype x = in->tensor[m->a].dtype, y = in->tensor[m->c].dtype;
    const int64_t x_bytes = hone_dtypes[x].bytes, y_bytes = hone_dtypes[y].bytes;
    hone_own_launch own = {.kind = HONE_OWN_FIRST, .aligned = (int)(x_bytes < y_bytes ? x_bytes : y_bytes)};
    hone_cuda_first_way way;
    own.a = (hone_own_place){m->a, false, m->at_a * x_bytes}, own.b = (hone_own_place){p->ref, false, 0},
    own.c = (hone_own_place){m->c, false, m->at_c * y_bytes}, own.bias = bias_of(p);
    own.whole = own.residual = own.workspace = own.v = (hone_own_place){-1, false, 0};
    own.first = first_layer(p, x, y);
    if (!hone_cuda_first_best(&own.first, gpu, &way)) return hone_fail(HONE_BUG, "a first layer has no way");
    own.shape = hone_cuda_first_launch(&own.first, gpu, &way);
    hone_text text = {0};
    prelude(&text);
    hone_status s = hone_cuda_first_print(&text, &own.first, &way);
    if (!s) s = hone_own_finish(arena, &text, "hone_first_layer", &own, out->launch + out->n_launch++);
    else hone_text_free(&text);
    if (!s) out->n_stage = m->stages;
    return s;
}
static int aligned_of(const hone_cuda_contract *c) { /* bytes that all addresses are multiples of */
    const hone_cuda_address all = c->a | c->b | c->c | c->residual;
    int aligned = 16;
    while (all % (unsigned)aligned) aligned /= 2;
    return aligned;
}
hone_status hone_own_product_take(hone_arena *arena, hone_cuda *device, const hone_own_product *p,
                                  const hone_instance *in, const hone_ref *ref, hone_taken *out) {
    const hone_cuda_facts *gpu = hone_cuda_facts_of(device);
    if (p->depthwise) return take_depthwise(arena, gpu, p, in, ref, out);
    if (p->first) return take_first(arena, gpu, p, in, out);
    const hone_match_product *m = &p->m;
    const hone_match_window *w = &m->w;
    const hone_dtype x = in->tensor[m->a].dtype, b = in->tensor[m->b].dtype, y = in->tensor[m->c].dtype;
    hone_own_launch own = {.kind = HONE_OWN_PRODUCT};
    own.a = (hone_own_place){m->a, false, m->at_a * hone_dtypes[x].bytes};
    own.b = p->constant ? (hone_own_place){p->ref, false, 0}
                        : (hone_own_place){m->b, false, m->at_b * hone_dtypes[b].bytes};
    own.c = (hone_own_place){m->c, false, m->at_c * hone_dtypes[y].bytes};
    own.bias = bias_of(p), own.whole = whole_of(p);
    own.residual = own.workspace = own.v = (hone_own_place){-1, false, 0};
    hone_cuda_contract *c = &own.product.p;
    const int64_t rows = hone_own_count(&m->m), columns = hone_own_count(&m->n),
                  batches = p->batch.n ? p->batch.at[0].extent : 1;
    const hone_axis one = {1, 0, 0, 0}, *row = p->rows.n ? p->rows.at : &one,
                    *column = p->columns.n ? p->columns.at : &one, *batch = p->batch.n ? p->batch.at : &one;
    *c = (hone_cuda_contract){.m = (int)(p->rows.n ? row->extent : 1),
                              .n = (int)columns,
                              .k = (int)(m->window ? p->depth : hone_own_count(&m->k)),
                              .batches = (int)batches,
                              .splits = 1,
                              .alpha = (float)m->alpha,
                              .batch_c = batch->c,
                              .pitch_c = p->rows.n ? row->c : columns};
    if (!m->window && (p->copy_a || x != p->half)) {
        hone_own_copy copy = {
            .padded = m->k.n > 1 ? m->k.at[m->k.n - 1].extent : p->depth, .from = x, .to = p->half};
        const hone_axes *outer = p->copy_a ? &m->batch : &p->batch, *inner = p->copy_a ? &m->m : &p->rows;
        bool same = true; /* one for all batches */
        for (int q = 0; q < outer->n; q++) same &= !outer->at[q].a;
        if (!(same ? axes_of(&copy, (const hone_axes *const[]){inner, &m->k}, 2, 0)
                   : axes_of(&copy, (const hone_axes *const[]){outer, inner, &m->k}, 3, 0)))
            return hone_fail(HONE_BUG, "a product has too many indices to be copied");
        HONE_TRY(hone_own_copied(arena, &copy, &own.a, out));
        c->pitch_a = p->depth, c->batch_a = same ? 0 : p->depth * c->m, c->k = (int)p->depth;
    } else if (!m->window) c->pitch_a = p->rows.n ? row->a : p->depth, c->batch_a = batch->a;
    if (m->window && (p->copy_a || x != p->half)) {
        const int64_t padded = w->groups == 1 ? p->channels : w->channels;
        const hone_own_copy copy = {
            .extent = {1, w->images, w->height, w->width, w->groups, w->channels},
            .stride = {0, w->image_step, w->line_step, w->pixel_step, w->group_step, w->channel_step},
            .padded = padded,
            .from = x,
            .to = p->half};
        HONE_TRY(hone_own_copied(arena, &copy, &own.a, out));
    }
    if (p->constant) c->pitch_b = p->depth, c->batch_b = batch->b ? p->depth * columns : 0;
    else if (p->copy_b || b != p->half) {
        hone_axes deep;
        merge(&deep, &m->k, true, false);
        hone_own_copy copy = {
            .padded = deep.n > 1 ? deep.at[deep.n - 1].extent : p->depth, .from = b, .to = p->half};
        const hone_axes *outer = p->copy_b ? &m->batch : &p->batch;
        bool same = true;
        for (int q = 0; q < outer->n; q++) same &= !outer->at[q].b;
        if (!(same ? axes_of(&copy, (const hone_axes *const[]){&m->n, &deep}, 2, 1)
                   : axes_of(&copy, (const hone_axes *const[]){outer, &m->n, &deep}, 3, 1)))
            return hone_fail(HONE_BUG, "a product has too many indices to be copied");
        HONE_TRY(hone_own_copied(arena, &copy, &own.b, out));
        c->pitch_b = p->depth, c->batch_b = same ? 0 : p->depth * columns;
    } else c->pitch_b = column->b ? column->b : p->depth, c->batch_b = batch->b;
    if (p->residual >= 0) {
        const hone_dtype r = in->tensor[p->residual].dtype;
        own.residual = (hone_own_place){p->residual, false, p->residual_at * hone_dtypes[r].bytes};
        c->pitch_residual = c->pitch_c, c->batch_residual = c->batch_c;
        if (r != y && !p->beside &&
            !(hone_own_is_byte(r) && hone_own_is_byte(y))) { /* of bytes the end knows the sign */
            hone_own_copy copy = {.padded = columns, .from = r, .to = y};
            if (!axes_of(&copy, (const hone_axes *const[]){&p->batch, &p->rows, &p->columns}, 3, 2) ||
                out->n_launch >= 2)
                return hone_fail(HONE_BUG, "a residual cannot be copied");
            HONE_TRY(hone_own_copied(arena, &copy, &own.residual, out));
            c->pitch_residual = columns, c->batch_residual = columns * c->m;
        }
    }
#define STAND_IN(place) ((place).which < 0 || (place).scratch ? 0 : hone_own_stands(ref, place))
    c->a = STAND_IN(own.a), c->b = STAND_IN(own.b), c->c = STAND_IN(own.c), c->bias = STAND_IN(own.bias),
    c->residual = STAND_IN(own.residual);
    own.product.in = hone_own_type(p->half), own.product.out = hone_own_type(y);
    own.product.epilogue = p->epilogue, own.product.constant_b = p->constant;
    if (m->window) {
        const int channels = (int)(w->groups == 1 ? p->channels : w->channels);
        own.window = window_of(w, channels);
        own.product.window = &own.window;
        c->m = (int)rows, c->pitch_a = channels;
        if (pointwise(w)) own.product.window = NULL;
    }
    if (p->blas) {
        hone_own_launch by = own;
        bool taken;
        by.aligned = aligned_of(c);
        if (p->packed_bias && y != HONE_DTYPE_F32) by.bias = (hone_own_place){p->ref, false, p->packed_bias};
        HONE_TRY(hone_own_blas_take(arena, device, p->ends, &by, out, &taken));
        if (taken) out->n_stage = m->stages;
        if (taken) return HONE_OK;
    }
    own.way = hone_cuda_best_way(&own.product, gpu);
    own.shape = hone_cuda_contract_launch(&own.product, gpu, &own.way);
    own.aligned = aligned_of(c);
    size_t workspace = 0, counters = 0;
    hone_cuda_contract_room(&own.product, &own.way, &workspace, &counters);
    if (counters > HONE_PRINTED_COUNTERS)
        return hone_fail(HONE_BUG, "a product wants %zu bytes of counters", counters);
    if (workspace) {
        own.workspace = (hone_own_place){out->first_scratch + out->n_scratch, true, 0};
        out->scratch_bytes[out->n_scratch++] = (int64_t)workspace;
    }
    hone_text text = {0};
    prelude(&text);
    if (p->beside)
        hone_text_put(&text, "#define BESIDE_TYPE %d\n", (int)hone_own_type(in->tensor[p->residual].dtype));
    hone_status s = hone_cuda_contract_print(&text, &own.product, &own.way);
    if (!s)
        s = hone_own_finish(arena, &text, hone_cuda_contract_names[own.way.unit], &own,
                            out->launch + out->n_launch++);
    else hone_text_free(&text);
    if (!s) out->n_stage = m->stages;
    return s;
}
