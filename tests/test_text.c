/* SPDX-License-Identifier: Apache-2.0
   Text: files of tokenizers against ids worked out by hand, each rule once; files that are cut off or ask
   for what is not there; samples of text for models, by the names of inputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/value.h"
#include "hone/quant.h"
#include "hone/tools.h"
#include "text/classes.h"
#include "text/json.h"
#include "text/tokens.h"

static char folder[64];
static const char *put(const char *name, const char *text, size_t bytes) {
    static char path[8][128];
    static int turn;
    char *p = path[turn++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    FILE *f = fopen(p, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, bytes, f), bytes);
    fclose(f);
    return p;
}
static const char *put_text(const char *name, const char *text) { return put(name, text, strlen(text)); }

/* ---- tokens -------------------------------------------------------------------------------------------- */
static const char bert[] =
    "{\"normalizer\": {\"type\": \"BertNormalizer\", \"lowercase\": true}, \"pre_tokenizer\": {\"type\": "
    "\"BertPreTokenizer\"}, \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": "
    "[{\"SpecialToken\": "
    "{\"id\": \"[CLS]\"}}, {\"Sequence\": {\"id\": \"A\"}}, {\"SpecialToken\": {\"id\": \"[SEP]\"}}], "
    "\"special_tokens\": {\"[CLS]\": {\"ids\": [1]}, \"[SEP]\": {\"ids\": [2]}}}, \"padding\": {\"pad_id\": "
    "9}, "
    "\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", \"vocab\": {\"[UNK]\": 0, \"[CLS]\": 1, "
    "\"[SEP]\": 2, \"un\": 3, \"##aff\": 4, \"##able\": 5, \"cafe\": 6, \",\": 7, \"\\u4e2d\": 8, \"[PAD]\": "
    "9}}}";
static const char gpt2[] = "{\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}, "
                           "\"model\": {\"type\": \"BPE\", "
                           "\"unk_token\": \"?\", \"vocab\": {\"?\": 0, \"a\": 1, \"b\": 2, \"\\u0120\": 3, "
                           "\"ab\": 4, \"\\u0120ab\": 5, "
                           "\"'\": 6, \"s\": 7, \"'s\": 8, \"1\": 9, \"\\u010a\": 10, \"\\u00c3\": 11, "
                           "\"\\u00a9\": 12, \"'\\u010a\": 13}, \"merges\": "
                           "[\"a b\", [\"\\u0120\", \"ab\"], \"' s\", \"' \\u010a\"]}}";
static const char llama[] =
    "{\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Prepend\", \"prepend\": "
    "\"\\u2581\"}, {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"\\u2581\"}]}, "
    "\"model\": {\"type\": \"BPE\", \"unk_token\": \"<unk>\", \"byte_fallback\": true, \"vocab\": "
    "{\"<unk>\": 0, "
    "\"\\u2581\": 1, \"a\": 2, \"\\u2581a\": 3, \"<0xC3>\": 4, \"<0xA9>\": 5}, \"merges\": [\"\\u2581 a\"]}}";
static const char metaspace[] =
    "{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"_\", \"prepend_scheme\": \"always\"}, "
    "\"model\": {\"type\": \"BPE\", \"vocab\": {\"_\": 0, \"a\": 1, \"b\": 2, \"_a\": 3, \"a_\": 4}, "
    "\"merges\": "
    "[\"a _\", \"_ a\"]}}";

