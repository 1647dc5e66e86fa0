/* SPDX-License-Identifier: Apache-2.0
   units: see units.h. */
#include "run/units.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_RULES = 256 };
typedef struct {
    hone_units units; /* the first member: what is handed out */
    hone_placing rule[MOST_RULES];
    char *text; /* the patterns */
} owned;

static hone_status no_device(const char *name, int length) {
    hone_text t = {0};
    for (int k = 0; hone_devices(k); k++) hone_text_put(&t, "%s%s", k ? ", " : "", hone_devices(k)->name);
    hone_status s = hone_fail(HONE_BAD_INPUT, "there is no device '%.*s': there is %s (a plugin adds others)",
                              length, name, t.text ? t.text : "");
    hone_text_free(&t);
    return s;
}
/* "NAME", "NAME:n": its number among the units, where it is added if it is new. */
static hone_status find(hone_units *u, const char *text, int length, int *out) {
    char name[64] = "";
    const char *colon = memchr(text, ':', (size_t)length);
    const int n = colon ? (int)(colon - text) : length;
    if (n > 0 && n < (int)sizeof name) memcpy(name, text, (size_t)n);
    hone_unit unit = {.row = hone_device_find(name)};
    if (!unit.row) return no_device(text, length);
    const char *digits = colon ? colon + 1 : "0";
    const int many = colon ? length - n - 1 : 1;
    if (many < 1 || many > 4 || (int)strspn(digits, "0123456789") < many)
        return hone_fail(HONE_BAD_INPUT, "device '%.*s': behind the colon stands a number, as in %s:0",
                         length, text, name);
    for (int k = 0; k < many; k++) unit.number = unit.number * 10 + digits[k] - '0';
    const int count = unit.row->count ? unit.row->count(unit.row) : 1;
    if (count == 0)
        return hone_fail(HONE_BAD_INPUT, "there is no '%s' on this machine: it wants %s", name,
                         unit.row->missing ? unit.row->missing : "a device that is not here");
    if (unit.number >= count)
        return hone_fail(HONE_BAD_INPUT, "there is no device '%.*s': there %s %d of '%s', counted from 0",
                         length, text, count == 1 ? "is" : "are", count, name);
    for (*out = 0; *out < u->n; ++*out)
        if (u->unit[*out].row == unit.row && u->unit[*out].number == unit.number) return HONE_OK;
    if (u->n == HONE_MOST_UNITS)
        return hone_fail(HONE_NOT_SUPPORTED, "a session has at most %d devices", HONE_MOST_UNITS);
    u->unit[u->n++] = unit;
    return HONE_OK;
}
static hone_status add_rules(owned *o) {
    for (char *line = o->text; *line;) {
        char *end = line + strcspn(line, "\n"), *next = *end ? end + 1 : end, *equals = NULL;
        for (char *at = line; at < end; at++)
            if (*at == '=') equals = at; /* names may have some too: the last one counts */
        if (end > line) {
            if (!equals || equals == line)
                return hone_fail(HONE_BAD_INPUT,
                                 "'%.*s' does not say what goes where: PATTERN=DEVICE, as in layer4.*=cpu",
                                 (int)(end - line), line);
            if (o->units.n_rule == MOST_RULES)
                return hone_fail(HONE_NOT_SUPPORTED, "more than %d patterns for nodes", MOST_RULES);
            hone_placing *r = o->rule + o->units.n_rule++;
            HONE_TRY(find(&o->units, equals + 1, (int)(end - equals - 1), &r->unit));
            *equals = 0, r->nodes = line;
        }
        line = next;
    }
    return HONE_OK;
}
hone_status hone_unit_find(const char *device, hone_unit *out) {
    hone_units one = {0};
    int k;
    HONE_TRY(find(&one, device, (int)strnlen(device, 1000), &k));
    *out = one.unit[k];
    return HONE_OK;
}
hone_status hone_units_make(const char *device, const char *place, hone_units **out) {
    *out = NULL;
    if (!device && (!place || !*place)) return HONE_OK;
    owned *o = hone_alloc(sizeof *o);
    const size_t bytes = place ? strlen(place) : 0;
    if (!o || !(o->text = hone_alloc(bytes + 1))) {
        hone_free(o);
        return hone_fail(HONE_NO_MEMORY, "no memory for a session");
    }
    if (bytes) memcpy(o->text, place, bytes);
    o->units.unit[0] = (hone_unit){hone_devices(0), 0}, o->units.n = 1, o->units.rule = o->rule;
    hone_status s = device ? find(&o->units, device, (int)strnlen(device, 1000), &o->units.rest) : HONE_OK;
    if (!s) s = add_rules(o);
    if (s || o->units.n == 1) hone_units_free(&o->units);
    else *out = &o->units;
    return s;
}
void hone_units_free(hone_units *u) {
    owned *o = (owned *)(void *)u;
    if (!o) return;
    hone_free(o->text);
    hone_free(o);
}
hone_status hone_units_precision(const hone_units *u, hone_dtype precision) {
    const bool tf32 = precision == HONE_PRECISION_TF32;
    bool any = false;
    if (precision != HONE_DTYPE_NONE && precision != HONE_DTYPE_F32 && precision != HONE_DTYPE_BF16 &&
        precision != HONE_DTYPE_F16 && !tf32)
        return hone_fail(HONE_NOT_SUPPORTED, "precision %s: a session computes in f32, bf16, f16 or tf32",
                         hone_dtype_name(precision));
    if (!tf32 && precision != HONE_DTYPE_BF16 && precision != HONE_DTYPE_F16) return HONE_OK;
    for (int k = 0; u && k < u->n; k++) {
        const hone_device *row = u->unit[k].row;
        any |= row->tf32;
        if (row->alloc && tf32 && !row->tf32)
            return hone_fail(HONE_NOT_SUPPORTED, "precision tf32: %s has no products in it; cuda has",
                             row->name);
        if (row->alloc && !tf32 && !row->halves)
            return hone_fail(HONE_NOT_SUPPORTED, "precision %s: %s computes in the types that the model has",
                             hone_dtype_name(precision), row->name);
    }
    if (tf32 && !any)
        return hone_fail(HONE_NOT_SUPPORTED, "precision tf32: the CPU has no products in it; cuda has");
    return HONE_OK;
}
