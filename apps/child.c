/* SPDX-License-Identifier: Apache-2.0
   child: see child.h. A child leads a process group of its own, so that what it starts ends with it; where
   the system can, it also dies with us. */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "args.h"
#include "term.h"

enum { LINE_MOST = 1 << 18 /* bytes of an answer */ };

static volatile sig_atomic_t caught;
static void on_signal(int signal) { caught = signal; }

void hone_child_catch(void) {
    struct sigaction act = {.sa_handler = on_signal}; /* no SA_RESTART: waits are to end */
    sigemptyset(&act.sa_mask);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
}
bool hone_child_interrupted(void) { return caught != 0; }

/* ---- beginning and end ---- */

static void become(const char *const *argv, int line, int log, int (*instead)(int, char **), pid_t parent) {
    setpgid(0, 0);
    signal(SIGINT, SIG_DFL), signal(SIGTERM, SIG_DFL);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127); /* gone before we asked */
#endif
    dup2(line, STDIN_FILENO), dup2(line, STDOUT_FILENO), dup2(log, STDERR_FILENO);
    execvp(argv[0], (char *const *)argv);
    int argc = 0, error = errno;
    while (argv[argc]) argc++;
    if (instead) _exit(instead(argc, (char **)argv));
    dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(error));
    _exit(127);
}

bool hone_child_start(hone_child *c, const char *const *argv, const char *log, int (*instead)(int, char **)) {
    int pair[2] = {-1, -1}, file = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    *c = (hone_child){.line = -1, .code = -1};
    snprintf(c->log, sizeof c->log, "%s", log);
    fflush(NULL); /* nothing of ours may be written twice */
    if (file >= 0 && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
        pid_t parent = getpid();
        c->pid = fork();
        if (!c->pid) become(argv, pair[1], file, instead, parent);
    } else c->pid = -1;
    if (c->pid > 0) {
        setpgid(c->pid, c->pid); /* here too: it may be killed before it came so far */
        c->line = pair[0];
    } else {
        snprintf(c->why, sizeof c->why, "no process could be started: %s", strerror(errno));
        if (pair[0] >= 0) close(pair[0]);
        c->pid = 0;
    }
    if (pair[1] >= 0) close(pair[1]);
    if (file >= 0) close(file);
    return c->pid > 0;
}

/* Takes it down; its status. One that has closed its line is given a moment to end by itself, so that the
   status is its own. */
static int finish(hone_child *c, double seconds) {
    int status = 0;
    double end = hone_clock_ms() + seconds * 1000;
    pid_t gone = 0;
    while ((gone = waitpid(c->pid, &status, WNOHANG)) == 0 && hone_clock_ms() < end) usleep(2000);
    kill(-c->pid, SIGKILL); /* what it started may be left even where it is gone */
    if (gone == 0) kill(c->pid, SIGKILL);
    while (gone == 0 && waitpid(c->pid, &status, 0) < 0 && errno == EINTR) {}
    close(c->line);
    free(c->text);
    c->pid = 0, c->line = -1, c->text = NULL, c->n = c->room = c->taken = 0;
    return status;
}

void hone_child_end(hone_child *c) {
    if (c->pid) finish(c, 0);
}

/* The last line of the log that says something, without what only a terminal shows. */
static void last_words(const char *log, char *out, size_t room) {
    char tail[2048] = "";
    FILE *f = fopen(log, "re");
    *out = 0;
    if (!f) return;
    if (!fseek(f, 0, SEEK_END) && ftell(f) >= (long)sizeof tail) fseek(f, -(long)sizeof tail + 1, SEEK_END);
    else rewind(f);
    tail[fread(tail, 1, sizeof tail - 1, f)] = 0;
    fclose(f);
    for (char *p = tail; *p; p++)
        if ((unsigned char)*p < ' ' && *p != '\n') *p = ' ';
    for (char *end = tail + strlen(tail); end > tail;) {
        while (end > tail && (end[-1] == '\n' || end[-1] == ' ')) *--end = 0;
        char *from = strrchr(tail, '\n');
        from = from ? from + 1 : tail;
        from += strspn(from, " ");
        if (*from) return (void)snprintf(out, room, "%.200s", from);
        end = from;
    }
}

