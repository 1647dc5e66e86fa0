/* SPDX-License-Identifier: Apache-2.0
   Values as a caller sees them: making and asking, .npy and .bin files back and forth, hostile headers, and
   the comparison of two values. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/value.h"
#include "hone/tools.h"
#include "run/dlpack.h"
#include "run/npy.h"
#include "random.h"

static uint64_t seed = 0x9e3779b97f4a7c15u;
static uint64_t draw(void) { return next_random_star(&seed); }

static char folder[] = "/tmp/hone-values-XXXXXX";
static const char *in_folder(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}
static int open_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}
static int close_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

static hone_value *make(hone_dtype t, int rank, const int64_t *dims) {
    hone_value *v = NULL;
    assert_int_equal(hone_tensor_create(t, dims, rank, &v), HONE_OK);
    return v;
}
static hone_value *floats(int n, const float *at) {
    int64_t dim = n;
    hone_value *v = make(HONE_DTYPE_F32, 1, &dim);
    if (n) memcpy(hone_value_data(v), at, sizeof *at * (size_t)n);
    return v;
}

/* ---- making and asking ---- */

static void test_tensor(void **state) {
    (void)state;
    int64_t dims[] = {2, 3}, bad[] = {2, -1}, huge[] = {INT64_MAX, 8};
    hone_value *v = make(HONE_DTYPE_I16, 2, dims), *w = NULL;
    assert_int_equal(hone_value_elements(v), 6);
    assert_int_equal(hone_value_bytes(v), 12);
    assert_int_equal(hone_value_rank(v), 2);
    assert_int_equal(hone_value_dims(v)[1], 3);
    ((int16_t *)hone_value_data(v))[5] = -7;
    assert_true(hone_value_number(v, 5) == -7);
    assert_true(isnan(hone_value_number(v, 6)) && isnan(hone_value_number(v, -1)));
    assert_int_equal(hone_value_set_text(v, 0, "a", 1), HONE_BAD_INPUT);
    assert_ptr_equal(hone_value_share(v), v);
    hone_value_free(v);
    hone_value_free(v);
    assert_int_equal(hone_tensor_create(HONE_DTYPE_F32, bad, 2, &w), HONE_BAD_INPUT);
    assert_int_equal(hone_tensor_create(HONE_DTYPE_F32, huge, 2, &w), HONE_BAD_INPUT);
    assert_int_equal(hone_tensor_create(HONE_DTYPE_F32, NULL, 2, &w), HONE_BAD_INPUT);
    assert_int_equal(hone_tensor_create((hone_dtype)99, dims, 2, &w), HONE_BAD_INPUT);
    assert_int_not_equal(hone_tensor_create(HONE_DTYPE_F32, dims, 99, &w), HONE_OK);
    assert_int_equal(hone_tensor_borrow(HONE_DTYPE_STRING, dims, 2, "x", &w), HONE_BAD_INPUT);
    assert_null(w);
    hone_value_free(NULL);
    assert_int_equal(hone_value_elements(NULL), 0);
    assert_string_equal(hone_dtype_name(HONE_DTYPE_F32), "f32");
    assert_string_equal(hone_dtype_name((hone_dtype)-4), "none");
}

static void test_text_and_lists(void **state) {
    (void)state;
    int64_t two = 2;
    size_t bytes;
    hone_value *s = make(HONE_DTYPE_STRING, 1, &two), *list = NULL, *none = NULL;
    assert_int_equal(hone_value_set_text(s, 1, "ab\0c", 4), HONE_OK);
    assert_memory_equal(hone_value_text(s, 1, &bytes), "ab\0c", 4);
    assert_int_equal(bytes, 4);
    assert_string_equal(hone_value_text(s, 0, &bytes), "");
    assert_string_equal(hone_value_text(s, 9, NULL), "");
    assert_int_equal(hone_value_set_text(s, 2, "", 0), HONE_BAD_INPUT);
    assert_null(hone_value_data(s));
    assert_int_equal(hone_list_create(HONE_VALUE_SEQUENCE, &s, 1, &list), HONE_OK);
    assert_int_equal(hone_list_create(HONE_VALUE_OPTIONAL, NULL, 0, &none), HONE_OK);
    assert_int_equal(hone_list_create(HONE_VALUE_MAP, &s, 1, &none), HONE_BAD_INPUT);
    assert_ptr_equal(hone_value_item(list, 0), s);
    assert_null(hone_value_item(list, 1));
    assert_int_equal(hone_value_items(none), 0);
    assert_int_equal(hone_value_kind_of(none), HONE_VALUE_OPTIONAL);
    assert_int_equal(hone_value_write(list, in_folder("x.npy")), HONE_NOT_SUPPORTED);
    assert_int_equal(hone_value_write(s, in_folder("x.bin")), HONE_NOT_SUPPORTED);
    hone_value_free(s), hone_value_free(list), hone_value_free(none);
}

