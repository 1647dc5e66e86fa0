/* SPDX-License-Identifier: Apache-2.0
   options: what stands behind the '?' of "zoo:bert_base?batch=8&seq=256". Whole numbers only. */
#ifndef HONE_ZOO_OPTIONS_H
#define HONE_ZOO_OPTIONS_H
#include "zoo/zoo.h"

typedef enum {
    HONE_ZOO_BATCH,
    HONE_ZOO_IMAGE,
    HONE_ZOO_CLASSES,
    HONE_ZOO_SEQ,
    HONE_ZOO_PAST,
    HONE_ZOO_LAYERS,
    HONE_ZOO_DIM,
    HONE_ZOO_HEADS,
    HONE_ZOO_KV,
    HONE_ZOO_HIDDEN,
    HONE_ZOO_VOCAB,
    HONE_ZOO_ROWS,
    HONE_ZOO_CACHE,
    HONE_ZOO_BI,
    HONE_ZOO_BN,
    HONE_ZOO_DYNAMIC,
    HONE_ZOO_SEED,
    HONE_ZOO_KEYS
} hone_zoo_key;
typedef struct {
    int64_t value[HONE_ZOO_KEYS]; /* 0 where the model has no such option */
} hone_zoo_options;

/* The model and its options, or one line that lists the choices. */
hone_status hone_zoo_read(const char *spec, const hone_zoo_model **model, hone_zoo_options *out) HONE_CHECKED;
/* What a model may be asked for: [{"name", "default", "lowest", "highest", "step"}, …]. */
void hone_zoo_options_json(const hone_zoo_model *, hone_text *);
#endif
