/* SPDX-License-Identifier: Apache-2.0
   page: see page.h. What the data mean, and what is drawn of them, is the page's own. */
#include "page.h"

#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "json.h"
#include "term.h"

extern const char hone_head_html[]; /* what all pages begin with */
static const char marker[] = "@DATA@";

int hone_page_begin(const char *option, const char *file, const char *text, hone_page *p) {
    const char *split = strstr(text, marker);
    if (!split)
        return hone_args_wrong("%s %s: the page has no place for data: a bug of Hone's, please report it",
                               option, file) +
               1;
    int rc = hone_output_begin(option, file, &p->out);
    if (rc) return rc;
    fputs(hone_head_html, p->out.to);
    fwrite(text, 1, (size_t)(split - text), p->out.to);
    p->rest = split + strlen(marker);
    return 0;
}

/* No "</script>" may stand in it, and "<" only ever stands in strings. */
void hone_page_json(hone_page *p, const char *json) {
    for (; *json; json++) {
        if (*json == '<') fputs("\\u003c", p->out.to);
        else fputc(*json, p->out.to);
    }
}

void hone_page_text(hone_page *p, const char *text) {
    char *quoted = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&quoted, &bytes);
    if (memory) {
        hone_json_put_text(memory, text, strlen(text));
        fclose(memory);
    }
    hone_page_json(p, quoted ? quoted : "\"\"");
    free(quoted);
}

int hone_page_end(hone_page *p, bool good, const char *file, FILE *to) {
    fputs(p->rest, p->out.to);
    long bytes = ftell(p->out.to);
    int rc = hone_output_end(&p->out, good);
    if (!rc && good)
        hone_print(to, "%s is written, %s; open it in a browser\n", file, hone_text_bytes((double)bytes));
    return rc;
}
