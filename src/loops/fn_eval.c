/* SPDX-License-Identifier: Apache-2.0
   fn_eval: the rows of fn.def as a table, and one function value at a time: fn.h, callable by number. */
#include "loops/fn.h"
#include "loops/instance.h"

#define ROW_SAME 'S'
#define ROW_BOOL 'B'
#define ROW_F32 'F'
const hone_fn_row hone_fns[HONE_FN_COUNT] = {
#define HONE_FN(name, arity, types, result) {#name, arity, #types[0], ROW_##result},
#include "loops/fn.def"
#undef HONE_FN
};

/* One small function a row and compute type. `make` is expanded for each type that the letter stands for. */
#define EACH_A(make, ...)                                                                       \
    make(f32, __VA_ARGS__) make(f64, __VA_ARGS__) make(i32, __VA_ARGS__) make(i64, __VA_ARGS__) \
        make(u64, __VA_ARGS__)
#define EACH_F(make, ...) make(f32, __VA_ARGS__) make(f64, __VA_ARGS__)
#define EACH_I(make, ...) make(i32, __VA_ARGS__) make(i64, __VA_ARGS__) make(u64, __VA_ARGS__)
#define EACH_L(make, ...) make(i32, __VA_ARGS__)
#define EACH_R(make, ...) make(i64, __VA_ARGS__)
#define RESULT_SAME(t) t
#define RESULT_BOOL(t) i32
#define RESULT_F32(t) f32
#define ARGS_1(t) a[0].t
#define ARGS_2(t) a[0].t, a[1].t
#define ARGS_3(t) a[0].t, a[1].t, a[2].t

#define EVAL(t, name, arity, result)                               \
    static hone_scalar name##_##t(const hone_scalar *a) {          \
        hone_scalar r = {.u64 = 0};                                \
        r.RESULT_##result(t) = hone_##name##_##t(ARGS_##arity(t)); \
        return r;                                                  \
    }
#define HONE_FN(name, arity, types, result) EACH_##types(EVAL, name, arity, result)
#include "loops/fn.def"
#undef HONE_FN

#define CTYPE_f32 HONE_F32
#define CTYPE_f64 HONE_F64
#define CTYPE_i32 HONE_I32
#define CTYPE_i64 HONE_I64
#define CTYPE_u64 HONE_U64
#define CELL(t, name) [CTYPE_##t] = name##_##t,
static hone_scalar (*const evals[HONE_FN_COUNT][HONE_CTYPES])(const hone_scalar *) = {
#define HONE_FN(name, arity, types, result) {EACH_##types(CELL, name)},
#include "loops/fn.def"
#undef HONE_FN
};

hone_scalar hone_fn_eval(hone_fn fn, hone_ctype args, const hone_scalar *a) {
    const hone_scalar none = {.u64 = 0};
    /* the instance's builder checks types; none is left here */
    return evals[fn][args] ? evals[fn][args](a) : none;
}