static void test_maps(void **state) {
    (void)state;
    int64_t three = 3, two = 2, square[] = {1, 3};
    hone_value *keys = make(HONE_DTYPE_I64, 1, &three), *words = make(HONE_DTYPE_STRING, 1, &three),
               *map = NULL, *list = NULL;
    hone_value *v = make(HONE_DTYPE_F32, 1, &three), *less = make(HONE_DTYPE_F32, 1, &two),
               *flat = make(HONE_DTYPE_I64, 2, square);
    assert_int_equal(hone_map_create(keys, v, &map), HONE_OK);
    assert_int_equal(hone_value_kind_of(map), HONE_VALUE_MAP);
    assert_int_equal(hone_value_items(map), 2);
    assert_ptr_equal(hone_value_item(map, 0), keys);
    assert_ptr_equal(hone_value_item(map, 1), v);
    hone_value_free(map);
    assert_int_equal(hone_list_create(HONE_VALUE_SEQUENCE, (hone_value *[]){v, v, less}, 3, &list), HONE_OK);
    assert_int_equal(hone_map_create(words, list, &map), HONE_OK);
    hone_value *none = NULL;
    assert_int_equal(hone_map_create(keys, less, &none), HONE_BAD_INPUT); /* too few */
    assert_int_equal(hone_map_create(v, v, &none), HONE_BAD_INPUT);       /* a float is no key */
    assert_int_equal(hone_map_create(flat, v, &none), HONE_BAD_INPUT);    /* no vector */
    assert_int_equal(hone_map_create(list, v, &none), HONE_BAD_INPUT);
    assert_int_equal(hone_map_create(keys, flat, &none), HONE_BAD_INPUT);
    assert_int_equal(hone_map_create(keys, map, &none), HONE_BAD_INPUT);
    assert_int_equal(hone_map_create(NULL, v, &none), HONE_BAD_INPUT);
    assert_null(none);
    /* maps that share their keys, as one matrix; others not */
    hone_value *w = make(HONE_DTYPE_F32, 1, &three), *maps[3], *own[2], *table = NULL, *names = NULL,
               *rows = NULL;
    for (int k = 0; k < 3; k++) ((float *)v->data)[k] = (float)k, ((float *)w->data)[k] = (float)(k + 10);
    for (int k = 0; k < 3; k++) assert_int_equal(hone_map_create(keys, k == 1 ? w : v, maps + k), HONE_OK);
    assert_int_equal(hone_list_create(HONE_VALUE_SEQUENCE, maps, 3, &table), HONE_OK);
    assert_int_equal(hone_maps_table(table, &names, &rows), HONE_OK);
    assert_ptr_equal(names, keys);
    assert_true(rows->rank == 2 && rows->dim[0] == 3 && rows->dim[1] == 3 && rows->dtype == HONE_DTYPE_F32);
    for (int k = 0; k < 9; k++)
        assert_true(((float *)rows->data)[k] == (float)(k % 3 + (k / 3 == 1 ? 10 : 0)));
    /* the same into room of the caller's: all must fit */
    float room[9] = {-1};
    int64_t dims[] = {3, 3}, other[] = {3, 2};
    assert_int_equal(hone_maps_copy_to(table, keys, HONE_DTYPE_F32, dims, room), 1);
    assert_memory_equal(room, rows->data, sizeof room);
    hone_value *like = make(HONE_DTYPE_I64, 1, &three), *odd = make(HONE_DTYPE_I64, 1, &three);
    ((int64_t *)odd->data)[2] = 9;
    room[0] = -1;
    assert_int_equal(hone_maps_copy_to(table, like, HONE_DTYPE_F32, dims, room), 1); /* equal keys */
    assert_true(room[0] == 0);
    room[0] = -1;
    assert_int_equal(hone_maps_copy_to(table, odd, HONE_DTYPE_F32, dims, room), 0);
    assert_int_equal(hone_maps_copy_to(table, words, HONE_DTYPE_F32, dims, room), 0);
    assert_int_equal(hone_maps_copy_to(table, less, HONE_DTYPE_F32, dims, room), 0);
    assert_int_equal(hone_maps_copy_to(table, NULL, HONE_DTYPE_F32, dims, room), 0);
    assert_int_equal(hone_maps_copy_to(table, keys, HONE_DTYPE_F64, dims, room), 0);
    assert_int_equal(hone_maps_copy_to(table, keys, HONE_DTYPE_F32, other, room), 0);
    assert_int_equal(hone_maps_copy_to(list, keys, HONE_DTYPE_F32, dims, room), 0);
    assert_int_equal(hone_maps_copy_to(NULL, keys, HONE_DTYPE_F32, dims, room), 0);
    assert_int_equal(hone_value_copy_to(rows, HONE_DTYPE_F32, other, 2, room), 0);
    assert_int_equal(hone_value_copy_to(rows, HONE_DTYPE_F32, dims, 1, room), 0);
    assert_int_equal(hone_value_copy_to(rows, HONE_DTYPE_I32, dims, 2, room), 0);
    assert_int_equal(hone_value_copy_to(words, HONE_DTYPE_STRING, &three, 1, room), 0);
    assert_int_equal(hone_value_copy_to(table, HONE_DTYPE_F32, dims, 2, room), 0);
    assert_int_equal(hone_value_copy_to(NULL, HONE_DTYPE_F32, dims, 2, room), 0);
    assert_true(room[0] == -1);
    assert_int_equal(hone_value_copy_to(rows, HONE_DTYPE_F32, dims, 2, room), 1);
    assert_memory_equal(room, rows->data, sizeof room);
    hone_value_free(like), hone_value_free(odd);
    hone_value_free(names), hone_value_free(rows), hone_value_free(table);
    assert_int_equal(hone_map_create(words, v, own), HONE_OK);
    own[1] = maps[0];
    assert_int_equal(hone_list_create(HONE_VALUE_SEQUENCE, own, 2, &table), HONE_OK);
    assert_int_equal(hone_maps_table(table, &names, &rows), HONE_NOT_SUPPORTED);
    assert_int_equal(hone_maps_copy_to(table, words, HONE_DTYPE_F32, (int64_t[]){2, 3}, room), 0);
    hone_value_free(table), hone_value_free(own[0]);
    /* its values are a list */
    assert_int_equal(hone_list_create(HONE_VALUE_SEQUENCE, &map, 1, &table), HONE_OK);
    assert_int_equal(hone_maps_table(table, &names, &rows), HONE_NOT_SUPPORTED);
    hone_value_free(table);
    assert_int_equal(hone_maps_table(list, &names, &rows), HONE_BAD_INPUT);
    assert_int_equal(hone_maps_table(map, &names, &rows), HONE_BAD_INPUT);
    assert_int_equal(hone_maps_table(NULL, &names, &rows), HONE_BAD_INPUT);
    for (int k = 0; k < 3; k++) hone_value_free(maps[k]);
    hone_value *all[] = {keys, words, v, w, less, flat, list, map};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) hone_value_free(all[k]);
}

