/* SPDX-License-Identifier: Apache-2.0
   table: rows of text in columns as wide as their widest cell. */
#ifndef HONE_APPS_TABLE_H
#define HONE_APPS_TABLE_H
#include <stdio.h>

typedef struct hone_table hone_table;
/* One letter a column: l left, r right. `head`: titles, or NULL for none. */
hone_table *hone_table_create(const char *columns, const char *const *head);
/* the next cell, row by row */
void hone_table_cell(hone_table *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hone_table_print(hone_table *, FILE *, const char *indent); /* and frees it */
#endif
