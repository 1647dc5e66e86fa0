/* SPDX-License-Identifier: Apache-2.0
   value: what a var holds at run time, tagged: tensor, sequence, optional or map. Counted, so that sessions
   and callers share.

   A tensor is always dense and row-major here (strided views exist only inside a plan). A string tensor is a
   tensor of dtype STRING whose elements are `const hone_string *`; programs move them as 8-byte handles, and
   a value that holds strings holds a reference to the pool that owns them. */
#ifndef HONE_BASE_VALUE_H
#define HONE_BASE_VALUE_H
#include "base/dtype.h"
#include "base/mem.h"

#define HONE_MAX_RANK 16
#define HONE_MAX_DEPTH 64

typedef struct {
    int64_t bytes;
    const char *text;
} hone_string;                            /* not zero-terminated; immutable */
typedef struct hone_strings hone_strings; /* a counted pool: strings live as long as any holder */
hone_strings *hone_strings_create(void);
hone_strings *hone_strings_hold(hone_strings *);
void hone_strings_drop(hone_strings *);
/* copies; NULL when out of memory */
const hone_string *hone_strings_add(hone_strings *, const char *text, int64_t bytes);
extern const hone_string hone_string_empty;

typedef enum { HONE_TAG_TENSOR, HONE_TAG_SEQUENCE, HONE_TAG_OPTIONAL, HONE_TAG_MAP } hone_tag;
struct hone_value {
    int32_t holders; /* atomic */
    hone_tag tag;
    /* tensor: of elements; sequence/optional/map: of the tensors inside where known, else NONE */
    hone_dtype dtype;
    int8_t rank;
    int8_t depth; /* how deep lists stand in each other here: tensor 0, at most HONE_MAX_DEPTH */
    int64_t dim[HONE_MAX_RANK];
    void *data;                /* tensor; NULL only if it has no element */
    size_t bytes;              /* of data */
    void (*free_data)(void *); /* NULL: data is borrowed */
    void *owner;               /* what free_data gets; NULL: data */
    hone_strings *strings;     /* owner of a string tensor's elements; may be NULL when there is none */
    /* sequence: its members; optional: 0 or 1; map: keys then values, two tensors (or a sequence) */
    struct hone_value **item;
    int n_item;
    /* its bytes are in the memory of a device (device/away.h), and data is NULL; or NULL. Then it owns, by
       free_data */
    struct hone_away *away;
    /* a constant that was dequantized: what of; NULL: nothing, or it is not known */
    struct hone_quantized *from;
};
typedef struct hone_value hone_value;
/* DequantizeLinear's operands and attributes, so that export can write it again */
typedef struct hone_quantized {
    hone_value *q, *scale, *zero; /* held; zero may be NULL */
    int64_t axis, block_size;
} hone_quantized;
/* Notes what a tensor was dequantized from. Where there is no memory for it, nothing is noted. */
void hone_value_note(hone_value *, hone_value *q, hone_value *scale, hone_value *zero, int64_t axis,
                     int64_t block_size);

/* allocates; contents zero (strings: empty) */
hone_status hone_value_tensor(hone_dtype, const int64_t *dims, int rank, hone_value **out);
/* type, shape and bytes, and no data yet */
hone_status hone_value_shell(hone_dtype, const int64_t *dims, int rank, hone_value **out);
/* borrows data */
hone_status hone_value_view(hone_dtype, const int64_t *dims, int rank, const void *data, hone_value **out);
/* holds each item */
hone_status hone_value_list(hone_tag, hone_value *const *items, int n, hone_value **out);
hone_value *hone_value_hold(hone_value *);
bool hone_value_alone(const hone_value *);                         /* there is one reference to it */
void hone_value_drop(hone_value *);                                /* NULL is fine */
hone_status hone_value_copy(const hone_value *, hone_value **out); /* deep; owns its data */
int64_t hone_value_count(const hone_value *);                      /* elements of a tensor */
/* Element k of an integer (or bool) tensor as int64, of a float one as double. */
int64_t hone_value_i64(const hone_value *, int64_t k);
double hone_value_f64(const hone_value *, int64_t k);
const hone_string *hone_value_string(const hone_value *, int64_t k); /* never NULL */
void hone_value_describe(const hone_value *, hone_text *out);        /* "f32[1,3,224,224]", "seq(2 x f32)" */
#endif