/* ---- DLPack ---- */

static int deleted; /* how often a deleter of ours was called */
static void on_delete(struct DLManagedTensor *m) { deleted += m->context == &deleted; }
static void on_delete_versioned(struct DLManagedTensorVersioned *m) { deleted += m->context == &deleted; }
static hone_dl_tensor dl(void *data, int64_t *shape, int64_t *strides, int rank) {
    hone_dl_tensor t = {.data = data, .ndim = rank, .shape = shape, .strides = strides};
    t.device.type = HONE_DL_CPU, t.dtype.code = 2, t.dtype.bits = 32, t.dtype.lanes = 1;
    return t;
}

static void test_dlpack_in(void **state) {
    (void)state;
    float data[24];
    for (int k = 0; k < 24; k++) data[k] = (float)k;
    int64_t shape[] = {2, 3, 4}, dense[] = {12, 4, 1}, turned[] = {1, 2, 6}, back[] = {-12, 4, -1},
            one[] = {2, 1, 4}, wild[] = {4, 99, 1};
    struct {
        int64_t *shape, *strides;
        int first;
        bool shared;
    } cases[] = {{shape, NULL, 0, true},   {shape, dense, 0, true}, {shape, turned, 0, false},
                 {shape, back, 15, false}, {one, wild, 0, true},
                 /* the stride of a dim of 1 says nothing */};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct DLManagedTensor m = {dl(data, cases[c].shape, cases[c].strides, 3), &deleted, on_delete};
        m.tensor.byte_offset = sizeof(float) * (size_t)cases[c].first;
        hone_value *v = NULL;
        deleted = 0;
        assert_int_equal(hone_value_from_dlpack(&m, &v), HONE_OK);
        assert_int_equal(deleted, !cases[c].shared); /* copied: theirs is no longer needed */
        assert_int_equal(hone_value_data(v) == data, cases[c].shared);
        const float *at = hone_value_data(v);
        for (int64_t i = 0; i < shape[0] && cases[c].strides && c < 4; i++)
            for (int64_t j = 0; j < shape[1]; j++)
                for (int64_t k = 0; k < shape[2]; k++) {
                    const int64_t *s = cases[c].strides;
                    assert_float_equal(at[(i * 3 + j) * 4 + k],
                                       (float)(cases[c].first + i * s[0] + j * s[1] + k * s[2]), 0);
                }
        hone_value *more = hone_value_share(v);
        hone_value_free(v);
        assert_int_equal(deleted, !cases[c].shared);
        hone_value_free(more);
        assert_int_equal(deleted, 1);
    }
    /* not aligned: copied; no element: nothing to read, still taken */
    struct DLManagedTensor m = {dl((char *)data + 1, shape, NULL, 1), &deleted, on_delete};
    hone_value *v = NULL;
    deleted = 0;
    assert_int_equal(hone_value_from_dlpack(&m, &v), HONE_OK);
    assert_int_equal(deleted, 1);
    hone_value_free(v);
    int64_t empty[] = {0, 3};
    m.tensor = dl(NULL, empty, NULL, 2), deleted = 0, v = NULL;
    assert_int_equal(hone_value_from_dlpack(&m, &v), HONE_OK);
    assert_int_equal(hone_value_elements(v), 0);
    hone_value_free(v);
    assert_int_equal(deleted, 1);
}

