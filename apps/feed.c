/* SPDX-License-Identifier: Apache-2.0
   feed: the inputs of a run. Whatever the user did not say is chosen here and told: the sizes of free dims
   (dims.h), numbers drawn from a seed. */
#include "feed.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dims.h"
#include "feed_word.h"
#include "json.h"
#include "picture.h"
#include "net/random.h"

enum { RANK_MAX = 16 };

static int find_input(const hone_model *m, const char *name, int length) {
    for (int k = 0; k < hone_model_inputs(m); k++) {
        const char *n = hone_model_input(m, k)->name;
        if ((int)strlen(n) == length && !memcmp(n, name, (size_t)length)) return k;
    }
    return -1;
}
/* "NAME=REST" with the name of an input, which may hold a '=' itself: the input's number, or -1. */
static int find_named(const hone_model *m, const char *word, const char **rest) {
    for (const char *equals = strchr(word, '='); equals; equals = strchr(equals + 1, '=')) {
        const int k = find_input(m, word, (int)(equals - word));
        *rest = equals + 1;
        if (k >= 0) return k;
    }
    return -1;
}

/* The nearest of the inputs' names; NULL where none is near. */
static const char *near_input(const hone_model *m, const char *name, int length) {
    const int n = hone_model_inputs(m);
    const char **names = hone_must_alloc(sizeof *names * (size_t)(n + 1));
    for (int k = 0; k < n; k++) names[k] = hone_model_input(m, k)->name;
    const char *near = hone_nearest(name, (size_t)length, names, n);
    free(names);
    return near;
}
/* "NAME=REST" for an input by its name; REST alone for the input `next`. The input's number, -1 after a line
   that says what is wrong. */
static int pick(const hone_model *m, const char *option, const char *word, int next, const char **rest) {
    int length = 0, n = hone_model_inputs(m), k = find_named(m, word, rest);
    if (k >= 0) return k;
    *rest = hone_args_after(word, &length);
    const char *near = *rest ? near_input(m, word, length) : NULL;
    if (near) {
        hone_args_wrong("%s %s: the model has no input '%.*s'; did you mean '%s'?", option, word, length,
                        word, near);
        return -1;
    }
    if (*rest && !n) return hone_args_wrong("%s %s: the model has no inputs", option, word), -1;
    if (*rest) {
        hone_args_wrong("%s %s: the model has no input '%.*s'; its first is '%s'", option, word, length, word,
                        hone_model_input(m, 0)->name);
        return -1;
    }
    *rest = word;
    if (next < n) return next;
    hone_args_wrong("%s %s: the model has only %d input%s", option, word, n, n == 1 ? "" : "s");
    return -1;
}

/* ---- shapes ---- */

typedef struct {
    int rank;
    int64_t dim[RANK_MAX];
    bool given;
} shape;

static bool read_shape(const char *text, shape *out) {
    out->rank = 0;
    out->given = true;
    if (!strcmp(text, "scalar")) return true;
    for (const char *p = text;; p++) {
        char *end;
        if (*p < '0' || *p > '9' || out->rank == RANK_MAX) return false;
        long long n = strtoll(p, &end, 10);
        if (n > INT32_MAX) return false;
        out->dim[out->rank++] = n;
        if (!*end) return true;
        if (*end != 'x' && *end != ',') return false;
        p = end;
    }
}

static bool fits(const hone_port *port, const shape *s) {
    if (port->rank >= 0 && port->rank != s->rank) return false;
    for (int i = 0; i < port->rank; i++)
        if (port->dims[i] >= 0 && port->dims[i] != s->dim[i]) return false;
    return true;
}

