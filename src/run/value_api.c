/* SPDX-License-Identifier: Apache-2.0
   value_api: the values of hone.h. A hone_value there is base/value.h's struct; here arguments are checked,
   and files read and written. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "device/away.h"
#include "base/value.h"
#include "model/onnx.h"
#include "hone/tools.h"
#include "run/model.h"
#include "run/npy.h"
#include "run/npz.h"
#include "run/units.h"

_Static_assert((int)HONE_VALUE_TENSOR == (int)HONE_TAG_TENSOR &&
                   (int)HONE_VALUE_SEQUENCE == (int)HONE_TAG_SEQUENCE &&
                   (int)HONE_VALUE_OPTIONAL == (int)HONE_TAG_OPTIONAL &&
                   (int)HONE_VALUE_MAP == (int)HONE_TAG_MAP,
               "a kind outside is the tag inside");

const char *hone_dtype_name(hone_dtype t) {
    if (t == HONE_PRECISION_TF32) return "tf32";
    return hone_dtypes[hone_dtype_valid(t) ? t : HONE_DTYPE_NONE].name;
}

/* ---- making ---- */

hone_status hone_tensor_create(hone_dtype t, const int64_t *dims, int rank, hone_value **out) {
    if (!out || (rank > 0 && !dims))
        return hone_fail(HONE_BAD_INPUT, "hone_tensor_create: dims and out must not be NULL");
    return hone_value_tensor(t, dims, rank, out);
}

hone_status hone_tensor_borrow(hone_dtype t, const int64_t *dims, int rank, const void *data,
                               hone_value **out) {
    if (!out || (rank > 0 && !dims))
        return hone_fail(HONE_BAD_INPUT, "hone_tensor_borrow: dims and out must not be NULL");
    if (t == HONE_DTYPE_STRING)
        return hone_fail(
            HONE_BAD_INPUT,
            "hone_tensor_borrow: strings cannot be borrowed; use hone_tensor_create and hone_value_set_text");
    return hone_value_view(t, dims, rank, data, out);
}

hone_status hone_list_create(hone_value_kind kind, hone_value *const *items, int n, hone_value **out) {
    if (!out || (n > 0 && !items))
        return hone_fail(HONE_BAD_INPUT, "hone_list_create: items and out must not be NULL");
    if (kind != HONE_VALUE_SEQUENCE && kind != HONE_VALUE_OPTIONAL)
        return hone_fail(HONE_BAD_INPUT, "hone_list_create makes a sequence or an optional only");
    return hone_value_list((hone_tag)kind, items, n, out);
}

hone_status hone_map_create(hone_value *keys, hone_value *values, hone_value **out) {
    if (!keys || !values || !out)
        return hone_fail(HONE_BAD_INPUT, "hone_map_create: keys, values and out must not be NULL");
    hone_kind kind = hone_dtypes[keys->dtype].kind;
    if (keys->tag != HONE_TAG_TENSOR || keys->rank != 1 ||
        (kind != HONE_KIND_INT && kind != HONE_KIND_UINT && kind != HONE_KIND_STRING))
        return hone_fail(HONE_BAD_INPUT, "hone_map_create: the keys must be a vector of integers or strings");
    bool vector = values->tag == HONE_TAG_TENSOR && values->rank == 1;
    if (!vector && values->tag != HONE_TAG_SEQUENCE)
        return hone_fail(HONE_BAD_INPUT, "hone_map_create: the values must be a vector or a sequence");
    if (keys->dim[0] != (vector ? values->dim[0] : values->n_item))
        return hone_fail(HONE_BAD_INPUT, "hone_map_create: there must be as many values as keys, %lld",
                         (long long)keys->dim[0]);
    return hone_value_list(HONE_TAG_MAP, (hone_value *[]){keys, values}, 2, out);
}

/* The first map whose keys another one does not share, or whose values are no vector of the first one's type;
   -1: there is none. */
static int strange_map(const hone_value *list) {
    const hone_value *first = list->item[0], *row = first->item[1];
    for (int k = 0; k < list->n_item; k++) {
        const hone_value *m = list->item[k], *v = m->tag == HONE_TAG_MAP ? m->item[1] : NULL;
        if (!v || m->item[0] != first->item[0] || v->tag != HONE_TAG_TENSOR || v->away ||
            v->dtype == HONE_DTYPE_STRING || v->dtype != row->dtype || v->rank != 1 ||
            v->dim[0] != row->dim[0])
            return k;
    }
    return -1;
}
static const hone_value *first_map(const hone_value *list) {
    const hone_value *first = list && list->tag == HONE_TAG_SEQUENCE && list->n_item ? list->item[0] : NULL;
    return first && first->tag == HONE_TAG_MAP ? first : NULL;
}
static void copy_rows(const hone_value *list, size_t row, void *to) {
    for (int k = 0; k < list->n_item && row; k++)
        memcpy((char *)to + (size_t)k * row, list->item[k]->item[1]->data, row);
}

