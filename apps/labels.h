/* SPDX-License-Identifier: Apache-2.0
   labels: the names of classes, from a file: a line each, a JSON list, or a dict as JSON or Python writes it
   ({0: 'cat'}, {"0": ["n01", "cat"]}, {"cat": 0}). */
#ifndef HONE_APPS_LABELS_H
#define HONE_APPS_LABELS_H

typedef struct {
    char **at; /* by class; "" where a dict has none */
    int n, room;
    char *text; /* all of them lie in here */
} hone_labels;
/* 0, or the exit code: one line was said. Free it even then */
int hone_labels_read(const char *path, hone_labels *out);
void hone_labels_free(hone_labels *);
#endif
