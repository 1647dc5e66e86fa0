/* SPDX-License-Identifier: Apache-2.0
   program: a row of ops text, parsed (docs/02-programs.md is the language). Syntax only: names are resolved
   when an instance is made.

   Tokens keep their place in the text, so every later error can name the line. A program lives as long as its
   library. */
#ifndef HONE_LOOPS_PROGRAM_H
#define HONE_LOOPS_PROGRAM_H
#include "base/attr.h"

/* ---- the tree ------------------------------------------------------------------------------------------ */
typedef enum {
    HONE_T_NUMBER, /* k.i, or k.f where `real` */
    HONE_T_TEXT,   /* "string" */
    HONE_T_NAME,   /* name; `group`: written with .. */
    HONE_T_LOAD, /* name[arg…]; else in `other` (or NULL); `flat`: flat(name)[e]; `spread`: …[…, :].. */
    /* name(arg…); `group`: name..(e) folds a group's members; name "else": (what, otherwise) around an
       abbreviation */
    HONE_T_CALL,
    HONE_T_UNARY,  /* name is "-" or "!" */
    HONE_T_BINARY, /* name is the operator's spelling */
    /* name is sum prod max min argmax argmin; arg: HONE_T_INDEX…; body; value after ':' in `other` */
    HONE_T_REDUCE,
    HONE_T_INDEX, /* name, group; extent in body (or NULL), cap in other */
    HONE_T_TUPLE, /* (a, b): one dim seen as several */
    HONE_T_COLON  /* the ':' subscript */
} hone_tree_kind;
typedef struct hone_tree hone_tree;
struct hone_tree {
    hone_tree_kind kind;
    bool group, real, flat, spread;
    const char *name;
    union {
        int64_t i;
        double f;
    } k;
    hone_tree **arg;
    int n_arg, line;
    hone_tree *body, *other;
};

typedef enum {
    HONE_DIM_PLAIN /* expr, tuple or group */,
    HONE_DIM_ONES /* 1 if c; 1.. at v; 1.. for J.. */,
    HONE_DIM_FREE /* ? */
} hone_entry_kind;
typedef struct {
    hone_entry_kind kind;
    bool broadcast;
    hone_tree *expr;  /* PLAIN: name, group, tuple or expression */
    const char *at;   /* the axes vector, or NULL */
    const char *like; /* ONES: for this group, or NULL */
    hone_tree *cond;  /* ONES: or NULL */
} hone_entry;

typedef enum {
    HONE_OF_DTYPE,
    HONE_OF_VAR,
    HONE_OF_ANY,
    HONE_OF_ATTR,
    HONE_OF_SEQ,
    HONE_OF_OPT,
    HONE_OF_MAP
} hone_of;
typedef struct {
    const char *name;
    hone_of of;
    hone_dtype dtype; /* OF_DTYPE */
    const char *type; /* OF_VAR: the variable; OF_ATTR: the attribute */
    bool output, optional, contents, variadic, shaped /* has [dims] */;
    hone_tree *otherwise; /* = value where absent, or NULL */
    hone_entry *entry;
    int n_entry;
} hone_operand;
typedef struct {
    const char *name, *alias; /* alias: as G; else = name */
    hone_attr_kind kind;
    bool group, required, has_default;
    int64_t i;
    double f;
    const char *s; /* the default's text; TYPE: the type variable that is the default; INTS: "reversed" */
} hone_attr_spec;
typedef struct {
    const char *name;
    uint32_t allowed;      /* bit a dtype */
    const char *otherwise; /* where no input tells: a dtype or another variable; or NULL */
} hone_type_var;

typedef enum {
    HONE_LINE_RANK,
    HONE_LINE_DIM,
    HONE_LINE_SHORT /* abbreviation */,
    HONE_LINE_STAGE,
    HONE_LINE_OVER,
    HONE_LINE_WHEN,
    HONE_LINE_NEED
} hone_line_kind;
typedef struct hone_line hone_line;
struct hone_line {
    hone_line_kind kind;
    int line;
    const char *name; /* RANK, DIM, SHORT: what is defined; STAGE: the target; OVER: the index */
    bool group;
    const char **param; /* SHORT with parameters */
    int n_param;
    hone_tree **sub; /* STAGE: subscripts (NAME, INDEX with extent, TUPLE, expression) */
    int n_sub;
    const char *how; /* STAGE: "=", "add=", "mul=", "max=", "min=" */
    bool saturate, skip;
    hone_tree *expr;          /* the right side; WHEN, NEED: the condition; OVER: the extent or NULL */
    const char *text;         /* NEED */
    hone_line *block, *other; /* OVER, WHEN: the indented lines; the else ones */
    hone_line *next;
};

typedef enum { HONE_RUNS_PROGRAM, HONE_RUNS_VIEW, HONE_RUNS_HOST, HONE_RUNS_CONTROL } hone_runs;
typedef struct hone_program {
    const char *domain, *name; /* domain "" is ai.onnx */
    int since;
    hone_runs runs;
    const char *how;         /* VIEW, HOST, CONTROL: the name of the C function */
    const char *how_strings; /* `host NAME when strings`: the C function for string tensors, or NULL */
    hone_operand *operand;   /* inputs, then outputs */
    int n_in, n_out;
    hone_attr_spec *attr;
    int n_attr;
    hone_type_var *type;
    int n_type;
    hone_line *lines;
    bool random;      /* draws random numbers, under some condition at least */
    const char *text; /* the row as written, for `explain` */
    size_t text_bytes;
    int line;
} hone_program;

/* ---- the library: all rows of the embedded text, and a user's ------------------------------------------ */
typedef struct hone_library hone_library;
/* Splits text into rows and parses each. `source` names the text in errors ("ops/math.hop:12: …"). A row of
   the same domain, name and version replaces an earlier one. */
hone_status hone_library_create(hone_library **out) HONE_CHECKED; /* empty */
hone_status hone_library_add(hone_library *, const char *source, const char *text, size_t bytes) HONE_CHECKED;
void hone_library_destroy(hone_library *);
/* the newest version, or NULL */
const hone_program *hone_library_find(const hone_library *, const char *domain, const char *name);
/* without parsing it */
bool hone_library_has(const hone_library *, const char *domain, const char *name);
int hone_library_count(const hone_library *); /* of all rows, the newest library's first */
const hone_program *hone_library_at(const hone_library *, int k);
/* The embedded rows, each parsed once a process, when it is first asked for, and what was added to them.
   Valid to the end of the process; later additions are seen by those who ask later. A failure is a bug in
   ops/. */
hone_status hone_library_builtin(const hone_library **out) HONE_CHECKED;
/* Adds a user's rows to those of the process: all of the text or none. Any thread. Rows must be programs in a
   domain of their own, and replace nothing; the very same row again is fine. */
hone_status hone_library_extend(const char *source, const char *text, size_t bytes) HONE_CHECKED;
#endif
