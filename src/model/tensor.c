/* SPDX-License-Identifier: Apache-2.0
   tensor: TensorProto, SparseTensorProto, SequenceProto, MapProto and OptionalProto become values.

   Data comes in three ways: raw bytes (borrowed where aligned), typed fields (decoded), or a piece of another
   file (mapped, then as raw). All numbers are little-endian in the file and on every machine we run on. */
#include "model/tensor.h"

#include <string.h>

#include "model/onnx.h"

enum { MAX_NAME = 80, DENSE_LIMIT = 1 << 28 /* elements of a sparse tensor made dense */ };

typedef struct { /* what a TensorProto says before its data is looked at */
    int64_t dim[HONE_MAX_RANK];
    int rank;
    int64_t type;
    hone_field name, raw, location;
    bool has_raw, external, segment;
    uint64_t offset, length;
    bool has_length;
} header;

static hone_status no_memory(void) {
    return hone_fail(HONE_NO_MEMORY, "no memory for a tensor of the model");
}

static int name_bytes(const header *h) { return (int)(h->name.bytes < MAX_NAME ? h->name.bytes : MAX_NAME); }
static const char *name_of(const header *h) { return h->name.bytes ? (const char *)h->name.data : ""; }
static hone_status bad(const header *h, const char *what) {
    return hone_fail(HONE_BAD_INPUT, "tensor '%.*s': %s", name_bytes(h), name_of(h), what);
}

hone_field hone_onnx_name_field(hone_wire w, uint32_t number) {
    hone_field f, name = {.type = HONE_WIRE_BYTES};
    while (hone_wire_next(&w, &f))
        if (f.number == number && f.type == HONE_WIRE_BYTES) name = f;
    return name;
}

/* ---- the header ---------------------------------------------------------------------------------------- */
static bool is_text(const hone_field *f, const char *text) {
    return f->bytes == strlen(text) && memcmp(f->data, text, f->bytes) == 0;
}

static bool decimal(const hone_field *f, uint64_t *out) {
    uint64_t v = 0;
    for (size_t k = 0; k < f->bytes; k++) {
        if (f->data[k] < '0' || f->data[k] > '9' || v > (UINT64_MAX - 9) / 10) return false;
        v = v * 10 + (uint64_t)(f->data[k] - '0');
    }
    *out = v;
    return f->bytes > 0;
}

static bool read_external(hone_wire w, header *h) {
    hone_field f, key = {0}, value = {0};
    while (hone_wire_next(&w, &f)) {
        if (f.type != HONE_WIRE_BYTES) continue;
        if (f.number == 1) key = f;
        if (f.number == 2) value = f;
    }
    if (w.bad || !key.data) return false;
    if (is_text(&key, "location")) h->location = value;
    if (is_text(&key, "offset")) return decimal(&value, &h->offset);
    if (is_text(&key, "length")) return h->has_length = true, decimal(&value, &h->length);
    return true;
}

static hone_status read_header(hone_wire w, header *h) {
    *h = (header){.name = hone_onnx_name_field(w, 8)};
    hone_wire_numbers dims = {0};
    hone_status numbers = HONE_OK;
    bool good = true;
    hone_field f;
    while (good && hone_wire_next(&w, &f)) {
        bool bytes = f.type == HONE_WIRE_BYTES;
        switch (f.number) {
        case 1: numbers = hone_wire_number(&f, 0, &dims), good = !numbers && dims.n <= HONE_MAX_RANK; break;
        case 2: h->type = (int64_t)f.value, good = !bytes; break;
        case 3: h->segment = true; break;
        case 9: h->raw = f, h->has_raw = true, good = bytes; break;
        case 13: good = bytes && read_external(hone_wire_of(&f), h); break;
        case 14: h->external = f.value == 1; break;
        default: break;
        }
    }
    h->rank = dims.n <= HONE_MAX_RANK ? dims.n : HONE_MAX_RANK;
    for (int k = 0; k < h->rank; k++) h->dim[k] = (int64_t)dims.at[k];
    bool deep = dims.n > HONE_MAX_RANK;
    hone_vec_free(&dims);
    if (numbers == HONE_NO_MEMORY) return no_memory();
    if (deep) return bad(h, "has more than 16 dims");
    if (!good || w.bad) return bad(h, "its bytes are damaged");
    if (!hone_dtype_valid(h->type)) return bad(h, "has an unknown element type");
    if (h->segment) return bad(h, "is split into segments, which ONNX never defined");
    return HONE_OK;
}

