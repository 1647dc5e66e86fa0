/* SPDX-License-Identifier: Apache-2.0
   tools.h: checking tools built on hone.h: one ONNX test folder, many of them. */
#ifndef HONE_TOOLS_H
#define HONE_TOOLS_H
#include "hone/hone.h"
#ifdef __cplusplus
extern "C" {
#endif
/* How far `got` is from `want`: |got - want| <= atol + rtol * |want|, NaN equals NaN, shape and dtype exact, sequences and optionals by member. */
typedef struct {
    int ok;
    double max_abs, max_rel;
    int64_t wrong, elements;
    char why[256]; /* first difference in words */
} hone_difference;
HONE_API void hone_compare(const hone_value *got, const hone_value *want, double rtol, double atol, hone_difference *out);
/* Runs one ONNX backend case: FOLDER/model.onnx with every FOLDER/test_data_set_*. passed 1, failed 0, skipped -1; `why` in one line; `op` names what the
   case is about (the op type of its only or last node). */
typedef struct {
    int passed;
    char op[64];
    char why[512];
} hone_case;
HONE_API void hone_conformance_case(const char *folder, double rtol, double atol, const hone_options *, hone_case *out);
#ifdef __cplusplus
}
#endif
#endif