static void test_dlpack_refused(void **state) {
    (void)state;
    float data[4] = {0};
    int64_t two = 2, minus = -1, huge[] = {INT64_MAX, 4};
    hone_value *v = NULL;
    struct DLManagedTensor good = {dl(data, &two, NULL, 1), &deleted, on_delete}, m;
    deleted = 0;
    m = good, m.tensor.device.type = 2; /* a GPU */
    assert_int_equal(hone_value_from_dlpack(&m, &v), HONE_NOT_SUPPORTED);
    m = good, m.tensor.dtype.lanes = 4;
    assert_int_equal(hone_value_from_dlpack(&m, &v), HONE_NOT_SUPPORTED);
    m = good, m.tensor.dtype.bits = 24;
    assert_int_equal(hone_value_from_dlpack(&m, &v), HONE_NOT_SUPPORTED);
    m = good, m.tensor.dtype.code = 0, m.tensor.dtype.bits = 4; /* packed, or a byte each? It does not say */
    assert_int_equal(hone_value_from_dlpack(&m, &v), HONE_NOT_SUPPORTED);
    m = good, m.tensor.ndim = 17, m.tensor.shape = huge;
    assert_int_equal(hone_value_from_dlpack(&m, &v), HONE_NOT_SUPPORTED);
    m = good, m.tensor.ndim = -1;
    assert_int_equal(hone_value_from_dlpack(&m, &v), HONE_BAD_INPUT);
    m = good, m.tensor.shape = &minus;
    assert_int_equal(hone_value_from_dlpack(&m, &v), HONE_BAD_INPUT);
    m = good, m.tensor.shape = huge, m.tensor.ndim = 2;
    assert_int_equal(hone_value_from_dlpack(&m, &v), HONE_BAD_INPUT);
    m = good, m.tensor.data = NULL;
    assert_int_equal(hone_value_from_dlpack(&m, &v), HONE_BAD_INPUT);
    assert_int_equal(hone_value_from_dlpack(NULL, &v), HONE_BAD_INPUT);
    struct DLManagedTensorVersioned w = {
        .tensor = good.tensor, .version = {2, 0}, .context = &deleted, .deleter = on_delete_versioned};
    assert_int_equal(hone_value_from_dlpack_versioned(&w, &v), HONE_NOT_SUPPORTED);
    assert_int_equal(deleted, 0); /* what was refused is still the caller's */
    assert_null(v);
    hone_value *s = make(HONE_DTYPE_STRING, 1, &two), *small = make(HONE_DTYPE_I4, 1, &two);
    struct DLManagedTensor *out = NULL;
    assert_int_equal(hone_value_to_dlpack(s, &out), HONE_BAD_INPUT);
    assert_int_equal(hone_value_to_dlpack(small, &out), HONE_NOT_SUPPORTED);
    assert_int_equal(hone_value_to_dlpack(NULL, &out), HONE_BAD_INPUT);
    assert_null(out);
    hone_value_free(s), hone_value_free(small);
}

/* Every type goes out and comes back, the view outliving the value; one that has no place in DLPack would be
   found here. */
