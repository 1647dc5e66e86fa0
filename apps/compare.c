/* SPDX-License-Identifier: Apache-2.0
   hone compare: the same model through every runtime on the machine. This file reads the wishes, lists the
   models and keeps the folder that the processes share; finding, running, judging and telling are its
   neighbours'. */
#include "compare.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"
#include "child.h"
#include "hone/tools.h"
#include "json.h"
#include "load.h"
#include "output.h"
#include "term.h"

extern const char hone_compare_text[]; /* compare.py */
extern const size_t hone_compare_text_bytes;

static const char *const zoo_names[] = {"resnet18",
                                        "resnet50",
                                        "vgg16",
                                        "densenet121",
                                        "efficientnet_b0",
                                        "mobilenet_v2",
                                        "mobilenet_v3_small",
                                        "squeezenet1_1",
                                        "shufflenet_v2",
                                        "vit_b16",
                                        "bert_base",
                                        "gpt2",
                                        "bilstm"};
enum { ZOO = sizeof zoo_names / sizeof *zoo_names, DEPTH_MOST = 8 /* folders in folders */ };

typedef struct {
    hone_contest_wish wish;
    const char *with, *html;
    hone_words pythons;
    bool zoo, json, markdown;
    char **model;
    int n, room;
    char folder[512], script[600], machine[128];
    hone_runtime runtime[HONE_RUNTIMES];
    hone_contest *contest;
    int done;
} job;

/* ---- which models ---- */

static void add_model(job *j, const char *before, const char *name) {
    if (j->n == j->room) {
        int room = j->room ? j->room * 2 : 32;
        char **at = hone_must_alloc(sizeof *at * (size_t)room);
        if (j->n) memcpy(at, j->model, sizeof *at * (size_t)j->n);
        free(j->model);
        j->model = at, j->room = room;
    }
    size_t room = strlen(before) + strlen(name) + 1;
    snprintf(j->model[j->n++] = hone_must_alloc(room), room, "%s%s", before, name);
}

/* Every model.onnx below; a folder that has none is looked into. Links to folders are not followed far: the
   depth is bounded. */
static void add_folder(job *j, const char *folder, int depth) {
    struct dirent **entry = NULL;
    struct stat st;
    int n = depth < DEPTH_MOST ? scandir(folder, &entry, NULL, alphasort) : 0;
    for (int k = 0; k < n; k++) {
        size_t room = strlen(folder) + strlen(entry[k]->d_name) + 2;
        char *path = hone_must_alloc(room);
        snprintf(path, room, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/",
                 entry[k]->d_name);
        if (!strcmp(entry[k]->d_name, "model.onnx")) add_model(j, "", path);
        else if (entry[k]->d_name[0] != '.' && !stat(path, &st) && S_ISDIR(st.st_mode))
            add_folder(j, path, depth + 1);
        free(path);
        free(entry[k]);
    }
    free(entry);
}

static int list_models(job *j, const hone_words *operands) {
    struct stat st;
    for (int k = 0; k < ZOO && j->zoo && !operands->n; k++) add_model(j, "zoo:", zoo_names[k]);
    if (!j->zoo && !operands->n)
        return hone_args_wrong("MODEL is missing: hone compare MODEL... [options], or --zoo");
    for (int k = 0; k < operands->n; k++) {
        const char *word = operands->at[k];
        int before = j->n;
        if (j->zoo || !strncmp(word, "zoo:", 4)) {
            add_model(j, strncmp(word, "zoo:", 4) ? "zoo:" : "", word);
        } else if (!stat(word, &st) && S_ISDIR(st.st_mode)) {
            add_folder(j, word, 0);
            if (j->n == before) return hone_args_wrong("'%s' holds no model.onnx", word);
        } else add_model(j, "", word);
    }
    if (j->n > 1 && (j->wish.inputs.n || j->wish.shapes.n || j->wish.dims.n))
        return hone_args_wrong("--input, --shape and --dim are for one model, and these are %d", j->n);
    return 0;
}

