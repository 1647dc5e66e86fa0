/* SPDX-License-Identifier: Apache-2.0
   pages: man pages and completions for shells, made of the tables that read the options. Nothing here knows a
   command by name: each is asked for its usage (hone_args_describe), and what a value completes to is seen in
   how --help calls it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "args.h"
#include "commands.h"
#include "hone/zoo.h"
#include "json.h"
#include "output.h"
#include "term.h"

static FILE *to;

/* What stands for a value or an operand: files, folders, models, or words to choose from ("rgb|bgr"). */
typedef enum { ANY, FILES, FOLDERS, MODELS, WORDS } completes;
static completes completes_to(const char *text) {
    if (!text) return ANY;
    if (strstr(text, "MODEL")) return MODELS;
    if (strstr(text, "FILE")) return FILES;
    if (strstr(text, "DIR") && !strstr(text, "DIMS")) return FOLDERS;
    return strchr(text, '|') && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789|-") == strlen(text) ? WORDS
                                                                                                       : ANY;
}
static void put_words(const char *text) { /* "rgb|bgr" as words */
    for (; *text; text++) fputc(*text == '|' ? ' ' : *text, to);
}
static bool is_long(const hone_option *o) { return o->name[1] == '-'; }
static char letter_of(const hone_option *o) { return is_long(o) ? hone_args_letter(o->name) : o->name[1]; }

/* All options of a command: its own, then those of every command that it does not have itself. */
static const hone_option *option_at(const hone_usage *u, int k) {
    for (const hone_option *o = u->options; o->name; o++)
        if (k-- == 0) return o;
    for (const hone_option *o = hone_args_common; o->name; o++) {
        bool own = false;
        for (const hone_option *p = u->options; p->name; p++) own |= !strcmp(p->name, o->name);
        if (!own && k-- == 0) return o;
    }
    static const hone_option help = {"--help", NULL, "options and examples", HONE_ARG_FLAG, NULL, 0};
    return k == 0 ? &help : NULL;
}

/* ---- man ---- */