static void test_dlpack_round(void **state) {
    (void)state;
    uint64_t before = hone_alloc_live_bytes();
    int64_t dims[] = {2, 3};
    for (hone_dtype t = HONE_DTYPE_F32; t < HONE_DTYPE_COUNT; t++) {
        if (t == HONE_DTYPE_STRING) continue;
        hone_value *v = make(t, 2, dims), *w = NULL;
        memset(hone_value_data(v), 1, hone_value_bytes(v));
        void *data = hone_value_data(v);
        struct DLManagedTensorVersioned *m = NULL;
        assert_int_equal(hone_value_to_dlpack_versioned(v, &m), HONE_OK);
        assert_int_equal(m->flags & HONE_DL_READ_ONLY, 0);
        assert_int_equal(m->tensor.strides[0], 3);
        hone_value_free(v);
        assert_int_equal(hone_value_from_dlpack_versioned(m, &w), HONE_OK);
        assert_ptr_equal(hone_value_data(w), data);
        assert_int_equal(hone_value_dtype(w), t);
        hone_value_free(w); /* ends the view, and that the first value */
    }
    static const float constant[2] = {1, 2};
    hone_value *v = NULL, *w = NULL;
    struct DLManagedTensorVersioned *m = NULL;
    struct DLManagedTensor *plain = NULL;
    assert_int_equal(hone_tensor_borrow(HONE_DTYPE_F32, (int64_t[]){2}, 1, constant, &v), HONE_OK);
    assert_int_equal(hone_value_to_dlpack_versioned(v, &m), HONE_OK);
    assert_int_equal(m->flags, HONE_DL_READ_ONLY);
    m->deleter(m);
    assert_int_equal(hone_value_to_dlpack(v, &plain), HONE_OK);
    assert_int_equal(hone_value_from_dlpack(plain, &w), HONE_OK);
    assert_float_equal(hone_value_number(w, 1), 2, 0);
    hone_value_free(v), hone_value_free(w);
    assert_int_equal(hone_alloc_live_bytes(), before);
}

/* ---- files ---- */

/* Every numeric type, ranks 0 to 4, empty ones too: what was written is what is read. */
static void test_round_trip(void **state) {
    (void)state;
    for (int t = 1; t < HONE_DTYPE_COUNT; t++) {
        if (t == HONE_DTYPE_STRING) continue;
        for (int rank = 0; rank <= 4; rank++) {
            int64_t shape[] = {rank == 4 ? 0 : 3, 2, 1, 5};
            hone_value *v = make((hone_dtype)t, rank, shape), *npy = NULL, *bin = NULL;
            uint8_t *p = hone_value_data(v);
            uint8_t mask = hone_dtypes[t].kind == HONE_KIND_BOOL ? 1
                           : hone_dtypes[t].bits < 8             ? (uint8_t)((1 << hone_dtypes[t].bits) - 1)
                                                                 : 0xff;
            for (size_t k = 0; k < hone_value_bytes(v); k++) p[k] = (uint8_t)draw() & mask;
            if (mask != 0xff) { /* as the library itself holds small types */
                size_t n = (size_t)hone_value_elements(v);
                uint8_t packed[256] = {0};
                if (hone_dtypes[t].bits < 8 && n)
                    hone_dtype_pack((hone_dtype)t, packed, p, n),
                        hone_dtype_unpack((hone_dtype)t, p, packed, n);
            }
            assert_int_equal(hone_value_write(v, in_folder("v.bin")), HONE_OK);
            assert_int_equal(
                hone_value_read(in_folder("v.bin"), HONE_VALUE_TENSOR, (hone_dtype)t, shape, rank, &bin),
                HONE_OK);
            assert_int_equal(bin->bytes, v->bytes);
            if (v->bytes) assert_memory_equal(bin->data, v->data, v->bytes);
            assert_int_equal(hone_value_write(v, in_folder("v.npy")), HONE_OK);
            assert_int_equal(
                hone_value_read(in_folder("v.npy"), HONE_VALUE_TENSOR, HONE_DTYPE_NONE, NULL, 0, &npy),
                HONE_OK);
            assert_int_equal(npy->rank, rank);
            for (int i = 0; i < rank; i++) assert_int_equal(npy->dim[i], shape[i]);
            if (npy->dtype == v->dtype && v->bytes) assert_memory_equal(npy->data, v->data, v->bytes);
            for (int64_t k = 0; k < hone_value_elements(v); k++) { /* widened: the same numbers */
                double a = hone_value_number(v, k), b = hone_value_number(npy, k);
                assert_true(a == b || (isnan(a) && isnan(b)));
            }
            hone_value_free(v), hone_value_free(npy), hone_value_free(bin);
        }
    }
    unlink(in_folder("v.bin"));
    unlink(in_folder("v.npy"));
}