hone_status hone_maps_table(const hone_value *list, hone_value **keys, hone_value **values) {
    const hone_value *first = first_map(list);
    hone_value *all = NULL;
    if (!first || !keys || !values)
        return hone_fail(HONE_BAD_INPUT, "hone_maps_table: it must be a sequence of maps, and not empty");
    const hone_value *row = first->item[1];
    const int strange = strange_map(list);
    if (strange >= 0)
        return hone_fail(HONE_NOT_SUPPORTED,
                         "hone_maps_table: map %d has keys of its own, or values that are no vector of "
                         "the same numbers",
                         strange);
    HONE_TRY(hone_value_tensor(row->dtype, (int64_t[]){list->n_item, row->dim[0]}, 2, &all));
    copy_rows(list, row->bytes, all->data);
    *keys = hone_value_hold(first->item[0]), *values = all;
    return HONE_OK;
}

static bool is_like(const hone_value *v, hone_dtype t, const int64_t *dims, int rank) {
    bool same = v && v->tag == HONE_TAG_TENSOR && !v->away && v->dtype == t && t != HONE_DTYPE_STRING &&
                v->rank == rank && (dims || !rank);
    for (int k = 0; same && k < rank; k++) same = v->dim[k] == dims[k];
    return same;
}
int hone_value_copy_to(const hone_value *v, hone_dtype t, const int64_t *dims, int rank, void *to) {
    if (!is_like(v, t, dims, rank) || (v->bytes && !to)) return 0;
    if (v->bytes) memcpy(to, v->data, v->bytes);
    return 1;
}

static bool same_keys(const hone_value *a, const hone_value *b) {
    if (a == b) return true;
    if (!b || b->tag != HONE_TAG_TENSOR || b->away || a->dtype != b->dtype || a->rank != b->rank ||
        a->dim[0] != b->dim[0])
        return false;
    if (a->dtype != HONE_DTYPE_STRING) return !a->bytes || !memcmp(a->data, b->data, a->bytes);
    const hone_string *const *x = a->data, *const *y = b->data;
    for (int64_t k = 0; k < a->dim[0]; k++)
        if (x[k]->bytes != y[k]->bytes ||
            (x[k]->bytes && memcmp(x[k]->text, y[k]->text, (size_t)x[k]->bytes)))
            return false;
    return true;
}
int hone_maps_copy_to(const hone_value *list, const hone_value *keys, hone_dtype t, const int64_t *dims,
                      void *to) {
    const hone_value *first = first_map(list);
    if (!first || !dims || !to || dims[0] != list->n_item || !is_like(first->item[1], t, dims + 1, 1) ||
        strange_map(list) >= 0 || !same_keys(first->item[0], keys))
        return 0;
    copy_rows(list, first->item[1]->bytes, to);
    return 1;
}

hone_value *hone_value_share(hone_value *v) { return hone_value_hold(v); }
void hone_value_free(hone_value *v) { hone_value_drop(v); }

/* ---- asking: of NULL, there is nothing of anything ---- */

static bool is_tensor(const hone_value *v) { return v && v->tag == HONE_TAG_TENSOR; }
static bool has_element(const hone_value *v, int64_t k) {
    return is_tensor(v) && !v->away && k >= 0 && k < hone_value_count(v);
}

hone_value_kind hone_value_kind_of(const hone_value *v) {
    return v ? (hone_value_kind)v->tag : HONE_VALUE_TENSOR;
}
hone_dtype hone_value_dtype(const hone_value *v) { return v ? v->dtype : HONE_DTYPE_NONE; }
int hone_value_rank(const hone_value *v) { return is_tensor(v) ? v->rank : 0; }
const int64_t *hone_value_dims(const hone_value *v) { return is_tensor(v) ? v->dim : NULL; }
int64_t hone_value_elements(const hone_value *v) { return v ? hone_value_count(v) : 0; }
void *hone_value_data(hone_value *v) {
    return is_tensor(v) && v->dtype != HONE_DTYPE_STRING ? v->data : NULL;
}
size_t hone_value_bytes(const hone_value *v) {
    return is_tensor(v) && !v->away && v->dtype != HONE_DTYPE_STRING ? v->bytes : 0;
}
int hone_value_items(const hone_value *v) { return v ? v->n_item : 0; }
hone_value *hone_value_item(const hone_value *v, int k) {
    return v && k >= 0 && k < v->n_item ? v->item[k] : NULL;
}

