/* SPDX-License-Identifier: Apache-2.0
   text: samples for language models out of text files, through a tokenizer's file. All tokens of a file are
   made at once, eight bytes each; a sample is cut from them when it is asked for. */
#include <string.h>

#include "base/file.h"
#include "hone/quant.h"
#include "run/model.h"
#include "text/tokens.h"

enum {
    LONGEST = 512,         /* tokens of a line, where the model says nothing */
    LONGEST_LINE = 1 << 14 /* bytes that are made tokens at once: time may go with their square */
};
typedef enum { TOKENS, ONES, ZEROS, PLACES } role; /* of an input */
typedef struct {
    int64_t from, n;
} piece;
typedef struct {
    const hone_model *model;
    hone_ids ids;
    hone_vec(piece) piece;
    int64_t fixed, padding; /* tokens of a sample; -1: as many as there are */
    role *of;
} texts;

static hone_status no_memory(void) { return hone_fail(HONE_NO_MEMORY, "no memory for samples"); }

/* ---- inputs -------------------------------------------------------------------------------------------- */
static role role_of(const char *name) {
    static const struct {
        const char *part;
        role is;
    } names[] = {{"mask", ONES}, {"type", ZEROS}, {"segment", ZEROS}, {"position", PLACES}};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strstr(name, names[k].part)) return names[k].is;
    return TOKENS;
}
static hone_status look_at_inputs(texts *t) {
    const int n = hone_model_inputs(t->model);
    bool found = false;
    t->fixed = -1;
    if (!(t->of = hone_alloc(sizeof *t->of * (size_t)n))) return no_memory();
    for (int k = 0; k < n; k++) {
        const hone_port *p = hone_model_input(t->model, k);
        t->of[k] = role_of(p->name);
        const bool whole =
            p->kind == HONE_VALUE_TENSOR && (p->dtype == HONE_DTYPE_I64 || p->dtype == HONE_DTYPE_I32 ||
                                             (t->of[k] == ONES && p->dtype == HONE_DTYPE_F32));
        if (!whole || p->rank < 1 || p->rank > 2 || (p->rank == 2 && p->dims[0] > 1) ||
            (found && t->of[k] == TOKENS))
            return hone_fail(HONE_NOT_SUPPORTED,
                             "input '%s' (%s) is nothing that text has: tokens, a mask, types or positions, "
                             "one text a run",
                             p->name, p->shape);
        found |= t->of[k] == TOKENS;
        const int64_t long_ = p->dims[p->rank - 1];
        if (long_ >= 0 && t->fixed >= 0 && long_ != t->fixed)
            return hone_fail(HONE_NOT_SUPPORTED, "input '%s' (%s): another has %lld tokens", p->name,
                             p->shape, (long long)t->fixed);
        if (long_ >= 0) t->fixed = long_;
    }
    return found ? HONE_OK : hone_fail(HONE_NOT_SUPPORTED, "none of the model's inputs is tokens");
}

/* ---- files --------------------------------------------------------------------------------------------- */
/* At most so many bytes, up to a space if there is one, else up to a character's end. */
static size_t cut_at_space(const char *text, size_t most) {
    size_t n = most;
    while (n > most / 2 && text[n] != ' ') n--;
    if (text[n] == ' ') return n;
    for (n = most; n > most - 4 && ((unsigned char)text[n] & 0xC0) == 0x80;) n--;
    return n;
}
/* Pieces of so many tokens of all the text, or a line each. */
static hone_status add_file(texts *t, hone_tokenizer *by, const char *path, int64_t most, bool lines) {
    hone_file f;
    HONE_TRY(hone_file_open(path, &f));
    const char *at = (const char *)f.data, *end = at + f.bytes;
    const int64_t began = t->ids.n;
    hone_status s = memchr(at, 0, f.bytes < 4096 ? f.bytes : 4096)
                        ? hone_fail(HONE_BAD_INPUT, "'%s': no text: there are zero bytes in it", path)
                        : HONE_OK;
    while (at < end && !s) {
        const char *stop = memchr(at, '\n', (size_t)(end - at)), *next = stop ? stop + 1 : end;
        size_t bytes = (size_t)((lines && stop ? stop : next) - at);
        if (lines && bytes && at[bytes - 1] == '\r') bytes--;
        const int64_t from = t->ids.n;
        if (bytes >
            LONGEST_LINE) { /* of a line that has no end, what fits; of running text, the rest later */
            bytes = cut_at_space(at, LONGEST_LINE);
            if (!lines) next = at + bytes;
        }
        if (bytes || !lines) s = hone_tokenizer_encode(by, at, bytes, lines, &t->ids);
        if (!s && lines && t->ids.n - from > most)
            t->ids.at[from + most - 1] = t->ids.at[t->ids.n - 1], t->ids.n = (int)(from + most);
        if (!s && lines && t->ids.n > from && !hone_push(&t->piece, ((piece){from, t->ids.n - from})))
            s = no_memory();
        at = next;
    }
    for (int64_t from = began; from + most <= t->ids.n && !lines && !s; from += most)
        if (!hone_push(&t->piece, ((piece){from, most}))) s = no_memory();
    hone_file_close(&f);
    return s;
}

