/* SPDX-License-Identifier: Apache-2.0
   show: drawing values. */
#include "show.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "json.h"
#include "term.h"

enum { FIRST = 8 /* elements printed */, PICTURE_MIN = 8, PICTURE_MAX = 96 /* rows and columns */ };
static const char *const kinds[] = {[HONE_VALUE_TENSOR] = "tensor",
                                    [HONE_VALUE_SEQUENCE] = "sequence",
                                    [HONE_VALUE_OPTIONAL] = "optional",
                                    [HONE_VALUE_MAP] = "map"};

static bool is_tensor(const hone_value *v) { return v && hone_value_kind_of(v) == HONE_VALUE_TENSOR; }
static bool is_numeric(const hone_value *v) {
    hone_dtype t = is_tensor(v) ? hone_value_dtype(v) : HONE_DTYPE_NONE;
    return t != HONE_DTYPE_NONE && t != HONE_DTYPE_STRING && t != HONE_DTYPE_C64 && t != HONE_DTYPE_C128;
}

void hone_show_type(FILE *to, const hone_value *v) {
    if (!v) {
        fputs("nothing", to);
    } else if (is_tensor(v)) {
        fprintf(to, "%s[", hone_dtype_name(hone_value_dtype(v)));
        for (int i = 0; i < hone_value_rank(v); i++)
            fprintf(to, i ? ",%lld" : "%lld", (long long)hone_value_dims(v)[i]);
        fputc(']', to);
    } else {
        fprintf(to, "%s of %d", kinds[hone_value_kind_of(v)], hone_value_items(v));
    }
}

typedef struct {
    double min, max, mean;
    int64_t nan, inf;
} statistics;

/* Over the finite elements; NaNs and infinities are counted apart. */
static statistics measure(const hone_value *v) {
    statistics s = {.min = INFINITY, .max = -INFINITY};
    double sum = 0;
    int64_t n = hone_value_elements(v), finite = 0;
    for (int64_t k = 0; k < n; k++) {
        double x = hone_value_number(v, k);
        s.nan += isnan(x);
        s.inf += isinf(x) != 0;
        if (!isfinite(x)) continue;
        finite++;
        sum += x;
        if (x < s.min) s.min = x;
        if (x > s.max) s.max = x;
    }
    s.mean = finite ? sum / (double)finite : NAN;
    if (!finite) s.min = s.max = NAN;
    return s;
}

/* A whole number has all its digits: it may be a token's. */
static void put_number(FILE *to, hone_dtype t, double x) {
    static const double exact = 9007199254740992; /* 2^53 */
    const bool whole = strchr("iu", hone_dtype_name(t)[0]) && fabs(x) <= exact;
    fprintf(to, whole ? "%.0f" : "%.5g", isnan(x) ? NAN : x); /* the sign of a NaN says nothing */
}
static void put_element(FILE *to, const hone_value *v, int64_t k) {
    size_t bytes;
    if (hone_value_dtype(v) != HONE_DTYPE_STRING) {
        put_number(to, hone_value_dtype(v), hone_value_number(v, k));
        return;
    }
    const char *text = hone_value_text(v, k, &bytes);
    hone_json_put_text(to, text, bytes < 60 ? bytes : 60);
}

void hone_show_value(FILE *to, const char *indent, const hone_value *v) {
    if (!is_tensor(v)) {
        for (int k = 0; k < hone_value_items(v); k++) {
            fprintf(to, "%s[%d] ", indent, k);
            hone_show_type(to, hone_value_item(v, k));
            fputc('\n', to);
            hone_show_value(to, indent, hone_value_item(v, k));
        }
        return;
    }
    int64_t n = hone_value_elements(v);
    if (is_numeric(v) && n > 1) {
        statistics s = measure(v);
        fprintf(to, "%smin ", indent), put_number(to, hone_value_dtype(v), s.min);
        fputs("  max ", to), put_number(to, hone_value_dtype(v), s.max);
        fprintf(to, "  mean %.5g", s.mean);
        if (s.nan || s.inf) fprintf(to, "  (%lld NaN, %lld infinite)", (long long)s.nan, (long long)s.inf);
        fputc('\n', to);
    }
    if (n == 0 || !(is_numeric(v) || hone_value_dtype(v) == HONE_DTYPE_STRING)) return;
    fprintf(to, "%s%s", indent, n > 1 ? "values" : "value");
    for (int64_t k = 0; k < n && k < FIRST; k++) {
        fputc(' ', to);
        put_element(to, v, k);
    }
    fputs(n > FIRST ? " …\n" : "\n", to);
}

/* The largest of a row that was not taken yet; it is then. Rows are what stands along the last dim. */
static int64_t take_best(const hone_value *v, char *taken, int64_t row, int64_t width) {
    int64_t best = -1;
    for (int64_t j = row * width; j < (row + 1) * width; j++)
        if (!taken[j] && (best < 0 || hone_value_number(v, j) > hone_value_number(v, best))) best = j;
    taken[best] = 1;
    return best;
}
static int64_t row_width(const hone_value *v) {
    return hone_value_rank(v) ? hone_value_dims(v)[hone_value_rank(v) - 1] : 1;
}