static void says(const char *file, const char *text, bool marks, int n, const int64_t *want) {
    hone_tokenizer *t = NULL;
    hone_ids ids = {0};
    if (hone_tokenizer_open(put_text("tokenizer.json", file), &t)) fail_msg("%s", hone_error());
    assert_int_equal(hone_tokenizer_encode(t, text, strlen(text), marks, &ids), HONE_OK);
    if (ids.n != n) fail_msg("'%s': %d tokens, not %d", text, ids.n, n);
    for (int k = 0; k < n; k++)
        if (ids.at[k] != want[k])
            fail_msg("'%s': token %d is %lld, not %lld", text, k, (long long)ids.at[k], (long long)want[k]);
    hone_vec_free(&ids);
    hone_tokenizer_close(t);
}
#define SAYS(file, text, marks, ...) \
    says(file, text, marks, (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (const int64_t[]){__VA_ARGS__})
static void tokens_are_right(void **state) {
    (void)state;
    SAYS(bert, "Unaffable, CAF\xC3\x89\xE4\xB8\xAD xyz", true, 1, 3, 4, 5, 7, 6, 8, 0, 2);
    SAYS(bert, "cafe\xCC\x81 un", false, 6, 3); /* the mark by itself */
    says(bert, "", false, 0, NULL);
    SAYS(bert, "", true, 1, 2);
    SAYS(gpt2, "ab ab's", false, 4, 5, 8);
    SAYS(gpt2, "ab  ab 11\n", false, 4, 3, 5, 3, 9, 9, 10); /* the last space goes with the word */
    SAYS(gpt2, "\xC3\xA9z", false, 11, 12, 0);
    SAYS(gpt2, "'\n", false, 6,
         10); /* a line's end is no part of the word before it, as it is in newer patterns */
    SAYS(llama, "a \xC3\xA9", false, 3, 1, 4, 5);
    SAYS(llama, "aa", false, 3, 2);
    SAYS(metaspace, "a a b", false, 3, 3, 0, 2); /* words begin at spaces: no merge goes over one */
}
static void patterns_cut_words(void **state) {
    (void)state;
    static const char newer[] =
        "{\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", "
        "\"behavior\": "
        "\"Isolated\", \"pattern\": {\"Regex\": "
        "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"
        "\\\\p{N}{1,3}| "
        "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}}, {\"type\": "
        "\"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}]}, \"model\": {\"type\": \"BPE\", "
        "\"unk_token\": \"?\", \"ignore_merges\": true, \"vocab\": {\"?\": 0, \"123\": 1, \"45\": 2, "
        "\"-ab\": 3, "
        "\"'S\": 4, \"!\\u010a\\u010a\": 5, \"1\": 6, \"2\": 7, \"ab\": 8}, \"merges\": []}}";
    SAYS(newer, "12345-ab'Sab!\n\n", false, 1, 2, 3, 4, 8, 5);
}
static void kinds_of_characters(void **state) {
    (void)state;
    assert_true(hone_is_letter('z') && hone_is_letter(0xE9) && hone_is_letter(0x4E2D) &&
                !hone_is_letter('1') && !hone_is_letter(0x301) && !hone_is_letter(0x2014));
    assert_true(hone_is_number('7') && hone_is_number(0xBD) && hone_is_number(0x2167) &&
                !hone_is_number('a'));
    assert_true(hone_is_space(' ') && hone_is_space(0x3000) && !hone_is_space(0x200B));
    assert_true(hone_is_punctuation('$') && hone_is_punctuation(0x2014) && !hone_is_punctuation(0x20AC));
    assert_true(hone_is_mark(0x301) && hone_is_wide_mark(0x93E) && !hone_is_mark(0x93E));
    assert_true(hone_without_marks(0xC9) == 'E' && hone_without_marks('e') == 'e' &&
                hone_without_marks(0x1EA1) == 'a');
}

/* ---- files that are wrong ------------------------------------------------------------------------------ */
static void refused(const char *text, size_t bytes, hone_status want, const char *says) {
    hone_tokenizer *t = NULL;
    const hone_status s = hone_tokenizer_open(put("bad.json", text, bytes), &t);
    if (s != want || !strstr(hone_error(), says)) fail_msg("%.200s: %d, %s", text, s, hone_error());
    assert_null(t);
}
static void files_that_are_wrong(void **state) {
    (void)state;
    hone_tokenizer *t = NULL;
    assert_int_equal(hone_tokenizer_open("/nowhere/tokenizer.json", &t), HONE_IO);
    for (size_t n = 0; n + 1 < sizeof bert; n++) refused(bert, n, HONE_BAD_INPUT, "byte");
    static const struct {
        const char *text;
        hone_status status;
        const char *says;
    } cases[] = {
        {"{}", HONE_BAD_INPUT, "no 'model'"},
        {"[1, 2", HONE_BAD_INPUT, "no end"},
        {"{\"model\": {\"type\": \"Unigram\"}}", HONE_NOT_SUPPORTED, "Unigram"},
        {"{\"model\": {\"type\": \"BPE\"}}", HONE_BAD_INPUT, "no vocabulary"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": -1}}}", HONE_BAD_INPUT, "no number"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a b\"]}}", HONE_BAD_INPUT,
         "merge 1"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [7]}}", HONE_BAD_INPUT,
         "merge 1"},
        {"{\"normalizer\": {\"type\": \"Precompiled\"}, \"model\": {}}", HONE_NOT_SUPPORTED, "Precompiled"},
        {"{\"normalizer\": {\"type\": \"NFD\"}, \"model\": {}}", HONE_NOT_SUPPORTED, "NFD"},
        {"{\"pre_tokenizer\": {\"type\": \"Split\", \"behavior\": \"Isolated\", \"pattern\": {\"Regex\": "
         "\"x+\"}}, \"model\": {}}",
         HONE_NOT_SUPPORTED, "x+"},
        {"{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": "
         "0}}}",
         HONE_BAD_INPUT, "0x00"},
        {"{\"post_processor\": {\"type\": \"Odd\"}, \"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": "
         "0}}}",
         HONE_NOT_SUPPORTED, "Odd"},
        {"{\"model\": {\"vocab\": {\"\\ud800\": 0, \"\\u12\": 1}}}", HONE_BAD_INPUT, "hexadecimal"},
        {"{\"a\": 1} x", HONE_BAD_INPUT, "follows"},
        {"{\"a\": 1e}", HONE_BAD_INPUT, "none"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        refused(cases[k].text, strlen(cases[k].text), cases[k].status, cases[k].says);
    char deep[300];
    memset(deep, '[', sizeof deep);
    refused(deep, sizeof deep, HONE_BAD_INPUT, "too deep");
}

/* ---- samples ------------------------------------------------------------------------------------------- */
static void samples_are_of_text(void **state) {
    (void)state;
    hone_model *m = NULL;
    hone_samples s = {0};
    hone_value *in[3] = {0};
    const char *file = put_text("tokenizer.json", bert),
               *text = put_text("a.txt", "unaffable, cafe\r\n\ncafe cafe cafe\n");
    assert_int_equal(hone_model_load("zoo:bert_base?layers=1&seq=6&vocab=16", &m), HONE_OK);
    assert_int_equal(hone_samples_open_text(m, &text, 1, file, 0, &s), HONE_OK);
    assert_int_equal(s.n, 2); /* lines; one without words is none */
    assert_int_equal(s.get(s.arg, 1, in), HONE_OK);
    static const int64_t want[3][6] = {{1, 6, 6, 6, 2, 9}, {1, 1, 1, 1, 1, 0}, {0, 0, 0, 0, 0, 0}};
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 6; k++) assert_int_equal(((const int64_t *)in[i]->data)[k], want[i][k]);
        hone_value_free(in[i]), in[i] = NULL;
    }
    assert_int_equal(s.get(s.arg, 0, in), HONE_OK); /* longer than the model takes: cut, with its last mark */
    assert_int_equal(((const int64_t *)in[0]->data)[5], 2);
    for (int i = 0; i < 3; i++) hone_value_free(in[i]), in[i] = NULL;
    hone_samples_close(&s);
    assert_int_equal(hone_samples_open_text(m, &text, 1, file, 7, &s), HONE_BAD_INPUT);
    assert_int_equal(hone_samples_open_text(m, &text, 1, file, 6, &s),
                     HONE_OK); /* pieces of the whole text */
    assert_int_equal(s.n, 1);
    hone_samples_close(&s);
    const char *none = "/nowhere/a.txt", *empty = put_text("b.txt", "\n\n"), *bytes = put("c.txt", "a\0b", 3);
    assert_int_equal(hone_samples_open_text(m, &none, 1, file, 0, &s), HONE_IO);
    assert_int_equal(hone_samples_open_text(m, &empty, 1, file, 0, &s), HONE_BAD_INPUT);
    assert_int_equal(hone_samples_open_text(m, &bytes, 1, file, 0, &s), HONE_BAD_INPUT);
    hone_model_free(m);
    assert_int_equal(hone_model_load("zoo:resnet18", &m), HONE_OK);
    assert_int_equal(hone_samples_open_text(m, &text, 1, file, 0, &s), HONE_NOT_SUPPORTED);
    hone_model_free(m);
}

int main(void) {
    snprintf(folder, sizeof folder, "/tmp/hone-text-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_right),    cmocka_unit_test(patterns_cut_words),
        cmocka_unit_test(kinds_of_characters), cmocka_unit_test(files_that_are_wrong),
        cmocka_unit_test(samples_are_of_text),
    };
    const int rc = cmocka_run_group_tests(tests, NULL, NULL);
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) ? 1 : rc;
}
