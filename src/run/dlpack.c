/* SPDX-License-Identifier: Apache-2.0
   dlpack: tensors of other libraries as values, and the other way round. Memory is shared; only what is not
   dense or not aligned is copied, because a value always is. Memory of a device goes by the number that its
   row states (device.h): there, what is not dense is refused. */
#include "run/dlpack.h"

#include <string.h>

#include "device/away.h"

/* DLPack's codes: 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool, and one a small float. */
static const struct {
    uint8_t code, bits;
    hone_dtype dtype;
} types[] = {
    {2, 32, HONE_DTYPE_F32},        {1, 8, HONE_DTYPE_U8},          {0, 8, HONE_DTYPE_I8},
    {1, 16, HONE_DTYPE_U16},        {0, 16, HONE_DTYPE_I16},        {0, 32, HONE_DTYPE_I32},
    {0, 64, HONE_DTYPE_I64},        {6, 8, HONE_DTYPE_BOOL},        {2, 16, HONE_DTYPE_F16},
    {2, 64, HONE_DTYPE_F64},        {1, 32, HONE_DTYPE_U32},        {1, 64, HONE_DTYPE_U64},
    {5, 64, HONE_DTYPE_C64},        {5, 128, HONE_DTYPE_C128},      {4, 16, HONE_DTYPE_BF16},
    {10, 8, HONE_DTYPE_F8E4M3FN},   {11, 8, HONE_DTYPE_F8E4M3FNUZ}, {12, 8, HONE_DTYPE_F8E5M2},
    {13, 8, HONE_DTYPE_F8E5M2FNUZ}, {14, 8, HONE_DTYPE_F8E8M0},     {1, 4, HONE_DTYPE_U4},
    {0, 4, HONE_DTYPE_I4},          {17, 4, HONE_DTYPE_F4E2M1},     {1, 2, HONE_DTYPE_U2},
    {0, 2, HONE_DTYPE_I2},
};
enum { N_TYPES = sizeof types / sizeof *types };

/* ---- in ---- */

static void done(void *owner) {
    struct DLManagedTensor *m = owner;
    if (m->deleter) m->deleter(m);
}
static void done_versioned(void *owner) {
    struct DLManagedTensorVersioned *m = owner;
    if (m->deleter) m->deleter(m);
}

static bool is_dense(const hone_dl_tensor *t) {
    int64_t want = 1;
    bool dense = true;
    for (int k = t->ndim - 1; t->strides && k >= 0; k--) {
        if (t->shape[k] != 1 && t->strides[k] != want) dense = false;
        want *= t->shape[k];
    }
    return dense;
}
/* Row by row along the last dim; the dims before it count like an odometer. `v` has elements, so no dim is
   0. */
static void gather(const hone_dl_tensor *t, const char *from, hone_value *v) {
    size_t bytes = hone_dtypes[v->dtype].bytes;
    int last = v->rank - 1;
    int64_t at[HONE_MAX_RANK] = {0}, n = v->rank ? v->dim[last] : 1,
            step = v->rank && t->strides ? t->strides[last] : 1;
    for (char *to = v->data, *end = to + v->bytes; to < end;) {
        const char *row = from;
        for (int k = 0; k < last; k++) row += at[k] * t->strides[k] * (int64_t)bytes;
        if (step == 1) memcpy(to, row, bytes * (size_t)n), to += bytes * (size_t)n;
        else
            for (int64_t i = 0; i < n; i++, to += bytes) memcpy(to, row + i * step * (int64_t)bytes, bytes);
        for (int k = last - 1; k >= 0 && ++at[k] == v->dim[k]; k--) at[k] = 0;
    }
}
/* The device whose memory it is; row NULL: none that is here. */
static hone_unit device_of(const hone_dl_tensor *t) {
    for (int k = 1; hone_devices(k); k++) {
        const hone_device *row = hone_devices(k);
        if (row->dlpack != t->device.type || !row->alloc) continue;
        if (t->device.id >= 0 && t->device.id < (row->count ? row->count(row) : 1))
            return (hone_unit){row, t->device.id};
    }
    return (hone_unit){0};
}
/* As it is, where it is dense and begins at a place where the device's own tensors could; else a copy on the
   device. */
