/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/print.h"

#include <stdlib.h>
#include <string.h>

extern const char hone_cuda_words_text[], hone_cuda_epilogue_text[], hone_cuda_quick_text[],
    hone_cuda_rows_text[], hone_cuda_move_text[], hone_cuda_contract_mma_text[],
    hone_cuda_contract_wgmma_text[], hone_cuda_attention_text[], hone_cuda_attention_decode_text[],
    hone_cuda_attention_wgmma_text[], hone_cuda_window_text[], hone_cuda_few_rows_text[],
    hone_cuda_few_rows_mma_text[], hone_cuda_first_layer_text[], hone_cuda_columns_text[],
    hone_cuda_cell_text[];

typedef struct {
    const char *name, *text, *wants; /* wants: names with a space behind each; (v) marks an expression of v */
    bool epilogue;
    enum { NO_WGMMA, OF_PRODUCT, OF_ATTENTION } wgmma;
} family;
static const family families[] = {
    {"rows", hone_cuda_rows_text,
     "KIND IN_TYPE OUT_TYPE WIDTH VECTORS THREADS_A_ROW ROWS_A_BLOCK BLOCKS LONG BEFORE(v) AFTER(v) ", false,
     NO_WGMMA},
    {"move", hone_cuda_move_text, "BYTES TURN X_ALIGNED Y_ALIGNED HIGH ONCE BLOCKS ", false, NO_WGMMA},
    {"contract_mma", hone_cuda_contract_mma_text,
     "IN_TYPE OUT_TYPE TILE_M TILE_N WARPS_M WARPS_N STAGES PIECE SPLIT WINDOW EPILOGUE(v) ", true, NO_WGMMA},
    {"columns", hone_cuda_columns_text, "IN_TYPE OUT_TYPE WIDTH LANES ", false, NO_WGMMA},
    {"cell", hone_cuda_cell_text, "IN_TYPE KIND UNITS CLUSTER TILES ", false, NO_WGMMA},
    {"few_rows_mma", hone_cuda_few_rows_mma_text,
     "IN_TYPE OUT_TYPE ROWS8 WARPS UNROLLED CONSTANT_B EPILOGUE(v) ", true, NO_WGMMA},
    {"few_rows", hone_cuda_few_rows_text, "IN_TYPE OUT_TYPE ROWS WARPS UNROLLED CONSTANT_B EPILOGUE(v) ",
     true, NO_WGMMA},
    {"attention", hone_cuda_attention_text, "IN_TYPE HEAD WARPS CAUSAL MASK SPLIT ALIGNED ", false, NO_WGMMA},
    {"attention_decode", hone_cuda_attention_decode_text, "IN_TYPE HEAD WARPS BLOCKS CAUSAL MASK FULL ",
     false, NO_WGMMA},
    {"window", hone_cuda_window_text,
     "KIND IN_TYPE ZERO WIDTH STRIP LINES AHEAD KERNEL_Y KERNEL_X STRIDE DILATION EPILOGUE(v) ", false,
     NO_WGMMA},
    {"contract_wgmma", hone_cuda_contract_wgmma_text,
     "IN_TYPE OUT_TYPE CONSUMERS TILE_N STAGES SPLITS BLOCKS WINDOW STORE CONSTANT_B EPILOGUE(v) ", true,
     OF_PRODUCT},
    {"first_layer", hone_cuda_first_layer_text,
     "IN_TYPE OUT_TYPE IMAGE_TYPE CHANNELS KERNEL_Y KERNEL_X STRIDE TILE_Y BLOCKS_M TILE_N EPILOGUE(v) ",
     true, NO_WGMMA},
    {"attention_wgmma", hone_cuda_attention_wgmma_text,
     "IN_TYPE HEAD BLOCK_K CONSUMERS STAGES CAUSAL TURNS MASK MASK_ROWS MASK_PAIRS ", false, OF_ATTENTION},
};

/* The instruction has all its registers in its text, so it is printed for its width. Factors are read from
   shared memory, rows of K; or the left one from registers and the right one by columns. */
