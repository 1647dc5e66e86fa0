/* SPDX-License-Identifier: Apache-2.0
   staging: see staging.h. */
#include "device/cuda/staging.h"
#include "base/round.h"

#include <string.h>

enum {
    HALF = 2 << 20,
    LINE = 256,
    /* from here on the driver brings results faster by itself: 13.0 GB/s on an H200, ours 11.7; to the GPU it
       is 8.9 and 11.7 */
    LARGE = 8 << 20
};

hone_status hone_staging_begin(hone_cuda *gpu, hone_staging *s) {
    void *at = NULL;
    *s = (hone_staging){.gpu = gpu};
    HONE_TRY(hone_cuda_pin(gpu, 2 * (size_t)HALF + LINE, &at));
    s->at = at;
    return HONE_OK;
}
void hone_staging_end(hone_staging *s) {
    if (s->gpu) hone_cuda_unpin(s->gpu, s->at);
}
hone_status hone_staging_send(hone_staging *s, hone_cuda_address to, const void *from, size_t bytes) {
    for (size_t done = 0, n; done < bytes; done += n) {
        if (s->used == HALF) { /* the other half, once it is free */
            HONE_TRY(hone_cuda_mark(s->gpu, s->half));
            s->half ^= 1;
            if (s->away) HONE_TRY(hone_cuda_await(s->gpu, s->half));
            s->away = true, s->used = 0;
        }
        n = bytes - done < HALF - s->used ? bytes - done : HALF - s->used;
        char *const piece = s->at + (size_t)s->half * HALF + s->used;
        memcpy(piece, (const char *)from + done, n);
        HONE_TRY(hone_cuda_send(s->gpu, to + done, piece, n));
        s->used += hone_round_up(n, LINE);
    }
    return HONE_OK;
}
/* Nothing is on its way any more. */
static void settle(hone_staging *s) {
    s->used = 0, s->away = false;
    if (s->asked) memcpy(s->asked, s->at + 2 * (size_t)HALF, sizeof *s->asked);
    s->asked = NULL;
}
static hone_status fetch_pieces(hone_staging *s, char *to, hone_cuda_address from, size_t bytes) {
    /* what was sent from the halves before is read before these pieces are written: the stream is in order */
    size_t sent = 0, n[2] = {0};
    int k = 0;
    for (size_t done = 0; done < bytes || sent < bytes; k ^= 1) {
        if (sent < bytes) {
            n[k] = bytes - sent < HALF ? bytes - sent : HALF;
            HONE_TRY(hone_cuda_fetch(s->gpu, s->at + (size_t)k * HALF, from + sent, n[k]));
            HONE_TRY(hone_cuda_mark(s->gpu, k));
            sent += n[k];
        } else n[k] = 0;
        const int before = k ^ 1;
        if (!n[before]) continue;
        HONE_TRY(hone_cuda_await(s->gpu, before));
        memcpy(to + done, s->at + (size_t)before * HALF, n[before]);
        done += n[before], n[before] = 0;
    }
    return hone_staging_wait(s);
}
hone_status hone_staging_fetch(hone_staging *s, void *to, hone_cuda_address from, size_t bytes) {
    if (bytes >= LARGE) {
        HONE_TRY(hone_cuda_fetch(s->gpu, to, from, bytes));
        return hone_staging_wait(s);
    }
    if (bytes > HALF) return fetch_pieces(s, to, from, bytes);
    if (bytes) HONE_TRY(hone_cuda_fetch(s->gpu, s->at, from, bytes));
    HONE_TRY(hone_staging_wait(s));
    if (bytes) memcpy(to, s->at, bytes);
    return HONE_OK;
}
hone_status hone_staging_peek(hone_staging *s, hone_cuda_address from, uint32_t *to) {
    s->asked = to;
    return hone_cuda_fetch(s->gpu, s->at + 2 * (size_t)HALF, from, sizeof *to);
}
hone_status hone_staging_wait(hone_staging *s) {
    const hone_status status = hone_cuda_wait(s->gpu);
    if (status) s->asked = NULL; /* whoever asked is gone */
    settle(s);
    return status;
}
