/* SPDX-License-Identifier: Apache-2.0
   printed_about: what is told of a device of printed kernels: what it is, and how fast it copies and computes
   just now. A moment's measurement, not a benchmark. */
#include <string.h>

#include "base/thread.h"
#include "device/printed.h"

enum { COPY = 64 << 20, THREADS = 256, TERMS = 4096, CHAINS = 4, SLOW = 5000000 /* nanoseconds */ };

/* Chains of multiply-adds, so many that each hides the others' wait. */
static hone_status arithmetic(hone_printed_gpu *g, void *queue, void *memory, double *rate) {
    const bool cl = g->target.lang == HONE_LANG_OPENCL;
    int64_t groups = 1; /* and then as many as fill the device, where one did not take long already */
    static const char *const name = "hone_multiply_add";
    hone_text text = {0};
    void *kernel = NULL;
    hone_kernel_prelude(&g->target, false, &text);
    hone_text_put(&text, "HONE_ENTRY(%s, %d)(%s, const float a) {\n    HONE_BEGIN();\n%s", name, THREADS,
                  cl ? "HONE_GLOBAL uchar *hone_b0, const int64_t hone_o0" : "float *const out",
                  cl ? "    HONE_GLOBAL float *const out = HONE_AT(float, hone_b0, hone_o0);\n" : "");
    hone_text_put(
        &text, "    float x0 = a, x1 = a + 1, x2 = a + 2, x3 = a + 3;\n    for (int k = 0; k < %d; k++) {\n",
        TERMS);
    for (int k = 0; k < CHAINS; k++)
        hone_text_put(&text, "        x%d = %s(x%d, a, 0.5f);\n", k, cl ? "fma" : "fmaf", k);
    hone_text_put(&text, "    }\n    if (x0 + x1 + x2 + x3 == 12345.0f) out[0] = x0;\n}\n");
    hone_status s = text.failed ? hone_fail(HONE_NO_MEMORY, "no memory for a kernel's text") : HONE_OK;
    if (!s) s = g->driver->compile(g->gpu, text.text, &name, 1, NULL, &kernel);
    hone_text_free(&text);
    const hone_printed_arg arg[] = {{.kind = HONE_KARG_TENSOR, .memory = memory},
                                    {.kind = HONE_KARG_OFFSET},
                                    {.kind = HONE_KARG_F32, .f = 0.25}};
    const hone_printed_arg plain[] = {arg[0], arg[2]};
    uint64_t best = UINT64_MAX;
    for (int k = 0; k < 5 && !s; k++) { /* the first two wake it up */
        const uint64_t begun = hone_clock_ns();
        s = cl ? g->driver->launch(queue, kernel, groups, THREADS, arg, 3)
               : g->driver->launch(queue, kernel, groups, THREADS, plain, 2);
        if (!s) s = g->driver->wait(queue);
        const uint64_t took = hone_clock_ns() - begun;
        if (k > 1 && took < best) best = took;
        if (k == 1 && took < SLOW) groups = (int64_t)g->target.wish.units * 64;
    }
    *rate = 2.0 * CHAINS * TERMS * THREADS * (double)groups / ((double)best * 1e-9);
    return s;
}
static hone_status measure(hone_printed_gpu *g, int number, double rate[3]) {
    void *queue = NULL, *memory = NULL, *host = hone_alloc(COPY);
    hone_status s = host ? g->driver->queue(g->gpu, number, &queue)
                         : hone_fail(HONE_NO_MEMORY, "no memory to measure a copy");
    if (!s) s = g->driver->alloc(g->gpu, COPY, &memory);
    for (int k = 0; k < 6 && !s; k++) {
        const uint64_t begun = hone_clock_ns();
        s = k % 2 ? g->driver->copy_out(queue, host, memory, 0, COPY)
                  : g->driver->copy_in(queue, memory, 0, host, COPY);
        if (!s) s = g->driver->wait(queue);
        const double now = COPY / ((double)(hone_clock_ns() - begun) * 1e-9);
        if (now > rate[k % 2]) rate[k % 2] = now;
    }
    if (!s) s = arithmetic(g, queue, memory, rate + 2);
    if (memory) g->driver->free(g->gpu, memory);
    if (queue) g->driver->close(queue);
    hone_free(host);
    return s;
}
void hone_printed_about(const hone_device *d, int number, bool measured, hone_text *t) {
    hone_printed_gpu *g;
    double rate[3] = {0};
    hone_status s = hone_printed_gpu_of(d, number, &g);
    if (!s) g->driver->about(g->gpu, t);
    if (!s && measured) s = measure(g, number, rate);
    if (s) {
        hone_text_put(t, ", \"problem\": ");
        hone_text_json(t, hone_fail_text());
    } else if (measured) {
        hone_text_put(
            t, ", \"copy_in_bytes_per_s\": %.0f, \"copy_out_bytes_per_s\": %.0f, \"f32_flops_per_s\": %.0f",
            rate[0], rate[1], rate[2]);
    }
}

/* As long as the device's own clock says, where it has one. */
static hone_status copy_rate(hone_printed_gpu *g, void *queue, double *rate) {
    enum { BYTES = 256 << 20, ROUNDS = 4 };
    const hone_printed_driver *d = g->driver;
    void *from = NULL, *to = NULL;
    hone_status s = d->alloc(g->gpu, BYTES, &from);
    if (!s) s = d->alloc(g->gpu, BYTES, &to);
    if (!s) s = d->copy(queue, to, 0, from, 0, BYTES); /* memory that nobody touched has no place yet */
    if (!s) s = d->copy(queue, from, 0, to, 0, BYTES);
    if (!s) s = d->wait(queue);
    const uint64_t begun = hone_clock_ns();
    double seconds = 0;
    const bool timed = d->capture && d->time_begin;
    if (!s && timed) s = d->time_begin(queue);
    for (int k = 0; k < ROUNDS && !s; k++) s = d->copy(queue, to, 0, from, 0, BYTES);
    if (!s) s = timed ? d->time_end(queue, &seconds) : d->wait(queue);
    if (!timed) seconds = (double)(hone_clock_ns() - begun) * 1e-9;
    if (!s && seconds > 0) *rate = 2.0 * BYTES * ROUNDS / seconds;
    if (from) d->free(g->gpu, from);
    if (to) d->free(g->gpu, to);
    return s;
}
hone_status hone_printed_speed(const hone_device *row, int number, hone_dtype precision, double *flops,
                               double *bytes) {
    hone_printed_gpu *g;
    void *queue = NULL, *memory = NULL;
    *flops = *bytes = 0;
    HONE_TRY(hone_printed_gpu_of(row, number, &g));
    HONE_TRY(g->driver->queue(g->gpu, number, &queue));
    hone_status s = g->driver->alloc(g->gpu, 64, &memory);
    if (!s) s = copy_rate(g, queue, bytes);
    const bool cores = g->driver->products && precision != HONE_DTYPE_F32 && precision != HONE_DTYPE_NONE;
    if (!s)
        s = cores ? g->driver->products(g->gpu, queue, precision, flops)
                  : arithmetic(g, queue, memory, flops);
    if (memory) g->driver->free(g->gpu, memory);
    g->driver->close(queue);
    return s;
}