/* A file of version `version` around `header` and `body`. */
static size_t npy_bytes(uint8_t *out, int version, const char *header, const void *body, size_t n) {
    size_t h = strlen(header), at = 0;
    memcpy(out, "\x93NUMPY", 6), at = 6;
    out[at++] = (uint8_t)version, out[at++] = 0;
    for (int i = 0; i < (version == 1 ? 2 : 4); i++) out[at++] = (uint8_t)(h >> 8 * i);
    memcpy(out + at, header, h), at += h;
    if (n) memcpy(out + at, body, n);
    return at + n;
}

static void test_npy_forms(void **state) {
    (void)state;
    uint8_t file[512];
    hone_value *v = NULL;
    /* big endian, keys in another order, version 2 */
    static const uint8_t big[] = {0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0};
    size_t n =
        npy_bytes(file, 2, "{\"shape\": (2,), 'fortran_order': False, 'descr': '>f4'}\n", big, sizeof big);
    assert_int_equal(hone_npy_read(file, n, &v), HONE_OK);
    assert_true(hone_value_number(v, 0) == 1 && hone_value_number(v, 1) == -2);
    hone_value_free(v);
    /* complex numbers turn by halves */
    n = npy_bytes(file, 1, "{'descr': '>c8', 'fortran_order': False, 'shape': ()}", big, sizeof big);
    assert_int_equal(hone_npy_read(file, n, &v), HONE_OK);
    assert_true(((float *)v->data)[0] == 1 && ((float *)v->data)[1] == -2 && v->rank == 0);
    hone_value_free(v);
    /* column-major: 2x3x2, element (i,j,k) lies at i + 2j + 6k */
    uint8_t column[12];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 2; k++) column[i + 2 * j + 6 * k] = (uint8_t)(100 * i + 10 * j + k);
    n = npy_bytes(file, 3, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2L), }", column,
                  sizeof column);
    assert_int_equal(hone_npy_read(file, n, &v), HONE_OK);
    for (int i = 0; i < 12; i++)
        assert_true(hone_value_number(v, i) == 100 * (i / 6) + 10 * (i / 2 % 3) + i % 2);
    hone_value_free(v);
    /* a bool is 0 or 1 whatever the byte */
    n = npy_bytes(file, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", "\0\7\1", 3);
    assert_int_equal(hone_npy_read(file, n, &v), HONE_OK);
    assert_memory_equal(v->data, "\0\1\1", 3);
    hone_value_free(v);
}

static void test_npy_hostile(void **state) {
    (void)state;
    static const char *const headers[] = {
        "",
        "{",
        "{}",
        "[]",
        "{'descr'",
        "{'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4611686018427387904, 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 2}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f3', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<U2', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f99999999999999999999', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}"};
    uint8_t file[512];
    hone_value *v = NULL;
    for (size_t k = 0; k < sizeof headers / sizeof *headers; k++) {
        size_t n = npy_bytes(file, 1, headers[k], "12345678", 8);
        if (hone_npy_read(file, n, &v) == HONE_OK) fail_msg("was read: %s", headers[k]);
        assert_null(v);
        assert_true(hone_error()[0]);
    }
    /* every cut and many changed bytes of a good file: read or refused, never more (a sanitizer watches; the
       heap block ends where the file does) */
    size_t n =
        npy_bytes(file, 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }\n", "12345678", 8);
    for (size_t cut = 0; cut < n; cut++) {
        uint8_t *part = malloc(cut ? cut : 1);
        if (cut) memcpy(part, file, cut);
        assert_int_not_equal(hone_npy_read(part, cut, &v), HONE_OK);
        free(part);
    }
    for (int k = 0; k < 20000; k++) {
        uint8_t *part = malloc(n);
        memcpy(part, file, n);
        for (int i = (int)(draw() % 3); i >= 0; i--) part[draw() % n] = (uint8_t)draw();
        v = NULL;
        if (hone_npy_read(part, n, &v) == HONE_OK) assert_true(v->bytes <= n);
        hone_value_free(v);
        free(part);
    }
}

