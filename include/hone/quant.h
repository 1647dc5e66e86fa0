/* SPDX-License-Identifier: Apache-2.0
   quant.h: a model made smaller and faster in integers, within an accuracy that the caller sets. The rules at
   the top of hone.h hold here too. */
#ifndef HONE_QUANT_H
#define HONE_QUANT_H
#include "hone/image.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Samples of what a model is given, asked for one at a time, any of them, more than once: they are never all
   in memory. */
typedef struct {
    int64_t n;
    /* Sample k: in[i], one reference an input of the model, in its order; NULL: an optional one that is left
       out. Fails with hone_error() set by whatever failed. */
    hone_status (*get)(void *arg, int64_t k, hone_value **in);
    void *arg;
} hone_samples;

/* Samples from files, for a model: folders of pictures (found in folders inside too), pictures, .npy and
   .npz whose first dim is the samples (an array of a .npz goes to the input of its name; a .npy to the first
   input, or as NAME=FILE), IDX files, folders with input_0.pb …, or with such folders in them. One kind at a
   time. In: recipe, of pictures and of arrays of u8 that are pictures, or NULL: what the input's shape
   suggests. The model and the files must outlive it. Out: to be closed with hone_samples_close. Fails:
   BAD_INPUT for what is none of these, or does not fit the model. */
HONE_API hone_status hone_samples_open(const hone_model *, const char *const *paths, int n,
                                       const hone_image_recipe *, hone_samples *out);
/* Samples of text, for a model that reads tokens, through a tokenizer.json of Hugging Face (WordPiece, BPE):
   a line of the files each, with the marks around it that the file asks for (tokens: 0), or all of the text
   in pieces of so many tokens, without. The model's other inputs are known by their names: masks are 1, types
   are 0, positions count. The model must outlive it; the files need not.
   Out: to be closed with hone_samples_close. Fails: BAD_INPUT, IO; NOT_SUPPORTED for an input that is nothing
   of these, or a part of a tokenizer that is not here. */
HONE_API hone_status hone_samples_open_text(const hone_model *, const char *const *paths, int n,
                                            const char *tokenizer, int tokens, hone_samples *out);
HONE_API void hone_samples_close(hone_samples *);

typedef struct {
    /* What is quantized, by name. "static": weights and values between nodes, by ranges that samples show.
       Others: hone_quantize with a name that is none lists them. */
    const char *form; /* NULL: "static" */
    hone_samples data;
    int calibrate; /* of the samples, so many show ranges; 0: 64, or 3 in 4 where there are fewer than 86 */
    /* and so many others say what is best; 0: 22, or 1 in 4. Where there is one sample alone it does both */
    int judge;
    int64_t seed; /* which samples they are */
    int threads;  /* of a run; 0: all cores */

    /* static. NULL and 0 are the defaults. */
    /* how a range is found: "minmax", "average", "percentile", "entropy", "mse"; NULL: whichever leaves the
       least error behind its layer */
    const char *observer;
    const char *activations; /* "u8", "s8", "u16" or "s16"; NULL: "u8" */
    /* "top1", "cosine", "mse", "sqnr", or "perplexity" (of next tokens, by logits; max_drop is a share of the
       float model's); NULL: by the outputs. What max_drop is of. Forms other than static are measured by it
       where there are samples, and refused where they lose more */
    const char *metric;
    /* in the metric's unit, 0.005 is half a percent; below 0, or 0 where metric is NULL: as good as at most
       float_share allows */
    double max_drop;
    /* at most so much of the multiply-adds may stay float to keep the accuracy; 0: 0.15 where max_drop says
       nothing, else all */
    double float_share;
    int per_tensor; /* 1: one scale a weight, not one an output channel */
    /* 1: a rounding right behind every Conv, as runtimes that are not Hone want it to be fast; 0: only where
       a layer reads */
    int portable;
    int no_repairs; /* 1: no weights are changed to be quantized better */
    /* a text file of what calibration found: read where it fits, written where not; NULL: none */
    const char *cache;

    /* A measure of the caller's: how good `got` is where the float model says `want`, n outputs each; larger
       is better. NULL: `metric`. */
    double (*measure)(void *arg, hone_value *const *want, hone_value *const *got, int n);
    /* Called now and then, where it is not NULL: the share that is done, and what is going on. Not 0: stop,
       nothing is written. */
    int (*progress)(void *arg, double done, const char *what);
    void *arg;        /* of both */
    const void *more; /* of other forms; NULL: their defaults */
    /* "speed": a layer that integers make no faster on this machine stays float; "size": all that accuracy
       allows is integers. NULL: "speed" */
    const char *target;
    /* static. 1: the report says more, for which more is measured: each layer alone and all of them together,
       layer by layer; histograms, ranges that were tried; mixtures of integers and floats */
    int detail;
    /* static. So long it may take, in seconds; 0: as long as it needs. What has begun is finished: ranges of
       one sample at least, an accuracy that was asked for, and the last look at which model is faster are not
       left out. What was, the report names. */
    int seconds;
    int reserved[2]; /* zero */
    /* A measure of whole models, in place of `metric`: given the float model's path, then that of each that
       is tried, written for it: a number, larger is better; max_drop is a share of the float model's. NaN: it
       failed, and so does hone_quantize. Called where a decision hangs on it, not for every step: seconds are
       fine. NULL: none */
    double (*measure_file)(void *arg, const char *model);
    /* static: "qdq": pairs of QuantizeLinear and DequantizeLinear; "qoperator": QLinearConv, QLinearMatMul,
       MatMulInteger and what moves bytes, with pairs around all else; rounds behind every Conv, as `portable`
       does. NULL: "qdq" */
    const char *format;
} hone_quantizing;

