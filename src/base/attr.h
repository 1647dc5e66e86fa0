/* SPDX-License-Identifier: Apache-2.0
   attr: a node's named constant. Read-only after import; everything it points to lives as long as the
   graph. */
#ifndef HONE_BASE_ATTR_H
#define HONE_BASE_ATTR_H
#include "base/value.h"

typedef enum {
    HONE_ATTR_INT,
    HONE_ATTR_FLOAT,
    HONE_ATTR_STRING,
    HONE_ATTR_INTS,
    HONE_ATTR_FLOATS,
    HONE_ATTR_STRINGS,
    HONE_ATTR_TENSOR,
    HONE_ATTR_TENSORS,
    HONE_ATTR_BODY,
    HONE_ATTR_TYPE
} hone_attr_kind;
typedef struct {
    const char *name;
    hone_attr_kind kind;
    int n;                     /* INTS, FLOATS, STRINGS: how many; scalars: 1 */
    const int64_t *i;          /* INT and INTS; TYPE: one hone_dtype */
    const double *f;           /* FLOAT and FLOATS */
    const hone_string *s;      /* STRING and STRINGS; also zero-terminated */
    hone_value *const *tensor; /* TENSOR: 1; TENSORS: n */
    int body;                  /* BODY: number in the node's list of bodies */
} hone_attr;
static inline const hone_attr *hone_attr_find(const hone_attr *a, int n, const char *name) {
    for (int k = 0; k < n; k++)
        if (!__builtin_strcmp(a[k].name, name)) return a + k;
    return NULL;
}
/* The value, or `otherwise` where the attribute is absent or of another kind. */
static inline int64_t hone_attr_int(const hone_attr *a, int n, const char *name, int64_t otherwise) {
    const hone_attr *f = hone_attr_find(a, n, name);
    return f && (f->kind == HONE_ATTR_INT || f->kind == HONE_ATTR_TYPE) ? f->i[0] : otherwise;
}
/* The attribute "axis" (0 where it is absent), one below 0 counted from the end; -1: there is no such dim. */
static inline int hone_attr_axis(const hone_attr *a, int n, int rank) {
    int64_t axis = hone_attr_int(a, n, "axis", 0);
    if (axis < -(int64_t)rank || axis >= rank) return -1;
    return (int)(axis < 0 ? axis + rank : axis);
}
static inline double hone_attr_float(const hone_attr *a, int n, const char *name, double otherwise) {
    const hone_attr *f = hone_attr_find(a, n, name);
    return f && f->kind == HONE_ATTR_FLOAT ? f->f[0] : otherwise;
}
static inline const char *hone_attr_text(const hone_attr *a, int n, const char *name, const char *otherwise) {
    const hone_attr *f = hone_attr_find(a, n, name);
    return f && f->kind == HONE_ATTR_STRING ? f->s[0].text : otherwise;
}
#endif
