/* SPDX-License-Identifier: Apache-2.0
   dlpack: the binary layout of DLPack's structs, versions 0 and 1, as its specification gives it. Private:
   hone.h only names them, so that a user's own copy of DLPack's header fits. */
#ifndef HONE_RUN_DLPACK_H
#define HONE_RUN_DLPACK_H
#include <stdint.h>

/* devices whose memory the CPU reads */
enum { HONE_DL_CPU = 1, HONE_DL_CUDA_HOST = 3, HONE_DL_ROCM_HOST = 11 };
enum { HONE_DL_READ_ONLY = 1, HONE_DL_PADDED = 4 /* types below 8 bits: a byte each */ }; /* flags */

typedef struct {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides; /* strides: in elements; NULL: dense */
    uint64_t byte_offset;
} hone_dl_tensor;
struct DLManagedTensor {
    hone_dl_tensor tensor;
    void *context;
    void (*deleter)(struct DLManagedTensor *); /* or NULL */
};
struct DLManagedTensorVersioned {
    struct {
        uint32_t major, minor;
    } version;
    void *context;
    void (*deleter)(struct DLManagedTensorVersioned *);
    uint64_t flags;
    hone_dl_tensor tensor;
};
#endif
