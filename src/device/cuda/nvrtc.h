/* SPDX-License-Identifier: Apache-2.0
   nvrtc: CUDA source to machine code, by NVIDIA's run-time compiler where the machine has it: the toolkit's,
   or PyPI's nvidia-cuda-nvrtc (found in the active virtual environment, the user's packages, or where
   HONE_NVRTC names a file). Needs no GPU, keeps nothing. */
#ifndef HONE_DEVICE_CUDA_NVRTC_H
#define HONE_DEVICE_CUDA_NVRTC_H
#include "base/mem.h"

/* HONE_NOT_SUPPORTED where there is none, with what to install */
hone_status hone_nvrtc_version(int *major, int *minor);
/* `arch`: "sm_90a". The caller frees *cubin with hone_free. Where the compiler refuses, the message has its
   first lines. */
hone_status hone_nvrtc_compile(const char *source, const char *name, const char *arch, void **cubin,
                               size_t *bytes);
/* The same without contraction, for printed kernels: a product is only fused where its text says fma. */
hone_status hone_nvrtc_compile_exact(const char *source, const char *name, const char *arch, void **cubin,
                                     size_t *bytes);
/* What the compiler said of this thread's last compilation being slow (wgmma that it had to put one after the
   other), or "". */
const char *hone_nvrtc_remark(void);
#endif