/* ---- external files ------------------------------------------------------------------------------------ */
void hone_onnx_files_free(void *p) {
    hone_onnx_files *files = p;
    if (!files) return;
    for (int k = 0; k < files->file.n; k++) hone_file_close(files->file.at + k);
    hone_vec_free(&files->file);
    hone_vec_free(&files->name);
    hone_file_close(&files->model);
    if (files->arena) hone_arena_destroy(files->arena);
    hone_free(files);
}

static hone_status find_external(const header *h, hone_onnx_files *files, hone_field *raw) {
    if (!files || !files->beside)
        return bad(h, "its data is in another file, and the model has no folder: load it by path");
    if (!h->location.bytes) return bad(h, "its data is in another file that is not named");
    const char *name = hone_wire_text(files->arena, &h->location);
    const char *path = name ? hone_path_beside(files->arena, files->beside, name) : NULL;
    if (!name) return no_memory();
    if (!path) return bad(h, "its external data has a path that leaves the model's folder");
    int k = 0;
    while (k < files->name.n && strcmp(files->name.at[k], path) != 0) k++;
    if (k == files->name.n) {
        hone_file file;
        hone_status s = hone_file_open(path, &file);
        if (s) return hone_fail_at(s, "tensor '%.*s': ", name_bytes(h), name_of(h));
        if (!hone_push(&files->file, file)) {
            hone_file_close(&file);
            return no_memory();
        }
        if (!hone_push(&files->name, path)) return no_memory();
    }
    const hone_file *file = files->file.at + k;
    if (h->offset > file->bytes || (h->has_length && h->length > file->bytes - h->offset))
        return bad(h, "its external data lies beyond the end of that file");
    raw->data = file->data + h->offset;
    raw->bytes = h->has_length ? (size_t)h->length : file->bytes - (size_t)h->offset;
    return HONE_OK;
}

/* ---- the data ------------------------------------------------------------------------------------------ */
static bool bools_clean(const uint8_t *at, size_t n) {
    uint8_t any = 0;
    for (size_t k = 0; k < n; k++) any |= at[k];
    return any < 2;
}

static hone_status from_raw(const header *h, int64_t count, hone_field raw, hone_onnx_files *files,
                            hone_value **out) {
    hone_dtype t = (hone_dtype)h->type;
    const hone_dtype_row *row = hone_dtypes + t;
    size_t need = hone_dtype_file_bytes(t, (size_t)count);
    /* A length given by an external file may be left out or be padded; in the model itself it must agree. */
    if (need == SIZE_MAX || raw.bytes < need || (raw.bytes > need && (!h->external || h->has_length))) {
        hone_fail(HONE_BAD_INPUT, "has %zu bytes of data, its dims and type need %zu", raw.bytes, need);
        return hone_fail_at(HONE_BAD_INPUT, "tensor '%.*s': ", name_bytes(h), name_of(h));
    }
    size_t align = row->kind == HONE_KIND_COMPLEX ? row->bytes / 2u : row->bytes;
    bool clean = t != HONE_DTYPE_BOOL || bools_clean(raw.data, need);
    if (files && count && row->bits >= 8 && clean && (uintptr_t)raw.data % align == 0)
        return hone_value_view(t, h->dim, h->rank, raw.data, out);
    if (!count) return hone_value_tensor(t, h->dim, h->rank, out);
    hone_value *v;
    HONE_TRY(hone_value_view(t, h->dim, h->rank, raw.data, &v));
    void *data = hone_alloc_raw(v->bytes); /* all of it is written below: zeroing 100 MB first is time */
    if (!data) {
        hone_value_drop(v);
        return no_memory();
    }
    if (row->bits < 8) hone_dtype_unpack(t, data, raw.data, (size_t)count);
    else memcpy(data, raw.data, need);
    for (size_t k = 0; !clean && k < need; k++) ((uint8_t *)data)[k] = raw.data[k] != 0;
    if (need > 1 << 20) hone_file_forget(raw.data, need);
    v->data = data, v->free_data = hone_free;
    *out = v;
    return HONE_OK;
}

