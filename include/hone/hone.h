/* SPDX-License-Identifier: Apache-2.0
   hone.h: the public interface of libhone. Load a model, run it, ask about it.

   Handles are opaque. A call that can fail returns hone_status; on failure its outputs are untouched and hone_error() says in one line
   what was wrong and what to do. `…_free(NULL)` is fine. Different handles may be used from different threads at once; one session by one
   thread at a time; one model by any number of sessions. */
#ifndef HONE_HONE_H
#define HONE_HONE_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HONE_API __attribute__((visibility("default")))
#else
#define HONE_API
#endif

typedef enum {
    HONE_OK = 0,
    HONE_BAD_INPUT,     /* the model, file, tensor or argument is wrong */
    HONE_NOT_SUPPORTED, /* right, but Hone cannot do it (yet) */
    HONE_NO_MEMORY,
    HONE_IO,            /* the system refused: a file, a device */
    HONE_BUG            /* ours: please report */
} hone_status;

typedef enum { /* ONNX's numbers */
    HONE_DTYPE_NONE = 0, HONE_DTYPE_F32 = 1, HONE_DTYPE_U8, HONE_DTYPE_I8, HONE_DTYPE_U16, HONE_DTYPE_I16, HONE_DTYPE_I32, HONE_DTYPE_I64,
    HONE_DTYPE_STRING, HONE_DTYPE_BOOL, HONE_DTYPE_F16, HONE_DTYPE_F64, HONE_DTYPE_U32, HONE_DTYPE_U64, HONE_DTYPE_C64, HONE_DTYPE_C128,
    HONE_DTYPE_BF16, HONE_DTYPE_F8E4M3FN, HONE_DTYPE_F8E4M3FNUZ, HONE_DTYPE_F8E5M2, HONE_DTYPE_F8E5M2FNUZ, HONE_DTYPE_U4, HONE_DTYPE_I4,
    HONE_DTYPE_F4E2M1, HONE_DTYPE_F8E8M0, HONE_DTYPE_U2, HONE_DTYPE_I2, HONE_DTYPE_COUNT
} hone_dtype;

HONE_API const char *hone_error(void); /* the calling thread's last message; "" when none. Valid until its next failing call */

#ifdef __cplusplus
}
#endif
#endif