/* Text for troff: nothing in it is a request, and a dash is a dash. */
static void put_troff(const char *text, const char *end) {
    for (const char *p = text; p < end; p++) {
        if (*p == '\\') fputs("\\e", to);
        else if (*p == '-') fputs("\\-", to);
        else if (*p == '\'') fputs("\\(aq", to);
        else if (*p == '.' && (p == text || p[-1] == '\n')) fputs("\\&.", to);
        else if ((unsigned char)*p >= 0xc0) { /* UTF-8, by number */
            const unsigned char *b = (const unsigned char *)p;
            const int more = b[0] < 0xe0 ? 1 : b[0] < 0xf0 ? 2 : 3;
            unsigned code = b[0] & (0x3fu >> more);
            for (int k = 1; k <= more && p + 1 < end; k++, p++) code = code << 6 | (b[k] & 0x3f);
            fprintf(to, "\\[u%04X]", code);
        } else fputc(*p, to);
    }
}
static void put_line(const char *text) { put_troff(text, text + strlen(text)), fputc('\n', to); }
static void man_head(const char *name, const char *what) {
    fprintf(to, ".TH HONE%s%s 1 \"\" \"Hone %s\" \"Hone\"\n.SH NAME\nhone%s%s \\- ", *name ? "\\-" : "", name,
            hone_version(), *name ? "\\-" : "", name);
    put_line(what);
}
static const char *title; /* of the page that man_usage makes */
static void man_usage(const hone_usage *u) {
    man_head(u->name, title);
    fprintf(to, ".SH SYNOPSIS\n.B hone %s\n", u->name);
    if (*u->operands) put_line(u->operands);
    fputs("[options]\n.SH DESCRIPTION\n", to);
    put_line(u->what);
    fputs(".SH OPTIONS\n", to);
    const hone_option *o;
    for (int k = 0; (o = option_at(u, k)); k++) {
        fputs(".TP\n", to);
        if (is_long(o) && letter_of(o)) fprintf(to, "\\fB\\-%c\\fR, ", letter_of(o));
        fputs("\\fB", to), put_troff(o->name, o->name + strlen(o->name)), fputs("\\fR", to);
        if (o->value) fputs(" \\fI", to), put_troff(o->value, o->value + strlen(o->value)), fputs("\\fR", to);
        fputc('\n', to);
        put_line(o->help);
    }
    fputs(".SH EXAMPLES\n.nf\n", to);
    put_line(u->example);
    fputs(".fi\n.SH SEE ALSO\n.BR hone (1)\n", to);
}
static void man_top(void) {
    static const struct {
        const char *name, *what;
    } variables[] = {
        {"HONE_WISDOM", "the file with choices that hone tune measured; none: no such file"},
        {"HONE_CPU", "the highest instruction set that is used, as in avx2; hone devices lists them"},
        {"NO_COLOR", "no colours, where it is set to anything"},
        {"COLUMNS", "how wide tables may be where the output is no terminal"}};
    man_head("", "runs ONNX models, fast, on the hardware it finds");
    fputs(".SH SYNOPSIS\n.B hone\n.I COMMAND\n[options]\n.SH COMMANDS\n", to);
    for (const hone_command *c = hone_commands; c->name; c++)
        fprintf(to, ".TP\n.BR hone\\-%s (1)\n", c->name), put_line(c->what);
    fputs(".SH EXIT STATUS\n0: done. 1: a mistake of the user, or a check that failed. 2: a bug of "
          "Hone\\(aqs. 3: hone bench \\-\\-against "
          "found "
          "that it is slower.\n.SH ENVIRONMENT\n",
          to);
    for (size_t k = 0; k < sizeof variables / sizeof *variables; k++)
        fprintf(to, ".TP\n.B %s\n", variables[k].name), put_line(variables[k].what);
}
static void ask(const hone_command *c, void (*tell)(const hone_usage *)) {
    char name[32], *argv[] = {name, NULL};
    snprintf(name, sizeof name, "%s", c->name);
    title = c->what;
    hone_args_describe(tell);
    c->run(1, argv);
    hone_args_describe(NULL);
}
static int man_page(const char *name) {
    if (!*name) return man_top(), 0;
    for (const hone_command *c = hone_commands; c->name; c++)
        if (!strcmp(c->name, name)) return ask(c, man_usage), 0;
    return hone_args_wrong("there is no command '%s'; 'hone --help' lists them", name);
}
static int man_file(const char *folder, const char *name) {
    char *path = hone_must_alloc(strlen(folder) + strlen(name) + 16);
    hone_output o;
    sprintf(path, "%s/hone%s%s.1", folder, *name ? "-" : "", name);
    int rc = hone_output_begin("-o", path, &o);
    if (!rc) {
        to = o.to;
        man_page(name);
        rc = hone_output_end(&o, true);
    }
    free(path);
    return rc;
}
int hone_cmd_man(int argc, char **argv) {
    const char *folder = NULL;
    hone_words operands = {0};
    const hone_option options[] = {
        {"-o", "DIR", "write the pages of all commands there, as DIR/hone-run.1", HONE_ARG_TEXT, &folder, 0},
        {0}};
    const hone_usage usage = {"man",
                              "[COMMAND]",
                              0,
                              1,
                              "Prints a man page: Hone's, or a command's.",
                              "hone man run | man -l -\nhone man -o man1",
                              options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc == HONE_ARGS_GO && folder && operands.n)
        rc = hone_args_wrong("-o writes the pages of all commands: leave '%s' away", operands.at[0]);
    if (rc == HONE_ARGS_GO && folder && mkdir(folder, 0777) && errno != EEXIST)
        rc = hone_args_wrong("-o %s: %s", folder, strerror(errno));
    if (rc == HONE_ARGS_GO && !folder) to = stdout, rc = man_page(operands.n ? operands.at[0] : "");
    else if (rc == HONE_ARGS_GO) {
        rc = man_file(folder, "");
        for (const hone_command *c = hone_commands; c->name && !rc; c++) rc = man_file(folder, c->name);
    }
    hone_words_free(&operands);
    return rc;
}

/* ---- completion ---- */

static hone_json *zoo; /* its networks, once they were asked for: all are measured for that */
static void put_models(void) {
    char *text = NULL;
    if (!zoo && !hone_zoo_report(NULL, &text)) zoo = hone_json_read(text);
    for (const hone_json *m = zoo ? zoo->first : NULL; m; m = m->next)
        fprintf(to, "%szoo:%s", m == zoo->first ? "" : " ", hone_json_text(m, "name", ""));
    hone_text_release(text);
}
static void put_commands(void) {
    for (const hone_command *c = hone_commands; c->name; c++) fprintf(to, "%s ", c->name);
    fputs("help", to);
}
/* A text in single quotes; `also`: characters that get a backslash. */
static void put_quoted(const char *text, const char *also) {
    for (const char *p = text; *p; p++) {
        if (*p == '\'') fputs("'\\''", to);
        else fprintf(to, "%s%c", strchr(also, *p) ? "\\" : "", *p);
    }
}

