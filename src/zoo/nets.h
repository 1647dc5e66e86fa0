/* SPDX-License-Identifier: Apache-2.0
   nets: one builder a family, and the plans that make a network of it. Between table.c and the family's
   file. */
#ifndef HONE_ZOO_NETS_H
#define HONE_ZOO_NETS_H
#include "zoo/layers.h"

typedef struct { /* residual.c */
    bool bottleneck;
    int blocks[4];
} hone_zoo_resnet_plan;
extern const hone_zoo_resnet_plan hone_zoo_resnet18_plan, hone_zoo_resnet50_plan;
void hone_zoo_resnet(hone_zoo *, const void *plan);

typedef struct { /* mobile.c: inverted residuals, with or without squeeze-and-excite */
    int expand;  /* channels between: of v2 and efficientnet times the input's, of v3 a number */
    int out, k, stride, repeat;
    bool squeeze;
    const char *act;
} hone_zoo_mobile_row;
typedef struct {
    int stem, head, hidden; /* hidden: of a second linear layer, or 0 */
    const char *stem_act, *squeeze_act, *gate_act;
    bool factor; /* expand is a factor */
    /* squeeze to input / this; 0: to an eighth-rounded quarter of what is between */
    int squeeze_of_input;
    hone_zoo_mobile_row row[16]; /* up to out = 0 */
} hone_zoo_mobile_plan;
extern const hone_zoo_mobile_plan hone_zoo_mobilenet_v2_plan, hone_zoo_mobilenet_v3_small_plan,
    hone_zoo_efficientnet_b0_plan;
void hone_zoo_mobile(hone_zoo *, const void *plan);

extern const int hone_zoo_vgg16_plan[]; /* chain.c: channels, 0: a pool, -1: the end */
void hone_zoo_vgg(hone_zoo *, const void *plan);
void hone_zoo_squeezenet(hone_zoo *, const void *);
void hone_zoo_densenet(hone_zoo *, const void *); /* branches.c */
void hone_zoo_shufflenet(hone_zoo *, const void *);
void hone_zoo_inception(hone_zoo *, const void *); /* inception.c */
void hone_zoo_unet(hone_zoo *, const void *);      /* unet.c */
void hone_zoo_yolo(hone_zoo *, const void *);      /* yolo.c */

void hone_zoo_vit(hone_zoo *, const void *); /* encoder.c */
void hone_zoo_bert(hone_zoo *, const void *);
void hone_zoo_distilbert(hone_zoo *, const void *);
void hone_zoo_whisper(hone_zoo *, const void *);
void hone_zoo_gpt2(hone_zoo *, const void *); /* decoder.c */
void hone_zoo_llama(hone_zoo *, const void *);
void hone_zoo_recurrent(hone_zoo *, const void *op); /* recurrent.c: "LSTM" or "GRU" */
void hone_zoo_dlrm(hone_zoo *, const void *);        /* dlrm.c */
#endif