/* ---- a sample ------------------------------------------------------------------------------------------ */
static hone_status get(void *arg, int64_t k, hone_value **in) {
    const texts *t = arg;
    const piece p = t->piece.at[k];
    const int64_t n = t->fixed >= 0 ? t->fixed : p.n;
    for (int i = 0; i < hone_model_inputs(t->model); i++) {
        const hone_port *port = hone_model_input(t->model, i);
        const int64_t dim[2] = {port->rank == 2 ? 1 : n, n};
        HONE_TRY(hone_value_tensor(port->dtype, dim, port->rank, in + i));
        for (int64_t j = 0; j < n; j++) {
            const int64_t there = j < p.n, x = t->of[i] == TOKENS ? there ? t->ids.at[p.from + j] : t->padding
                                               : t->of[i] == ONES ? there
                                               : t->of[i] == PLACES ? j
                                                                    : 0;
            if (port->dtype == HONE_DTYPE_I64) ((int64_t *)in[i]->data)[j] = x;
            else if (port->dtype == HONE_DTYPE_I32) ((int32_t *)in[i]->data)[j] = (int32_t)x;
            else ((float *)in[i]->data)[j] = (float)x;
        }
    }
    return HONE_OK;
}

/* ---- the calls ----------------------------------------------------------------------------------------- */
static void close_texts(texts *t) {
    hone_vec_free(&t->ids), hone_vec_free(&t->piece);
    hone_free(t->of);
    hone_free(t);
}
hone_status hone_samples_open_text(const hone_model *m, const char *const *paths, int n,
                                   const char *tokenizer, int tokens, hone_samples *out) {
    if (!m || !paths || !tokenizer || !out || n < 1)
        return hone_fail(HONE_BAD_INPUT,
                         "hone_samples_open_text: model, paths, tokenizer and out must not be NULL");
    texts *t = hone_alloc(sizeof *t);
    hone_tokenizer *by = NULL;
    if (!t) return no_memory();
    t->model = m;
    hone_status s = look_at_inputs(t);
    if (!s) s = hone_tokenizer_open(tokenizer, &by);
    if (!s && t->fixed >= 0 && tokens > 0 && tokens != t->fixed)
        s = hone_fail(HONE_BAD_INPUT, "%d tokens a sample: the model takes %lld", tokens,
                      (long long)t->fixed);
    const int64_t most = tokens > 0 ? tokens : t->fixed > 0 ? t->fixed : LONGEST;
    for (int k = 0; k < n && !s; k++) s = add_file(t, by, paths[k], most, tokens <= 0);
    if (!s) t->padding = hone_tokenizer_padding(by);
    if (!s && !t->piece.n)
        s = hone_fail(HONE_BAD_INPUT,
                      tokens > 0 ? "'%s': there are no %d tokens in it" : "'%s': there is no line in it",
                      paths[0], tokens);
    hone_tokenizer_close(by);
    if (s) close_texts(t);
    else *out = (hone_samples){t->piece.n, get, t};
    return s;
}
bool hone_samples_close_text(hone_samples *s) {
    if (s->get != get) return false;
    close_texts(s->arg);
    return true;
}