/* Free dims get the size that was given or guessed, and `told` says what was guessed. */
static int settle_shape(const hone_port *port, const hone_dims_known *dims, shape *s, char *told,
                        size_t room) {
    if (s->given && !fits(port, s))
        return hone_args_wrong("input '%s' is %s: --shape must keep its rank and its fixed dims", port->name,
                               port->shape);
    if (s->given) return 0;
    if (port->rank > RANK_MAX)
        return hone_args_wrong("input '%s' has more than %d dims", port->name, RANK_MAX);
    size_t n = 0;
    s->rank = port->rank < 0 ? 0 : port->rank;
    for (int i = 0; i < s->rank; i++) {
        bool guessed = false;
        char name[HONE_DIM_NAME];
        s->dim[i] = hone_dims_size(dims, port, i, &guessed);
        if (!guessed || n + 1 >= room) continue;
        hone_dim_name(port, i, name);
        n += (size_t)snprintf(told + n, room - n, "%s%s = %lld", n ? ", " : "; ", name, (long long)s->dim[i]);
    }
    if (port->rank < 0) snprintf(told, room, "; it has no declared rank, and a scalar");
    n = strlen(told);
    if (n)
        snprintf(told + n, room - n, strchr(told, ',') && port->rank >= 0 ? " are guesses" : " is a guess");
    return 0;
}

/* ---- random ---- */

/* A multiple of 2^-10 from -1 to 1: exact in f16 too; bf16 cuts it. */
static float draw_float(uint64_t *state) {
    return (float)((int)(hone_net_random(state) >> 53) - 1024) / 1024;
}

static uint16_t half_bits(float v) { /* |v| <= 1, a multiple of 2^-10: never subnormal, nothing to round */
    int exponent;
    float m = frexpf(fabsf(v), &exponent);
    if (v == 0) return 0;
    return (uint16_t)((v < 0 ? 0x8000u : 0) | (unsigned)(exponent + 14) << 10 |
                      ((unsigned)(m * 2048) & 0x3ff));
}

/* How a type's random elements are made: floats from -1 to 1; integers, bools and the smallest floats 0 or 1,
   of which every type has a code. */
typedef struct {
    uint8_t bytes;
    char how; /* f float, h half, b bfloat, d double, 1: `one` or 0 */
    uint8_t parts;
    uint8_t one;
} maker;
static const maker makers[HONE_DTYPE_COUNT] = {[HONE_DTYPE_F32] = {4, 'f', 1, 0},
                                               [HONE_DTYPE_F64] = {8, 'd', 1, 0},
                                               [HONE_DTYPE_F16] = {2, 'h', 1, 0},
                                               [HONE_DTYPE_BF16] = {2, 'b', 1, 0},
                                               [HONE_DTYPE_C64] = {4, 'f', 2, 0},
                                               [HONE_DTYPE_C128] = {8, 'd', 2, 0},
                                               [HONE_DTYPE_U8] = {1, '1', 1, 1},
                                               [HONE_DTYPE_I8] = {1, '1', 1, 1},
                                               [HONE_DTYPE_BOOL] = {1, '1', 1, 1},
                                               [HONE_DTYPE_U16] = {2, '1', 1, 1},
                                               [HONE_DTYPE_I16] = {2, '1', 1, 1},
                                               [HONE_DTYPE_U32] = {4, '1', 1, 1},
                                               [HONE_DTYPE_I32] = {4, '1', 1, 1},
                                               [HONE_DTYPE_U64] = {8, '1', 1, 1},
                                               [HONE_DTYPE_I64] = {8, '1', 1, 1},
                                               [HONE_DTYPE_U4] = {1, '1', 1, 1},
                                               [HONE_DTYPE_I4] = {1, '1', 1, 1},
                                               [HONE_DTYPE_U2] = {1, '1', 1, 1},
                                               [HONE_DTYPE_I2] = {1, '1', 1, 1},
                                               [HONE_DTYPE_F8E4M3FN] = {1, '1', 1, 0x38},
                                               [HONE_DTYPE_F8E4M3FNUZ] = {1, '1', 1, 0x40},
                                               [HONE_DTYPE_F8E5M2] = {1, '1', 1, 0x3c},
                                               [HONE_DTYPE_F8E5M2FNUZ] = {1, '1', 1, 0x40},
                                               [HONE_DTYPE_F4E2M1] = {1, '1', 1, 2},
                                               [HONE_DTYPE_F8E8M0] = {1, '1', 1, 0x7f}};