static void put_wgmma(hone_text *t, const char *name, int type, int n, bool from_registers) {
    static const char *const shape[] = {[HONE_CUDA_F16] = "k16.f32.f16.f16",
                                        [HONE_CUDA_BF16] = "k16.f32.bf16.bf16",
                                        [HONE_CUDA_F32] = "k8.f32.tf32.tf32",
                                        [HONE_CUDA_S8] = "k32.s32.s8.s8",
                                        [HONE_CUDA_U8] = "k32.s32.u8.s8"};
    static const char *const emulated[] = {[HONE_CUDA_F16] = "EMU_F16",
                                           [HONE_CUDA_BF16] = "EMU_BF16",
                                           [HONE_CUDA_F32] = "EMU_TF32",
                                           [HONE_CUDA_S8] = "EMU_S8",
                                           [HONE_CUDA_U8] = "EMU_U8"};
    const bool whole = type == HONE_CUDA_S8 || type == HONE_CUDA_U8;
    const int sums = n / 2, left = from_registers ? 4 : 1;
    const char *end = from_registers          ? ", 1, 1, 1"
                      : whole                 ? ""
                      : type == HONE_CUDA_F32 ? ", 1, 1"
                                              : ", 1, 1, 0, 0";
    hone_text_put(t,
                  "DEVICE void %s(%s d[%d], %s, u64 b, int add) {\n#ifdef HONE_EMULATE\n    emu_wgmma(d, %s, "
                  "b, %d, add, %s);\n#else\n",
                  name, whole ? "int" : "float", sums, from_registers ? "const u32 a[4]" : "u64 a",
                  from_registers ? "0, a" : "a, 0", n, emulated[type]);
    hone_text_put(
        t,
        "    asm volatile(\"{ .reg .pred p; setp.ne.b32 p, %%%d, 0; wgmma.mma_async.sync.aligned.m64n%d%s {",
        sums + left + 1, n, shape[type]);
    for (int k = 0; k < sums; k++) hone_text_put(t, "%s%%%d", k ? ", " : "", k);
    if (from_registers) hone_text_put(t, "}, {%%%d, %%%d, %%%d, %%%d}", sums, sums + 1, sums + 2, sums + 3);
    else hone_text_put(t, "}, %%%d", sums);
    hone_text_put(t, ", %%%d, p%s; }\"\n        : ", sums + left, end);
    for (int k = 0; k < sums; k++) hone_text_put(t, "%s\"+%c\"(d[%d])", k ? ", " : "", whole ? 'r' : 'f', k);
    hone_text_put(t, "\n        : %s, \"l\"(b), \"r\"(add));\n#endif\n}\n",
                  from_registers ? "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3])" : "\"l\"(a)");
}

hone_status hone_cuda_print(hone_text *out, const char *name, const hone_cuda_fill *fill, int n) {
    const family *f = NULL;
    for (size_t k = 0; k < sizeof families / sizeof *families; k++)
        if (!strcmp(families[k].name, name)) f = &families[k];
    if (!f) return hone_fail(HONE_BAD_INPUT, "there is no family of CUDA kernels named '%s'", name);
    int wanted = 0, type = 0, width = 0, head = 16;
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
        if (!strncmp(w, "TILE_N ", 7) || !strncmp(w, "BLOCK_K ", 8)) width = one->number;
        if (!strncmp(w, "HEAD ", 5)) head = one->number;
        if (f->epilogue && one->text)
            hone_text_put(out, "#define USES_BIAS %d\n#define USES_WHOLE %d\n#define USES_RESIDUAL %d\n",
                          strstr(one->text, "bias") != NULL, strstr(one->text, "whole") != NULL,
                          strstr(one->text, "residual") != NULL);
    }
    if (wanted != n)
        return hone_fail(HONE_BAD_INPUT, "the CUDA family '%s' was given %d fills and wants %d", name, n,
                         wanted);
    if (f->wgmma && (type < HONE_CUDA_F16 || type == HONE_CUDA_S32 || type > HONE_CUDA_U8 ||
                     (f->wgmma == OF_ATTENTION && type > HONE_CUDA_BF16) || width % 16 || width < 16 ||
                     width > 256 || head % 16 || head < 16 || head > 256))
        return hone_fail(HONE_BAD_INPUT, "no wgmma is %d columns wide, of type %d, for heads of %d", width,
                         type, head);
    if (strstr(f->wants, "EPILOGUE(v) ") || f->text == hone_cuda_cell_text)
        hone_text_put(out, "%s", hone_cuda_quick_text);
    if (f->epilogue) hone_text_put(out, "%s", hone_cuda_epilogue_text);
    if (f->wgmma == OF_PRODUCT) put_wgmma(out, "wgmma", type, width, false);
    if (f->wgmma == OF_ATTENTION)
        put_wgmma(out, "wgmma_scores", type, width, false), put_wgmma(out, "wgmma_values", type, head, true);
    hone_text_put(out, "%s", f->text);
    return HONE_OK;
}
