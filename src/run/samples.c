/* SPDX-License-Identifier: Apache-2.0
   samples: what a model is to see, out of files, one sample at a time: pictures are decoded when they are
   asked for, arrays are cut along their first dim.

   A .npz is a ZIP: its central directory, at the end, names each member and where it begins. Members that are
   compressed are refused: NumPy's savez does not. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "hone/quant.h"
#include "run/model.h"
#include "run/npy.h"

enum { MOST_FILES = 1 << 20, MOST_FOLDERS = 16 /* in each other */ };
typedef struct {
    int input;
    hone_value *all; /* the first dim is the samples … */
    bool shared;     /* … or every sample has all of it */
} array;
typedef struct {
    const hone_model *model;
    hone_image_recipe recipe;
    bool has_recipe;
    hone_arena *names;
    hone_vec(const char *) picture, set;
    hone_vec(array) array;
} source;

static hone_status no_memory(void) { return hone_fail(HONE_NO_MEMORY, "no memory for samples"); }

/* ---- folders ------------------------------------------------------------------------------------------- */
static bool there(const char *folder, const char *name, struct stat *s) {
    hone_text t = {0};
    hone_text_put(&t, "%s/%s", folder, name);
    const bool is = !t.failed && stat(t.text, s) == 0;
    hone_text_free(&t);
    return is;
}
static bool is_picture(const char *path) {
    char head[16];
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(head, 1, sizeof head, f) : 0;
    if (f) fclose(f);
    return n > 0 && hone_image_format(head, n) != NULL;
}
static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}
static hone_status look(source *s, const char *folder, int depth) {
    struct stat st;
    if (depth > MOST_FOLDERS)
        return hone_fail(HONE_BAD_INPUT, "'%s': folders more than %d deep in each other", folder,
                         MOST_FOLDERS);
    if (there(folder, "input_0.pb", &st)) {
        const char *name = hone_arena_text(s->names, "%s", folder);
        return name && hone_push(&s->set, name) ? HONE_OK : no_memory();
    }
    DIR *d = opendir(folder);
    if (!d) return hone_fail(HONE_IO, "'%s': the folder cannot be read", folder);
    hone_vec(const char *) entry = {0};
    hone_status status = HONE_OK;
    for (struct dirent *e; !status && (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        const char *path = hone_arena_text(s->names, "%s/%s", folder, e->d_name);
        if (!path || !hone_push(&entry, path)) status = no_memory();
        if (entry.n > MOST_FILES)
            status = hone_fail(HONE_BAD_INPUT, "'%s': more than %d files", folder, MOST_FILES);
    }
    closedir(d);
    if (entry.n) qsort(entry.at, (size_t)entry.n, sizeof *entry.at, by_name);
    for (int k = 0; k < entry.n && !status; k++) {
        if (stat(entry.at[k], &st)) continue;
        if (S_ISDIR(st.st_mode)) status = look(s, entry.at[k], depth + 1);
        else if (S_ISREG(st.st_mode) && is_picture(entry.at[k]) && !hone_push(&s->picture, entry.at[k]))
            status = no_memory();
    }
    hone_vec_free(&entry);
    return status;
}

/* ---- arrays -------------------------------------------------------------------------------------------- */
static int input_of(const hone_model *m, const char *name, size_t length) {
    for (int k = 0; k < hone_model_inputs(m); k++) {
        const char *n = hone_model_input(m, k)->name;
        if (strlen(n) == length && !memcmp(n, name, length)) return k;
    }
    return -1;
}
/* Whether these dims, and ones in front, are a sample of the input. */
static bool is_sample(const hone_port *port, const int64_t *dim, int rank) {
    if (port->rank < rank) return false;
    for (int d = 0; d < port->rank; d++) {
        const int64_t have = d < port->rank - rank ? 1 : dim[d - (port->rank - rank)];
        if (port->dims[d] >= 0 && port->dims[d] != have) return false;
    }
    return true;
}
static hone_status add_array(source *s, const char *path, int input, hone_value *take) {
    const hone_port *port = hone_model_input(s->model, input);
    array a = {input, take, false};
    hone_status status = HONE_OK;
    for (int k = 0; k < s->array.n && !status; k++)
        if (s->array.at[k].input == input)
            status = hone_fail(HONE_BAD_INPUT, "'%s': input '%s' has samples already", path, port->name);
    if (!status && (take->tag != HONE_TAG_TENSOR || take->dtype == HONE_DTYPE_STRING))
        status = hone_fail(HONE_BAD_INPUT, "'%s': samples are an array of numbers", path);
    a.shared = !status && take->rank == port->rank && take->rank == 0;
    if (!status && !a.shared && take->rank >= 1 && take->rank < HONE_MAX_RANK &&
        !is_sample(port, take->dim + 1, take->rank - 1) && is_sample(port, take->dim, take->rank)) {
        memmove(take->dim + 1, take->dim, sizeof *take->dim * (size_t)take->rank); /* a sample alone */
        take->dim[0] = 1, take->rank++;
    }
    if (!status && !a.shared && (take->rank < 1 || take->dim[0] < 1))
        status = hone_fail(HONE_BAD_INPUT, "'%s': the array has no sample: its first dim counts them", path);
    if (!status && !hone_push(&s->array, a)) status = no_memory();
    if (status) hone_value_drop(take);
    return status;
}
static uint32_t le(const uint8_t *p, int n) {
    uint32_t x = 0;
    for (int k = 0; k < n; k++) x |= (uint32_t)p[k] << (8 * k);
    return x;
}
static hone_status read_npz(source *s, const char *path, const hone_file *f) {
    const uint8_t *d = f->data;
    size_t end = f->bytes;
    while (end >= 22 && le(d + end - 22, 4) != 0x06054b50u && f->bytes - end < 70000) end--;
    if (end < 22 || le(d + end - 22, 4) != 0x06054b50u)
        return hone_fail(HONE_BAD_INPUT, "'%s': no ZIP file, which .npz is", path);
    const uint32_t entries = le(d + end - 12, 2);
    size_t at = le(d + end - 6, 4);
    for (uint32_t k = 0; k < entries; k++) {
        if (at > f->bytes || f->bytes - at < 46 || le(d + at, 4) != 0x02014b50u)
            return hone_fail(HONE_BAD_INPUT, "'%s': its directory is damaged", path);
        const uint32_t how = le(d + at + 10, 2), bytes = le(d + at + 20, 4), n_name = le(d + at + 28, 2),
                       start = le(d + at + 42, 4);
        const char *name = (const char *)d + at + 46;
        if (f->bytes - at - 46 < n_name)
            return hone_fail(HONE_BAD_INPUT, "'%s': its directory is damaged", path);
        at += 46 + (size_t)n_name + le(d + at + 30, 2) + le(d + at + 32, 2);
        const size_t length = n_name > 4 && !memcmp(name + n_name - 4, ".npy", 4) ? n_name - 4 : n_name;
        if (how != 0)
            return hone_fail(HONE_NOT_SUPPORTED, "'%s': '%.*s' is compressed; save it with numpy.savez", path,
                             (int)length, name);
        if (start > f->bytes || f->bytes - start < 30 || le(d + start, 4) != 0x04034b50u)
            return hone_fail(HONE_BAD_INPUT, "'%s': a member is damaged", path);
        const size_t data = (size_t)start + 30 + le(d + start + 26, 2) + le(d + start + 28, 2);
        if (data > f->bytes || f->bytes - data < bytes)
            return hone_fail(HONE_BAD_INPUT, "'%s': a member is cut off", path);
        const int input = input_of(s->model, name, length);
        if (input < 0 && (hone_model_inputs(s->model) > 1 || entries > 1))
            return hone_fail(HONE_BAD_INPUT, "'%s': the model has no input '%.*s'; its first is '%s'", path,
                             (int)length, name, hone_model_input(s->model, 0)->name);
        hone_value *v = NULL;
        hone_status status = hone_npy_read(d + data, bytes, &v);
        if (status) return hone_fail_at(status, "'%s': '%.*s': ", path, (int)length, name);
        HONE_TRY(add_array(s, path, input < 0 ? 0 : input, v));
    }
    return HONE_OK;
}
/* 0, 0, a type, so many dims, the dims as big-endian numbers of 32 bits, the elements. Bytes only, as the
   well-known files have them. */
static hone_status read_idx(source *s, const char *path, int input, const hone_file *f) {
    int64_t dim[HONE_MAX_RANK], n = 0;
    const int rank = f->data[3];
    hone_value *v = NULL;
    if (f->data[2] != 8 || rank < 1 || rank > 4 || f->bytes < 4 + 4 * (size_t)rank)
        return hone_fail(HONE_BAD_INPUT, "'%s': an IDX file of bytes, with 1 to 4 dims, is wanted", path);
    for (int k = 0; k < rank; k++) {
        const uint8_t *p = f->data + 4 + 4 * k;
        dim[k] = (int64_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
    }
    const size_t head = 4 + 4 * (size_t)rank;
    if (!hone_count_of(dim, rank, &n) || (uint64_t)n != f->bytes - head)
        return hone_fail(HONE_BAD_INPUT, "'%s': the IDX file's dims are not those of its %zu bytes", path,
                         f->bytes - head);
    HONE_TRY(hone_value_tensor(HONE_DTYPE_U8, dim, rank, &v));
    if (n) memcpy(v->data, f->data + head, (size_t)n);
    return add_array(s, path, input, v);
}

/* ---- opening ------------------------------------------------------------------------------------------- */
static bool ends_in(const char *path, const char *ending) {
    const size_t n = strlen(path), m = strlen(ending);
    return n > m && !strcmp(path + n - m, ending);
}
static hone_status add_path(source *s, const char *word) {
    struct stat st;
    const char *path = word, *equals = strchr(word, '=');
    int input = 0;
    if (stat(word, &st) != 0) {
        if (!equals) return hone_fail(HONE_IO, "'%s': there is no such file or folder", word);
        path = equals + 1, input = input_of(s->model, word, (size_t)(equals - word));
        if (input < 0)
            return hone_fail(HONE_BAD_INPUT, "'%s': the model has no input of that name; its first is '%s'",
                             word, hone_model_input(s->model, 0)->name);
        if (stat(path, &st) != 0) return hone_fail(HONE_IO, "'%s': there is no such file or folder", path);
    }
    if (S_ISDIR(st.st_mode)) {
        const int before = s->picture.n + s->set.n;
        HONE_TRY(look(s, path, 0));
        return s->picture.n + s->set.n > before
                   ? HONE_OK
                   : hone_fail(HONE_BAD_INPUT, "'%s': no pictures in it, and no folders with input_0.pb",
                               path);
    }
    if (ends_in(path, ".npy")) {
        hone_value *v = NULL;
        HONE_TRY(hone_value_read(path, HONE_VALUE_TENSOR, HONE_DTYPE_NONE, NULL, 0, &v));
        return add_array(s, path, input, v);
    }
    if (is_picture(path)) {
        const char *name = hone_arena_text(s->names, "%s", path);
        return name && hone_push(&s->picture, name) ? HONE_OK : no_memory();
    }
    hone_file f;
    HONE_TRY(hone_file_open(path, &f));
    hone_status status;
    if (ends_in(path, ".npz")) status = read_npz(s, path, &f);
    else if (f.bytes > 8 && !f.data[0] && !f.data[1]) status = read_idx(s, path, input, &f);
    else
        status = hone_fail(HONE_BAD_INPUT,
                           "'%s': neither a picture nor .npy, .npz or IDX; a folder of pictures or of "
                           "input_0.pb files is fine too",
                           path);
    hone_file_close(&f);
    return status;
}
static int64_t count(const source *s) {
    int64_t n = s->picture.n + s->set.n;
    for (int k = 0; k < s->array.n && !n; k++)
        if (!s->array.at[k].shared) n = s->array.at[k].all->dim[0];
    return n;
}
/* What is there is of one kind, agrees, and leaves no input without. */
static hone_status check(const source *s) {
    const int inputs = hone_model_inputs(s->model);
    if ((s->picture.n > 0) + (s->set.n > 0) + (s->array.n > 0) > 1)
        return hone_fail(
            HONE_BAD_INPUT,
            "samples are of several kinds: give pictures, arrays or folders of input_0.pb, not a mixture");
    for (int k = 0; k < inputs; k++) {
        bool has = s->set.n > 0 || (k == 0 && s->picture.n > 0);
        for (int i = 0; i < s->array.n; i++) has |= s->array.at[i].input == k;
        const hone_port *port = hone_model_input(s->model, k);
        if (!has && port->kind != HONE_VALUE_OPTIONAL)
            return hone_fail(HONE_BAD_INPUT,
                             "input '%s' (%s) has no samples: give the model's %d inputs as a .npz with an "
                             "array for each, as "
                             "NAME=FILE.npy, or as folders of input_0.pb",
                             port->name, port->shape, inputs);
    }
    for (int i = 0; i < s->array.n; i++)
        if (!s->array.at[i].shared && s->array.at[i].all->dim[0] != count(s))
            return hone_fail(HONE_BAD_INPUT, "input '%s' has %lld samples, another %lld",
                             hone_model_input(s->model, s->array.at[i].input)->name,
                             (long long)s->array.at[i].all->dim[0], (long long)count(s));
    return HONE_OK;
}

/* ---- a sample ------------------------------------------------------------------------------------------ */
static hone_status recipe_of(const source *s, const hone_port *port, hone_image_recipe *out) {
    if (!s->has_recipe) return hone_image_recipe_for(port, out);
    *out = s->recipe;
    return HONE_OK;
}
static hone_status prepared(const source *s, const hone_port *port, hone_value *take, hone_value **out) {
    hone_image_recipe r;
    hone_status status = recipe_of(s, port, &r);
    if (!status) status = hone_image_prepare(&take, 1, &r, out);
    hone_value_free(take);
    return status;
}
static hone_status picture(const source *s, const char *path, hone_value **out) {
    const hone_port *port = hone_model_input(s->model, 0);
    hone_image_recipe r;
    hone_value *v = NULL;
    HONE_TRY(recipe_of(s, port, &r));
    HONE_TRY(hone_image_read(path, r.order == HONE_IMAGE_GRAY ? HONE_IMAGE_GRAY : HONE_IMAGE_RGB, &v));
    return prepared(s, port, v, out);
}
/* The dims behind the first, with ones in front as the input has them. */
static hone_status row(const source *s, const array *a, int64_t k, hone_value **out) {
    const hone_port *port = hone_model_input(s->model, a->input);
    const hone_value *all = a->all;
    int64_t dim[HONE_MAX_RANK], each = 1;
    const int rest = a->shared ? 0 : all->rank - 1, rank = port->rank > rest ? port->rank : rest;
    for (int d = 0; d < rank; d++) dim[d] = d < rank - rest ? 1 : all->dim[all->rank - rank + d];
    for (int d = 0; d < rank; d++) each *= dim[d];
    if (a->shared) k = 0;
    const hone_dtype_row *from = hone_dtypes + all->dtype;
    const char *at = (const char *)all->data + (size_t)(k * each) * from->bytes;
    if (all->dtype == HONE_DTYPE_U8 && port->dtype != HONE_DTYPE_U8 &&
        hone_dtypes[port->dtype].kind == HONE_KIND_FLOAT && (rest == 2 || rest == 3)) {
        const int64_t size[3] = {all->dim[1], all->dim[2], rest == 3 ? all->dim[3] : 1};
        hone_value *v = NULL;
        HONE_TRY(hone_value_tensor(HONE_DTYPE_U8, size, 3, &v));
        if (v->bytes) memcpy(v->data, at, v->bytes);
        return prepared(s, port, v, out);
    }
    hone_value *v = NULL;
    HONE_TRY(hone_value_tensor(port->dtype == HONE_DTYPE_STRING ? all->dtype : port->dtype, dim, rank, &v));
    if (v->dtype == all->dtype) {
        if (v->bytes) memcpy(v->data, at, v->bytes);
        /* f64 for f32, i32 for i64: what NumPy makes by default */
    } else if (hone_dtypes[v->dtype].kind == from->kind) {
        for (int64_t i = 0; i < each; i++) {
            const bool real = from->kind == HONE_KIND_FLOAT;
            const hone_scalar x = real ? (hone_scalar){.f64 = hone_value_f64(all, k * each + i)}
                                       : (hone_scalar){.i64 = hone_value_i64(all, k * each + i)};
            hone_dtype_store(v->dtype, (char *)v->data + (size_t)i * hone_dtypes[v->dtype].bytes,
                             real ? HONE_F64 : HONE_I64, x, false);
        }
    } else {
        hone_value_drop(v);
        return hone_fail(HONE_BAD_INPUT, "input '%s' is %s, and its samples are %s", port->name, port->shape,
                         from->name);
    }
    *out = v;
    return HONE_OK;
}
static hone_status get(void *arg, int64_t k, hone_value **in) {
    const source *s = arg;
    if (s->picture.n) return picture(s, s->picture.at[k], in);
    for (int i = 0; i < s->array.n; i++) HONE_TRY(row(s, s->array.at + i, k, in + s->array.at[i].input));
    for (int i = 0; s->set.n && i < hone_model_inputs(s->model); i++) {
        char path[4400];
        struct stat st;
        snprintf(path, sizeof path, "%.4096s/input_%d.pb", s->set.at[k], i);
        if (stat(path, &st) == 0)
            HONE_TRY(
                hone_value_read(path, hone_model_input(s->model, i)->kind, HONE_DTYPE_NONE, NULL, 0, in + i));
    }
    return HONE_OK;
}

/* ---- the calls ----------------------------------------------------------------------------------------- */
static void close_source(source *s) {
    for (int k = 0; k < s->array.n; k++) hone_value_drop(s->array.at[k].all);
    hone_vec_free(&s->array), hone_vec_free(&s->picture), hone_vec_free(&s->set);
    hone_arena_destroy(s->names);
    hone_free(s);
}
hone_status hone_samples_open(const hone_model *m, const char *const *paths, int n,
                              const hone_image_recipe *recipe, hone_samples *out) {
    if (!m || !out || (n && !paths))
        return hone_fail(HONE_BAD_INPUT, "hone_samples_open: model, paths and out must not be NULL");
    if (n < 1 || !hone_model_inputs(m))
        return hone_fail(HONE_BAD_INPUT, "there are no samples, or nothing in the model that takes them");
    source *s = hone_alloc(sizeof *s);
    if (!s) return no_memory();
    s->model = m, s->names = hone_arena_create();
    if (recipe) s->recipe = *recipe, s->has_recipe = true;
    hone_status status = s->names ? HONE_OK : no_memory();
    for (int k = 0; k < n && !status; k++) status = add_path(s, paths[k]);
    if (!status) status = check(s);
    if (status) close_source(s);
    else *out = (hone_samples){count(s), get, s};
    return status;
}
void hone_samples_close(hone_samples *s) {
    if (s && s->get == get && s->arg) close_source(s->arg);
    else if (s && s->arg) (void)hone_samples_close_text(s);
    if (s) *s = (hone_samples){0};
}