static void fill(hone_value *v, uint64_t state) {
    const maker *m = &makers[hone_value_dtype(v)];
    char *at = hone_value_data(v);
    int64_t n = hone_value_elements(v) * m->parts;
    for (int64_t k = 0; at && k < n; k++, at += m->bytes) {
        float f = m->how == '1' ? 0 : draw_float(&state);
        double d = f;
        uint32_t bits;
        uint16_t half = half_bits(f);
        memcpy(&bits, &f, sizeof bits);
        switch (m->how) {
        case 'f': memcpy(at, &f, sizeof f); break;
        case 'd': memcpy(at, &d, sizeof d); break;
        case 'h': memcpy(at, &half, sizeof half); break;
        case 'b': half = (uint16_t)(bits >> 16), memcpy(at, &half, sizeof half); break;
        case '1': { /* little and big endian alike: an integer of its own width */
            uint64_t one = hone_net_random(&state) >> 63 ? m->one : 0;
            uint32_t word = (uint32_t)one;
            uint16_t pair = (uint16_t)one;
            uint8_t byte = (uint8_t)one;
            memcpy(at,
                   m->bytes == 8   ? (void *)&one
                   : m->bytes == 4 ? (void *)&word
                   : m->bytes == 2 ? (void *)&pair
                                   : (void *)&byte,
                   m->bytes);
            break;
        }
        }
    }
}

static int feed_random(const hone_port *port, const hone_dims_known *dims, shape *s, int k, int seed,
                       hone_fed *out) {
    char told[128] = "";
    if (port->kind == HONE_VALUE_OPTIONAL) {
        snprintf(out->from, sizeof out->from, "left out");
        return 0;
    }
    if (port->kind != HONE_VALUE_TENSOR)
        return hone_args_wrong("input '%s' is %s: give it as --input %s=FILE.pb", port->name, port->shape,
                               port->name);
    int rc = settle_shape(port, dims, s, told, sizeof told);
    if (rc) return rc;
    hone_status status = hone_tensor_create(port->dtype, s->dim, s->rank, &out->value);
    if (status) return hone_args_failed(status);
    out->guessed = told[0] != 0;
    out->drawn = port->dtype != HONE_DTYPE_STRING;
    if (out->drawn) fill(out->value, (uint64_t)seed * 1000003u + (uint64_t)k);
    if (port->dtype == HONE_DTYPE_STRING) snprintf(out->from, sizeof out->from, "empty strings%s", told);
    else
        snprintf(out->from, sizeof out->from, "random %s, seed %d%s",
                 makers[port->dtype].how == '1' ? "0 or 1" : "from -1 to 1", seed, told);
    return 0;
}

/* Numbers by a word: "16000", "1,2,3", "ones". A list says its own shape; what fills takes the input's. */
static bool is_word(const hone_port *port, const char *text) {
    return port->kind == HONE_VALUE_TENSOR && hone_word_known(port, text);
}
static int feed_word(const hone_port *port, const hone_dims_known *dims, shape *s, const char *text, int k,
                     int seed, hone_fed *out) {
    char told[128] = "";
    if (!strcmp(text, "random")) return feed_random(port, dims, s, k, seed, out);
    if (!s->given && hone_word_is_list(port, text)) {
        s->rank = port->rank > 1 ? port->rank : 1;
        if (s->rank > RANK_MAX)
            return hone_args_wrong("input '%s' has more than %d dims", port->name, RANK_MAX);
        for (int d = 0; d < s->rank; d++) s->dim[d] = d + 1 == s->rank ? hone_word_count(text) : 1;
        if (!fits(port, s))
            return hone_args_wrong("--input %s=%.60s: input '%s' is %s, these are %lld", port->name, text,
                                   port->name, port->shape, (long long)hone_word_count(text));
    } else {
        int rc = settle_shape(port, dims, s, told, sizeof told);
        if (rc) return rc;
    }
    out->guessed = told[0] != 0;
    int rc = hone_word_make(port, text, s->dim, s->rank, &out->value);
    snprintf(out->from, sizeof out->from, "%.120s%s", text, told);
    return rc;
}

/* ---- files ---- */

/* A picture saved as 28x28 goes into 1x1x28x28: dims of 1 (or free ones) that the port has in front are
   added. */
