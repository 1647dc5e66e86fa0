/* SPDX-License-Identifier: Apache-2.0
   machine: what there is to run on, as JSON: the CPU with its levels, caches and memory, what its device
   says of itself (which kernel of each family is chosen here), and, on request, two measured figures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"
#include "hone/tools.h"
#include "run/model.h"
#include "run/peak.h"
#include "run/units.h"

static const struct {
    uint32_t bit;
    const char *name, *what;
} features[] = {
    {HONE_CPU_NEON, "neon", "128-bit vectors"},
    {HONE_CPU_FP16, "fp16", "half-precision arithmetic"},
    {HONE_CPU_DOTPROD, "dotprod", "8-bit dot products"},
    {HONE_CPU_BF16, "bf16", "bfloat16 products"},
    {HONE_CPU_I8MM, "i8mm", "8-bit matrix products"},
    {HONE_CPU_SVE, "sve", "scalable vectors"},
    {HONE_CPU_FHM, "fhm", "half-precision products added in single"},
    {HONE_CPU_AVX2, "avx2", "256-bit vectors, with FMA and F16C"},
    {HONE_CPU_AVX512, "avx512", "512-bit vectors: F, BW, DQ, VL"},
    {HONE_CPU_VNNI, "vnni", "8-bit dot products"},
    {HONE_CPU_AVX512BF16, "avx512bf16", "bfloat16 products"},
    {HONE_CPU_AVX512FP16, "avx512fp16", "half-precision arithmetic"},
    {HONE_CPU_AMX, "amx", "tiles: 8-bit and bfloat16 matrix products"},
};

/* The first line of a small file, without its end; "" when there is none. */
static const char *line_of(char *room, size_t bytes, const char *path) {
    FILE *f = fopen(path, "re");
    if (!f || !fgets(room, (int)bytes, f)) room[0] = 0;
    if (f) fclose(f);
    room[strcspn(room, "\n")] = 0;
    return room;
}
static void put_caches(hone_text *t) {
    hone_text_put(t, ", \"caches\": [");
    bool any = false;
    for (int k = 0; k < 8; k++) {
        char path[96], level[16], kind[32], size[32], shared[128];
        const struct {
            const char *file;
            char *to;
            size_t bytes;
        } rows[] = {{"level", level, sizeof level},
                    {"type", kind, sizeof kind},
                    {"size", size, sizeof size},
                    {"shared_cpu_list", shared, sizeof shared}};
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", k, rows[r].file);
            line_of(rows[r].to, rows[r].bytes, path);
        }
        char *unit;
        long long n = strtoll(size, &unit, 10), bytes = *unit == 'K' ? n << 10 : *unit == 'M' ? n << 20 : n;
        if (!level[0] || n <= 0 || n > 1 << 30) continue;
        hone_text_put(t, "%s{\"level\": %d, \"kind\": ", any ? ", " : "", atoi(level));
        hone_text_json(t, kind);
        hone_text_put(t, ", \"bytes\": %lld, \"cpus\": ", bytes);
        hone_text_json(t, shared);
        hone_text_put(t, "}");
        any = true;
    }
    hone_text_put(t, "]");
}
static long long meminfo(const char *key) {
    char line[128];
    long long kb = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':')
            kb = strtoll(line + strlen(key) + 1, NULL, 10);
    if (f) fclose(f);
    return kb * 1024;
}
static void put_peak(const char *key, const hone_peak *p, hone_text *t) {
    hone_text_put(t, "\"%s\": {\"threads\": %d, \"copy_bytes_per_s\": %.0f, \"f32_flops_per_s\": %.0f}", key,
                  p->threads, p->copy_bytes_per_s, p->f32_flops_per_s);
}
hone_status hone_machine_speed(int threads, hone_speed *out) {
    if (!out || threads < 0)
        return hone_fail(HONE_BAD_INPUT, "hone_machine_speed: threads must not be negative, out not NULL");
    hone_peak p = hone_peak_measure(threads);
    *out = (hone_speed){p.threads, p.copy_bytes_per_s, p.f32_flops_per_s};
    return HONE_OK;
}
hone_status hone_machine_report(int measure, char **out) {
    if (!out) return hone_fail(HONE_BAD_INPUT, "hone_machine_report: out must not be NULL");
    HONE_TRY(hone_cpu_check());
    const uint32_t have = hone_cpu();
    const char *forced = getenv("HONE_CPU");
    hone_text t = {0};
    hone_text_put(&t, "{\"cpu\": {\"name\": ");
    hone_text_json(&t, hone_cpu_name());
#if defined(__x86_64__)
    hone_text_put(&t, ", \"architecture\": \"x86-64\"");
#elif defined(__aarch64__)
    hone_text_put(&t, ", \"architecture\": \"aarch64\"");
#else
    hone_text_put(&t, ", \"architecture\": \"other\"");
#endif
    hone_text_put(&t, ", \"cores\": %d, \"cores_online\": %ld, \"forced\": ", hone_cores(),
                  sysconf(_SC_NPROCESSORS_ONLN));
    hone_text_json(&t, forced ? forced : "");
    hone_text_put(&t, ", \"levels\": [");
    bool any = false;
    for (size_t k = 0; k < sizeof features / sizeof *features; k++) {
        if (!(have & features[k].bit)) continue;
        hone_text_put(&t, "%s{\"name\": \"%s\", \"what\": \"%s\"}", any ? ", " : "", features[k].name,
                      features[k].what);
        any = true;
    }
    hone_text_put(&t, "]");
    put_caches(&t);
    hone_text_put(&t, "}, \"memory\": {\"bytes\": %lld, \"available_bytes\": %lld}", meminfo("MemTotal"),
                  meminfo("MemAvailable"));
    hone_devices(0)->describe(&t);
    if (measure) {
        hone_peak one = hone_peak_measure(1);
        hone_text_put(&t, ", \"measured\": {");
        put_peak("one_thread", &one, &t);
        if (hone_cores() > 1) {
            hone_peak all = hone_peak_measure(0);
            hone_text_put(&t, ", ");
            put_peak("all_threads", &all, &t);
        }
        hone_text_put(&t, "}");
    }
    hone_text_put(&t, "}");
    return hone_text_give(&t, out);
}
hone_status hone_device_speed(const char *device, hone_dtype precision, hone_speed *out) {
    hone_unit u;
    double flops = 0, bytes = 0;
    if (!device || !out)
        return hone_fail(HONE_BAD_INPUT, "hone_device_speed: device and out must not be NULL");
    *out = (hone_speed){0};
    HONE_TRY(hone_unit_find(device, &u));
    if (u.row->speed) HONE_TRY(u.row->speed(u.row, u.number, precision, &flops, &bytes));
    *out = (hone_speed){.copy_bytes_per_s = bytes / 2, .f32_flops_per_s = flops};
    return HONE_OK;
}
/* All but the CPU, each with what it is or what it would want. */
hone_status hone_device_report(int measure, char **out) {
    if (!out) return hone_fail(HONE_BAD_INPUT, "hone_device_report: out must not be NULL");
    hone_text text = {0}, *t = &text;
    hone_text_put(t, "{\"devices\": [");
    const char *comma = "";
    for (int k = 1; hone_devices(k); k++) {
        const hone_device *d = hone_devices(k);
        const int n = d->count ? d->count(d) : 1;
        for (int number = 0; number < (n ? n : 1); number++, comma = ", ") {
            hone_text_put(t, "%s{\"device\": \"%s\", \"number\": %d, \"found\": %s", comma, d->name, number,
                          n ? "true" : "false");
            if (n && d->about) d->about(d, number, measure != 0, t);
            if (!n && d->missing) hone_text_put(t, ", \"missing\": \"%s\"", d->missing);
            hone_text_put(t, "}");
        }
    }
    hone_text_put(t, "]}");
    return hone_text_give(t, out);
}