double hone_value_number(const hone_value *v, int64_t k) {
    hone_kind kind = has_element(v, k) ? hone_dtypes[v->dtype].kind : HONE_KIND_NONE;
    return kind == HONE_KIND_NONE || kind == HONE_KIND_STRING || kind == HONE_KIND_COMPLEX
               ? NAN
               : hone_value_f64(v, k);
}

const char *hone_value_text(const hone_value *v, int64_t k, size_t *bytes) {
    const hone_string *s =
        has_element(v, k) && v->dtype == HONE_DTYPE_STRING ? hone_value_string(v, k) : &hone_string_empty;
    if (bytes) *bytes = (size_t)s->bytes;
    return s->text;
}

hone_status hone_value_set_text(hone_value *v, int64_t k, const char *text, size_t bytes) {
    if (!has_element(v, k) || v->dtype != HONE_DTYPE_STRING || !v->free_data)
        return hone_fail(HONE_BAD_INPUT, "hone_value_set_text: there is no string %lld to set", (long long)k);
    if ((bytes && !text) || bytes > PTRDIFF_MAX)
        return hone_fail(HONE_BAD_INPUT, "hone_value_set_text: no text, or too much");
    if (!v->strings && !(v->strings = hone_strings_create()))
        return hone_fail(HONE_NO_MEMORY, "no memory for a string");
    const hone_string *made = hone_strings_add(v->strings, text, (int64_t)bytes);
    if (!made) return hone_fail(HONE_NO_MEMORY, "no memory for a string of %zu bytes", bytes);
    ((const hone_string **)v->data)[k] = made;
    return HONE_OK;
}

/* ---- files ---- */

static bool ends_in(const char *path, const char *ending) {
    size_t n = strlen(path), m = strlen(ending);
    return n > m && !strcmp(path + n - m, ending);
}

/* Raw elements, small types packed as ONNX packs them. */
static hone_status read_bin(const hone_file *f, hone_dtype t, const int64_t *dims, int rank,
                            hone_value **out) {
    if (!hone_dtype_valid(t) || t == HONE_DTYPE_STRING || rank < 0 || (rank && !dims))
        return hone_fail(HONE_BAD_INPUT, "raw bytes say nothing of their type and shape: a numeric type and "
                                         "dims must be given, or use .npy");
    hone_value *v = NULL;
    int64_t count;
    size_t need = SIZE_MAX;
    if (rank <= HONE_MAX_RANK && hone_count_of(dims, rank, &count))
        need = hone_dtype_file_bytes(t, (size_t)count);
    if (need != SIZE_MAX && need != f->bytes)
        return hone_fail(HONE_BAD_INPUT, "the shape needs %zu bytes of %s, the file has %zu", need,
                         hone_dtypes[t].name, f->bytes);
    HONE_TRY(hone_value_tensor(t, dims, rank, &v));
    if (hone_dtypes[t].bits < 8) hone_dtype_unpack(t, v->data, f->data, (size_t)hone_value_count(v));
    else if (v->bytes) memcpy(v->data, f->data, v->bytes);
    for (size_t k = 0; t == HONE_DTYPE_BOOL && k < v->bytes; k++)
        ((uint8_t *)v->data)[k] = ((uint8_t *)v->data)[k] != 0;
    *out = v;
    return HONE_OK;
}

hone_status hone_value_read(const char *path, hone_value_kind kind, hone_dtype t, const int64_t *dims,
                            int rank, hone_value **out) {
    if (!path || !out) return hone_fail(HONE_BAD_INPUT, "hone_value_read: path and out must not be NULL");
    bool npy = ends_in(path, ".npy"), pb = ends_in(path, ".pb"), bin = ends_in(path, ".bin");
    if (!npy && !pb && !bin)
        return hone_fail(HONE_BAD_INPUT, "%s: the name must end in .npy, .pb or .bin", path);
    if (!pb && kind != HONE_VALUE_TENSOR)
        return hone_fail(HONE_BAD_INPUT, "%s: only a .pb file can hold a sequence, optional or map", path);
    hone_file file;
    HONE_TRY(hone_file_open(path, &file));
    hone_status s = npy  ? hone_npy_read(file.data, file.bytes, out)
                    : pb ? hone_onnx_read_value(file.data, file.bytes, (hone_tag)kind, out)
                         : read_bin(&file, t, dims, rank, out);
    hone_file_close(&file);
    return s ? hone_fail_at(s, "%s: ", path) : HONE_OK;
}

