/* SPDX-License-Identifier: Apache-2.0
   replayed: see replayed.h. */
#include "device/replayed.h"

static bool span(const hone_step *s, int ref, int64_t *from, int64_t *to) { /* from the base on */
    if (!hone_box_span(s->access->box + ref, from, to) || *to <= *from) return false;
    if (s->half_stored >> (ref & 63) & 1) *from /= 2, *to = (*to + 1) / 2;
    *from += s->ref[ref].offset, *to += s->ref[ref].offset;
    return true;
}
int hone_replayed_ranges(const hone_step *s, void *const *base, hone_replayed_range *out, int most) {
    const hone_access *a = s->access;
    int n = 0;
    for (int w = 0; w < a->n_ref; w++) {
        int64_t from, to, r_from, r_to;
        if (!(a->writes >> w & 1)) continue;
        if (a->box[w].bytes == HONE_BOX_WHOLE) return -1;
        if (!span(s, w, &from, &to)) continue;
        bool over = a->reads >> w & 1;
        for (int r = 0; r < a->n_ref && !over; r++) {
            if (!(a->reads >> r & 1) || s->ref[r].base != s->ref[w].base) continue;
            over = a->box[r].bytes == HONE_BOX_WHOLE ||
                   (span(s, r, &r_from, &r_to) && r_from < to && from < r_to);
        }
        if (!over) continue;
        if (n == most) return -1;
        out[n++] = (hone_replayed_range){base[s->ref[w].base], from, to - from};
    }
    return n;
}

static hone_status put_back(const hone_replayed *r) {
    int64_t at = 0;
    for (int k = 0; k < r->n; k++) {
        HONE_TRY(r->driver->copy(r->queue, r->range[k].memory, r->range[k].at, r->kept, at,
                                 (size_t)r->range[k].bytes));
        at += r->range[k].bytes;
    }
    return HONE_OK;
}
static hone_status timed(const hone_replayed *r, int repeats, bool whole, double *seconds) {
    const hone_capture *how = r->driver->capture;
    void *graph = NULL;
    HONE_TRY(how->begin(r->queue));
    hone_status s = HONE_OK;
    for (int k = 0; k < repeats && !s; k++) {
        s = put_back(r);
        if (!s && whole) s = r->launch(r->arg);
    }
    hone_status ended = how->end(r->queue, &graph);
    if (!s) s = ended;
    if (!s) s = r->driver->time_graph(r->queue, graph, seconds);
    if (graph) how->free(r->queue, graph);
    *seconds /= repeats;
    return s;
}
hone_status hone_replayed_time(const hone_replayed *r, double about, double *seconds) {
    enum { LEAST = 3, MOST = 40, MOST_LAUNCHES = 4000 };
    static const double enough = 1e-3; /* seconds of one recording */
    double copies = 0;
    int repeats = about > 0 && enough / about < MOST ? (int)(enough / about) : MOST;
    if (r->launches > 0 && repeats > MOST_LAUNCHES / r->launches)
        repeats = (int)(MOST_LAUNCHES / r->launches);
    if (repeats < LEAST) repeats = LEAST;
    if (r->n) HONE_TRY(timed(r, repeats, false, &copies));
    HONE_TRY(timed(r, repeats, true, seconds)); /* last: its results stay */
    *seconds = *seconds > copies ? *seconds - copies : 0;
    return HONE_OK;
}
