/* SPDX-License-Identifier: Apache-2.0
   commands: one function a command. argv[0] is the command's own name; the result is the process's exit code:
   0 success, 1 a user's mistake or a check that failed, 2 a bug of ours; `bench --against` has 3, slower. */
#ifndef HONE_APPS_COMMANDS_H
#define HONE_APPS_COMMANDS_H

typedef struct {
    const char *name, *what; /* what: one line */
    int (*run)(int argc, char **argv);
} hone_command;
extern const hone_command hone_commands[]; /* up to a NULL name; main.c */

int hone_cmd_run(int argc, char **argv);
int hone_cmd_bench(int argc, char **argv);
int hone_cmd_compare(int argc, char **argv);
int hone_cmd_inspect(int argc, char **argv);
int hone_cmd_check(int argc, char **argv);
int hone_cmd_explain(int argc, char **argv);
int hone_cmd_tune(int argc, char **argv);
int hone_cmd_quantize(int argc, char **argv);
int hone_cmd_compile(int argc, char **argv);
int hone_cmd_zoo(int argc, char **argv);
int hone_cmd_devices(int argc, char **argv);
int hone_cmd_serve(int argc, char **argv);
int hone_cmd_load(int argc, char **argv);
int hone_cmd_conformance(int argc, char **argv);
int hone_cmd_profile(int argc, char **argv);
int hone_cmd_man(int argc, char **argv);
int hone_cmd_completion(int argc, char **argv);
int hone_cmd_version(int argc, char **argv);
#endif
