/* SPDX-License-Identifier: Apache-2.0
   hone: the command. A table of commands; each reads its own options. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "commands.h"
#include "hone/hone.h"
#include "load.h"
#include "term.h"

const hone_command hone_commands[] = {
    {"run", "run a model once or many times, on files or random inputs; check its outputs", hone_cmd_run},
    {"bench",
     "how long a model takes: latency, throughput, memory, one row or a sweep; against an earlier result",
     hone_cmd_bench},
    {"profile", "where the time of a run goes, node by node, against what the machine can do",
     hone_cmd_profile},
    {"compare",
     "a model through every runtime on the machine: speed, memory, load time, whether answers agree",
     hone_cmd_compare},
    {"inspect", "what a model is: inputs, outputs, nodes, parameters, the optimized graph", hone_cmd_inspect},
    {"check", "whether a model can run here, and every problem when not", hone_cmd_check},
    {"explain", "how one node is computed, down to its program and its C", hone_cmd_explain},
    {"tune", "measure on this machine how each layer is best computed, and keep it for later runs",
     hone_cmd_tune},
    {"quantize", "make a model smaller and faster in integers, within an accuracy that you set",
     hone_cmd_quantize},
    {"compile", "write the optimized model to a file: ONNX, for other runtimes", hone_cmd_compile},
    {"zoo", "the networks that come with Hone; describe one, write one as ONNX", hone_cmd_zoo},
    {"devices", "what there is to run on: the CPU, its levels, its speed just now", hone_cmd_devices},
    {"serve", "the models of a folder behind a port: KServe v2, as Triton's clients speak it",
     hone_cmd_serve},
    {"load", "put a server under load: how many requests it answers, how long they take, where the knee is",
     hone_cmd_load},
    {"conformance", "run ONNX's own test cases", hone_cmd_conformance},
    {"completion", "what makes bash, zsh or fish complete all this", hone_cmd_completion},
    {"man", "a man page, or all of them", hone_cmd_man},
    {"version", "the version, the commit, the compiler and the CPU's level", hone_cmd_version},
    {0},
};
enum { COMMANDS = sizeof hone_commands / sizeof *hone_commands - 1, NAME_WIDE = 12 };

/* What was printed has to arrive: the exit code. */
static int written(int rc) {
    return (fflush(stdout) || ferror(stdout)) && !rc ? hone_args_wrong("the output could not be written")
                                                     : rc;
}
static int help(FILE *to) {
    const char *bold = hone_paint(to, HONE_BOLD), *plain = hone_paint(to, HONE_PLAIN);
    fprintf(to,
            "Hone %s: runs ONNX models, fast, on the hardware it finds.\n\n%susage%s  hone COMMAND "
            "[options]\n\n%scommands%s\n",
            hone_version(), bold, plain, bold, plain);
    for (int k = 0; k < COMMANDS; k++) {
        fprintf(to, "  %-*s  ", NAME_WIDE, hone_commands[k].name);
        hone_help_put(to, hone_commands[k].what, NAME_WIDE + 4, hone_help_columns(to), NAME_WIDE + 4);
    }
    fprintf(to, "\n'hone COMMAND --help' shows a command's options and examples.\n");
    return to == stdout ? written(0) : 1;
}

static int unknown(const char *word) {
    const char *names[COMMANDS + 3] = {"help", "--help", "--version"};
    for (int k = 0; k < COMMANDS; k++) names[k + 3] = hone_commands[k].name;
    const char *near = hone_args_nearest(word, names, COMMANDS + 3);
    if (!strncmp(word, "zoo:", 4) || access(word, F_OK) == 0)
        fprintf(stderr, "hone: '%s' is a model, not a command; did you mean 'hone run %s'?\n", word, word);
    else if (*word == '-' && (!near || *near != '-'))
        fprintf(stderr, "hone: '%s' stands before the command; write 'hone COMMAND %s'\n", word, word);
    else if (near) fprintf(stderr, "hone: there is no command '%s'; did you mean 'hone %s'?\n", word, near);
    else fprintf(stderr, "hone: there is no command '%s'; 'hone --help' lists them\n", word);
    return 1;
}

int main(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : "";
    char *ask[] = {argv[0], NULL, "--help", NULL};
    if (!*word) return help(stderr);
    bool helping = !strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help");
    if (helping && argc < 3) return help(stdout);
    if (helping && argc > 3) return hone_args_wrong("'%s' is one word too many: hone help COMMAND", argv[3]);
    if (helping && !strcmp(argv[2], "help")) return help(stdout);
    if (helping) word = argv[2], ask[1] = argv[2], argc = 3, argv = ask; /* help COMMAND is COMMAND --help */
    if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
        printf("hone %s\n", hone_version());
        return written(0);
    }
    hone_args_stdin(hone_load_stdin);
    for (int k = 0; k < COMMANDS; k++) {
        if (strcmp(word, hone_commands[k].name) != 0) continue;
        int rc = hone_commands[k].run(argc - 1, argv + 1);
        return written(hone_args_end(rc));
    }
    return unknown(word);
}
