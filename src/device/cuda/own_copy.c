/* SPDX-License-Identifier: Apache-2.0
   own_copy: an operand that does not lie as a kernel of ours reads it is copied before: another type, another
   order, zeros behind the last index. The kernel is printed like any other, so that all of a plan's compile
   as one program.

   A thread writes 16 bytes. Where the source lies along the last index, neighbours among threads have
   neighbouring pieces of it; elsewhere neighbours along the index before it, along which the source mostly
   lies then: an image whose planes become pixels is read a line of 32 pixels at a time. */
#include "base/round.h"
#include "device/cuda/own.h"

enum { THREADS = 256, AXES = HONE_OWN_COPY_AXES };

static int64_t bytes_of(const hone_own_copy *c) {
    int64_t n = c->padded * hone_dtypes[c->to].bytes;
    for (int k = 0; k < AXES - 1; k++) n *= c->extent[k];
    return n;
}
static const char *element(hone_dtype t) {
    return hone_dtypes[t].bytes == 1 ? "uint8_t" : hone_dtypes[t].bytes == 2 ? "uint16_t" : "float";
}
static const char *print(hone_arena *arena, const char *name, const hone_own_copy *c, int piece, bool across,
                         bool narrow) {
    const char *const along = "    const count at = i % pieces;\n    i /= pieces;\n",
                      *const before = "    const count i4 = i % (count)e4;\n    i /= (count)e4;\n";
    hone_text t = {0};
    hone_text_put(
        &t,
        "HONE_ENTRY(%s, %d)(const %s *const x, %s *const y, const int64_t total, const int64_t first, "
        "const int64_t padded, const int64_t e1, const int64_t e2, const int64_t e3, const int64_t e4, "
        "const int64_t e5, const int64_t s0, const int64_t s1, const int64_t s2, const int64_t s3, "
        "const int64_t s4, const int64_t s5) {\n"
        "    HONE_BEGIN();\n"
        "    typedef %s count;\n"
        "    union { %s one[%d]; uint32_t w[4]; } v;\n"
        "    count i = (count)HONE_GROUP * %du + HONE_THREAD;\n"
        "    if (i >= (count)total) return;\n"
        "    const count pieces = (count)padded / %du;\n",
        name, THREADS, element(c->from), element(c->to), narrow ? "uint32_t" : "uint64_t", element(c->to),
        piece, THREADS, piece);
    hone_text_put(&t, "%s%s", across ? before : along, across ? along : before);
    hone_text_put(
        &t,
        "    const count i3 = i %% (count)e3;\n"
        "    i /= (count)e3;\n"
        "    const count i2 = i %% (count)e2;\n"
        "    i /= (count)e2;\n"
        "    const count i1 = i %% (count)e1, i0 = i / (count)e1, i5 = at * %du;\n"
        "    const %s *const from = x + first + (int64_t)i0 * s0 + (int64_t)i1 * s1 + (int64_t)i2 * s2 +\n"
        "        (int64_t)i3 * s3 + (int64_t)i4 * s4 + (int64_t)i5 * s5;\n"
        "    %s *const to = y + (((((int64_t)i0 * e1 + i1) * e2 + i2) * e3 + i3) * e4 + i4) * padded + i5;\n"
        "    _Pragma(\"unroll\") for (int k = 0; k < %d; k++)\n",
        piece, element(c->from), element(c->to), piece);
    if (hone_dtypes[c->to].bytes == 1)
        hone_text_put(&t, "        v.one[k] = (int64_t)i5 + k < e5 ? from[k * s5] : 0;\n");
    else
        hone_text_put(&t,
                      "        v.one[k] = hone_put_%s_f32((int64_t)i5 + k < e5 ? hone_get_%s(from[k * s5]) : "
                      "0.0f, 0);\n",
                      hone_dtypes[c->to].name, hone_dtypes[c->from].name);
    if (piece == 1) hone_text_put(&t, "    *to = v.one[0];\n}\n");
    else
        hone_text_put(&t, "#ifdef __CUDACC__\n"
                          "    *(uint4 *)to = make_uint4(v.w[0], v.w[1], v.w[2], v.w[3]);\n"
                          "#else\n"
                          "    memcpy(to, &v, 16);\n"
                          "#endif\n}\n");
    const char *text = t.failed ? NULL : hone_arena_text(arena, "%s", t.text);
    hone_text_free(&t);
    return text;
}
static hone_status launch(hone_arena *arena, const hone_own_copy *c, hone_own_place from, int scratch,
                          hone_launch *out) {
    enum { ARGS = 5 + (AXES - 1) + AXES };
    const int whole = 16 / (int)hone_dtypes[c->to].bytes, piece = c->padded % whole ? 1 : whole;
    const int64_t total = bytes_of(c) / hone_dtypes[c->to].bytes / piece;
    const bool narrow = total * piece < INT32_MAX, across = c->stride[AXES - 1] != 1;
    hone_karg *arg = HONE_NEW_N(arena, hone_karg, ARGS);
    if (!arg) return hone_steps_no_memory();
    int n = 0;
    arg[n++] = from.scratch ? (hone_karg){.kind = HONE_KARG_SCRATCH, .which = from.which}
                            : (hone_karg){.kind = HONE_KARG_TENSOR, .which = from.which};
    arg[n++] = (hone_karg){.kind = HONE_KARG_SCRATCH, .which = scratch, .writes = true};
    arg[n++] = (hone_karg){.kind = HONE_KARG_I64, .i = total};
    arg[n++] = (hone_karg){.kind = HONE_KARG_I64, .i = from.at / hone_dtypes[c->from].bytes};
    arg[n++] = (hone_karg){.kind = HONE_KARG_I64, .i = c->padded};
    for (int k = 1; k < AXES; k++) arg[n++] = (hone_karg){.kind = HONE_KARG_I64, .i = c->extent[k]};
    for (int k = 0; k < AXES; k++) arg[n++] = (hone_karg){.kind = HONE_KARG_I64, .i = c->stride[k]};
    out->name = hone_arena_text(arena, "hone_copy_%s_%s_%d_%d_%d", hone_dtypes[c->from].name,
                                hone_dtypes[c->to].name, piece, across, narrow);
    if (out->name) out->text = print(arena, out->name, c, piece, across, narrow);
    if (!out->name || !out->text) return hone_steps_no_memory();
    out->groups = hone_ceil_div(total, THREADS), out->threads = THREADS, out->arg = arg, out->n_arg = n;
    return HONE_OK;
}
hone_status hone_own_copied(hone_arena *arena, const hone_own_copy *c, hone_own_place *place,
                            hone_taken *out) {
    const int scratch = out->first_scratch + out->n_scratch;
    out->scratch_bytes[out->n_scratch++] = bytes_of(c) + 256;
    HONE_TRY(launch(arena, c, *place, scratch, out->launch + out->n_launch++));
    *place = (hone_own_place){scratch, true, 0};
    return HONE_OK;
}
