# SPDX-License-Identifier: Apache-2.0
"""Tokens as Hone makes them beside Hugging Face's tokenizers library, on lines of a text and on odd ones.

    compare_tokens.py LIBHONE.so TEXT [TOKENIZER.json …]

Tokenizers of ten kinds are trained on the text; files that are given are compared too. Needs tokenizers."""
import ctypes, os, sys, tempfile

from tokenizers import (Regex, Tokenizer, models, normalizers as norm, pre_tokenizers as pre,
                        processors as post, trainers)

ODD = ["Hello, World! it's  we'll don't I'M", "  two  spaces  ", "Ünïcödé ÄÖÜ ß naïve café",
       "數字 中文字 test 日本語テキスト", "한국어 텍스트", "price: $35.90, 12345 6789th x2y", "tabs\tand\ttabs",
       "emoji 😀😀 ok 👍🏽", "Привет, мир! Ёжик", "ΑΒΓ ά έ", "\u00a0nbsp\u2003em", "___ -- ... ''",
       "supercalifragilisticexpialidocious" * 4, "C++ & C# #1 @me http://a.b/c?d=e&f",
       "it's 'tis 'sAid y'all's", "Ⅷ ½ ²", "ﬁ ligature", "İstanbul ıI", "Việt Nam ở đâu",
       "हिन्दी पाठ", "עברית שלום", "السلام عليكم", "\u200bzero\u200b width",
       "trailing   ", "don’t “quotes” — dash", "1.000,00€"]
GPT4 = ("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}%s"
        "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")


def trained(lines, folder):
    bytes_ = dict(initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False)
    plain = dict(show_progress=False, limit_alphabet=60)
    marks = [("[SEP]", 2), ("[CLS]", 1)]
    split = lambda n: pre.Sequence([pre.Split(Regex(GPT4 % n), "isolated"),
                                    pre.ByteLevel(add_prefix_space=False, use_regex=False)])
    unmarked = norm.Sequence([norm.NFD(), norm.StripAccents(), norm.Lowercase()])
    kinds = {
        "gpt2": (models.BPE(), None, pre.ByteLevel(add_prefix_space=False), None,
                 trainers.BpeTrainer(vocab_size=2000, **bytes_)),
        "roberta": (models.BPE(), None, pre.ByteLevel(),
                    post.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]),
                    trainers.BpeTrainer(vocab_size=1500, special_tokens=["<s>", "</s>"], **bytes_)),
        "llama3": (models.BPE(ignore_merges=True), None, split("{1,3}"), None,
                   trainers.BpeTrainer(vocab_size=2500, **bytes_)),
        "qwen": (models.BPE(), norm.NFC(), split(""), None, trainers.BpeTrainer(vocab_size=2500, **bytes_)),
        "llama2": (models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True),
                   norm.Sequence([norm.Prepend("▁"), norm.Replace(" ", "▁")]), None, None,
                   trainers.BpeTrainer(vocab_size=1000, special_tokens=["<unk>", "<s>", "</s>"]
                                       + ["<0x%02X>" % b for b in range(256)], **plain)),
        "metaspace": (models.BPE(unk_token="<unk>"), None, pre.Metaspace(), None,
                      trainers.BpeTrainer(vocab_size=1000, special_tokens=["<unk>"], **plain)),
    }
    for name, n, p in (("bert", norm.BertNormalizer(lowercase=True), pre.BertPreTokenizer()),
                       ("bert-cased", norm.BertNormalizer(lowercase=False), pre.BertPreTokenizer()),
                       ("words", unmarked,
                        pre.Sequence([pre.Whitespace(), pre.Digits(individual_digits=True)]))):
        kinds[name] = (models.WordPiece(unk_token="[UNK]"), n, p, post.BertProcessing(*marks),
                       trainers.WordPieceTrainer(vocab_size=1500, special_tokens=["[UNK]", "[CLS]", "[SEP]"],
                                                 show_progress=False))
    for name, (model, n, p, after, trainer) in kinds.items():
        t = Tokenizer(model)
        if n:
            t.normalizer = n
        if p:
            t.pre_tokenizer = p
        t.train_from_iterator(lines, trainer)
        if after:
            t.post_processor = after
        t.save(f"{folder}/{name}.json")
        yield f"{folder}/{name}.json"


class Samples(ctypes.Structure):
    _fields_ = [("n", ctypes.c_int64),
                ("get", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64,
                                         ctypes.POINTER(ctypes.c_void_p))),
                ("arg", ctypes.c_void_p)]


def ids_of(lib, model, tokenizer, text):
    s, path = Samples(), ctypes.c_char_p(text.encode())
    if lib.hone_samples_open_text(model, ctypes.byref(path), 1, tokenizer.encode(), 0, ctypes.byref(s)):
        raise SystemExit(f"{tokenizer}: {lib.hone_error().decode()}")
    for k in range(s.n):
        v = ctypes.c_void_p()
        assert s.get(s.arg, k, ctypes.byref(v)) == 0
        n = lib.hone_value_dims(v)[lib.hone_value_rank(v) - 1]
        yield list(ctypes.cast(lib.hone_value_data(v), ctypes.POINTER(ctypes.c_int64))[:n])
        lib.hone_value_free(v)
    lib.hone_samples_close(ctypes.byref(s))


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    lib = ctypes.CDLL(os.path.abspath(sys.argv[1]))
    lib.hone_error.restype, lib.hone_value_data.restype, lib.hone_value_dims.restype = (
        ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))
    for f in (lib.hone_value_data, lib.hone_value_dims, lib.hone_value_rank, lib.hone_value_free):
        f.argtypes = [ctypes.c_void_p]
    model = ctypes.c_void_p()
    if lib.hone_model_load(b"zoo:llama?layers=1&vocab=2&dynamic=1", ctypes.byref(model)):
        raise SystemExit(lib.hone_error().decode())
    lines = [l for l in open(sys.argv[2], encoding="utf-8").read().split("\n") if l][:3000] + ODD
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        text = f"{folder}/text.txt"
        with open(text, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        for path in [*trained(lines, folder), *sys.argv[3:]]:
            t = Tokenizer.from_file(path)
            t.no_truncation(), t.no_padding()
            want = [t.encode(l).ids for l in lines]
            bad = [(l, w, g) for l, w, g in zip([l for l, w in zip(lines, want) if w], [w for w in want if w],
                                                ids_of(lib, model, path, text)) if w != g]
            print(f"{os.path.basename(path)}: {len(lines)} lines, {len(bad)} wrong")
            for l, w, g in bad[:3]:
                print(f"    {l!r}\n      {w[:16]}\n      {g[:16]}")
            wrong += len(bad)
    raise SystemExit(wrong > 0)


main()