static hone_status write_bin(const hone_value *v, const char *path) {
    if (!is_tensor(v) || v->dtype == HONE_DTYPE_STRING)
        return hone_fail(HONE_NOT_SUPPORTED, "raw bytes can hold a numeric tensor only");
    if (hone_dtypes[v->dtype].bits >= 8) return hone_file_write(path, v->data ? v->data : "", v->bytes);
    size_t n = (size_t)hone_value_count(v), bytes = hone_dtype_file_bytes(v->dtype, n);
    uint8_t *packed = hone_alloc(bytes);
    if (!packed) return hone_fail(HONE_NO_MEMORY, "no memory to pack %zu elements", n);
    if (n) hone_dtype_pack(v->dtype, packed, v->data, n);
    hone_status s = hone_file_write(path, packed, bytes);
    hone_free(packed);
    return s;
}

static hone_status put_bytes(void *file, const void *data, size_t bytes) {
    return hone_file_put(file, data, bytes);
}
static hone_status write_pb(const hone_value *v, const char *path) {
    hone_file_out file;
    HONE_TRY(hone_file_begin(path, &file));
    hone_status s = hone_onnx_write_value(v, &(hone_sink){put_bytes, &file}), end = hone_file_end(&file, !s);
    return s ? s : end;
}

hone_status hone_value_write(const hone_value *v, const char *path) {
    if (!v || !path) return hone_fail(HONE_BAD_INPUT, "hone_value_write: value and path must not be NULL");
    if (v->away)
        return hone_fail(HONE_BAD_INPUT, "%s: a tensor on a device must be brought to the host first", path);
    hone_status s;
    if (ends_in(path, ".bin")) {
        s = write_bin(v, path);
    } else if (ends_in(path, ".pb")) {
        s = write_pb(v, path);
    } else if (ends_in(path, ".npy")) {
        void *data = NULL;
        size_t bytes = 0;
        s = hone_npy_write(v, &data, &bytes);
        if (!s) s = hone_file_write(path, data, bytes);
        hone_free(data);
    } else {
        s = hone_fail(HONE_BAD_INPUT, "the name must end in .npy, .pb or .bin");
    }
    return s ? hone_fail_at(s, "%s: ", path) : HONE_OK;
}

/* ---- on devices ---- */

hone_status hone_value_bring(const hone_value *v, const char *device, hone_value **out) {
    hone_unit u;
    if (!v || !device || !out)
        return hone_fail(HONE_BAD_INPUT, "hone_value_bring: value, device and out must not be NULL");
    HONE_TRY(hone_unit_find(device, &u));
    return hone_away_bring(v, &u, out);
}
void hone_value_where(const hone_value *v, char *out, size_t room) {
    if (v && v->away) snprintf(out, room, "%s:%d", v->away->unit.row->name, v->away->unit.number);
    else snprintf(out, room, "cpu");
}

/* ---- archives ---- */

hone_status hone_npz_read(const char *path, const char *name, hone_value **out) {
    hone_file f;
    if (!path || !name || !out)
        return hone_fail(HONE_BAD_INPUT, "hone_npz_read: path, name and out must not be NULL");
    HONE_TRY(hone_file_open(path, &f));
    hone_status s = hone_npz_find(&f, name, out);
    hone_file_close(&f);
    return s ? hone_fail_at(s, "%s: ", path) : HONE_OK;
}
hone_status hone_npz_names(const char *path, char **out) {
    hone_file f;
    hone_text t = {0};
    if (!path || !out) return hone_fail(HONE_BAD_INPUT, "hone_npz_names: path and out must not be NULL");
    HONE_TRY(hone_file_open(path, &f));
    hone_status s = hone_npz_list(&f, &t);
    hone_file_close(&f);
    if (!s) return hone_text_give(&t, out);
    hone_text_free(&t);
    return hone_fail_at(s, "%s: ", path);
}
