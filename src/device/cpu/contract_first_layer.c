/* SPDX-License-Identifier: Apache-2.0
   contract_first_layer: a window over few channels in bf16, which is how a network of images begins. Its
   rows would have to be put together from many short pieces; instead a step before makes a copy of the
   image, rounded, channels last, with zeros around it. There a line of the window is one run of values,
   equally far from result to result, so that the kernel takes rows where they lie. Pixels have an even
   number of channels, one of zeros if need be: no value that is not the window's own is multiplied, not even
   by 0, so that a NaN stays where it is. Which contractions are so, and the copy; contract_half.c
   multiplies. */
#include <string.h>

#include "device/cpu/contract_half.h"

enum {
    CHANNELS = 8 /* at most */,
    ROWS = 128 /* of a tile, about */,
    WASTE = 12,
    COPIED = 1 << 13 /* values a tile of the copy, about */,
    SOME = 256
};

static hone_contract_first_layer *stem(const hone_contract *d) { return &d->half->first_layer; }
/* How far apart A's lines and pixels are, and its channels, if it has some: by the steps of K's indices, the
   widest first. */
static bool steps(hone_contract *d) {
    int64_t step[3] = {0}, n = 0;
    for (int k = d->of.slots.n_domain; k < d->of.slots.n; k++) {
        if (d->of.slots.extent[k] < 2) continue;
        if (n == 3 || d->a.at.k[k] <= 0) return false;
        int64_t q = n++;
        for (; q > 0 && step[q - 1] < d->a.at.k[k]; q--) step[q] = step[q - 1];
        step[q] = d->a.at.k[k];
    }
    if (n < 2) return false;
    stem(d)->channel = n == 3 ? step[0] : 0, stem(d)->line = step[n - 2], stem(d)->pixel = step[n - 1];
    return true;
}
typedef struct {
    int64_t y, x, c;
} spot;
static spot spot_of(const hone_contract *d, int64_t k) {
    const int64_t at = d->at_k_a[k], c = stem(d)->channel ? at / stem(d)->channel : 0,
                  rest = at - c * stem(d)->channel;
    return (spot){rest / stem(d)->line, rest % stem(d)->line / stem(d)->pixel, c};
}
/* Results lie line by line, equally far apart in the image, and so do lines; places are so many lines of so
   many pixels of so many channels, each once. */
static bool even(hone_contract *d, spot *most) {
    const int64_t run = d->of.m_run, right = d->at_m_a[1], down = d->at_m_a[run];
    if (right <= 0 || down <= 0 || right % stem(d)->pixel || down % stem(d)->line) return false;
    stem(d)->run = run, stem(d)->right = right / stem(d)->pixel, stem(d)->down = down / stem(d)->line;
    for (int64_t m = 0; m < d->of.m; m++)
        if (d->at_m_a[m] != m / run * down + m % run * right) return false;
    *most = (spot){0};
    for (int64_t k = 0; k < d->of.k; k++) {
        const spot s = spot_of(d, k);
        if (d->at_k_a[k] != s.y * stem(d)->line + s.x * stem(d)->pixel + s.c * stem(d)->channel) return false;
        most->y = s.y > most->y ? s.y : most->y, most->x = s.x > most->x ? s.x : most->x,
        most->c = s.c > most->c ? s.c : most->c;
    }
    return most->c < CHANNELS && (most->y + 1) * (most->x + 1) * (most->c + 1) == d->of.k;
}
/* What may be outside: lines, pixels, both or neither. */
static bool edges(hone_contract *d) {
    for (int q = 0; q < d->a.n_bounded; q++) {
        bool is_y = true, is_x = true;
        for (int64_t m = 0; m < d->of.m; m++)
            is_y &= d->at_m_a_bounded[q][m] == m / stem(d)->run * stem(d)->down,
                is_x &= d->at_m_a_bounded[q][m] == m % stem(d)->run * stem(d)->right;
        for (int64_t k = 0; k < d->of.k; k++) {
            const spot s = spot_of(d, k);
            is_y &= d->at_k_a_bounded[q][k] == s.y, is_x &= d->at_k_a_bounded[q][k] == s.x;
        }
        if (is_y == is_x) return false;
        *(is_y ? &stem(d)->y0 : &stem(d)->x0) = d->a.bounded[q].c;
        *(is_y ? &stem(d)->high : &stem(d)->across) = d->a.size[q];
    }
    return true;
}
bool hone_contract_first_layer_choose(hone_arena *arena, hone_contract *d) {
    const hone_gemm_half *h = d->half->kernel;
    spot most;
    stem(d)->lines = 0;
    if (!h->window || h->dtype != HONE_DTYPE_BF16 || !d->direct || d->of.batch != 1 ||
        d->of.first_tensor >= 0 || d->of.m_run < 2 || d->of.m % d->of.m_run || d->of.m / d->of.m_run < 2 ||
        d->packed_b + 4 > HONE_MAX_REFS /* the copy's, and those of transposed tensors */ || !steps(d) ||
        !even(d, &most))
        return false;
    const int64_t all = d->of.m / d->of.m_run;
    stem(d)->own = most.c + 1, stem(d)->channels = hone_round_up(stem(d)->own, 2),
    stem(d)->wide = (most.x + 1) * stem(d)->channels, stem(d)->taps = most.y + 1;
    const int64_t deep = hone_round_up(stem(d)->wide, h->deep),
                  columns = (stem(d)->run - 1) * stem(d)->right + most.x + 1;
    stem(d)->pitch = columns * stem(d)->channels, stem(d)->height = (all - 1) * stem(d)->down + most.y + 1;
    if (columns * stem(d)->pixel > 2 * stem(d)->line ||
        (stem(d)->channel && stem(d)->height * stem(d)->line > 2 * stem(d)->channel))
        return false; /* lines within lines: it lies otherwise, channels last for one */
    stem(d)->y0 = stem(d)->x0 = 0, stem(d)->high = stem(d)->height, stem(d)->across = columns;
    if ((h->begin ? stem(d)->wide > h->deep : stem(d)->wide != deep) ||
        stem(d)->taps * deep > WASTE * d->of.k || !edges(d))
        return false;
    int64_t *at = hone_arena_raw(arena, sizeof *at * (size_t)stem(d)->taps),
            *place = hone_arena_raw(arena, sizeof *place * (size_t)d->of.k);
    if (!at || !place) return false; /* there is another way */
    for (int64_t t = 0; t < stem(d)->taps; t++) at[t] = t * stem(d)->pitch;
    for (int64_t k = 0; k < d->of.k; k++) {
        const spot s = spot_of(d, k);
        place[k] = s.y * deep + s.x * stem(d)->channels + s.c;
    }
    stem(d)->at = at, d->half->place = place, stem(d)->deep = stem(d)->taps * deep,
    stem(d)->tall = hone_round_up(stem(d)->run, h->mr);
    stem(d)->lines = ROWS / stem(d)->run < 1 ? 1 : ROWS / stem(d)->run < all ? ROWS / stem(d)->run : all;
    d->mt = stem(d)->lines * stem(d)->run, d->nt = hone_round_up(d->of.n, d->nr);
    return true;
}