static void bash_usage(const hone_usage *u) {
    static const char *const how[] = {
        [ANY] = "", [FILES] = "_hone_files", [FOLDERS] = "_hone_folders", [MODELS] = "_hone_models"};
    const hone_option *o;
    fprintf(to, "    %s)\n        case $before in\n", u->name);
    for (int k = 0; (o = option_at(u, k)); k++) {
        if (o->kind == HONE_ARG_FLAG) continue;
        const completes what = completes_to(o->value);
        fprintf(to, "        %s", o->name);
        if (is_long(o) && letter_of(o)) fprintf(to, "|-%c", letter_of(o));
        if (what == WORDS) fputs(") _hone_words '", to), put_words(o->value), fputs("'; return ;;\n", to);
        else fprintf(to, ") %s%sreturn ;;\n", how[what], *how[what] ? "; " : "");
    }
    fputs("        esac\n        [[ $word == -* ]] && { _hone_words '", to);
    for (int k = 0; (o = option_at(u, k)); k++) fprintf(to, "%s%s", k ? " " : "", o->name);
    fputs("'; return; }\n        ", to);
    const completes what = completes_to(u->operands);
    if (what == WORDS) fputs("_hone_words '", to), put_words(u->operands), fputs("' ;;\n", to);
    else if (!strcmp(u->operands, "[COMMAND]")) fputs("_hone_words \"$commands\" ;;\n", to);
    else fprintf(to, "%s ;;\n", *how[what] ? how[what] : ":");
}
static void bash(void) {
    fputs("# bash completion for hone, made by `hone completion bash`\n"
          "_hone_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$word\"); }\n"
          "_hone_files() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "
          "\"$word\"); }\n"
          "_hone_folders() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "
          "\"$word\"); }\n"
          "_hone_models() {\n"
          "    local zoo='",
          to);
    put_models();
    /* a colon is a word of its own to bash */
    fputs("'\n"
          "    compopt -o filenames 2>/dev/null\n"
          "    if [[ $before == zoo && ${COMP_WORDS[COMP_CWORD]} != zoo* ]]; then\n"
          "        [[ $word == : ]] && word=\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"${zoo//zoo:/}\" -- \"$word\")\n"
          "    else\n"
          "        mapfile -t COMPREPLY < <(compgen -f -X '!*.onnx' -- \"$word\"; compgen -d -- \"$word\"; "
          "compgen -W \"$zoo\" -- "
          "\"$word\")\n"
          "    fi\n"
          "}\n"
          "_hone() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} commands='",
          to);
    put_commands();
    fputs("'\n"
          "    COMPREPLY=()\n"
          "    [[ $before == : && $COMP_CWORD -gt 1 ]] && before=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    if [[ $COMP_CWORD == 1 ]]; then _hone_words \"$commands\"; return; fi\n"
          "    case ${COMP_WORDS[1]} in\n"
          "    help) _hone_words \"$commands\" ;;\n",
          to);
    for (const hone_command *c = hone_commands; c->name; c++) ask(c, bash_usage);
    fputs("    esac\n}\ncomplete -F _hone hone\n", to);
}

static void zsh_action(const char *value) {
    switch (completes_to(value)) {
    case FILES: fputs("_files", to); break;
    case FOLDERS: fputs("_files -/", to); break;
    case MODELS: fputs("_hone_models", to); break;
    case WORDS: fputc('(', to), put_words(value), fputc(')', to); break;
    case ANY: fputc(' ', to); break;
    }
}
static void zsh_usage(const hone_usage *u) {
    const hone_option *o;
    fprintf(to, "    (%s) _arguments -s", u->name);
    for (int k = 0; (o = option_at(u, k)); k++) {
        const char letter = is_long(o) ? letter_of(o) : 0;
        const char *more = o->kind == HONE_ARG_LIST ? "*" : "";
        fputs(" \\\n        ", to);
        if (letter && !*more) fprintf(to, "'(-%c %s)'{-%c,%s}'[", letter, o->name, letter, o->name);
        else if (letter) fprintf(to, "'*'{-%c,%s}'[", letter, o->name);
        else fprintf(to, "'%s%s[", more, o->name);
        put_quoted(o->help, "[]:");
        fputc(']', to);
        if (o->value) fputc(':', to), put_quoted(o->value, "[]:"), fputc(':', to), zsh_action(o->value);
        fputc('\'', to);
    }
    if (*u->operands) {
        fputs(" \\\n        '*:", to), put_quoted(u->operands, "[]:"), fputc(':', to);
        if (!strcmp(u->operands, "[COMMAND]")) fputs("_hone_commands'", to);
        else zsh_action(u->operands), fputc('\'', to);
    }
    fputs(" ;;\n", to);
}
static void zsh(void) {
    fputs("#compdef hone\n# zsh completion for hone, made by `hone completion zsh`\n_hone_commands() {\n    "
          "local -a all=(\n",
          to);
    for (const hone_command *c = hone_commands; c->name; c++)
        fprintf(to, "        '%s:", c->name), put_quoted(c->what, ":"), fputs("'\n", to);
    fputs("        'help:a command'\\''s options'\n    )\n    _describe command all\n}\n_hone_models() {\n   "
          " local -a zoo=(",
          to);
    put_models();
    fputs(")\n    _alternative 'files:model:_files -g \"*.onnx\"' 'zoo:network:compadd -a zoo'\n}\n"
          "_hone() {\n    if (( CURRENT == 2 )); then _hone_commands; return; fi\n    local "
          "command=$words[2]\n    shift words\n    (( "
          "CURRENT-- ))\n"
          "    case $command in\n    (help) _hone_commands ;;\n",
          to);
    for (const hone_command *c = hone_commands; c->name; c++) ask(c, zsh_usage);
    fputs("    esac\n}\nif [[ $funcstack[1] == _hone ]]; then _hone \"$@\"; else compdef _hone hone; fi\n",
          to);
}

static void fish_usage(const hone_usage *u) {
    const hone_option *o;
    for (int k = 0; (o = option_at(u, k)); k++) {
        const completes what = completes_to(o->value);
        fprintf(to, "complete -c hone -n '__fish_seen_subcommand_from %s'", u->name);
        if (letter_of(o)) fprintf(to, " -s %c", letter_of(o));
        if (is_long(o)) fprintf(to, " -l %s", o->name + 2);
        if (o->value) fputs(what == FILES || what == FOLDERS || what == MODELS ? " -rF" : " -x", to);
        if (what == WORDS) fputs(" -a '", to), put_words(o->value), fputc('\'', to);
        fputs(" -d '", to);
        for (const char *p = o->help; *p; p++) fprintf(to, "%s%c", strchr("'\\", *p) ? "\\" : "", *p);
        fputs("'\n", to);
    }
    const completes what = completes_to(u->operands);
    if (what == ANY) return;
    fprintf(to, "complete -c hone -n '__fish_seen_subcommand_from %s' %s -a '", u->name,
            what == WORDS ? "-f" : "-F");
    if (what == WORDS) put_words(u->operands);
    if (what == MODELS) put_models();
    fputs("'\n", to);
}
static void fish(void) {
    fputs("# fish completion for hone, made by `hone completion fish`\ncomplete -c hone -f\n", to);
    for (const hone_command *c = hone_commands; c->name; c++) {
        fprintf(to, "complete -c hone -n __fish_use_subcommand -a %s -d '", c->name);
        for (const char *p = c->what; *p; p++) fprintf(to, "%s%c", strchr("'\\", *p) ? "\\" : "", *p);
        fputs("'\n", to);
    }
    for (const hone_command *c = hone_commands; c->name; c++) ask(c, fish_usage);
}

int hone_cmd_completion(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*put)(void);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    hone_words operands = {0};
    const hone_option options[] = {{0}};
    const hone_usage usage = {
        "completion",
        "bash|zsh|fish",
        1,
        1,
        "Prints what makes a shell complete Hone's commands, options and networks. 'make install' puts all "
        "three in place.",
        "source <(hone completion bash)\nhone completion fish > ~/.config/fish/completions/hone.fish",
        options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc == HONE_ARGS_GO) {
        rc = -1;
        to = stdout;
        for (size_t k = 0; k < sizeof shells / sizeof *shells; k++)
            if (!strcmp(operands.at[0], shells[k].name)) shells[k].put(), rc = 0;
        if (rc)
            rc = hone_args_wrong("'%s' is no shell that is known here: bash, zsh or fish", operands.at[0]);
    }
    hone_json_free(zoo), zoo = NULL;
    hone_words_free(&operands);
    return rc;
}