/* Which field holds a type's numbers where they are not raw: float_data 4, int32_data 5, int64_data 7,
   double_data 10, uint64_data 11. */
static int typed_field(hone_dtype t) {
    switch (t) {
    case HONE_DTYPE_F32:
    case HONE_DTYPE_C64: return 4;
    case HONE_DTYPE_I64: return 7;
    case HONE_DTYPE_F64:
    case HONE_DTYPE_C128: return 10;
    case HONE_DTYPE_U32:
    case HONE_DTYPE_U64: return 11;
    default: return 5;
    }
}

/* Stores the low bytes of each number, one unit after the other: a unit is an element, half of a complex one,
   or a byte of packed ones. */
typedef struct {
    uint8_t *to;
    size_t unit, n, room;
    bool truth;
} sink;
static bool sink_put(sink *s, uint64_t v) {
    if (s->n >= s->room) return false;
    if (s->truth) v = v != 0;
    memcpy(s->to + s->n++ * s->unit, &v, s->unit);
    return true;
}

static bool sink_field(sink *s, const hone_field *f, int width) {
    if (f->type != HONE_WIRE_BYTES) return sink_put(s, f->value);
    hone_wire w = hone_wire_of(f);
    if (width && f->bytes % (size_t)width) return false;
    if (width && (size_t)width == s->unit) { /* floats and doubles as they are */
        if (f->bytes / s->unit > s->room - s->n) return false;
        if (f->bytes) memcpy(s->to + s->n * s->unit, f->data, f->bytes);
        s->n += f->bytes / s->unit;
        return true;
    }
    for (uint64_t v; w.at < w.end;)
        if (!hone_wire_varint(&w, &v) || !sink_put(s, v)) return false;
    return true;
}

/* A check before memory is taken: no typed number takes less than a byte of file, so dims that lie are seen
   here. */
static size_t bytes_of_field(hone_wire w, uint32_t number) {
    hone_field f;
    size_t n = 0;
    while (hone_wire_next(&w, &f))
        if (f.number == number) n += f.type == HONE_WIRE_BYTES && number != 6 ? f.bytes : 1;
    return n;
}

static hone_status from_typed(const header *h, int64_t count, hone_wire w, hone_value **out) {
    hone_dtype t = (hone_dtype)h->type;
    const hone_dtype_row *row = hone_dtypes + t;
    uint32_t number = (uint32_t)typed_field(t);
    int width = number == 4 ? 4 : number == 10 ? 8 : 0;
    bool packed = row->bits < 8, complex = row->kind == HONE_KIND_COMPLEX;
    sink s = {.unit = complex ? row->bytes / 2u : row->bytes, .truth = t == HONE_DTYPE_BOOL};
    s.room = packed ? hone_dtype_file_bytes(t, (size_t)count) : (size_t)count * (complex ? 2 : 1);
    if (s.room > bytes_of_field(w, number)) return bad(h, "has less data than its dims and type need");
    hone_value *v;
    HONE_TRY(hone_value_tensor(t, h->dim, h->rank, &v));
    uint8_t *bytes = packed && s.room ? hone_alloc_raw(s.room) : NULL;
    if (packed && s.room && !bytes) {
        hone_value_drop(v);
        return no_memory();
    }
    s.to = packed ? bytes : v->data;
    bool good = true;
    hone_field f;
    while (good && hone_wire_next(&w, &f))
        if (f.number == number) good = sink_field(&s, &f, width);
    good = good && s.n == s.room;
    if (good && bytes) hone_dtype_unpack(t, v->data, bytes, (size_t)count);
    hone_free(bytes);
    if (!good) {
        hone_value_drop(v);
        return bad(h, "does not have as much data as its dims and type say");
    }
    *out = v;
    return HONE_OK;
}

