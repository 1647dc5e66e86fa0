/* SPDX-License-Identifier: Apache-2.0
   number: Cast between numbers and strings. Numbers print as numpy prints them: the fewest digits that read
   back as the same number of that type, "1.0", "1e-05", "nan", "-inf", "True". The process's locale plays no
   part. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strtod_l */
#endif
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/call.h"

enum { LONGEST = 1024 }; /* bytes of a number as text */

/* The text's value in type t, as double; exact where t is f32 (one rounding, not two). */
static double read_double(hone_dtype t, const char *text, char **end, locale_t plain) {
    return t == HONE_DTYPE_F32 ? (double)strtof_l(text, end, plain) : strtod_l(text, end, plain);
}

/* ---- numbers to text ----------------------------------------------------------------------------------- */
static bool reads_back(hone_dtype t, const char *element, double d, size_t bytes) {
    char again[16];
    hone_dtype_store(t, again, HONE_F64, (hone_scalar){.f64 = d}, false);
    return !memcmp(again, element, bytes);
}

static int print_float(hone_dtype t, const char *element, double d, char *out, locale_t plain) {
    if (isnan(d)) return sprintf(out, "nan");
    if (isinf(d)) return sprintf(out, d < 0 ? "-inf" : "inf");
    char digits[64] = "0", text[64];
    int n = 0, exponent = 0;
    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, fabs(d));
        n = 0;
        const char *e = strchr(text, 'e');
        for (const char *at = text; at < e; at++)
            if (*at >= '0' && *at <= '9') digits[n++] = *at;
        exponent = atoi(e + 1);
        snprintf(text, sizeof text, "%s%c.%.*se%d", signbit(d) ? "-" : "", digits[0], n - 1, digits + 1,
                 exponent);
        if (reads_back(t, element, read_double(t, text, NULL, plain), hone_call_bytes(t))) break;
    }
    while (n > 1 && digits[n - 1] == '0') n--;
    char *at = out;
    if (signbit(d)) *at++ = '-';
    if (d != 0 && (exponent < -4 || exponent >= 16)) { /* 1.5e+16 */
        *at++ = digits[0];
        if (n > 1) at += sprintf(at, ".%.*s", n - 1, digits + 1);
        return (int)(at + sprintf(at, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent)) - out);
    }
    if (exponent < 0) at += sprintf(at, "0.");
    for (int k = exponent < 0 ? exponent + 1 : 0; k < 0; k++) *at++ = '0';
    for (int k = 0; k < n || k <= exponent; k++) {
        *at++ = k < n ? digits[k] : '0';
        if (k == exponent) *at++ = '.';
    }
    if (at[-1] == '.') *at++ = '0';
    return (int)(at - out);
}

static int print_element(hone_dtype t, const char *element, char *out, locale_t plain) {
    hone_scalar v = hone_dtype_load(t, element);
    hone_ctype ct = hone_dtypes[t].ctype;
    if (t == HONE_DTYPE_BOOL) return sprintf(out, v.i32 ? "True" : "False");
    if (ct == HONE_F32 || ct == HONE_F64) return print_float(t, element, hone_scalar_f64(ct, v), out, plain);
    if (ct == HONE_U64) return sprintf(out, "%llu", (unsigned long long)v.u64);
    return sprintf(out, "%lld", (long long)(ct == HONE_I32 ? v.i32 : v.i64));
}

static hone_status to_string(const hone_host_call *c, const hone_value *x, hone_value *y, locale_t plain) {
    size_t bytes = hone_call_bytes(x->dtype);
    char text[64];
    hone_call_pool(y, c->strings);
    for (int64_t k = 0, n = hone_value_count(x); k < n; k++) {
        int length = print_element(x->dtype, (const char *)x->data + (size_t)k * bytes, text, plain);
        const hone_string *made = hone_strings_add(c->strings, text, length);
        if (!made) return hone_call_no_memory(c);
        ((const hone_string **)y->data)[k] = made;
    }
    return HONE_OK;
}

/* ---- text to numbers ----------------------------------------------------------------------------------- */
static bool same_word(const char *a, const char *b) {
    for (; *a && *b; a++, b++)
        if ((*a | 32) != *b) return false;
    return !*a && !*b;
}