/* ---- the folder ---- */

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *where) {
    return remove(path), 0;
}
static void remove_all(const char *folder) { nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

static int make_folder(job *j) {
    const char *base = getenv("TMPDIR");
    snprintf(j->folder, sizeof j->folder, "%.400s/hone-compare-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(j->folder)) {
        int rc =
            hone_args_wrong("%s: no folder can be made: %s; TMPDIR says where", j->folder, strerror(errno));
        return *j->folder = 0, rc;
    }
    snprintf(j->script, sizeof j->script, "%s/compare.py", j->folder);
    FILE *f = fopen(j->script, "we");
    bool good = f && fwrite(hone_compare_text, 1, hone_compare_text_bytes, f) == hone_compare_text_bytes;
    if (f && fclose(f)) good = false;
    return good ? 0 : hone_args_wrong("%s cannot be written: is the disk full?", j->script);
}

/* ---- doing ---- */

static void name_machine(job *j) {
    char *text = NULL;
    hone_json *r = hone_machine_report(0, &text) ? NULL : hone_json_read(text);
    const hone_json *cpu = hone_json_get(r, "cpu");
    snprintf(j->machine, sizeof j->machine, "%s", hone_json_text(cpu, "name", "this machine"));
    hone_json_free(r);
    hone_text_release(text);
}

/* Libraries that ask the environment for their number of threads are told there. */
static void set_threads(job *j) {
    static const char *const names[] = {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                                        "TVM_NUM_THREADS"};
    char text[16];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (!j->wish.threads) j->wish.threads = cores > 0 ? (int)cores : 1;
    snprintf(text, sizeof text, "%d", j->wish.threads);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) setenv(names[k], text, 1);
}

static hone_comparison so_far(const job *j, int from, int n) {
    return (hone_comparison){
        .runtime = j->runtime, .contest = j->contest + from, .n = n, .wish = &j->wish, .machine = j->machine};
}

static void run_all(job *j) {
    char folder[sizeof j->folder + 16];
    bool text = !j->json && !j->markdown;
    j->contest = hone_must_alloc(sizeof *j->contest * (size_t)j->n);
    for (int k = 0; k < j->n && !hone_child_interrupted(); k++) {
        snprintf(folder, sizeof folder, "%s/%d", j->folder, k);
        mkdir(folder, 0700);
        hone_contest_run(&j->contest[k], j->model[k], j->runtime, &j->wish, j->script, folder);
        hone_contest_judge(&j->contest[k], &j->wish);
        remove_all(folder);
        j->done = k + 1;
        if (hone_child_interrupted() || !text || (j->n == 1 && *j->contest[0].why)) continue;
        hone_comparison one = so_far(j, k, 1);
        if (k) putchar('\n');
        hone_compare_tell(&one);
        fflush(stdout);
    }
}

/* The exit code: Hone is to have run, and to be right. What others cannot do is no failure of ours. */
static int verdict(const job *j) {
    int bad = 0;
    const char *which = NULL, *why = NULL;
    for (int k = 0; k < j->done; k++) {
        const hone_contest *c = &j->contest[k];
        const char *said = *c->why             ? c->why
                           : *c->entry[0].why  ? c->entry[0].why
                           : c->entry[0].right ? NULL
                                               : "its answer is not what the others say";
        if (said && !bad++) which = c->name, why = said;
    }
    if (j->done == 1 && *j->contest[0].why) return hone_args_wrong("%s", why);
    if (bad == 1) return hone_args_wrong("%s: Hone fails: %s", which, why);
    return bad ? hone_args_wrong("Hone fails on %d of %d models; the first is %s: %s", bad, j->done, which,
                                 why)
               : 0;
}

static int do_job(job *j, const hone_words *operands) {
    static const char *plain[] = {"python3"};
    const hone_words usual = {plain, 1};
    hone_runtimes_list(j->runtime);
    int rc = hone_runtimes_choose(j->runtime, j->with);
    if (!rc) rc = list_models(j, operands);
    if (!rc && j->html)
        rc = hone_output_check("--html", j->html, &(hone_words){(const char **)j->model, j->n},
                               &j->wish.inputs);
    if (!rc && j->html) rc = hone_output_try("--html", j->html);
    if (!rc) rc = make_folder(j);
    if (rc) return rc;
    hone_child_catch();
    set_threads(j);
    name_machine(j);
    hone_runtimes_find(j->runtime, j->pythons.n ? &j->pythons : &usual, j->script, j->folder, j->wish.limit);
    run_all(j);
    if (hone_child_interrupted()) return hone_args_wrong("interrupted");
    hone_comparison all = so_far(j, 0, j->done);
    if (j->markdown) hone_compare_markdown(&all);
    else if (j->json) hone_args_answered(), hone_compare_json(stdout, &all);
    else if (j->n > 1) hone_compare_table(&all);
    if (j->html) rc = hone_compare_page(&all, j->html);
    return rc ? rc : verdict(j);
}