/* One line a row. */
void hone_show_top(FILE *to, const char *indent, const hone_value *v, int k, char *const *labels,
                   int n_labels) {
    int64_t n = hone_value_elements(v), width = row_width(v);
    if (!is_numeric(v) || n == 0) return;
    char *taken = hone_must_alloc((size_t)n);
    for (int64_t row = 0; row < n / width && row < FIRST; row++) {
        fprintf(to, "%stop", indent);
        for (int i = 0; i < k && i < width; i++) {
            int64_t best = take_best(v, taken, row, width);
            if (best % width < n_labels && labels[best % width][0])
                hone_print(to, "  %s", labels[best % width]);
            else fprintf(to, "  %lld", (long long)(best % width));
            fprintf(to, " (%.4g)", hone_value_number(v, best));
        }
        fputc('\n', to);
    }
    if (n / width > FIRST) fprintf(to, "%s… %lld rows in all\n", indent, (long long)(n / width));
    free(taken);
}

void hone_show_json_top(FILE *to, const hone_value *v, int k, char *const *labels, int n_labels) {
    int64_t n = hone_value_elements(v), width = row_width(v);
    char *taken = hone_must_alloc((size_t)n + 1);
    fputc('[', to);
    for (int64_t row = 0; is_numeric(v) && n && row < n / width && row < FIRST; row++) {
        fputs(row ? ", [" : "[", to);
        for (int i = 0; i < k && i < width; i++) {
            int64_t best = take_best(v, taken, row, width), class = best % width;
            fprintf(to, "%s{\"class\": %lld, \"value\": ", i ? ", " : "", (long long)class);
            hone_json_put_number(to, hone_value_number(v, best));
            if (class < n_labels)
                fputs(", \"label\": ", to), hone_json_put_text(to, labels[class], strlen(labels[class]));
            fputc('}', to);
        }
        fputc(']', to);
    }
    fputc(']', to);
    free(taken);
}

/* The last two dims are rows and columns; two columns of characters a column of the picture, as characters
   are tall. */
bool hone_show_picture(FILE *to, const char *indent, const hone_value *v) {
    static const char shades[] = " .:-=+*#%@";
    int rank = hone_value_rank(v);
    const int64_t *dims = hone_value_dims(v);
    if (!is_numeric(v) || rank < 2) return false;
    int64_t rows = dims[rank - 2], columns = dims[rank - 1];
    if (rows < PICTURE_MIN || rows > PICTURE_MAX || columns < PICTURE_MIN || columns > PICTURE_MAX ||
        hone_value_elements(v) != rows * columns)
        return false;
    statistics s = measure(v);
    for (int64_t r = 0; r < rows; r++) {
        fputs(indent, to);
        for (int64_t c = 0; c < columns; c++) {
            double x = hone_value_number(v, r * columns + c),
                   t = s.max > s.min && isfinite(x) ? (x - s.min) / (s.max - s.min) : 0;
            int shade = (int)(t * (double)(sizeof shades - 2) + 0.5);
            fputc(shades[shade], to);
            fputc(shades[shade], to);
        }
        fputc('\n', to);
    }
    return true;
}

void hone_show_json(FILE *to, const hone_value *v) {
    if (!v) {
        fputs("null", to);
        return;
    }
    fprintf(to, "{\"kind\": \"%s\", \"dtype\": \"%s\"", kinds[hone_value_kind_of(v)],
            hone_dtype_name(hone_value_dtype(v)));
    if (!is_tensor(v)) {
        fputs(", \"items\": [", to);
        for (int k = 0; k < hone_value_items(v); k++) {
            if (k) fputs(", ", to);
            hone_show_json(to, hone_value_item(v, k));
        }
        fputs("]}", to);
        return;
    }
    int64_t n = hone_value_elements(v);
    fputs(", \"dims\": [", to);
    for (int i = 0; i < hone_value_rank(v); i++)
        fprintf(to, i ? ", %lld" : "%lld", (long long)hone_value_dims(v)[i]);
    fputc(']', to);
    if (is_numeric(v) && n) {
        statistics s = measure(v);
        const struct {
            const char *name;
            double value;
        } row[] = {{"min", s.min},
                   {"max", s.max},
                   {"mean", s.mean},
                   {"nan", (double)s.nan},
                   {"infinite", (double)s.inf}};
        for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
            fprintf(to, ", \"%s\": ", row[k].name);
            hone_json_put_number(to, row[k].value);
        }
    }
    fputs(", \"first\": [", to);
    bool strings = hone_value_dtype(v) == HONE_DTYPE_STRING;
    for (int64_t k = 0; k < n && k < FIRST && (strings || is_numeric(v)); k++) {
        if (k) fputs(", ", to);
        if (strings) put_element(to, v, k);
        else hone_json_put_number(to, hone_value_number(v, k));
    }
    fputs("]}", to);
}

bool hone_wisdom_words(const hone_json *report, char *to, size_t room) {
    const char *file = hone_json_text(report, "file", ""), *why = hone_json_text(report, "why", "");
    double n = hone_json_number(report, "choices", 0), used = hone_json_number(report, "used", 0);
    if (!*file || (n == 0 && !*why)) return false; /* nothing was measured yet */
    if (*why) snprintf(to, room, "%s is not used: %s", file, why);
    else
        snprintf(to, room, "%s: %.0f choices; %.0f step%s of this model follow%s them", file, n, used,
                 used == 1 ? "" : "s", used == 1 ? "s" : "");
    return true;
}