static int add_leading(const hone_port *port, hone_fed *f) {
    int rank = hone_value_rank(f->value), more = port->rank - rank;
    shape s = {.rank = port->rank};
    if (hone_value_kind_of(f->value) != HONE_VALUE_TENSOR ||
        hone_value_dtype(f->value) == HONE_DTYPE_STRING || port->rank < 0 || more <= 0 ||
        port->rank > RANK_MAX)
        return 0;
    for (int i = 0; i < port->rank; i++) s.dim[i] = i < more ? 1 : hone_value_dims(f->value)[i - more];
    if (!fits(port, &s)) return 0;
    hone_value *view = NULL;
    hone_status status =
        hone_tensor_borrow(hone_value_dtype(f->value), s.dim, s.rank, hone_value_data(f->value), &view);
    if (status) return hone_args_failed(status);
    f->source = f->value;
    f->value = view;
    size_t n = strlen(f->from);
    snprintf(f->from + n, sizeof f->from - n, " (%d dim%s of 1 added in front)", more, more > 1 ? "s" : "");
    return 0;
}

static bool ends_in(const char *path, const char *ending) {
    size_t n = strlen(path), m = strlen(ending);
    return n > m && !strcmp(path + n - m, ending);
}
static bool is_tensor_file(const char *path) {
    return ends_in(path, ".npy") || ends_in(path, ".pb") || ends_in(path, ".bin");
}
/* "data.npz", or one array of it: "data.npz:mask". The path's length, 0 for what is neither. */
static int archive_path(const char *text) {
    const char *colon = strstr(text, ".npz:");
    return colon ? (int)(colon - text) + 4 : ends_in(text, ".npz") ? (int)strlen(text) : 0;
}
static bool is_picture(const char *path) {
    return !is_tensor_file(path) && !archive_path(path) && hone_picture_format(path);
}

/* A model that decodes its pictures itself takes a file's bytes as they are. */
static int feed_bytes(const char *path, hone_fed *out) {
    FILE *f = fopen(path, "rb");
    long n = f && !fseek(f, 0, SEEK_END) ? ftell(f) : -1;
    hone_status s = n < 0 ? HONE_OK : hone_tensor_create(HONE_DTYPE_U8, (int64_t[]){n}, 1, &out->value);
    bool good = f && n >= 0 && !s && !fseek(f, 0, SEEK_SET) &&
                fread(hone_value_data(out->value), 1, (size_t)n, f) == (size_t)n;
    if (f) fclose(f);
    if (s) return hone_args_failed(s);
    snprintf(out->from, sizeof out->from, "%.120s, its bytes as they are", path);
    return good ? 0 : hone_args_wrong("%s: the file cannot be read", path);
}

/* The array of an archive that is for an input: the one named, that of the input's name, or the only one. */
static int feed_array(const hone_port *port, const char *text, hone_fed *out) {
    const int length = archive_path(text);
    const char *name = text[length] == ':' ? text + length + 1 : port->name;
    char *path = hone_must_alloc((size_t)length + 1), *names = NULL;
    memcpy(path, text, (size_t)length);
    hone_status s = hone_npz_names(path, &names);
    hone_json *list = s ? NULL : hone_json_read(names);
    if (!s && text[length] != ':' && list && list->n == 1 && list->first->text) name = list->first->text;
    if (!s) s = hone_npz_read(path, name, &out->value);
    if (!s) snprintf(out->from, sizeof out->from, "%.120s, array '%.60s'", path, name);
    int rc = !s ? 0
             : s == HONE_BAD_INPUT && names
                 ? hone_args_wrong("%s; the arrays in it are %s", hone_error(), names)
                 : hone_args_failed(s);
    hone_json_free(list);
    hone_text_release(names);
    free(path);
    return rc ? rc : add_leading(port, out);
}

