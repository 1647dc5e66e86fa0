/* SPDX-License-Identifier: Apache-2.0
   show: a value for people: its type, its statistics, its first elements, its largest ones; a small picture
   as characters. */
#ifndef HONE_APPS_SHOW_H
#define HONE_APPS_SHOW_H
#include <stdbool.h>
#include <stdio.h>

#include "hone/hone.h"
#include "json.h"

void hone_show_type(FILE *, const hone_value *); /* "f32[1,3,224,224]", "sequence of 2"; "nothing" for NULL */
/* lines: statistics and first elements */
void hone_show_value(FILE *, const char *indent, const hone_value *);
void hone_show_top(FILE *, const char *indent, const hone_value *, int k, char *const *labels,
                   int n_labels); /* the k largest of each row, with their numbers or names */
/* [[{"class": 3, "value": 0.9}, …], …] */
void hone_show_json_top(FILE *, const hone_value *, int k, char *const *labels, int n_labels);
/* false: not one small picture of one channel */
bool hone_show_picture(FILE *, const char *indent, const hone_value *);
void hone_show_json(FILE *, const hone_value *); /* {"kind": …} */
/* What a session's report "wisdom" says, in words; false: there is nothing to say. */
bool hone_wisdom_words(const hone_json *, char *to, size_t room);
#endif