static void test_files_refused(void **state) {
    (void)state;
    int64_t two = 2, three = 3;
    hone_value *v = make(HONE_DTYPE_F32, 1, &two), *w = NULL;
    assert_int_equal(hone_value_write(v, in_folder("v.bin")), HONE_OK);
    assert_int_equal(hone_value_read(in_folder("v.bin"), HONE_VALUE_TENSOR, HONE_DTYPE_F32, &three, 1, &w),
                     HONE_BAD_INPUT);
    assert_int_equal(hone_value_read(in_folder("v.bin"), HONE_VALUE_TENSOR, HONE_DTYPE_NONE, NULL, 0, &w),
                     HONE_BAD_INPUT);
    assert_int_equal(hone_value_read(in_folder("v.bin"), HONE_VALUE_SEQUENCE, HONE_DTYPE_F32, &two, 1, &w),
                     HONE_BAD_INPUT);
    assert_int_equal(hone_value_read(in_folder("none.npy"), HONE_VALUE_TENSOR, HONE_DTYPE_NONE, NULL, 0, &w),
                     HONE_IO);
    assert_int_equal(hone_value_read(in_folder("v.txt"), HONE_VALUE_TENSOR, HONE_DTYPE_NONE, NULL, 0, &w),
                     HONE_BAD_INPUT);
    assert_int_equal(hone_value_write(v, in_folder("v.txt")), HONE_BAD_INPUT);
    assert_non_null(strstr(hone_error(), "v.txt"));
    assert_null(w);
    hone_value_free(v);
    unlink(in_folder("v.bin"));
}

/* One call to the heap after the other fails: an error each time, nothing held afterwards. */
static void test_no_memory(void **state) {
    (void)state;
    int64_t dims[] = {2, 2};
    uint64_t before = hone_alloc_live_bytes();
    hone_value *v = make(HONE_DTYPE_BF16, 2, dims);
    for (int k = 0;; k++) {
        void *data = NULL;
        size_t bytes = 0;
        hone_value *w = NULL;
        hone_alloc_fail_after(k);
        hone_status s = hone_npy_write(v, &data, &bytes);
        if (!s) s = hone_npy_read(data, bytes, &w);
        hone_alloc_fail_after(-1);
        hone_free(data);
        hone_value_free(w);
        if (!s) break;
        assert_int_equal(s, HONE_NO_MEMORY);
    }
    hone_value_free(v);
    assert_int_equal(hone_alloc_live_bytes(), before);
}

/* ---- comparing ---- */

static hone_difference between(const hone_value *got, const hone_value *want, double rtol, double atol) {
    hone_difference d;
    hone_compare(got, want, rtol, atol, &d);
    return d;
}

static void test_compare_numbers(void **state) {
    (void)state;
    hone_value *a = floats(4, (float[]){1, NAN, INFINITY, 0}),
               *b = floats(4, (float[]){1.0005f, NAN, INFINITY, -0.0f});
    hone_value *c = floats(4, (float[]){1, 0, INFINITY, 0}),
               *e = floats(4, (float[]){1, NAN, -INFINITY, 1e-8f}),
               *f = floats(3, (float[]){1, NAN, INFINITY});
    hone_difference d = between(a, b, 1e-3, 0);
    assert_true(d.ok && d.elements == 4 && d.wrong == 0 && d.max_abs > 4.9e-4 && d.max_abs < 5.1e-4 &&
                d.max_rel < 5.1e-4);
    d = between(a, b, 1e-4, 0);
    assert_true(!d.ok && d.wrong == 1 && strstr(d.why, "[0]"));
    d = between(a, c, 1, 1); /* NaN where a number is wanted: no tolerance is enough */
    assert_true(!d.ok && d.wrong == 1 && isinf(d.max_abs) && strstr(d.why, "[1]"));
    d = between(a, e, 1, 1);
    assert_true(!d.ok && d.wrong == 1 && strstr(d.why, "[2]"));
    assert_true(!between(a, f, 1, 1).ok);
    assert_true(!between(a, NULL, 1, 1).ok && !between(NULL, a, 1, 1).ok && between(NULL, NULL, 0, 0).ok);
    hone_value_free(a), hone_value_free(b), hone_value_free(c), hone_value_free(e), hone_value_free(f);
}

