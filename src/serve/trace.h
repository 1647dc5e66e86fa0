/* SPDX-License-Identifier: Apache-2.0
   trace: W3C's trace context (the header traceparent), and the spans of requests as a file that
   ui.perfetto.dev and chrome://tracing show. */
#ifndef HONE_SERVE_TRACE_H
#define HONE_SERVE_TRACE_H
#include "serve/server.h"

enum { HONE_TRACEPARENT = 55 }; /* bytes of "00-TRACE-SPAN-FLAGS" */

typedef struct hone_serve_trace hone_serve_trace;
hone_status hone_serve_trace_open(const hone_server_options *, hone_serve_trace **out);
void hone_serve_trace_free(hone_serve_trace *);
/* A request's context: what came (n bytes, may be NULL), if it is one; with a trace, a span of its own in it,
   or in a new one. "": none. `parent` gets the id of the span that asked, or "". */
void hone_serve_trace_begin(hone_serve_trace * /* NULL: no file */, const char *came, size_t n,
                            char context[HONE_TRACEPARENT + 1], char parent[17]);
/* A request is over. Those whose context says that they are not sampled are left out. */
void hone_serve_trace_end(hone_serve_trace *, const hone_serve_access *);
#endif