int hone_cmd_compare(int argc, char **argv) {
    job j = {.wish = {.seconds = 3, .limit = 300, .tolerance = -1, .starts = 3, .precision = "f32"}};
    hone_words operands = {0};
    const hone_option options[] = {
        {"--with", "NAMES", "only these, as ort,openvino,torch,mnn,ncnn,tvm; or 'none' (all that are found)",
         HONE_ARG_TEXT, &j.with, 0},
        {"--python", "FILE", "a Python to look for runtimes in (python3); may stand several times",
         HONE_ARG_LIST, &j.pythons, 0},
        {"--threads", "N", "of every runtime (0: all cores)", HONE_ARG_THREADS, &j.wish.threads, 0},
        {"--seconds", "S", "of runs that count, for each runtime (3)", HONE_ARG_NUMBER, &j.wish.seconds,
         0.01},
        {"--runs", "N", "so many runs of each instead", HONE_ARG_INT, &j.wish.runs, 1},
        {"--loads", "N", "processes of each for load and first run, of which the median counts (3)",
         HONE_ARG_INT, &j.wish.starts, 1},
        {"--input", "[NAME=]FILE",
         "a file for an input (else: test_data_set_0 beside the model, or random numbers)", HONE_ARG_LIST,
         &j.wish.inputs, 0},
        {"--shape", "[NAME=]DIMS", "dims of a random input, as 1x3x224x224", HONE_ARG_LIST, &j.wish.shapes,
         0},
        {"--dim", "NAME=SIZE", "a free dim of the inputs, as in seq=128; others are guessed", HONE_ARG_LIST,
         &j.wish.dims, 0},
        {"--batch", "N", "the free first dim of every input; of zoo networks their option", HONE_ARG_INT,
         &j.wish.batch, 1},
        {"--seed", "N", "of the random inputs (0)", HONE_ARG_INT, &j.wish.seed, 0},
        {"--precision", "f32|bf16|f16",
         "what floats are computed in, by those that can: f32, bf16 or f16; ONNX Runtime in f32 (f32)",
         HONE_ARG_TEXT, &j.wish.precision, 0},
        HONE_WHERE_OPTIONS(&j.wish.where),
        {"--tolerance", "R", "answers agree within R of an output's largest magnitude (0.001; of halves 0.1)",
         HONE_ARG_NUMBER, &j.wish.tolerance, 0},
        {"--limit", "S", "a runtime that does not answer for so long is cut off (300)", HONE_ARG_NUMBER,
         &j.wish.limit, 0.1},
        {"--zoo", NULL,
         "networks of the zoo by name; without names the thirteen that the documentation shows",
         HONE_ARG_FLAG, &j.zoo, 0},
        {"--html", "FILE", "write a page with charts", HONE_ARG_TEXT, &j.html, 0},
        {"--markdown", NULL, "print tables as markdown", HONE_ARG_FLAG, &j.markdown, 0},
        {"--json", NULL, "print JSON", HONE_ARG_FLAG, &j.json, 0},
        {0},
    };
    const hone_usage usage = {
        "compare",
        "MODEL...",
        0,
        -1,
        "Runs models through every runtime on the machine, a process each, in turn: speed, memory, load "
        "time, and whether the "
        "answers agree. A folder stands for every model.onnx below it. --device is where Hone runs; the "
        "others have the CPU.",
        "hone compare model.onnx\n"
        "hone compare zoo:resnet50 --threads 1 --with ort,openvino --html resnet50.html\n"
        "hone compare --zoo resnet18 bert_base --markdown",
        options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc == HONE_ARGS_GO && j.wish.starts > HONE_STARTS_MOST)
        rc = hone_args_wrong("--loads: at most %d", HONE_STARTS_MOST);
    if (rc == HONE_ARGS_GO && j.json && j.markdown)
        rc = hone_args_wrong("--json and --markdown: one of them");
    const hone_dtype kind = hone_precision(j.wish.precision, strlen(j.wish.precision));
    if (rc == HONE_ARGS_GO && !kind)
        rc = hone_args_wrong("--precision %s: Hone computes in f32, bf16 or f16, on a GPU in tf32 too",
                             j.wish.precision);
    if (j.wish.tolerance < 0) j.wish.tolerance = kind == HONE_DTYPE_F32 ? 1e-3 : 0.1;
    if (rc == HONE_ARGS_GO) {
        hone_where_export(&j.wish.where); /* to Hone's own processes */
        rc = do_job(&j, &operands);
    }
    hone_where_free(&j.wish.where);
    if (*j.folder) remove_all(j.folder);
    for (int k = 0; k < j.done; k++) hone_contest_free(&j.contest[k]);
    for (int k = 0; k < j.n; k++) free(j.model[k]);
    free(j.contest), free(j.model);
    hone_words_free(&j.pythons), hone_words_free(&j.wish.inputs), hone_words_free(&j.wish.shapes),
        hone_words_free(&j.wish.dims), hone_words_free(&operands);
    return rc;
}