/* The type that the model wants, where the user asks for it; else what would do it is said. */
static int settle_type(const hone_port *port, bool cast, const char *what, hone_fed *out) {
    hone_value *v = out->value, *made = NULL;
    if (!v || hone_value_kind_of(v) != HONE_VALUE_TENSOR || port->kind != HONE_VALUE_TENSOR ||
        hone_value_dtype(v) == port->dtype || !port->dtype)
        return 0;
    const char *is = hone_dtype_name(hone_value_dtype(v)), *wanted = hone_dtype_name(port->dtype);
    const bool numbers = hone_value_dtype(v) != HONE_DTYPE_STRING && port->dtype != HONE_DTYPE_STRING;
    if (!cast)
        return hone_args_wrong("%s: input '%s' is %s, the file has %s%s", what, port->name, wanted, is,
                               numbers ? "; --cast converts it" : "");
    hone_status s = hone_value_cast(v, port->dtype, &made);
    if (s)
        return hone_args_wrong("%s: %s as input '%s' of %s: %s", what, is, port->name, wanted, hone_error());
    const size_t n = strlen(out->from);
    snprintf(out->from + n, sizeof out->from - n, ", %s converted to %s", is, wanted);
    hone_value_free(v), hone_value_free(out->source);
    out->value = made, out->source = NULL;
    return 0;
}

static int feed_file(const hone_port *port, const hone_dims_known *dims, shape *s, const char *path,
                     hone_fed *out) {
    char told[128] = "";
    bool raw = ends_in(path, ".bin");
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return hone_args_wrong("%s is a folder; an input is a file", path);
    if (!is_tensor_file(path) && access(path, F_OK) == 0)
        return hone_args_wrong(
            "%s: neither a tensor (.npy, .npz, .pb, .bin) nor a picture (PNG, JPEG, WebP, BMP, PNM, TIFF)",
            path);
    if (!is_tensor_file(path))
        return hone_args_wrong(
            "input '%s': there is no file '%s', and it is no number, list, 'ones', 'zeros' or 'random'",
            port->name, path);
    if (raw) {
        int rc = settle_shape(port, dims, s, told, sizeof told);
        if (rc) return rc;
    }
    hone_status status = hone_value_read(path, port->kind, raw ? port->dtype : HONE_DTYPE_NONE,
                                         raw ? s->dim : NULL, raw ? s->rank : 0, &out->value);
    if (status) return hone_args_failed(status);
    snprintf(out->from, sizeof out->from, "%.120s%s", path, told);
    return add_leading(port, out);
}

static int feed_pictures(const hone_port *port, const hone_words *files, const hone_picture_wish *wish,
                         hone_fed *out) {
    if (files->n == 1 && port->dtype == HONE_DTYPE_U8 && port->rank == 1 && port->kind == HONE_VALUE_TENSOR)
        return feed_bytes(files->at[0], out);
    return hone_picture_feed(port, files, wish, &out->value, out->from, sizeof out->from);
}

/* Which input an --input is for. A picture without a name goes to the next input without a file, or joins the
   last one's batch. */
static int pick_file(const hone_model *m, const char *word, const hone_words *files, const char **rest) {
    int n = hone_model_inputs(m), next = 0;
    while (next < n && files[next].n) next++;
    bool whole = access(word, F_OK) == 0; /* a file whose name has a '=' in it */
    *rest = word;
    if (!whole && !strchr(word, '=') && !archive_path(word))
        return hone_args_wrong("--input %s: there is no such file", word), -1;
    if (whole && next < n) return next;
    if (whole && n && is_picture(word) && is_picture(files[n - 1].at[0])) return n - 1;
    return pick(m, "--input", word, next, rest);
}

/* Adds a file to an input's list, which has room. A second one must be a picture, as the first. */
static int add_file(const hone_port *port, hone_words *files, const char *path) {
    if (files->n && !(is_picture(path) && is_picture(files->at[0])))
        return hone_args_wrong("--input %s: input '%s' was given already", path, port->name);
    files->at[files->n++] = path;
    return 0;
}

