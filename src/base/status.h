/* SPDX-License-Identifier: Apache-2.0
   status: what a call that can fail returns, and the one line that says why.

   Three kinds of trouble, three mechanisms: a wrong input returns a status and leaves a message on the
   thread; a variant that does not apply returns false in silence; a bug of ours is an assert. The library
   never prints, exits or aborts. */
#ifndef HONE_BASE_STATUS_H
#define HONE_BASE_STATUS_H
#include "hone/hone.h" /* hone_status */

#define HONE_CHECKED __attribute__((warn_unused_result))
#define HONE_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Sets this thread's message and returns `s`, so that `return hone_fail(HONE_BAD_INPUT, "…")` is the whole
   failure path. */
hone_status hone_fail(hone_status s, const char *format, ...) HONE_PRINTF(2, 3);
/* Puts context in front of the message already there ("node 'a' (Conv 22): " + message); returns `s`. */
hone_status hone_fail_at(hone_status s, const char *format, ...) HONE_PRINTF(2, 3);
/* For what is gathered before it is reported (all problems of a model): a line each. `text` may not be the
   message itself. */
hone_status hone_fail_lines(hone_status s, const char *text);
const char *hone_fail_text(void); /* this thread's message, "" when none */
/* it sees one file at a time, and must know that a failure is not HONE_OK */
#ifdef __clang_analyzer__
#define hone_fail(s, ...) ((void)(hone_fail)(s, __VA_ARGS__), (s))
#define hone_fail_at(s, ...) ((void)(hone_fail_at)(s, __VA_ARGS__), (s))
#endif

#define HONE_TRY(call)                       \
    do {                                     \
        hone_status try_status_ = (call);    \
        if (try_status_) return try_status_; \
    } while (0)
#endif