static hone_status from_strings(const header *h, int64_t count, hone_wire w, hone_value **out) {
    if ((uint64_t)count > bytes_of_field(w, 6)) return bad(h, "has fewer strings than its dims say");
    hone_value *v;
    HONE_TRY(hone_value_tensor(HONE_DTYPE_STRING, h->dim, h->rank, &v));
    if (!v->strings && !(v->strings = hone_strings_create())) {
        hone_value_drop(v);
        return no_memory();
    }
    int64_t n = 0;
    hone_field f;
    bool good = true, memory = true;
    while (good && memory && hone_wire_next(&w, &f)) {
        if (f.number != 6) continue;
        good = n < count && f.type == HONE_WIRE_BYTES;
        const hone_string *s =
            good ? hone_strings_add(v->strings, f.bytes ? (const char *)f.data : "", (int64_t)f.bytes) : NULL;
        memory = !good || s;
        if (s) ((const hone_string **)v->data)[n++] = s;
    }
    if (!memory || !good || n != count) {
        hone_value_drop(v);
        return memory ? bad(h, "does not have as many strings as its dims say") : no_memory();
    }
    *out = v;
    return HONE_OK;
}

hone_status hone_onnx_tensor(hone_wire w, hone_onnx_files *files, hone_value **out) {
    header h;
    int64_t count;
    HONE_TRY(read_header(w, &h));
    if (!hone_count_of(h.dim, h.rank, &count))
        return bad(&h, "has a negative dim, or more elements than a machine can count");
    if (h.type == HONE_DTYPE_STRING)
        return h.has_raw || h.external ? bad(&h, "is of strings, which cannot be raw or external data")
                                       : from_strings(&h, count, w, out);
    if (h.external) HONE_TRY(find_external(&h, files, &h.raw));
    return h.has_raw || h.external ? from_raw(&h, count, h.raw, files, out) : from_typed(&h, count, w, out);
}

/* ---- sparse → dense ------------------------------------------------------------------------------------ */
static hone_status fill_dense(const hone_value *values, const hone_value *at, hone_value *dense) {
    int64_t n = hone_value_count(values), total = hone_value_count(dense);
    size_t unit = hone_dtypes[dense->dtype].bytes;
    bool linear = at->rank == 1;
    if (at->dtype != HONE_DTYPE_I64 ||
        (linear ? at->dim[0] != n : at->rank != 2 || at->dim[0] != n || at->dim[1] != dense->rank))
        return hone_fail(HONE_BAD_INPUT, "a sparse tensor's indices have the wrong type or shape");
    for (int64_t k = 0; k < n; k++) {
        int64_t place = linear ? hone_value_i64(at, k) : 0;
        for (int d = 0; !linear && d < dense->rank; d++) {
            int64_t i = hone_value_i64(at, k * dense->rank + d);
            if (i < 0 || i >= dense->dim[d])
                return hone_fail(HONE_BAD_INPUT, "a sparse tensor's index is outside its dims");
            place = place * dense->dim[d] + i;
        }
        if (place < 0 || place >= total)
            return hone_fail(HONE_BAD_INPUT, "a sparse tensor's index is outside its dims");
        memcpy((uint8_t *)dense->data + (size_t)place * unit,
               (const uint8_t *)values->data + (size_t)k * unit, unit);
    }
    if (values->strings && !dense->strings) dense->strings = hone_strings_hold(values->strings);
    return HONE_OK;
}

