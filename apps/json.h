/* SPDX-License-Identifier: Apache-2.0
   json: reports come from the library as JSON; this reads them into a tree to be drawn, and writes the little
   that the command adds. */
#ifndef HONE_APPS_JSON_H
#define HONE_APPS_JSON_H
#include <stddef.h>
#include <stdio.h>

typedef enum {
    HONE_JSON_NULL,
    HONE_JSON_FALSE,
    HONE_JSON_TRUE,
    HONE_JSON_NUMBER,
    HONE_JSON_TEXT,
    HONE_JSON_ARRAY,
    HONE_JSON_OBJECT
} hone_json_type;
typedef struct hone_json hone_json;
struct hone_json {
    hone_json_type type;
    char *key;  /* of a member of an object, else NULL */
    char *text; /* TEXT */
    double number;
    int n; /* members */
    hone_json *first, *next;
};
hone_json *hone_json_read(const char *text); /* NULL: not JSON, or no memory */
void hone_json_free(hone_json *);
/* NULL: there is none. Every one of these takes NULL too */
const hone_json *hone_json_get(const hone_json *, const char *key);
double hone_json_number(const hone_json *, const char *key, double otherwise);
const char *hone_json_text(const hone_json *, const char *key, const char *otherwise);

/* quoted; bytes that are no UTF-8 become U+FFFD */
void hone_json_put_text(FILE *, const char *text, size_t bytes);
void hone_json_put_number(FILE *, double); /* NaN and infinities, which JSON lacks, as null */
/* A member of an object: its key and value, after a comma unless it is the first. */
void hone_json_first_text(FILE *, const char *key, const char *text);
void hone_json_member_text(FILE *, const char *key, const char *text);
void hone_json_member_number(FILE *, const char *key, double);
#endif