/* An archive without an input's name: each array goes to the input that is called so. */
static bool is_whole_archive(const char *word) {
    return archive_path(word) == (int)strlen(word) && (!strchr(word, '=') || access(word, F_OK) == 0);
}
static int add_archive(const hone_model *m, const char *path, hone_words *files) {
    char *names = NULL;
    hone_status s = hone_npz_names(path, &names);
    if (s) return hone_args_failed(s);
    hone_json *list = hone_json_read(names);
    int rc = 0;
    if (!list || !list->n) rc = hone_args_wrong("--input %s: there is no array in it", path);
    else if (list->n == 1 && hone_model_inputs(m) == 1)
        rc = add_file(hone_model_input(m, 0), &files[0], path); /* whatever it is called */
    else
        for (const hone_json *a = list->first; a && !rc; a = a->next) {
            const char *name = a->text ? a->text : "", *near = near_input(m, name, (int)strlen(name));
            const int k = find_input(m, name, (int)strlen(name));
            if (k >= 0) rc = add_file(hone_model_input(m, k), &files[k], path);
            else
                rc = hone_args_wrong("--input %s: the model has no input '%s', which is an array of it%s%s%s",
                                     path, name, near ? "; did you mean '" : "", near ? near : "",
                                     near ? "'?" : "");
        }
    hone_json_free(list);
    hone_text_release(names);
    return rc;
}

/* What is given comes first: its dims are those of the others, too. */
static int feed_all(const hone_model *m, hone_feed_wish *wish, hone_dims_known *dims, shape *shapes,
                    const hone_words *files, hone_fed *out) {
    int n = hone_model_inputs(m), rc = 0, pictures = 0, drawn = 0;
    for (int late = 0; late < 2 && !rc; late++) {
        for (int k = 0; k < n && !rc; k++) {
            const hone_port *port = hone_model_input(m, k);
            bool picture = files[k].n && is_picture(files[k].at[0]),
                 raw = files[k].n && ends_in(files[k].at[0], ".bin");
            const char *text = files[k].n ? files[k].at[0] : NULL;
            const bool word = text && is_word(port, text), array = text && archive_path(text);
            bool given = shapes[k].given || (files[k].n && !raw && !(word && !hone_word_is_list(port, text)));
            if (given == (late == 1)) continue;
            pictures += picture;
            rc = word         ? feed_word(port, dims, &shapes[k], text, k, wish->seed, &out[k])
                 : array      ? feed_array(port, text, &out[k])
                 : picture    ? feed_pictures(port, &files[k], wish->picture, &out[k])
                 : files[k].n ? feed_file(port, dims, &shapes[k], files[k].at[0], &out[k])
                              : feed_random(port, dims, &shapes[k], k, wish->seed, &out[k]);
            if (!rc && text && !picture) rc = settle_type(port, wish->cast, text, &out[k]);
            const hone_value *v = out[k].value;
            if (rc || late || !v || hone_value_kind_of(v) != HONE_VALUE_TENSOR) continue;
            rc = hone_dims_fix(dims, port, hone_value_dims(v), hone_value_rank(v),
                               files[k].n ? files[k].at[0] : "--shape");
        }
        if (!rc && !late && wish->plan) hone_dims_try(dims, m);
    }
    if (!rc && !pictures && hone_picture_wished(wish->picture))
        rc = hone_args_wrong("--resize, --crop, --mean, --std and --order are for pictures, and no input is "
                             "one: --input photo.jpg");
    wish->guessed[0] = 0;
    for (int k = 0; k < n; k++) drawn += out[k].drawn;
    if (!rc && !drawn && hone_args_given("--seed"))
        rc = hone_args_wrong("--seed is of random inputs, and no input is one");
    for (int k = 0; k < n; k++)
        if (out[k].guessed) hone_dims_guesses(dims, wish->guessed, sizeof wish->guessed);
    wish->other = hone_dims_other(dims);
    return rc;
}

int hone_feed(const hone_model *m, hone_feed_wish *wish, hone_fed *out) {
    int n = hone_model_inputs(m), rc = 0;
    hone_dims_known *dims = hone_dims_read(m, wish->dims);
    if (!dims) return 1;
    shape *shapes = hone_must_alloc(sizeof *shapes * (size_t)n);
    hone_words *files = hone_must_alloc(sizeof *files * (size_t)n);
    const char *rest;
    for (int i = 0; i < wish->shapes->n && !rc; i++) {
        int k = pick(m, "--shape", wish->shapes->at[i], i, &rest);
        rc = k < 0;
        if (!rc && !read_shape(rest, &shapes[k]))
            rc = hone_args_wrong("--shape %s: write dims as 1x3x224x224, each below 2^31 (or 'scalar')",
                                 wish->shapes->at[i]);
    }
    for (int k = 0; k < n; k++)
        files[k].at = hone_must_alloc(sizeof *files[k].at * (size_t)(wish->inputs->n + 1));
    for (int i = 0; i < wish->inputs->n && !rc; i++) {
        if (is_whole_archive(wish->inputs->at[i])) {
            rc = add_archive(m, wish->inputs->at[i], files);
            continue;
        }
        int k = pick_file(m, wish->inputs->at[i], files, &rest);
        rc = k < 0 || add_file(hone_model_input(m, k), &files[k], rest);
    }
    if (!rc) rc = feed_all(m, wish, dims, shapes, files, out);
    for (int k = 0; k < n; k++) hone_words_free(&files[k]);
    hone_dims_free(dims);
    free(shapes);
    free(files);
    return rc;
}

