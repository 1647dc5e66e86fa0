/* SPDX-License-Identifier: Apache-2.0
   feed: what goes into a model: files the user named (tensors or pictures), a folder of ONNX test data, or
   random numbers of the declared shape. */
#ifndef HONE_APPS_FEED_H
#define HONE_APPS_FEED_H
#include "args.h"
#include "hone/hone.h"
#include "picture.h"

typedef struct {
    hone_value *value;  /* NULL: an optional input left out */
    hone_value *source; /* owner of the bytes when `value` is a view of them, else NULL */
    bool guessed;       /* free dims were guessed */
    char from[512];     /* "three.npy", "random from -1 to 1, seed 0; batch = 1 is a guess" */
    bool drawn;         /* random, from the seed */
} hone_fed;

typedef struct {
    /* NAME=FILE or FILE; several pictures for one input are a batch; an .npz stands for all that are in it.
       NAME=WORD: numbers (feed_word.h). */
    const hone_words *inputs;
    const hone_words *shapes; /* NAME=1x3x224x224, or 1x3x224x224 where there is one input */
    int seed;
    bool cast;                        /* tensors of another type are converted, where every number fits */
    const hone_picture_wish *picture; /* or NULL */
    const hone_words *dims;           /* batch=8, or NULL */
    /* Free dims that nobody gave are 1. True: and where the model cannot be planned so, other sizes (dims.h),
       for which it has to be planned. */
    bool plan;
    char guessed[256]; /* out: "batch = 1, seq = 16"; "" where nothing was guessed */
    bool other;        /* out: a guess is not 1 */
    char why[1024];    /* kept by hone_feed_again: what was wrong with the run before */
} hone_feed_wish;
/* One hone_fed an input; free with hone_feed_free even after a failure. 0, or the exit code: one line was
   said. */
int hone_feed(const hone_model *, hone_feed_wish *, hone_fed *out);
/* After a run that failed: feeds once more, with guesses that can be planned. True: they are others than
   before, and a run may be tried again. */
bool hone_feed_again(const hone_model *, hone_feed_wish *, hone_status, hone_fed *);
/* The line of a run that failed; where dims were guessed it says so. Returns the exit code. */
int hone_feed_failed(const hone_feed_wish *, hone_status);
/* FOLDER/input_K.pb; a missing file is an optional input left out. */
int hone_feed_set(const hone_model *, const char *folder, hone_fed *out);
/* FOLDER/WORD_K.pb as that kind of value; *out stays NULL where there is no such file. */
int hone_feed_read(const char *folder, const char *word, int k, hone_value_kind, hone_value **out);
void hone_feed_free(hone_fed *, int n);
#endif