static hone_status take_there(const hone_dl_tensor *t, hone_dtype type, int64_t stream, void *owner,
                              void (*release)(void *), hone_value **out) {
    enum { OPAQUE = 12 /* kDLExtDev: its pointers need be no addresses */ };
    const hone_unit u = device_of(t);
    hone_target target = {0};
    if (!u.row)
        return hone_fail(
            HONE_NOT_SUPPORTED,
            "a DLPack tensor on device type %d, number %d, which is not here: copy it to host memory first",
            (int)t->device.type, (int)t->device.id);
    if (t->ndim < 0 || (t->ndim && !t->shape))
        return hone_fail(HONE_BAD_INPUT, "a DLPack tensor without a shape");
    hone_value *shell = NULL;
    HONE_TRY(hone_value_shell(type, t->shape, t->ndim, &shell)); /* checks dims */
    const size_t bytes = shell->bytes;
    hone_value_drop(shell);
    if (bytes && !t->data) return hone_fail(HONE_BAD_INPUT, "a DLPack tensor without data");
    if (bytes && !is_dense(t))
        return hone_fail(HONE_NOT_SUPPORTED,
                         "a DLPack tensor on %s:%d that is not dense: make it contiguous first", u.row->name,
                         u.number);
    if (t->byte_offset > INT64_MAX) return hone_fail(HONE_BAD_INPUT, "a DLPack tensor's offset overflows");
    if (stream != HONE_STREAM_NONE) { /* whoever makes it may still be at it */
        if (!u.row->await)
            return hone_fail(HONE_NOT_SUPPORTED, "%s:%d has no streams to wait for", u.row->name, u.number);
        HONE_TRY(u.row->await(u.row, u.number, stream));
    }
    if (u.row->target) u.row->target(u.row, u.number, &target);
    const size_t align = target.alignment ? target.alignment : 64;
    const bool aligned = !t->byte_offset && (u.row->dlpack == OPAQUE || (uintptr_t)t->data % align == 0);
    if (aligned && bytes) return hone_away_borrow(&u, type, t->shape, t->ndim, t->data, release, owner, out);
    HONE_TRY(bytes ? hone_away_copy(&u, type, t->shape, t->ndim, t->data, (int64_t)t->byte_offset, out)
                   : hone_away_tensor(&u, type, t->shape, t->ndim, out));
    release(owner);
    return HONE_OK;
}
static hone_status take(const hone_dl_tensor *t, bool padded, int64_t stream, void *owner,
                        void (*release)(void *), hone_value **out) {
    int row = 0;
    while (row < N_TYPES && (types[row].code != t->dtype.code || types[row].bits != t->dtype.bits)) row++;
    const bool host = t->device.type == HONE_DL_CPU || t->device.type == HONE_DL_CUDA_HOST ||
                      t->device.type == HONE_DL_ROCM_HOST;
    if (row == N_TYPES || t->dtype.lanes != 1)
        return hone_fail(HONE_NOT_SUPPORTED, "a DLPack tensor of type code %d, %d bits, %d lanes",
                         t->dtype.code, t->dtype.bits, t->dtype.lanes);
    if (t->dtype.bits < 8 && !padded)
        return hone_fail(HONE_NOT_SUPPORTED,
                         "a DLPack tensor of %d-bit elements needs the versioned form with a byte an element",
                         t->dtype.bits);
    if (!host) return take_there(t, types[row].dtype, stream, owner, release, out);
    if (t->ndim < 0 || (t->ndim && !t->shape))
        return hone_fail(HONE_BAD_INPUT, "a DLPack tensor without a shape");
    const char *from = t->data ? (const char *)t->data + t->byte_offset : NULL;
    hone_value *v = NULL;
    /* checks dims, and that data is there if elements are */
    HONE_TRY(hone_value_view(types[row].dtype, t->shape, t->ndim, from, &v));
    size_t align = hone_dtypes[v->dtype].bytes;
    if (hone_dtypes[v->dtype].kind == HONE_KIND_COMPLEX) align /= 2;
    if (!v->bytes || (is_dense(t) && (uintptr_t)from % align == 0)) {
        v->owner = owner, v->free_data = release;
        *out = v;
        return HONE_OK;
    }
    hone_value *copy = NULL;
    hone_status s = hone_value_tensor(v->dtype, v->dim, v->rank, &copy);
    hone_value_drop(v);
    if (s) return s;
    gather(t, from, copy);
    release(owner);
    *out = copy;
    return HONE_OK;
}
hone_status hone_value_from_dlpack(struct DLManagedTensor *m, hone_value **out) {
    if (!m || !out)
        return hone_fail(HONE_BAD_INPUT, "hone_value_from_dlpack: the tensor and out must not be NULL");
    return take(&m->tensor, false, HONE_STREAM_NONE, m, done, out);
}
hone_status hone_value_from_dlpack_versioned(struct DLManagedTensorVersioned *m, hone_value **out) {
    return hone_value_from_dlpack_stream(m, HONE_STREAM_NONE, out);
}
hone_status hone_value_from_dlpack_stream(struct DLManagedTensorVersioned *m, int64_t stream,
                                          hone_value **out) {
    if (!m || !out)
        return hone_fail(HONE_BAD_INPUT,
                         "hone_value_from_dlpack_versioned: the tensor and out must not be NULL");
    if (m->version.major != 1)
        return hone_fail(HONE_NOT_SUPPORTED, "a DLPack tensor of version %u: 1 is known here",
                         (unsigned)m->version.major);
    return take(&m->tensor, m->flags & HONE_DL_PADDED, stream, m, done_versioned, out);
}