static void died(hone_child *c) {
    char said[256];
    int status = finish(c, 2);
    c->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    last_words(c->log, said, sizeof said);
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
        snprintf(c->why, sizeof c->why, "its process crashed: %s", strsignal(WTERMSIG(status)));
    else if (WIFSIGNALED(status))
        snprintf(c->why, sizeof c->why, "its process was killed: was there memory enough?");
    else snprintf(c->why, sizeof c->why, "its process ended with code %d", WEXITSTATUS(status));
    size_t n = strlen(c->why);
    if (*said) snprintf(c->why + n, sizeof c->why - n, " (%s)", said);
}

/* ---- lines ---- */

static bool send_line(hone_child *c, const char *line) {
    size_t n = strlen(line), at = 0;
    char end = '\n';
    while (at <= n) { /* short lines to an idle reader: they fit into the socket's own memory */
        ssize_t put = at < n ? send(c->line, line + at, n - at, MSG_NOSIGNAL | MSG_DONTWAIT)
                             : send(c->line, &end, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return false;
        at += (size_t)put;
    }
    return true;
}

static bool receive(hone_child *c, bool *closed) {
    enum { PART = 1 << 14 };
    if (c->room < c->n + PART + 1) {
        size_t room = c->room * 2 + PART + 1;
        char *text = hone_must_alloc(room);
        if (c->n) memcpy(text, c->text, c->n);
        free(c->text);
        c->text = text, c->room = room;
    }
    ssize_t got = recv(c->line, c->text + c->n, PART, MSG_DONTWAIT);
    if (got > 0) c->n += (size_t)got;
    *closed = got == 0 || (got < 0 && errno == ECONNRESET);
    return got > 0 || *closed || errno == EAGAIN || errno == EINTR;
}

void hone_child_refuse(hone_child *c, const char *answer) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "%.60s", answer);
    for (char *p = quoted; *p; p++)
        if ((unsigned char)*p < ' ' || (unsigned char)*p > '~') *p = '?';
    hone_child_end(c);
    snprintf(c->why, sizeof c->why, "it said '%s', which is no answer", quoted);
}

const char *hone_child_ask(hone_child *c, const char *line, double seconds) {
    double end = hone_clock_ms() + seconds * 1000;
    bool closed = false;
    char *stop = NULL;
    if (!c->pid) return NULL;
    if (c->taken) memmove(c->text, c->text + c->taken, c->n -= c->taken);
    c->taken = 0;
    /* it speaks without being asked */
    if (c->n && line) return c->text[c->n - 1] = 0, hone_child_refuse(c, c->text), NULL;
    if (line && !send_line(c, line)) return died(c), NULL;
    while (!(c->n && (stop = memchr(c->text, '\n', c->n)))) {
        double left = end - hone_clock_ms();
        struct pollfd wait = {.fd = c->line, .events = POLLIN};
        if (caught) return hone_child_end(c), snprintf(c->why, sizeof c->why, "interrupted"), NULL;
        if (closed) return died(c), NULL;
        if (c->n >= LINE_MOST) return c->text[c->n - 1] = 0, hone_child_refuse(c, c->text), NULL;
        if (left <= 0) {
            hone_child_end(c);
            snprintf(c->why, sizeof c->why, "cut off: no answer within %.3g s", seconds);
            return NULL;
        }
        if (poll(&wait, 1, left < 1000 ? (int)left + 1 : 1000) > 0 && !receive(c, &closed))
            return died(c), NULL;
    }
    *stop = 0;
    c->taken = (size_t)(stop + 1 - c->text);
    if (strncmp(c->text, "cannot ", 7) != 0) return c->text;
    snprintf(c->why, sizeof c->why, "%s", c->text + 7);
    for (char *p = c->why; *p; p++)
        if ((unsigned char)*p < ' ') *p = ' ';
    hone_child_end(c);
    return NULL;
}

void hone_child_stop(hone_child *c) {
    if (c->pid) kill(-c->pid, SIGSTOP);
}
void hone_child_go(hone_child *c) {
    if (c->pid) kill(-c->pid, SIGCONT);
}