hone_status hone_onnx_sparse(hone_wire w, hone_onnx_files *files, hone_value **out) {
    hone_field f, values = {0}, at = {0};
    hone_wire_numbers dims = {0};
    hone_status numbers = HONE_OK;
    bool good = true;
    while (good && hone_wire_next(&w, &f)) {
        if (f.number == 3)
            numbers = hone_wire_number(&f, 0, &dims), good = !numbers && dims.n <= HONE_MAX_RANK;
        else if (f.number == 1 && f.type == HONE_WIRE_BYTES) values = f;
        else if (f.number == 2 && f.type == HONE_WIRE_BYTES) at = f;
    }
    int64_t dim[HONE_MAX_RANK] = {0}, count = 0;
    int rank = dims.n;
    good = good && !w.bad && values.data && at.data && rank <= HONE_MAX_RANK;
    for (int k = 0; good && k < rank; k++) dim[k] = (int64_t)dims.at[k];
    hone_vec_free(&dims);
    if (numbers == HONE_NO_MEMORY) return no_memory();
    if (!good || !hone_count_of(dim, rank, &count) || count > DENSE_LIMIT)
        return hone_fail(HONE_BAD_INPUT, "a sparse tensor is damaged or larger than 2^28 elements");
    hone_value *v = NULL, *i = NULL, *dense = NULL;
    hone_status s = hone_onnx_tensor(hone_wire_of(&values), files, &v);
    if (!s) s = hone_onnx_tensor(hone_wire_of(&at), files, &i);
    if (!s && v->rank != 1) s = hone_fail(HONE_BAD_INPUT, "a sparse tensor's values must have one dim");
    if (!s) s = hone_value_tensor(v->dtype, dim, rank, &dense);
    if (!s) s = fill_dense(v, i, dense);
    hone_value_drop(v);
    hone_value_drop(i);
    if (s) hone_value_drop(dense);
    else *out = dense;
    return s;
}

/* ---- sequences, optionals, maps ------------------------------------------------------------------------ */
static hone_status read_any(hone_wire, int elem, int depth, hone_value **out);

/* What field numbers hold in SequenceProto and OptionalProto alike: tensor 3, sparse 4, sequence 5, map 6,
   optional 7. */
static hone_status read_list(hone_wire w, hone_tag tag, int depth, hone_value **out) {
    if (depth > HONE_ONNX_MAX_DEPTH)
        return hone_fail(HONE_BAD_INPUT, "a value is nested deeper than %d", HONE_ONNX_MAX_DEPTH);
    hone_vec(hone_value *) item = {0};
    hone_status s = HONE_OK;
    hone_field f;
    while (!s && hone_wire_next(&w, &f)) {
        if (f.number < 3 || f.number > 7 || f.type != HONE_WIRE_BYTES) continue;
        hone_value *v = NULL;
        s = read_any(hone_wire_of(&f), (int)f.number, depth + 1, &v);
        if (!s && !hone_push(&item, v)) {
            hone_value_drop(v);
            s = no_memory();
        }
    }
    if (!s && w.bad) s = hone_fail(HONE_BAD_INPUT, "a sequence or optional is damaged");
    if (!s && tag == HONE_TAG_OPTIONAL && item.n > 1)
        s = hone_fail(HONE_BAD_INPUT, "an optional holds more than one value");
    if (!s) s = hone_value_list(tag, item.at, item.n, out);
    for (int k = 0; k < item.n; k++) hone_value_drop(item.at[k]);
    hone_vec_free(&item);
    return s;
}