/* ---- out ---- */

typedef struct {
    union {
        struct DLManagedTensor plain;
        struct DLManagedTensorVersioned versioned;
    } u;
    hone_value *value;
    int64_t stride[HONE_MAX_RANK];
} lent;

static void give_back(lent *l) {
    hone_value_drop(l->value);
    hone_free(l);
}
static void back(struct DLManagedTensor *m) { give_back(m->context); }
static void back_versioned(struct DLManagedTensorVersioned *m) { give_back(m->context); }

static hone_status lend(hone_value *v, bool versioned, lent **out) {
    int row = 0;
    if (!v || v->tag != HONE_TAG_TENSOR || v->dtype == HONE_DTYPE_STRING)
        return hone_fail(HONE_BAD_INPUT, "only a tensor of numbers can be a DLPack tensor");
    if (v->away && !v->away->unit.row->dlpack)
        return hone_fail(HONE_NOT_SUPPORTED,
                         "memory of %s:%d cannot be a DLPack tensor: bring it to the host first",
                         v->away->unit.row->name, v->away->unit.number);
    while (row < N_TYPES && types[row].dtype != v->dtype) row++;
    if (row == N_TYPES || (types[row].bits < 8 && !versioned))
        return hone_fail(HONE_NOT_SUPPORTED,
                         "a tensor of %s can be a DLPack tensor in the versioned form only",
                         hone_dtypes[v->dtype].name);
    lent *l = hone_alloc(sizeof *l);
    if (!l) return hone_fail(HONE_NO_MEMORY, "no memory for a DLPack tensor");
    int64_t stride = 1;
    for (int k = v->rank - 1; k >= 0; k--) l->stride[k] = stride, stride *= v->dim[k] ? v->dim[k] : 1;
    hone_dl_tensor *t = versioned ? &l->u.versioned.tensor : &l->u.plain.tensor;
    *t = (hone_dl_tensor){.data = v->data,
                          .device = {.type = HONE_DL_CPU},
                          .ndim = v->rank,
                          .shape = v->dim,
                          .strides = l->stride};
    if (v->away)
        t->data = v->away->handle, t->device.type = v->away->unit.row->dlpack,
        t->device.id = v->away->unit.number;
    t->dtype.code = types[row].code, t->dtype.bits = types[row].bits, t->dtype.lanes = 1;
    l->value = hone_value_hold(v);
    *out = l;
    return HONE_OK;
}
hone_status hone_value_to_dlpack(hone_value *v, struct DLManagedTensor **out) {
    lent *l = NULL;
    if (!out) return hone_fail(HONE_BAD_INPUT, "hone_value_to_dlpack: out must not be NULL");
    HONE_TRY(lend(v, false, &l));
    l->u.plain.context = l, l->u.plain.deleter = back;
    *out = &l->u.plain;
    return HONE_OK;
}
hone_status hone_value_to_dlpack_versioned(hone_value *v, struct DLManagedTensorVersioned **out) {
    lent *l = NULL;
    if (!out) return hone_fail(HONE_BAD_INPUT, "hone_value_to_dlpack_versioned: out must not be NULL");
    HONE_TRY(lend(v, true, &l));
    /* where the small floats and padding came in */
    l->u.versioned.version.major = 1, l->u.versioned.version.minor = 1;
    l->u.versioned.context = l, l->u.versioned.deleter = back_versioned;
    bool small = hone_dtypes[v->dtype].bits < 8;
    /* borrowed memory may be constant */
    l->u.versioned.flags = (v->free_data ? 0 : HONE_DL_READ_ONLY) | (small ? HONE_DL_PADDED : 0);
    *out = &l->u.versioned;
    return HONE_OK;
}
