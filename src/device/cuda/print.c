/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/print.h"

#include <stdlib.h>
#include <string.h>

extern const char hone_cuda_words_text[], hone_cuda_epilogue_text[], hone_cuda_rows_text[], hone_cuda_move_text[],
    hone_cuda_contract_mma_text[], hone_cuda_contract_wgmma_text[], hone_cuda_attention_text[], hone_cuda_window_text[],
    hone_cuda_few_rows_text[];

typedef struct {
    const char *name, *text, *wants; /* wants: names with a space behind each; (v) marks an expression of v */
    bool epilogue, wgmma;
} family;
static const family families[] = {
    {"rows", hone_cuda_rows_text, "KIND IN_TYPE OUT_TYPE WIDTH VECTORS THREADS_A_ROW ROWS_A_BLOCK LONG BEFORE(v) AFTER(v) ", false, false},
    {"move", hone_cuda_move_text, "BYTES TURN ", false, false},
    {"contract_mma", hone_cuda_contract_mma_text, "IN_TYPE OUT_TYPE TILE_M TILE_N WARPS_M WARPS_N STAGES PIECE SPLIT WINDOW EPILOGUE(v) ",
     true, false},
    {"few_rows", hone_cuda_few_rows_text, "IN_TYPE OUT_TYPE ROWS WARPS UNROLLED EPILOGUE(v) ", true, false},
    {"attention", hone_cuda_attention_text, "IN_TYPE HEAD WARPS CAUSAL MASK SPLIT ALIGNED ", false, false},
    {"window", hone_cuda_window_text, "KIND IN_TYPE WIDTH STRIP KERNEL_Y KERNEL_X STRIDE EPILOGUE(v) ", false, false},
    {"contract_wgmma", hone_cuda_contract_wgmma_text, "IN_TYPE OUT_TYPE CONSUMERS TILE_N STAGES SPLIT WINDOW STORE EPILOGUE(v) ", true,
     true},
};

/* The instruction has all its registers in its text, so it is printed for its width. */
static void put_wgmma(hone_text *t, int type, int n) {
    static const char *const shape[] = {[HONE_CUDA_F16] = "k16.f32.f16.f16",
                                        [HONE_CUDA_BF16] = "k16.f32.bf16.bf16",
                                        [HONE_CUDA_F32] = "k8.f32.tf32.tf32",
                                        [HONE_CUDA_S8] = "k32.s32.s8.s8"};
    static const char *const emulated[] = {
        [HONE_CUDA_F16] = "EMU_F16", [HONE_CUDA_BF16] = "EMU_BF16", [HONE_CUDA_F32] = "EMU_TF32", [HONE_CUDA_S8] = "EMU_S8"};
    const bool whole = type == HONE_CUDA_S8;
    hone_text_put(
        t, "DEVICE void wgmma(sum_type d[%d], u64 a, u64 b, int add) {\n#ifdef HONE_EMULATE\n    emu_wgmma(d, a, b, %d, add, %s);\n#else\n",
        n / 2, n, emulated[type]);
    hone_text_put(t, "    asm volatile(\"{ .reg .pred p; setp.ne.b32 p, %%%d, 0; wgmma.mma_async.sync.aligned.m64n%d%s {", n / 2 + 2, n,
                  shape[type]);
    for (int k = 0; k < n / 2; k++) hone_text_put(t, "%s%%%d", k ? ", " : "", k);
    hone_text_put(t, "}, %%%d, %%%d, p%s; }\"\n        : ", n / 2, n / 2 + 1,
                  whole                   ? ""
                  : type == HONE_CUDA_F32 ? ", 1, 1"
                                          : ", 1, 1, 0, 0");
    for (int k = 0; k < n / 2; k++) hone_text_put(t, "%s\"+%c\"(d[%d])", k ? ", " : "", whole ? 'r' : 'f', k);
    hone_text_put(t, "\n        : \"l\"(a), \"l\"(b), \"r\"(add));\n#endif\n}\n");
}

hone_status hone_cuda_print(hone_text *out, const char *name, const hone_cuda_fill *fill, int n) {
    const family *f = NULL;
    for (size_t k = 0; k < sizeof families / sizeof *families; k++)
        if (!strcmp(families[k].name, name)) f = &families[k];
    if (!f) return hone_fail(HONE_BAD_INPUT, "there is no family of CUDA kernels named '%s'", name);
    int wanted = 0, type = 0, tile_n = 0;
    hone_text_put(out, "%s", hone_cuda_words_text);
    for (const char *w = f->wants; *w; w = strchr(w, ' ') + 1, wanted++) {
        const int length = (int)strcspn(w, " "), bare = (int)strcspn(w, " (");
        const hone_cuda_fill *one = NULL;
        for (int k = 0; k < n; k++)
            if ((int)strlen(fill[k].name) == bare && !strncmp(fill[k].name, w, (size_t)bare)) one = &fill[k];
        if (!one || (bare < length) != (one->text != NULL))
            return hone_fail(HONE_BAD_INPUT, "the CUDA family '%s' wants %.*s", name, length, w);
        if (one->text) hone_text_put(out, "#define %.*s (%s)\n", length, w, one->text);
        else hone_text_put(out, "#define %.*s %d\n", length, w, one->number);
        if (!strncmp(w, "IN_TYPE ", 8)) type = one->number;
        if (!strncmp(w, "TILE_N ", 7)) tile_n = one->number;
    }
    if (wanted != n) return hone_fail(HONE_BAD_INPUT, "the CUDA family '%s' was given %d fills and wants %d", name, n, wanted);
    if (f->wgmma && (type < HONE_CUDA_F16 || type > HONE_CUDA_S8 || tile_n % 16 || tile_n < 16 || tile_n > 256))
        return hone_fail(HONE_BAD_INPUT, "no wgmma is %d columns wide, of type %d", tile_n, type);
    if (f->epilogue) hone_text_put(out, "%s", hone_cuda_epilogue_text);
    if (f->wgmma) put_wgmma(out, type, tile_n);
    hone_text_put(out, "%s", f->text);
    return HONE_OK;
}