/* An integer without point and exponent, whole: it may need all 64 bits. */
static bool parse_whole(hone_dtype t, const char *text, hone_ctype *ct, hone_scalar *out) {
    const char *digits = text + (*text == '+' || *text == '-');
    if (!*digits || digits[strspn(digits, "0123456789")]) return false;
    errno = 0;
    if (t == HONE_DTYPE_U64) {
        out->u64 = strtoull(text, NULL, 10);
        *ct = HONE_U64;
        return !errno && *text != '-';
    }
    out->i64 = strtoll(text, NULL, 10);
    *ct = HONE_I64;
    return !errno && (t == HONE_DTYPE_I64 || ((double)out->i64 >= hone_dtypes[t].lowest &&
                                              (double)out->i64 <= hone_dtypes[t].highest));
}

static bool parse_element(hone_dtype t, const char *text, char *to, locale_t plain) {
    hone_kind kind = hone_dtypes[t].kind;
    hone_ctype ct = HONE_F64;
    hone_scalar v = {0};
    if (kind == HONE_KIND_BOOL && (same_word(text, "true") || same_word(text, "false"))) {
        *to = (*text | 32) == 't';
        return true;
    }
    if ((kind == HONE_KIND_INT || kind == HONE_KIND_UINT) && parse_whole(t, text, &ct, &v)) {
        hone_dtype_store(t, to, ct, v, false);
        return true;
    }
    const char *letters = text + strspn(text, "+-");
    bool word = same_word(letters, "inf") || same_word(letters, "infinity") || same_word(letters, "nan");
    char *end;
    if (!word && text[strspn(text, "0123456789+-.eE")]) return false; /* no hexadecimal, no nan(…) */
    v.f64 = read_double(t, text, &end, plain);
    if (end == text || *end) return false;
    if ((kind == HONE_KIND_INT || kind == HONE_KIND_UINT) &&
        !(v.f64 > hone_dtypes[t].lowest - 1 && v.f64 < hone_dtypes[t].highest + 1))
        return false;
    hone_dtype_store(t, to, HONE_F64, v, kind != HONE_KIND_BOOL && kind != HONE_KIND_FLOAT);
    return true;
}

static hone_status from_string(const hone_host_call *c, const hone_value *x, hone_value *y, locale_t plain) {
    size_t bytes = hone_call_bytes(y->dtype);
    char text[LONGEST];
    for (int64_t k = 0, n = hone_value_count(x); k < n; k++) {
        const hone_string *s = hone_value_string(x, k);
        const char *at = s->text, *end = s->text + s->bytes;
        while (at < end && strchr(" \t\n\r", *at) && *at) at++;
        while (end > at && strchr(" \t\n\r", end[-1]) && end[-1]) end--;
        size_t length = (size_t)(end - at);
        bool good = length > 0 && length < LONGEST && !memchr(at, 0, length);
        if (good) {
            memcpy(text, at, length);
            text[length] = 0;
            good = parse_element(y->dtype, text, (char *)y->data + (size_t)k * bytes, plain);
        }
        if (!good)
            return hone_call_fail(c, HONE_BAD_INPUT, "element %lld, \"%.*s\", is no number that fits type %s",
                                  (long long)k, (int)(s->bytes < 60 ? s->bytes : 60), s->text,
                                  hone_dtypes[y->dtype].name);
    }
    return HONE_OK;
}

/* Cast and CastLike where the input or the output is a string tensor. */
hone_status hone_host_cast_string(const hone_host_call *c) {
    const hone_value *x, *like = hone_call_in(c, 1);
    HONE_TRY(hone_call_tensor(c, 0, &x));
    int64_t to = hone_call_int(c, "to",
                               like           ? (int64_t)like->dtype
                               : c->out_dtype ? (int64_t)c->out_dtype[0]
                                              : 0);
    if (!hone_dtype_valid(to))
        return hone_call_fail(c, HONE_BAD_INPUT, "attribute to is %lld, which is no type", (long long)to);
    bool from = x->dtype == HONE_DTYPE_STRING, into = to == HONE_DTYPE_STRING;
    if (hone_dtypes[x->dtype].kind == HONE_KIND_COMPLEX || hone_dtypes[to].kind == HONE_KIND_COMPLEX ||
        from + into == 0)
        return hone_call_fail(c, HONE_NOT_SUPPORTED,
                              "a cast from %s to %s is not one between numbers and strings",
                              hone_dtypes[x->dtype].name, hone_dtypes[to].name);
    hone_value *y;
    HONE_TRY(hone_host_out(c, 0, (hone_dtype)to, x->dim, x->rank, &y));
    if (from && into) {
        if (x->bytes) memcpy(y->data, x->data, x->bytes);
        hone_call_pool(y, x->strings);
        return HONE_OK;
    }
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain) return hone_call_no_memory(c);
    hone_status s = into ? to_string(c, x, y, plain) : from_string(c, x, y, plain);
    freelocale(plain);
    return s;
}
