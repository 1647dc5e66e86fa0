/* SPDX-License-Identifier: Apache-2.0
   gpu: Hone's CUDA kernels checked and timed on the GPU at hand, one table on standard output. See
   bench/gpu/README.md. Usage: gpu [--check] [--time] [--once] [--search] [--every N] [--again N] [--arch
   sm_80] [--out FOLDER] [--dry] [family …] --every N checks each Nth way of a product only: for tools under
   which all of them take too long. --again N runs each that is checked N times more and compares the bits; 1
   unless told. --once launches what --time would time once or twice: for a profiler.
   --dry needs no GPU: every kernel that would be used on an H200 (or, with --arch sm_80 or sm_100a, there) is
   only compiled. */
#include "harness.h"

int compile_one(const char *hash, const char *arch);

static void measure_copy(bench *b) {
    const size_t bytes = (size_t)1 << 30;
    hone_cuda_address from, to;
    OK(hone_cuda_memory(b->g, bytes, &from)), OK(hone_cuda_memory(b->g, bytes, &to));
    OK(hone_cuda_set(b->g, from, 1, bytes)), OK(hone_cuda_copy(b->g, to, from, bytes));
    for (int k = 0; k < 5; k++) {
        double s;
        OK(hone_cuda_mark(b->g, 0)), OK(hone_cuda_copy(b->g, to, from, bytes)), OK(hone_cuda_mark(b->g, 1)),
            OK(hone_cuda_marked(b->g, &s));
        if (2.0 * (double)bytes / s > b->copy_rate) b->copy_rate = 2.0 * (double)bytes / s;
    }
    hone_cuda_memory_free(b->g, from), hone_cuda_memory_free(b->g, to);
}
int main(int n, char **arg) {
    static const struct {
        const char *name;
        void (*run)(bench *);
    } families[] = {{"move", bench_move},    {"rows", bench_rows},     {"gemm", bench_gemm},
                    {"conv", bench_conv},    {"window", bench_window}, {"attention", bench_attention},
                    {"ladder", bench_ladder}};
    enum { FAMILIES = sizeof families / sizeof *families };
    bench b = {.table = stdout, .every = 1, .again = 1};
    bool wanted[FAMILIES] = {false}, any = false, dry = false;
    const char *out = ".";
    char path[300];
    if (n == 4 && !strcmp(arg[1], "--compile")) return compile_one(arg[2], arg[3]);
    for (int k = 1; k < n; k++) {
        bool known = true;
        if (!strcmp(arg[k], "--check")) b.check = true;
        else if (!strcmp(arg[k], "--time")) b.time = true;
        else if (!strcmp(arg[k], "--search")) b.search = true;
        else if (!strcmp(arg[k], "--once")) b.time = b.once = true;
        else if (!strcmp(arg[k], "--dry")) dry = true;
        else if (!strcmp(arg[k], "--every") && k + 1 < n) b.every = atoi(arg[++k]) > 0 ? atoi(arg[k]) : 1;
        else if (!strcmp(arg[k], "--again") && k + 1 < n) b.again = atoi(arg[++k]);
        else if (!strcmp(arg[k], "--arch") && k + 1 < n) b.arch = arg[++k];
        else if (!strcmp(arg[k], "--out") && k + 1 < n) out = arg[++k];
        else known = false;
        for (int f = 0; f < FAMILIES && !known; f++)
            if (!strcmp(arg[k], families[f].name)) wanted[f] = any = known = true;
        if (!known)
            stop("'%s' is not known: gpu [--check] [--time] [--once] [--search] [--every N] [--again N] "
                 "[--arch sm_80] [--out FOLDER] "
                 "[--dry] [move] "
                 "[rows] "
                 "[gemm] [conv] [window] [attention] [ladder]",
                 arg[k]);
    }
    if (!b.check && !b.time && !b.search) b.check = b.time = true;
    if (!dry) OK(hone_cuda_open(0, &b.g));
    b.gpu = dry ? (hone_cuda_facts){.arch = "sm_90a", .major = 9, .sms = 132, .shared_bytes = 227 << 10}
                : *hone_cuda_facts_of(b.g);
    if (!b.arch) b.arch = b.gpu.arch;
    if (dry && !strncmp(b.arch, "sm_10", 5)) b.gpu.major = 10; /* its kernels are the older ones: no wgmma */
    /* the older GPU's kernels on this one: as PTX, because machine code is its own generation's only */
    if (!strcmp(b.arch, "sm_80")) {
        b.gpu.major = 8, b.gpu.minor = 0;
        if (!dry) b.arch = "compute_80";
    }
    if (!dry)
        OK(hone_cuda_memory(b.g, ROOM, &b.workspace)), OK(hone_cuda_memory(b.g, COUNTERS, &b.counters)),
            OK(hone_cuda_set(b.g, b.counters, 0, COUNTERS));
    if (!dry) measure_copy(&b);
    snprintf(path, sizeof path, "%s/gpu.csv", out);
    if (!(b.csv = fopen(path, "a"))) stop("%s cannot be written", path);
    b.collect = true;
    for (int f = 0; f < FAMILIES; f++)
        if (!any || wanted[f]) families[f].run(&b);
    compile_all(&b);
    if (dry) return b.wrong != 0;
    b.collect = false;
    fprintf(b.table,
            "%s, %d multiprocessors, kernels for %s, copy %.0f GB/s\n\n| family | what | way | Hone, us | "
            "peers, us | peer / Hone | matrix "
            "unit, of 989 TF/s | memory, of the copy rate |\n|---|---|---|---:|---|---:|---:|---:|\n",
            b.gpu.name, b.gpu.sms, b.arch, b.copy_rate * 1e-9);
    for (int f = 0; f < FAMILIES; f++)
        if (!any || wanted[f]) families[f].run(&b);
    fprintf(b.table, "\n%d comparisons with double precision, %d repeated with the same bits, %d wrong\n",
            b.checked, b.repeated, b.wrong);
    fclose(b.csv);
    return b.wrong != 0;
}