/* What forms "weights" and "dynamic" want of hone_quantizing.more; of "dynamic", whose products are of bytes,
   only `tables` and `block` of those. Weights of products and tables get fewer bits, those of convolutions,
   recurrent cells and bodies 8; what is computed between them stays float. Zero is the default of each. */
typedef struct {
    const char *type;   /* "int8", "int4", "nf4" or "f8" (E4M3); NULL: "int4" */
    const char *tables; /* of embeddings: likewise, or "none"; NULL: "int8" */
    /* "nbits": com.microsoft's MatMulNBits and its kin; "qdq": DequantizeLinear, standard ONNX; NULL: "nbits"
       where it has the type */
    const char *format;
    /* "round": each block with the scale that loses least; "gptq": levels that lose least at the layer's
       output, by what samples show that it reads. NULL: by whether there are samples. */
    const char *method;
    /* so many weights along the rows of a product share a scale: a power of two from 16; -1: a whole column;
       0: 32 */
    int block;
    int symmetric;   /* 1: no zero points */
    int sweeps;      /* gptq: each weight is looked at so often again, at most; -1: not again; 0: 12 */
    double damping;  /* gptq: that is added to the diagonal of the moments, as a share of its mean; 0: 0.1 */
    int reserved[8]; /* zero */
} hone_quantizing_weights;

/* Quantizes a model and writes it as standard ONNX (`to`, whole or not at all). Out: a report, as JSON, to
   be freed with hone_text_release. Fails: BAD_INPUT for a model or samples that are wrong, a name that is
   none, or an accuracy that cannot be kept; IO for a file that cannot be written. Threads: not while
   something else runs in this process, because layers are timed. */
HONE_API hone_status hone_quantize(const char *model, const hone_quantizing *, const char *to, char **report);

/* Which tensors of a model leave f16's range on these samples: it is run on them in f32, on the CPU, and what
   comes within a quarter of the largest f16 is named. In: data; at most so many of its samples, those that
   come first (0: 16). Out: keep, lines for hone_options.keep_f32 ("": none); report, as JSON, or NULL:
   samples, largest (magnitude that any tensor has), kept (tensor, node, op, largest). Both freed with
   hone_text_release. Fails: as a run does. */
HONE_API hone_status hone_model_ranges(const hone_model *, const hone_samples *data, int most, int threads,
                                       char **keep, char **report);

#ifdef __cplusplus
}
#endif
#endif
