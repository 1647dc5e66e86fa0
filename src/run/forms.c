/* SPDX-License-Identifier: Apache-2.0
   forms: see forms.h. Two sets of devices are one form where the words that compile looks at are equal: names
   of the rows, what they wish, and which nodes go where. */
#include "run/forms.h"

#include <string.h>

enum { MOST_IDLE = 4 }; /* forms that no session holds */
struct hone_form {
    char *key;
    hone_compiled *compiled;
    int holders;
    hone_form *next;
};
void hone_forms_begin(hone_forms *f) { pthread_mutex_init(&f->lock, NULL), f->first = NULL; }
static void destroy(hone_form *f) {
    hone_compiled_destroy(f->compiled);
    hone_free(f->key);
    hone_free(f);
}
void hone_forms_end(hone_forms *f) {
    for (hone_form *w = f->first, *next; w; w = next) next = w->next, destroy(w);
    pthread_mutex_destroy(&f->lock);
}
static void put_key(const hone_units *u, hone_dtype precision, hone_text *key) {
    bool wishes = false; /* the precision decides what f32 counts as: nothing, where nobody wishes anything */
    for (int k = 0; k < u->n; k++) {
        hone_target t = {0};
        if (u->unit[k].row->target) u->unit[k].row->target(u->unit[k].row, u->unit[k].number, &t);
        hone_text_put(key, "%s %llx %llx %llx %d\n", u->unit[k].row->name,
                      (unsigned long long)t.channels_last, (unsigned long long)t.abreast,
                      (unsigned long long)t.floats, t.bytes);
        wishes |= (t.channels_last | t.abreast | t.floats) != 0;
    }
    hone_text_put(key, "%d %d\n", wishes ? (int)precision : 0, u->rest);
    for (int k = 0; k < u->n_rule; k++) hone_text_put(key, "%d %s\n", u->rule[k].unit, u->rule[k].nodes);
}
static hone_status make(const hone_compiled *cpu, const hone_units *u, hone_dtype precision, const char *key,
                        hone_form **out) {
    hone_form *f = hone_alloc(sizeof *f);
    const size_t n = strlen(key) + 1;
    if (!f || !(f->key = hone_alloc(n))) {
        hone_free(f);
        return hone_fail(HONE_NO_MEMORY, "no memory for a session");
    }
    memcpy(f->key, key, n);
    hone_status s = hone_compile_for(cpu, u, precision, &f->compiled);
    if (s) destroy(f);
    else *out = f;
    return s;
}
hone_status hone_forms_get(hone_forms *f, const hone_compiled *cpu, const hone_units *u, hone_dtype precision,
                           const hone_compiled **out) {
    if (!u) {
        *out = cpu;
        return HONE_OK;
    }
    hone_text key = {0};
    put_key(u, precision, &key);
    if (key.failed) {
        hone_text_free(&key);
        return hone_fail(HONE_NO_MEMORY, "no memory for a session");
    }
    hone_status s = HONE_OK;
    pthread_mutex_lock(&f->lock);
    hone_form **at = &f->first, *found;
    while (*at && strcmp((*at)->key, key.text) != 0) at = &(*at)->next;
    if ((found = *at)) *at = found->next;
    else s = make(cpu, u, precision, key.text, &found);
    if (!s) found->next = f->first, f->first = found, found->holders++, *out = found->compiled;
    pthread_mutex_unlock(&f->lock);
    hone_text_free(&key);
    return s;
}
void hone_forms_drop(hone_forms *f, const hone_compiled *c) {
    int idle = 0;
    pthread_mutex_lock(&f->lock);
    for (hone_form *w = f->first; w; w = w->next) w->holders -= w->compiled == c;
    for (hone_form **at = &f->first; *at;) {
        hone_form *w = *at;
        if (w->holders || ++idle <= MOST_IDLE) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        destroy(w);
    }
    pthread_mutex_unlock(&f->lock);
}