/* Keys as a tensor: int64 or strings. Other integer key types are widened to int64, as ONNX stores them. */
static hone_status read_keys(hone_wire w, hone_value **out) {
    hone_wire_numbers number = {0};
    hone_field f;
    int64_t n = 0;
    hone_status s = HONE_OK;
    for (hone_wire c = w; !s && hone_wire_next(&c, &f);) {
        if (f.number == 3) s = hone_wire_number(&f, 0, &number);
        if (f.number == 4) n++, s = f.type == HONE_WIRE_BYTES ? HONE_OK : HONE_BAD_INPUT;
    }
    if (s) s = s == HONE_NO_MEMORY ? no_memory() : hone_fail(HONE_BAD_INPUT, "a map's keys are damaged");
    hone_value *v = NULL;
    if (!s && n) {
        s = hone_value_tensor(HONE_DTYPE_STRING, &n, 1, &v);
        if (!s && !v->strings && !(v->strings = hone_strings_create())) s = no_memory();
        int64_t k = 0;
        while (!s && hone_wire_next(&w, &f)) {
            if (f.number != 4) continue;
            const hone_string *text =
                hone_strings_add(v->strings, f.bytes ? (const char *)f.data : "", (int64_t)f.bytes);
            if (text) ((const hone_string **)v->data)[k++] = text;
            else s = no_memory();
        }
    } else if (!s) {
        n = number.n;
        s = hone_value_tensor(HONE_DTYPE_I64, &n, 1, &v);
        for (int64_t k = 0; !s && k < n; k++) ((int64_t *)v->data)[k] = (int64_t)number.at[k];
    }
    hone_vec_free(&number);
    if (s) hone_value_drop(v);
    else *out = v;
    return s;
}

/* Values of a map that are all scalars of one type become a vector: what ZipMap makes and DictVectorizer
   takes. */
static hone_status scalars_to_vector(hone_value **list) {
    hone_value *const *item = (*list)->item, *v = NULL;
    int64_t n = (*list)->n_item;
    for (int64_t k = 0; k < n; k++)
        if (item[k]->tag != HONE_TAG_TENSOR || item[k]->rank || item[k]->dtype != item[0]->dtype ||
            item[k]->strings)
            return HONE_OK;
    if (!n) return HONE_OK;
    HONE_TRY(hone_value_tensor(item[0]->dtype, &n, 1, &v));
    for (int64_t k = 0; k < n; k++)
        memcpy((char *)v->data + (size_t)k * item[k]->bytes, item[k]->data, item[k]->bytes);
    hone_value_drop(*list);
    *list = v;
    return HONE_OK;
}

static hone_status read_map(hone_wire w, int depth, hone_value **out) {
    hone_field f, values = {.type = HONE_WIRE_BYTES};
    for (hone_wire c = w; hone_wire_next(&c, &f);)
        if (f.number == 5 && f.type == HONE_WIRE_BYTES) values = f;
    hone_value *pair[2] = {0};
    hone_status s = read_keys(w, pair);
    if (!s) s = read_list(hone_wire_of(&values), HONE_TAG_SEQUENCE, depth + 1, pair + 1);
    if (!s && pair[1]->n_item != hone_value_count(pair[0]))
        s = hone_fail(HONE_BAD_INPUT, "a map does not have as many keys as values");
    if (!s) s = scalars_to_vector(pair + 1);
    if (!s) s = hone_value_list(HONE_TAG_MAP, pair, 2, out);
    hone_value_drop(pair[0]);
    hone_value_drop(pair[1]);
    return s;
}

static hone_status read_any(hone_wire w, int elem, int depth, hone_value **out) {
    if (depth > HONE_ONNX_MAX_DEPTH)
        return hone_fail(HONE_BAD_INPUT, "a value is nested deeper than %d", HONE_ONNX_MAX_DEPTH);
    switch (elem) {
    case 3: return hone_onnx_tensor(w, NULL, out);
    case 4: return hone_onnx_sparse(w, NULL, out);
    case 5: return read_list(w, HONE_TAG_SEQUENCE, depth, out);
    case 6: return read_map(w, depth, out);
    default: return read_list(w, HONE_TAG_OPTIONAL, depth, out);
    }
}

hone_status hone_onnx_read_value(const void *data, size_t bytes, hone_tag tag, hone_value **out) {
    static const int elem[] = {
        [HONE_TAG_TENSOR] = 3, [HONE_TAG_SEQUENCE] = 5, [HONE_TAG_MAP] = 6, [HONE_TAG_OPTIONAL] = 7};
    hone_value *v = NULL;
    HONE_TRY(
        read_any((hone_wire){data, bytes ? (const uint8_t *)data + bytes : data, false}, elem[tag], 0, &v));
    *out = v;
    return HONE_OK;
}
