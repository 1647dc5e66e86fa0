/* SPDX-License-Identifier: Apache-2.0
   hone quantize: a model made smaller and faster in integers (hone_quantize); here is only what a user says
   and sees. Options of forms that need no samples stand beside those of the static
   one, each named in its help; the table `forms` says which form a word of --form is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "commands.h"
#include "hone/quant.h"
#include "hone/tools.h"
#include "json.h"
#include "load.h"
#include "output.h"
#include "picture.h"
#include "quantize.h"
#include "term.h"

typedef struct {
    const char *path, *to, *drop, *share, *page, *tokenizer, *format;
    bool json, per_tensor, no_repairs, portable, all, mixtures;
    int seed, samples, judge, threads, tokens, seconds;
    hone_words data;
    hone_picture_wish picture;
    hone_quantizing wish;
    hone_quantizing_weights weights; /* of forms weights and dynamic */
    bool dynamic, symmetric;
    hone_progress bar;
    hone_quantize_scorer scorer; /* --metric COMMAND */
    int metric_limit;
} job;

static int show(void *arg, double done, const char *what) {
    enum { STEPS = 1000 };
    job *j = arg;
    hone_progress_show(&j->bar, (int)(done * STEPS), STEPS, what);
    return 0;
}
/* What says how good a model is: a word of ours, or a command. */
static double score(void *arg, const char *model) {
    job *j = arg;
    return hone_quantize_score(&j->scorer, model);
}
static bool is_word(const char *metric) {
    static const char *const words[] = {"top1", "cosine", "mse", "sqnr", "perplexity"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (!strcmp(words[k], metric)) return true;
    return false;
}
/* "0.5%" is 0.005; so is 0.005. */
static bool share_of(const char *text, double *out) {
    char *end;
    const double x = strtod(text, &end);
    if (end == text || !isfinite(x) || (*end && strcmp(end, "%") != 0)) return false;
    *out = *end ? x / 100 : x;
    return true;
}

/* ---- the command --------------------------------------------------------------------------------------- */
static int read_wishes(job *j) {
    hone_quantizing *w = &j->wish;
    if (j->weights.type && (j->dynamic || w->form))
        return hone_args_wrong("--weights is a form of its own: not with %s",
                               j->dynamic ? "--dynamic" : "--form");
    if (j->dynamic && w->form) return hone_args_wrong("--dynamic is a form of its own: not with --form");
    if (j->weights.type) w->form = "weights";
    if (j->dynamic) w->form = "dynamic";
    const bool takes = w->form && (!strcmp(w->form, "weights") || !strcmp(w->form, "dynamic"));
    if (j->tokens && !j->tokenizer) return hone_args_wrong("--tokens is of text: it goes with --tokenizer");
    if (j->tokenizer && !j->data.n)
        return hone_args_wrong("--tokenizer is for text: --data FILE.txt is missing");
    if (!takes && (j->weights.method || j->weights.tables || j->weights.block || j->symmetric))
        return hone_args_wrong("--method, --tables, --block and --symmetric go with --weights or --dynamic");
    if (takes) j->weights.format = j->format;
    else w->format = j->format;
    j->weights.symmetric = j->symmetric;
    if (takes) w->more = &j->weights;
    if (j->drop && !(w->metric && !strcmp(w->metric, "sqnr") ? sscanf(j->drop, "%lf", &w->max_drop) == 1
                                                             : share_of(j->drop, &w->max_drop)))
        return hone_args_wrong(
            "--max-drop %s: say a share, as 0.5%% or 0.005; with --metric sqnr, decibels that must be left",
            j->drop);
    if (j->mixtures && w->form && strcmp(w->form, "static") != 0)
        return hone_args_wrong("--mixtures are of form static: '%s' has none", w->form);
    if (j->drop && !w->metric) w->metric = "top1";
    if (w->metric && !j->drop)
        return hone_args_wrong("--metric %s: and how much may be lost of it? --max-drop 0.5%%", w->metric);
    if (j->share && (!share_of(j->share, &w->float_share) || !(w->float_share > 0 && w->float_share <= 1)))
        return hone_args_wrong("--float-share %s: say a share of the multiply-adds, as 15%%", j->share);
    if (w->metric && !is_word(w->metric)) {
        j->scorer.command = w->metric, j->scorer.seconds = j->metric_limit > 0 ? j->metric_limit : 600;
        w->measure_file = score, w->metric = NULL;
    }
    w->seed = j->seed, w->calibrate = j->samples, w->judge = j->judge, w->threads = j->threads;
    w->seconds = j->seconds;
    w->per_tensor = j->per_tensor, w->no_repairs = j->no_repairs, w->portable = j->portable;
    w->detail = j->page || j->mixtures;
    w->progress = show, w->arg = j;
    return 0;
}
static int open_samples(job *j, const hone_model *m) {
    if (j->tokenizer) {
        const hone_status s =
            hone_samples_open_text(m, j->data.at, j->data.n, j->tokenizer, j->tokens, &j->wish.data);
        return s ? hone_args_failed(s) : 0;
    }
    hone_image_recipe recipe;
    const bool wished = hone_picture_wished(&j->picture);
    if (wished && hone_picture_recipe(hone_model_input(m, 0), &j->picture, &recipe)) return 1;
    hone_status s = hone_samples_open(m, j->data.at, j->data.n, wished ? &recipe : NULL, &j->wish.data);
    return s ? hone_args_failed(s) : 0;
}
static int quantize(job *j) {
    hone_model *m = NULL;
    char why[4096];
    int rc = read_wishes(j);
    if (!rc && j->page) rc = hone_output_try("--report", j->page);
    if (rc) return rc;
    hone_status s = hone_load(j->path, &m, why, sizeof why);
    if (s) return hone_args_stopped(s, why);
    if (j->data.n) rc = open_samples(j, m);
    else if (!j->wish.form || !strcmp(j->wish.form, "static")) {
        const hone_port *in = hone_model_inputs(m) ? hone_model_input(m, 0) : NULL;
        rc = hone_args_wrong("samples of what the model is given are missing: --data FOLDER of pictures, "
                             ".npy or .npz (first dim: the "
                             "samples), IDX, or folders of input_0.pb; some 50 to 100 of them%s%s%s%s",
                             in ? "; input '" : "", in ? in->name : "", in ? "' is " : "",
                             in ? in->shape : "");
    }
    if (!rc && (s = hone_model_bare(m))) rc = hone_args_failed(s); /* it is only asked for its inputs now */
    char *report = NULL;
    hone_progress_begin(&j->bar, "loading");
    if (!rc) {
        s = hone_quantize(j->path, &j->wish, j->to, &report);
        hone_progress_end(&j->bar);
        if (s && *j->scorer.why) rc = hone_args_wrong("--metric %s: %s", j->scorer.command, j->scorer.why);
        else if (s) rc = hone_args_failed(s);
    }
    const hone_quantize_told told = {j->path, j->to, j->wish.data.n, j->all};
    hone_json *r = report ? hone_json_read(report) : NULL;
    if (report && j->json) printf("%s\n", report);
    else if (r) hone_quantize_tell(&told, r);
    hone_json_free(r);
    if (report && !rc && j->page) rc = hone_quantize_page(&told, report, j->page);
    hone_text_release(report);
    if (j->wish.data.get) hone_samples_close(&j->wish.data);
    hone_model_free(m);
    return rc;
}

int hone_cmd_quantize(int argc, char **argv) {
    job j = {0};
    hone_words operands = {0};
    const hone_option options[] = {
        {"--data", "PATH",
         "samples: a folder of pictures, a picture, .npy or .npz (first dim: the samples), IDX, folders of "
         "input_0.pb; may stand often",
         HONE_ARG_LIST, &j.data, 0},
        {"--tokenizer", "FILE",
         "--data is text, a line a sample, and this is the tokenizer.json of Hugging Face that the model "
         "goes with",
         HONE_ARG_TEXT, &j.tokenizer, 0},
        {"--tokens", "N", "text: not lines, but all of it in pieces of so many tokens", HONE_ARG_INT,
         &j.tokens, 1},
        {"--form", "WORD",
         "static (8 bits by samples), or one that needs no samples: weights, dynamic, f16, bf16",
         HONE_ARG_TEXT, &j.wish.form, 0},
        {"--weights", "TYPE",
         "only weights, in blocks: int4, int8, nf4 or f8; better with --data, which shows what layers read",
         HONE_ARG_TEXT, &j.weights.type, 0},
        {"--dynamic", NULL,
         "weights in int8, and what products read is rounded during the run; better with --data",
         HONE_ARG_FLAG, &j.dynamic, 0},
        {"--format", "WORD",
         "qdq (pairs around products) or qoperator (QLinearConv, QLinearMatMul, MatMulInteger); weights: "
         "nbits "
         "(MatMulNBits, GatherBlockQuantized) or qdq (DequantizeLinear)",
         HONE_ARG_TEXT, &j.format, 0},
        {"--method", "WORD", "weights: round, or gptq by samples", HONE_ARG_TEXT, &j.weights.method, 0},
        {"--tables", "TYPE", "weights, dynamic: of embeddings: int8, int4, f8 or none (int8)", HONE_ARG_TEXT,
         &j.weights.tables, 0},
        {"--block", "N", "weights: so many share a scale, a power of two from 16 (32); -1: a whole column",
         HONE_ARG_INT, &j.weights.block, -1},
        {"--symmetric", NULL, "weights: no zero points", HONE_ARG_FLAG, &j.symmetric, 0},
        {"-o", "FILE", "where to write: FILE.onnx", HONE_ARG_TEXT, &j.to, 0},
        {"--metric", "WORD|COMMAND",
         "what must not be lost, against the float model: top1, cosine, mse, sqnr, perplexity (of next "
         "tokens), "
         "or a command that is given a model's path and prints a number, larger is better",
         HONE_ARG_TEXT, &j.wish.metric, 0},
        {"--metric-limit", "SECONDS", "so long a command may take for a model (600)", HONE_ARG_INT,
         &j.metric_limit, 1},
        {"--max-drop", "SHARE", "and how much of it may be lost: 0.5% (sqnr: the decibels that must be left)",
         HONE_ARG_TEXT, &j.drop, 0},
        {"--target", "speed|size",
         "speed: a layer that integers make no faster on this machine stays f32; size: all that accuracy "
         "allows is in integers (speed)",
         HONE_ARG_TEXT, &j.wish.target, 0},
        {"--limit", "SECONDS",
         "so long it may take: what there is no time to try is left out, and named at the end", HONE_ARG_INT,
         &j.seconds, 1},
        {"--float-share", "SHARE",
         "at most so much of the multiply-adds stays f32; 15% where no --max-drop is given", HONE_ARG_TEXT,
         &j.share, 0},
        {"--samples", "N", "so many show ranges (64), or what layers read (128)", HONE_ARG_INT, &j.samples,
         1},
        {"--judge", "N", "and so many others say what is best (22)", HONE_ARG_INT, &j.judge, 1},
        {"--seed", "N", "which samples they are (0)", HONE_ARG_INT, &j.seed, 0},
        {"--observer", "WORD",
         "how ranges are found: minmax, average, percentile, percentile99.9, entropy or mse; otherwise "
         "whichever is best for each tensor",
         HONE_ARG_TEXT, &j.wish.observer, 0},
        {"--activations", "TYPE", "what is between layers: u8, s8, u16 or s16 (u8)", HONE_ARG_TEXT,
         &j.wish.activations, 0},
        {"--per-tensor", NULL, "one scale a weight, not one an output channel", HONE_ARG_FLAG, &j.per_tensor,
         0},
        {"--portable", NULL,
         "a rounding right behind every Conv: other runtimes are slow without it, Hone is not", HONE_ARG_FLAG,
         &j.portable, 0},
        {"--no-repairs", NULL, "weights stay as they are but for rounding", HONE_ARG_FLAG, &j.no_repairs, 0},
        {"--cache", "FILE",
         "what calibration found, as text: read where it fits, written where it is not there", HONE_ARG_TEXT,
         &j.wish.cache, 0},
        {"--resize", "SIZE", "pictures: as for hone run", HONE_ARG_TEXT, &j.picture.resize, 0},
        {"--crop", "SIZE", "pictures: as for hone run", HONE_ARG_TEXT, &j.picture.crop, 0},
        {"--mean", "NUMBERS", "pictures: as for hone run", HONE_ARG_TEXT, &j.picture.mean, 0},
        {"--std", "NUMBERS", "pictures: as for hone run", HONE_ARG_TEXT, &j.picture.std, 0},
        {"--order", "rgb|bgr", "pictures: as for hone run", HONE_ARG_TEXT, &j.picture.order, 0},
        {"--threads", "N", "of a run, at most", HONE_ARG_THREADS, &j.threads, 1},
        {"--report", "FILE",
         "a page about each layer: how much it loses alone and all together, its numbers and ranges, what "
         "was "
         "tried, and mixtures as a picture",
         HONE_ARG_TEXT, &j.page, 0},
        {"--mixtures", NULL,
         "measure mixtures from all layers in integers to none, and list what each loses and takes",
         HONE_ARG_FLAG, &j.mixtures, 0},
        {"--all", NULL, "list all layers, not only those that stay f32", HONE_ARG_FLAG, &j.all, 0},
        {"--json", NULL, "print JSON", HONE_ARG_FLAG, &j.json, 0},
        {0},
    };
    const hone_usage usage = {
        "quantize",
        "MODEL --data PATH -o FILE",
        1,
        1,
        "Makes a model smaller and faster: its products in 8 bits, as standard ONNX (QuantizeLinear, "
        "DequantizeLinear) that other runtimes load too. Samples "
        "show which ranges numbers have; others, which they did not show, say how much is lost, and which "
        "layers "
        "stay f32 so that it is little.",
        "hone quantize model.onnx --data pictures/ -o small.onnx\nhone quantize model.onnx --data "
        "samples.npz "
        "--metric top1 --max-drop 0.5% -o small.onnx",
        options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc == HONE_ARGS_GO) {
        j.path = operands.at[0];
        const char *ending = j.to ? strrchr(j.to, '.') : NULL;
        rc = !j.to ? hone_args_wrong("-o is missing: hone quantize MODEL --data PATH -o FILE")
             : !ending || strcmp(ending, ".onnx") != 0
                 ? hone_args_wrong("-o %s: a model is written as ONNX: the name must end in .onnx", j.to)
                 : quantize(&j);
    }
    hone_words_free(&operands), hone_words_free(&j.data);
    return rc;
}