/* What two programs computed: shape and type do not matter, the largest magnitude does. */
static void test_compare_answers(void **state) {
    (void)state;
    int64_t dims[] = {2, 2}, n = 4;
    hone_value *a = floats(4, (float[]){100, NAN, 0, 1}), *b = make(HONE_DTYPE_F64, 2, dims),
               *zeros = make(HONE_DTYPE_F32, 1, &n), *few = floats(3, (float[]){100, NAN, 0});
    memcpy(b->data, (double[]){100, NAN, 0.5, 1}, 4 * sizeof(double));
    hone_difference d;
    hone_compare_answers(b, a, 1e-2, &d);
    assert_true(d.ok && d.elements == 4 && d.max_abs == 0.5 && d.max_rel == 0.005);
    hone_compare_answers(b, a, 1e-3, &d);
    assert_true(!d.ok && strstr(d.why, "largest magnitude"));
    hone_compare_answers(zeros, a, 1e9, &d); /* a NaN on one side */
    assert_true(!d.ok && isinf(d.max_abs));
    hone_compare_answers(few, a, 1e9, &d);
    assert_true(!d.ok && isinf(d.max_rel));
    memcpy(a->data, (float[]){0, 0, 0, 1e-30f}, 4 * sizeof(float));
    hone_compare_answers(a, zeros, 1e9, &d); /* nothing to measure by */
    assert_true(!d.ok && isinf(d.max_rel));
    hone_compare_answers(zeros, zeros, 0, &d);
    assert_true(d.ok && d.max_rel == 0);
    hone_value_free(a), hone_value_free(b), hone_value_free(zeros), hone_value_free(few);
}

static void test_compare_types(void **state) {
    (void)state;
    int64_t one = 1;
    hone_value *i = make(HONE_DTYPE_I64, 1, &one), *j = make(HONE_DTYPE_I64, 1, &one),
               *u = make(HONE_DTYPE_U64, 1, &one);
    *(int64_t *)i->data = (1ll << 53) + 1, *(int64_t *)j->data = 1ll << 53; /* the same as doubles */
    assert_false(between(i, j, 0, 0).ok);
    assert_true(between(i, j, 0, 1).ok);
    *(int64_t *)i->data = INT64_MIN, *(int64_t *)j->data = INT64_MAX;
    hone_difference d = between(i, j, 0, 0);
    assert_true(!d.ok && d.max_abs > 1.8e19);
    assert_false(between(i, u, 1e9, 1e9).ok); /* another type */

    hone_value *c = make(HONE_DTYPE_C64, 1, &one), *k = make(HONE_DTYPE_C64, 1, &one);
    ((float *)c->data)[0] = 3, ((float *)c->data)[1] = 4;
    d = between(k, c, 1, 0);
    assert_true(d.ok && d.max_abs == 5 && d.max_rel == 1);
    assert_false(between(k, c, 0.9, 0).ok);

    hone_value *s = make(HONE_DTYPE_STRING, 1, &one), *t = make(HONE_DTYPE_STRING, 1, &one);
    hone_value_set_text(s, 0, "yes", 3);
    assert_false(between(s, t, 1, 1).ok);
    hone_value_set_text(t, 0, "yes", 3);
    assert_true(between(s, t, 0, 0).ok);
    hone_value_free(i), hone_value_free(j), hone_value_free(u), hone_value_free(c), hone_value_free(k),
        hone_value_free(s), hone_value_free(t);
}

static void test_compare_lists(void **state) {
    (void)state;
    hone_value *a = floats(2, (float[]){1, 2}), *b = floats(2, (float[]){1, 3}), *p = NULL, *q = NULL,
               *r = NULL, *none = NULL;
    assert_int_equal(hone_list_create(HONE_VALUE_SEQUENCE, (hone_value *[]){a, a}, 2, &p), HONE_OK);
    assert_int_equal(hone_list_create(HONE_VALUE_SEQUENCE, (hone_value *[]){a, b}, 2, &q), HONE_OK);
    assert_int_equal(hone_list_create(HONE_VALUE_OPTIONAL, &a, 1, &r), HONE_OK);
    assert_int_equal(hone_list_create(HONE_VALUE_OPTIONAL, NULL, 0, &none), HONE_OK);
    assert_true(between(p, p, 0, 0).ok);
    hone_difference d = between(p, q, 0, 0);
    assert_true(!d.ok && d.wrong == 1 && d.elements == 4);
    assert_string_equal(d.why, "[1]: element [1]: got 2, want 3");
    assert_false(between(p, r, 9, 9).ok);
    assert_false(between(none, r, 9, 9).ok);
    hone_value_free(a), hone_value_free(b), hone_value_free(p), hone_value_free(q), hone_value_free(r),
        hone_value_free(none);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensor),        cmocka_unit_test(test_text_and_lists),
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_npy_forms),
        cmocka_unit_test(test_npy_hostile),   cmocka_unit_test(test_files_refused),
        cmocka_unit_test(test_no_memory),     cmocka_unit_test(test_compare_numbers),
        cmocka_unit_test(test_compare_types), cmocka_unit_test(test_compare_answers),
        cmocka_unit_test(test_compare_lists), cmocka_unit_test(test_maps),
        cmocka_unit_test(test_dlpack_in),     cmocka_unit_test(test_dlpack_refused),
        cmocka_unit_test(test_dlpack_round),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