/* ---- the copy ------------------------------------------------------------------------------------------ */
static void pixels(const hone_contract *d, const float *from, int64_t n, uint16_t *to) {
    const int64_t wide = stem(d)->channels;
    uint16_t plane[CHANNELS][SOME];
    float line[SOME];
    for (int64_t c = 0; c < stem(d)->own; c++) {
        const float *own = from + c * stem(d)->channel;
        for (int64_t i = 0; stem(d)->pixel != 1 && i < n; i++) line[i] = own[i * stem(d)->pixel];
        d->half->kernel->narrow(stem(d)->pixel != 1 ? line : own, plane[c], n);
    }
    for (int64_t c = stem(d)->own; c < wide; c++) memset(plane[c], 0, sizeof *plane[c] * (size_t)n);
    if (wide == 4) { /* nearly always: a pixel is a word */
        for (int64_t i = 0; i < n; i++) {
            const uint64_t v = (uint64_t)plane[0][i] | (uint64_t)plane[1][i] << 16 |
                               (uint64_t)plane[2][i] << 32 | (uint64_t)plane[3][i] << 48;
            memcpy(to + 4 * i, &v, sizeof v);
        }
        return;
    }
    for (int64_t c = 0; c < wide; c++) {
        const uint16_t *of = plane[c];
        /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): narrow, or memset, wrote n of it */
        for (int64_t i = 0; i < n; i++) to[i * wide + c] = of[i];
    }
}
static int64_t lines_at_once(const hone_contract *d) { return 1 + COPIED / stem(d)->pitch; }
static hone_status copy_tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = s->data;
    const float *a = (const float *)(const void *)hone_ref_at(s->ref[d->a.tensor], base) + d->a.at.c;
    uint16_t *copy = (uint16_t *)(void *)hone_ref_at(s->ref[d->half->rounded], base);
    const int64_t wide = stem(d)->channels, across = stem(d)->pitch / wide, y0 = stem(d)->y0,
                  x0 = stem(d)->x0;
    const int64_t first = x0 < 0 ? (-x0 < across ? -x0 : across) : 0, ends = stem(d)->across - x0,
                  past = ends < first    ? first
                         : ends < across ? ends
                                         : across;
    (void)scratch;
    for (int64_t y = number * lines_at_once(d), last = y + lines_at_once(d); y < last && y < stem(d)->height;
         y++) {
        uint16_t *to = copy + y * stem(d)->pitch;
        const bool inside = y + y0 >= 0 && y + y0 < stem(d)->high;
        const int64_t begin = inside ? first : across, end = inside ? past : across;
        memset(to, 0, sizeof *to * (size_t)(begin * wide));
        for (int64_t x = begin; x < end; x += SOME)
            pixels(d, a + y * stem(d)->line + x * stem(d)->pixel, end - x < SOME ? end - x : SOME,
                   to + x * wide);
        memset(to + end * wide, 0, sizeof *to * (size_t)((across - end) * wide));
    }
    return HONE_OK;
}
void hone_contract_first_layer_copy(hone_contract *d, hone_step_template *part) {
    /* the kernel's last rows may be none of a line's: they are read behind it, at the end behind all */
    const int64_t behind = d->half->kernel->mr * stem(d)->right * stem(d)->channels + d->half->kernel->deep;
    part->bytes = (int64_t)sizeof(uint16_t) * (stem(d)->height * stem(d)->pitch + behind);
    part->step.tactic = "first layer", part->step.tile = copy_tile, part->step.data = d;
    part->step.tiles = (stem(d)->height + lines_at_once(d) - 1) / lines_at_once(d),
    part->step.serial = part->step.tiles == 1;
}
