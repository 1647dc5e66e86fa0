/* SPDX-License-Identifier: Apache-2.0
   forms: a model's compiled forms, one for each set of devices and placings that sessions ask for, beside
   the CPU's, which is made when it is loaded. Made when the first session asks, kept for the next. */
#ifndef HONE_RUN_FORMS_H
#define HONE_RUN_FORMS_H
#include <pthread.h>

#include "plan/plan.h"

typedef struct hone_form hone_form;
typedef struct {
    pthread_mutex_t lock;
    hone_form *first; /* most recently used first */
} hone_forms;
void hone_forms_begin(hone_forms *);
void hone_forms_end(hone_forms *);
/* units NULL: `cpu` itself. It is held until hone_forms_drop, and longer as far as there is room. */
hone_status hone_forms_get(hone_forms *, const hone_compiled *cpu, const hone_units *, hone_dtype precision,
                           const hone_compiled **out) HONE_CHECKED;
void hone_forms_drop(hone_forms *, const hone_compiled *); /* what is none of them is left alone */
#endif