bool hone_feed_again(const hone_model *m, hone_feed_wish *wish, hone_status s, hone_fed *fed) {
    if (s == HONE_NO_MEMORY || s == HONE_BUG || wish->plan || !*wish->guessed) return false;
    int n = hone_model_inputs(m);
    hone_feed_wish again = *wish;
    hone_fed *next = hone_must_alloc(sizeof *next * (size_t)n);
    snprintf(wish->why, sizeof wish->why, "%s", hone_error());
    again.plan = true;
    bool other = !hone_feed(m, &again, next) && again.other;
    if (other) {
        for (int k = 0; k < n; k++) {
            hone_value_free(fed[k].value), hone_value_free(fed[k].source);
            fed[k] = next[k];
            next[k] = (hone_fed){0};
        }
        *wish = again;
    }
    hone_feed_free(next, n);
    wish->plan = true;
    return other;
}

int hone_feed_failed(const hone_feed_wish *wish, hone_status s) {
    const char *why = *wish->why ? wish->why : hone_error();
    if (s != HONE_BAD_INPUT || !*wish->guessed) return hone_args_stopped(s, why);
    return hone_args_wrong("%s (%s %s: --dim NAME=SIZE or --shape NAME=DIMS says otherwise)", why,
                           wish->guessed, strchr(wish->guessed, ',') ? "are guesses" : "is a guess");
}

int hone_feed_read(const char *folder, const char *word, int k, hone_value_kind kind, hone_value **out) {
    size_t room = strlen(folder) + strlen(word) + 32;
    char *path = hone_must_alloc(room);
    snprintf(path, room, "%s/%s_%d.pb", folder, word, k);
    hone_status s =
        access(path, F_OK) == 0 ? hone_value_read(path, kind, HONE_DTYPE_NONE, NULL, 0, out) : HONE_OK;
    free(path);
    return s ? hone_args_failed(s) : 0;
}

/* A folder above the data sets is easily taken for one of them. */
static int no_inputs(const char *folder) {
    char inner[PATH_MAX];
    snprintf(inner, sizeof inner, "%s/test_data_set_0", folder);
    const bool above = access(inner, R_OK | X_OK) == 0;
    return hone_args_wrong("--check %s: there is no input_0.pb in it%s%s%s", folder,
                           above ? "; did you mean '" : "", above ? inner : "", above ? "'?" : "");
}
int hone_feed_set(const hone_model *m, const char *folder, hone_fed *out) {
    if (access(folder, R_OK | X_OK)) return hone_args_wrong("--check %s: there is no such folder", folder);
    for (int k = 0; k < hone_model_inputs(m); k++) {
        int rc = hone_feed_read(folder, "input", k, hone_model_input(m, k)->kind, &out[k].value);
        if (rc) return rc;
        if (out[k].value) snprintf(out[k].from, sizeof out[k].from, "%.200s/input_%d.pb", folder, k);
        else snprintf(out[k].from, sizeof out[k].from, "left out");
    }
    for (int k = 0; k < hone_model_inputs(m); k++)
        if (out[k].value) return 0;
    return hone_model_inputs(m) ? no_inputs(folder) : 0;
}

void hone_feed_free(hone_fed *f, int n) {
    for (int k = 0; k < n; k++) {
        hone_value_free(f[k].value);
        hone_value_free(f[k].source);
    }
    free(f);
}
