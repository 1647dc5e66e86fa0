# SPDX-License-Identifier: Apache-2.0
"""Cases of com.microsoft's ops for compare_contrib.py: random data, optional inputs there and not there,
odd sizes. One function a family of ops, a generator of Case. Sizes are small: the point is the form, not
the work."""
import dataclasses
import itertools


@dataclasses.dataclass
class Case:
    op: str
    inputs: list  # arrays; None: left out
    attrs: dict = dataclasses.field(default_factory=dict)
    outputs: tuple = (1,)  # which are wanted
    constant: frozenset = frozenset()  # inputs that are initializers
    tolerance: str = "float"
    domain: str = "com.microsoft"
    symbolic: bool = False  # dims of the graph's inputs have names, not numbers
    opset: int = 20
    # of outputs whose type ONNX Runtime does not find by itself: number to dtype
    types: dict = dataclasses.field(default_factory=dict)


class Maker:
    def __init__(self, numpy, seed):
        self.np, self.rng = numpy, numpy.random.default_rng(seed)

    def f(self, *shape, scale=1.0, dtype="float32"):
        return (self.rng.standard_normal(shape) * scale).astype(dtype)

    def ints(self, low, high, *shape, dtype="int32"):
        return self.np.asarray(self.rng.integers(low, high, shape), dtype=dtype)

    def mask(self, *shape):
        """Ones and zeros; the first key of every row is seen: where all are hidden, large numbers cancel,
        and only noise is left to compare."""
        mask = self.ints(0, 2, *shape)
        mask[..., 0] = 1
        return mask

    def some(self, value):  # there, or left out
        return value if self.rng.integers(2) else None

    def flip(self):
        return bool(self.rng.integers(2))


def optional(n):
    """Every combination of n things that are there or not."""
    return itertools.product((True, False), repeat=n)


def fused(m):
    for activation, params in (("", None), ("Relu", None), ("Tanh", None), ("Sigmoid", None),
                               ("HardSwish", None), ("LeakyRelu", [0.1]), ("Clip", [-0.5, 0.7]),
                               ("HardSigmoid", [0.3, 0.4])):
        for bias, add in optional(2):
            group = int(m.rng.integers(1, 3))
            attrs = {"group": group, "strides": [1, 2], "pads": [1, 0, 1, 1], "kernel_shape": [3, 2]}
            attrs |= {"activation": activation} if activation else {}
            attrs |= {"activation_params": params} if params else {}
            x, w = m.f(2, 4, 7, 6), m.f(6, 4 // group, 3, 2)
            yield Case("FusedConv", [x, w, m.f(6) if bias else None, m.f(2, 6, 7, 3) if add else None], attrs,
                       constant={1, 2} if m.flip() else {}, symbolic=m.flip())
            if activation in ("", "Relu"):
                yield Case("NhwcFusedConv", [m.np.ascontiguousarray(x.transpose(0, 2, 3, 1)), w, m.f(6)
                                             if bias else None], attrs)
    for activation, params in (("Relu", {}), ("Tanh", {}), ("Sigmoid", {}),
                               ("LeakyRelu", {"activation_alpha": 0.2}), ("Elu", {"activation_alpha": 0.7}),
                               ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}),
                               ("Softplus", {}), ("Softsign", {}),
                               ("ThresholdedRelu", {"activation_alpha": 0.5})):
        for ta, tb in optional(2):
            a, b = m.f(*((5, 3) if ta else (3, 5))), m.f(*((7, 5) if tb else (5, 7)))
            c = [None, m.f(7), m.f(3, 1), m.f(3, 7)][m.rng.integers(4)]
            yield Case("FusedGemm", [a, b, c],
                       {"activation": activation, "alpha": 0.5, "beta": 1.5, "transA": int(ta),
                        "transB": int(tb), **params}, constant={1, 2} if m.flip() else {}, symbolic=m.flip())
    for op in ("FusedMatMul", "TransposeMatMul"):
        for ta, tb, stack in itertools.product((0, 1), (0, 1), (0, 1, 2)):
            batch = [(), (2,), (2, 3)][stack]
            a, b = m.f(*batch, *((4, 3) if ta else (3, 4))), m.f(*batch, *((5, 4) if tb else (4, 5)))
            yield Case(op, [a, b], {"alpha": 0.25 if m.flip() else 1.0, "transA": ta, "transB": tb},
                       symbolic=m.flip(), constant={1} if m.flip() else {})
    yield Case("FusedMatMul", [m.f(2, 3, 4).astype("float64"), m.f(2, 4, 5).astype("float64")],
               {"alpha": 0.25})
    yield Case("FusedMatMul", [m.f(4), m.f(4, 5)], {"alpha": 0.25, "transA": 1})
    for ba, bb, ta, tb in itertools.product((0, 1), repeat=4):  # batch dims [2, 3], m = 4, k = 5, n = 6
        a, b = ((5, 4) if ta else (4, 5)), ((6, 5) if tb else (5, 6))
        a = (a[0], 2, 3, a[1]) if ba else (2, 3, *a)
        b = (b[0], 2, 3, b[1]) if bb else (2, 3, *b)
        yield Case("FusedMatMul", [m.f(*a), m.f(*b)],
                   {"alpha": 2.0, "transA": ta, "transB": tb, "transBatchA": ba, "transBatchB": bb})


def activations(m):
    for dtype, tolerance in (("float32", "float"), ("float16", "half")):
        for shape in ((3, 5, 8), (1, 7), (2, 3, 4, 33)):
            x, k = m.f(*shape, scale=2, dtype=dtype), shape[-1]
            yield Case("Gelu", [x], tolerance=tolerance, symbolic=m.flip())
            yield Case("BiasGelu", [x, m.f(k, dtype=dtype)], tolerance=tolerance, constant={1} if m.flip()
                       else {})
            yield Case("FastGelu", [x, m.some(m.f(k, dtype=dtype))], tolerance=tolerance, symbolic=m.flip())
            yield Case("QuickGelu", [x], {"alpha": float(m.rng.choice([1.0, 1.5]))} if m.flip() else {},
                       tolerance=tolerance)
    for axis, shape, bias in ((1, (4, 6), (1, 6)), (3, (2, 3, 4, 5), (1, 1, 4, 5)),
                              (3, (2, 3, 4, 5), (2, 1, 1, 5)), (3, (2, 3, 4, 5), (2, 1, 4, 5))):
        yield Case("BiasSoftmax", [m.f(*shape), m.f(*bias)],
                   {"axis": axis, "is_inner_broadcast": int(bias[0] != 1)})
    yield Case("BiasAdd", [m.f(2, 3, 320), m.f(320), m.f(2, 3, 320)])
    yield Case("BiasSplitGelu", [m.f(2, 3, 2560), m.f(2560)])
    yield Case("GemmFastGelu", [m.f(2, 3, 4), m.f(4, 5), m.f(5)])
    for residual, ratio in optional(2):
        yield Case("BiasDropout", [m.f(2, 3, 4), m.f(4), m.f(2, 3, 4) if residual else None, m.np.float32(0.5)
                                   if ratio else None])


def norms(m):
    for dtype, tolerance in (("float32", "float"), ("float16", "half")):
        for beta, bias, total in optional(3):
            b, s, h = 2, int(m.rng.integers(1, 6)), int(m.rng.choice([4, 7, 32]))
            skip = m.f(*[(b, s, h), (1, s, h), (s, h)][m.rng.integers(3)], dtype=dtype)
            x, g = m.f(b, s, h, dtype=dtype), m.f(h, dtype=dtype)
            more = {"epsilon": 1e-5} if m.flip() else {}
            yield Case("SkipLayerNormalization",
                       [x, skip, g, m.f(h, dtype=dtype) if beta else None, m.f(h, dtype=dtype) if bias
                        else None], more, (1, 0, 0, 1) if total else (1,), constant={2, 3, 4},
                        tolerance=tolerance, symbolic=m.flip())
            yield Case("SkipSimplifiedLayerNormalization",
                       [x, skip, g, m.f(h, dtype=dtype) if bias else None], more, (1, 0, 0, 1) if total
                       else (1,), tolerance=tolerance, symbolic=m.flip())
        for axis, extra in ((-1, 0), (-1, 1), (1, 0), (1, 1), (0, 0)):
            x = m.f(3, 4, 5, dtype=dtype)
            yield Case("SimplifiedLayerNormalization", [x, m.f(*x.shape[axis:], dtype=dtype)],
                       {"axis": axis, "epsilon": 1e-6}, (1, 1) if extra else (1,), domain="",
                       tolerance=tolerance)
    for last, act in optional(2):
        x = m.f(2, 3, 5, 8) if last else m.f(2, 8, 3, 5)
        attrs = {"groups": 4, "activation": int(act), "channels_last": int(last)}
        yield Case("GroupNorm", [x, m.f(8), m.f(8)], attrs)
        for skip in ((2, 8), x.shape):
            yield Case("SkipGroupNorm", [x, m.f(8), m.f(8), m.f(*skip), m.some(m.f(8))], attrs, (1, 1))
    for segment, mask, at, total in optional(4):
        b, s, h = 2, int(m.rng.integers(1, 8)), 8
        ids = m.ints(0, 11, b, s)
        inputs = [ids, m.ints(0, 2, b, s) if segment else None, m.f(11, h), m.f(9, h), m.f(2, h) if segment
                  else None, m.f(h), m.f(h), m.ints(0, 2, b, s) if mask else None,
                  m.ints(0, 9, *((b, s) if m.flip() else (1, s))) if at else None]
        yield Case("EmbedLayerNormalization", inputs, {"epsilon": 1e-5} if m.flip() else {}, (1, 1, 1)
                   if total else (1, 1), constant={2, 3, 4, 5, 6} if m.flip() else {}, symbolic=m.flip())


def attention(m):
    for mask, past, added, causal in itertools.product(("", "b", "2b", "bt", "bst"), (0, 3), (0, 1), (0, 1)):
        b, s, heads, d, x = 2, int(m.rng.integers(1, 6)), 2, 8, 12
        hidden, total = heads * d, s + past
        masks = {"": None, "b": m.ints(1, total + 1, b),
                 "2b": m.np.concatenate([m.ints(total // 2 + 1, total + 1, b), m.ints(0, total // 2 + 1, b)]),
                 "bt": m.mask(b, total), "bst": m.mask(b, s, total)}
        inputs = [m.f(b, s, x), m.f(x, 3 * hidden, scale=0.3), m.f(3 * hidden), masks[mask],
                  m.f(2, b, heads, past, d) if past else None,
                  m.f(*[(b, heads, s, total), (1, heads, s, total), (b, 1, s, total),
                        (1, 1, s, total)][m.rng.integers(4)]) if added else None]
        attrs = {"num_heads": heads, "unidirectional": causal} | ({"scale": 0.2} if m.flip()
                                                                  else {}) | ({"mask_filter_value": -1000.0}
                                                                      if m.flip() else {})
        yield Case("Attention", inputs, attrs, (1, 1) if past else (1,), constant={1, 2} if m.flip() else {},
                   symbolic=m.flip())
    yield Case("Attention", [m.f(2, 5, 12), m.f(12, 16 + 16 + 24), m.f(56), None],
               {"num_heads": 2, "qkv_hidden_sizes": [16, 16, 24]}, symbolic=True)
    for bias, mask, added, past, causal in itertools.product((0, 1), ("", "b", "bt", "bst"), (0, 1), (0, 3),
                                                             (0, 1)):
        b, s, heads, d, e = 2, int(m.rng.integers(1, 6)), 2, 8, int(m.rng.choice([8, 12])) if not past else 8
        length = s if causal or past else int(m.rng.integers(1, 7))
        total = length + past
        masks = {"": None, "b": m.ints(1, total + 1, b), "bt": m.mask(b, total), "bst": m.mask(b, s, total)}
        inputs = [m.f(b, s, heads * d), m.f(b, length, heads * d), m.f(b, length, heads * e),
                  m.f(heads * (2 * d + e)) if bias else None, masks[mask]]
        inputs += [m.f(*[(b, heads, s, total), (1, heads, s, total), (b, 1, s, total),
                         (1, 1, s, total)][m.rng.integers(4)]) if added else None]
        inputs += [m.f(b, heads, past, d), m.f(b, heads, past, e)] if past else []
        outputs = ((1, 1, 1, 1) if m.flip() and not causal else (1, 1, 1)) if past else (1,)
        yield Case("MultiHeadAttention", inputs, {"num_heads": heads, "unidirectional": causal}
                   | ({"scale": 0.2} if m.flip() else {}), outputs, constant={3} if m.flip() else {},
                   symbolic=m.flip(), types={3: "float32"})
    for bias in (0, 1):
        yield Case("MultiHeadAttention",
                   [m.f(2, 3, 16), m.f(2, 2, 5, 8), m.f(2, 2, 5, 8), m.f(48) if bias else None],
                   {"num_heads": 2})
    yield Case("MultiHeadAttention", [m.f(2, 5, 2, 3, 8)], {"num_heads": 2})
    yield Case("MultiHeadAttention", [m.f(2, 3, 16), m.f(2, 5, 2, 2, 8)], {"num_heads": 2})


def rotary(m):
    for dtype, tolerance in (("float32", "float"), ("float16", "half")):
        for rank, inter, part, one in itertools.product((3, 4), (0, 1), (0, 1), (0, 1)):
            b, heads, s, d = 2, 3, int(m.rng.integers(1, 6)), 16
            x = m.f(b, heads, s, d, dtype=dtype) if rank == 4 else m.f(b, s, heads * d, dtype=dtype)
            at = m.ints(0, 4, 1, dtype="int64") if one else m.ints(0, 10, b, s, dtype="int64")
            width = 8 if part else d
            attrs = {"interleaved": inter} | ({"rotary_embedding_dim": width, "num_heads": heads} if part
                                              else {})
            yield Case("RotaryEmbedding",
                       [x, at, m.f(10, width // 2, dtype=dtype), m.f(10, width // 2, dtype=dtype)], attrs,
                       tolerance=tolerance, constant={2, 3} if m.flip() else {}, symbolic=m.flip())


def group_query(m):
    def one(dtype, b, s, past, room, packed=0, heads=4, of_keys=2, d=16, turn=0, at=0, bias=0, sink=0, qk=0,
            lens=None, const_total=True, **attrs):
        """`past` keys in a cache of `room` (0: none is given), s new ones."""
        total = past + s
        q, k, v = m.f(b, s, heads * d, dtype=dtype), m.f(b, s, of_keys * d, dtype=dtype), m.f(b, s,
            of_keys * d, dtype=dtype)
        q, k, v = (m.np.concatenate([q, k, v], -1), None, None) if packed else (q, k, v)
        cache = [m.f(b, of_keys, room, d, dtype=dtype) if room is not None else None for _ in range(2)]
        lens = m.np.full(b, total - 1, "int32") if lens is None else m.np.asarray(lens, "int32")
        tables = [m.f(32, d // 2 if turn == 1 else 8, dtype=dtype) for _ in range(2)] if turn else [None,
            None]
        places = m.np.tile(m.np.arange(past, total, dtype="int64"), (b, 1)) if at else None
        inputs = [q, k, v, *cache, lens, m.np.asarray(total if const_total else [total], "int32"), *tables,
                  places, m.f(*[(1, 1, s, total), (b, heads, s, total)][m.rng.integers(2)], dtype=dtype)
                  if bias else None, m.f(heads, dtype=dtype) if sink else None]
        attrs = {"num_heads": heads, "kv_num_heads": of_keys, **({"do_rotary": 1} if turn else {}),
                 **({"qk_output": qk} if qk else {}), **attrs}
        return Case("GroupQueryAttention", inputs, attrs, (1, 1, 1, 1) if qk else (1, 1, 1),
                    constant={6, 7, 8} if m.flip() else {7, 8}, tolerance="half" if dtype == "float16"
                    else "float", symbolic=m.flip())

    for dtype in ("float32", "float16"):
        for packed, turn in itertools.product((0, 1), (0, 1)):
            yield one(dtype, 2, 5, 0, None, packed, turn=turn)  # a prompt without a cache
            yield one(dtype, 2, 5, 0, 0, packed, turn=turn)  # with an empty one
            yield one(dtype, 2, 5, 0, 12, packed, turn=turn)  # with one that has room
            yield one(dtype, 3, 1, 6, 6, packed, turn=turn)  # one more token: the cache grows
            yield one(dtype, 3, 1, 6, 12, packed, turn=turn)  # or has room
            yield one(dtype, 1, 4, 6, 6, packed, turn=turn)  # several more
            yield one(dtype, 2, 5, 0, None, packed, turn=turn, lens=[4, 2])  # prompts of several lengths
            yield one(dtype, 2, 1, 6, 12, packed, turn=turn, lens=[6, 3])
    for more in ({"scale": 0.3}, {"softcap": 2.0}, {"local_window_size": 3}, {"smooth_softmax": 1},
                 {"sink": 1}, {"bias": 1}, {"qk": 1}, {"qk": 2}, {"turn": 2}, {"turn": 1, "at": 1},
                 {"turn": 1, "rotary_interleaved": 1}, {"causal": 0},
                 {"softcap": 1.5, "bias": 1, "sink": 1, "local_window_size": 4, "turn": 1}):
        yield one("float32", 2, 6, 0, 8, **more)
        yield one("float32", 2, 1, 7, 7, **more)
        yield one("float32", 1, 3, 5, 10, const_total=False, **more)
    yield one("float32", 2, 1, 7, 9, heads=6, of_keys=1)
    yield one("float32", 2, 4, 0, 0, heads=3, of_keys=3, d=8)


def quantized(m):
    def data(signed, *shape):
        return m.ints(-128, 128, *shape, dtype="int8") if signed else m.ints(0, 256, *shape, dtype="uint8")

    def params(signed, zero=True, scale=None):
        """A scale and a zero point, or none."""
        s = m.np.asarray(scale or float(m.rng.uniform(0.01, 0.1)), "float32")
        return [s, m.np.asarray(m.rng.integers(-20, 20) if signed else m.rng.integers(100, 150), "int8"
                                if signed else "uint8") if zero else None]

    for signed, zero, const in optional(3):
        fixed = lambda *k: set(k) if const else set()  # noqa: E731
        for a, b in (((2, 3, 5), (2, 3, 5)), ((4, 1, 6), (5, 1)), ((7,), (3, 7)), ((2, 8, 3, 3), (8, 1, 1)),
                     ((33,), ())):
            for op in ("QLinearAdd", "QLinearMul"):
                inputs = [data(signed, *a), *params(signed, zero), data(signed, *b), *params(signed, zero),
                          *params(signed, zero, 0.2)]
                yield Case(op, inputs, tolerance="byte", constant=fixed(1, 2, 4, 5, 6, 7) if not m.flip()
                           else fixed(), symbolic=m.flip())
        x, p = data(signed, 2, 3, 9), params(signed, zero)
        yield Case("QLinearLeakyRelu", [x, *p, *params(signed, zero)], {"alpha": 0.3} if m.flip() else {},
                   tolerance="byte", constant=fixed(1, 2, 3, 4))
        yield Case("QLinearSigmoid", [x, *p, *params(signed, zero, 1 / 256)], tolerance="byte",
                   constant=fixed(1, 2, 3, 4), symbolic=m.flip())
        for axis, opset in ((-1, 13), (1, 13), (2, 13), (1, 12), (2, 12)):
            yield Case("QLinearSoftmax", [x, *p, *params(signed, True, 1 / 256)],
                       {"axis": axis, "opset": opset}, tolerance="byte", constant=fixed(1, 2, 3, 4))
        y = data(signed, 2, 5, 9)
        yield Case("QLinearConcat", [*params(signed), x, *params(signed), y, *params(signed), x,
                                     *params(signed)], {"axis": 1}, tolerance="byte",
                                     constant={0, 1, 3, 4, 6, 7, 9, 10})
        cond = m.ints(0, 2, 2, 3, 1).astype(bool)
        yield Case("QLinearWhere", [cond, x, *params(signed), data(signed, 3, 9), *params(signed),
                                    *params(signed, True, 0.15)], tolerance="byte",
                                    constant={2, 3, 5, 6, 7, 8})
        for axes, keep in (([1], 1), ([0, 2], 0), ([-1], 1)):
            yield Case("QLinearReduceMean", [x, *p, *params(signed, zero)], {"axes": axes, "keepdims": keep},
                       tolerance="byte", constant=fixed(1, 2, 3, 4))
        for last in (0, 1):
            pic = data(signed, 2, 7, 6, 5) if last else data(signed, 2, 5, 7, 6)
            yield Case("QLinearGlobalAveragePool", [pic, *params(signed), *params(signed)],
                       {"channels_last": last}, tolerance="byte", constant=fixed(1, 2, 3, 4))
            for include in (0, 1):
                attrs = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1],
                         "count_include_pad": include, "channels_last": last}
                yield Case("QLinearAveragePool", [pic, *params(signed), *params(signed)], attrs,
                           tolerance="byte", constant=fixed(1, 2, 3, 4), symbolic=m.flip())
            if last:
                yield Case("NhwcMaxPool", [pic],
                           {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]},
                           tolerance="byte", symbolic=m.flip())
    for signed, per, bias, out in optional(4):
        for ta, tb in optional(2):
            a, b = data(signed, *((6, 5) if ta else (5, 6))), data(True, *((9, 6) if tb else (6, 9)))
            bs = m.np.asarray(m.rng.uniform(0.01, 0.1, 9) if per else 0.05, "float32")
            bz = m.np.zeros(9, "int8") if per else m.np.asarray(3, "int8")
            c = [m.ints(-999, 999, 9), m.ints(-999, 999, 5, 9),
                 m.ints(-999, 999, 1, 9)][m.rng.integers(3)] if bias else None
            tail = params(signed, True, 0.5) if out else []
            attrs = {"transA": int(ta), "transB": int(tb)} | ({"alpha": 0.5} if m.flip() else {})
            yield Case("QGemm", [a, *params(signed), b, bs, bz, c, *tail], attrs, tolerance="byte" if out
                       else "float", constant={1, 2, 3, 4, 5, 6, 7, 8} if m.flip() else {})
    for signed, weights, per, zero, bias in optional(5):
        a, b, n = data(signed, 2, 5, 6), data(weights, 6, 9), 9
        bs = m.np.asarray(m.rng.uniform(0.01, 0.1, n) if per else 0.05, "float32")
        bz = (data(weights, n) if per else data(weights)) if zero else None
        const = {1, 3, 5, 6} if m.flip() else {}
        yield Case("MatMulIntegerToFloat",
                   [a, b, m.np.asarray(0.03, "float32"), bs, params(signed)[1] if zero else None, bz, m.f(n)
                    if bias else None], constant=const, symbolic=m.flip())
        yield Case("DynamicQuantizeMatMul", [m.f(2, 5, 6), b, bs, bz, m.f(n) if bias else None],
                   constant={1, 2, 3, 4} if m.flip() else {}, symbolic=m.flip(), tolerance="dynamic")
        xs, ws = m.np.asarray(0.02, "float32"), m.np.asarray(m.rng.uniform(0.001, 0.01, 48) if per else 0.005,
                                                             "float32")
        wz = (m.np.full(48, 3, "int8" if weights else "uint8") if per else data(weights)) if zero else None
        past = m.f(2, 2, 2, 3, 8) if bias else None
        mask = [None, m.mask(2, 4 + (3 if bias else 0)), m.ints(1, 5, 2)][m.rng.integers(3)]
        inputs = [data(False, 2, 4, 12), data(weights, 12, 48), m.f(48), xs, ws, mask, params(False)[1]
                  if zero else None, wz, past]
        yield Case("QAttention", inputs, {"num_heads": 2, "unidirectional": int(m.flip())}, (1, 1) if bias
                   else (1,), constant={1, 2, 4, 7} if m.flip() else {})
    for per, both, h0, lens, signed in optional(5):
        d, k, h, t, b = 2 if both else 1, 5, 8, 4, 3
        # noqa: E731
        scale = lambda: m.np.asarray(m.rng.uniform(0.002, 0.006, (d, 4 * h) if per else d), "float32")
        # noqa: E731
        zero = lambda: m.np.zeros((d, 4 * h) if per else d, "int8" if signed else "uint8") + (0 if signed
            else 128)
        kind = "int8" if signed else "uint8"
        inputs = [m.f(t, b, k), data(signed, d, k, 4 * h), data(signed, d, h, 4 * h), m.f(d, 8 * h),
                  m.ints(1, t + 1, b) if lens else None]
        inputs += [m.f(d, b, h), m.f(d, b, h)] if h0 else [None, None]
        inputs += [m.f(d, 3 * h, scale=0.1) if m.flip() else None, scale(), zero().astype(kind), scale(),
                   zero().astype(kind)]
        yield Case("DynamicQuantizeLSTM", inputs,
                   {"hidden_size": h, "direction": "bidirectional" if both else "forward"}, (1, 1, 1),
                   constant={1, 2, 3, 7, 8, 9, 10, 11}, tolerance="dynamic")
    for signed, per in optional(2):
        x = m.f(4, 6, 3)
        s = m.np.asarray(m.rng.uniform(0.01, 0.1, 6) if per else 0.05, "float32")
        z = (data(signed, 6) if per else data(signed)) if not m.flip() else None
        attrs = {"axis": 1} if per else {}
        yield Case("QuantizeLinear", [x, s, z], attrs, tolerance="byte")
        yield Case("DequantizeLinear", [data(signed, 4, 6, 3), s, z], attrs)
        yield Case("QuantizeLinear", [x, s, m.np.zeros(s.shape, "int16" if signed else "uint16")], attrs,
                   tolerance="byte")
        yield Case("DequantizeLinear", [m.ints(-999, 999, 4, 6, 3, dtype="int16"), s, None], attrs)
    for signed, bias, last, groups in optional(4):
        group = 2 if groups else 1
        x = data(False, 2, 7, 6, 4) if last else data(False, 2, 4, 7, 6)
        w = data(signed, 6, 4 // group, 3, 2)
        ws, wz = m.np.asarray(m.rng.uniform(0.01, 0.05, 6), "float32"), m.np.zeros(6, "int8" if signed
            else "uint8") + (0 if signed else 128)
        inputs = [x, *params(False), w, ws, wz.astype("int8" if signed else "uint8"),
                  *params(False, True, 0.4), m.ints(-999, 999, 6) if bias else None]
        yield Case("QLinearConv", inputs,
                   {"channels_last": int(last), "group": group, "kernel_shape": [3, 2], "pads": [1, 0, 1, 1],
                    "strides": [2, 1]}, tolerance="byte", constant=set(range(1, 9)), symbolic=m.flip())
    for segment, mask in optional(2):
        b, s, h = 2, 5, 8
        table = lambda *shape: data(False, *shape)  # noqa: E731
        inputs = [m.ints(0, 11, b, s), m.ints(0, 2, b, s) if segment else None, table(11, h), table(9, h),
                  table(2, h) if segment else None, table(h), table(h), m.mask(b, s) if mask else None]
        pairs = [params(False) for _ in range(5)]
        pairs[2] = pairs[2] if segment else [None, None]
        inputs += [p[0] for p in pairs] + [p[1] for p in pairs]
        yield Case("QEmbedLayerNormalization", inputs, {}, (1, 1), constant={2, 3, 4, 5, 6, *range(8, 18)})
    yield Case("MatMulInteger16",
               [m.ints(-99, 99, 3, 4, dtype="int16"), m.ints(-99, 99, 4, 5, dtype="int16")], tolerance="byte")
    for zero in (0, 1):
        yield Case("MulInteger", [data(False, 3, 4), params(False)[1] if zero else None, data(False, 4),
                                  params(False)[1] if zero else None], tolerance="byte")
    yield Case("ReduceSumInteger", [data(False, 3, 4)], {"axes": [1], "keepdims": 1}, tolerance="byte")


def decoder(m):
    for bias, mask, added in optional(3):
        b, heads, d, past, room = 2, 2, 8, 5, 9
        cache = m.f(b, heads, room, d), m.f(b, heads, room, d)
        for c in cache:
            c[:, :, past:] = 0  # what is behind the past is nobody's
        one = lambda: m.f(b, 1, heads * d)  # noqa: E731
        inputs = [one(), one(), one(), m.mask(b, past + 1) if mask else None, m.f(1, heads, 1, past + 1)
                  if added else None, *cache, m.np.asarray([past], "int32"), None, None, m.f(3 * heads * d)
                  if bias else None]
        yield Case("DecoderMaskedMultiHeadAttention", inputs,
                   {"num_heads": heads, "past_present_share_buffer": 1}, (1, 1, 1), constant={7} if m.flip()
                   else {})
        cross = [one(), m.f(b, heads, 6, d), m.f(b, heads, 6, d), m.mask(b, 6) if mask
                 else None] + [None] * 6 + ([m.f(3 * heads * d)] if bias else [])
        yield Case("DecoderMaskedMultiHeadAttention", cross, {"num_heads": heads})


def others(m):
    x = m.f(2, 3, 4)
    for axis in (0, 1, -1, 3):
        yield Case("ExpandDims", [x, m.np.asarray(axis, "int32")], constant={1})
    for upper, k in optional(2):
        yield Case("Trilu", [m.f(2, 4, 5), m.np.asarray(1, "int64") if k else None], {"upper": int(upper)})
    for mode in ("constant", "reflect", "edge"):
        yield Case("Pad", [x, m.np.asarray([0, 1, 1, 1, 0, 2], "int64"), m.np.asarray([0.5], "float32")
                           if mode == "constant" else None], {"mode": mode}, constant={1})
    for delta in (0, 1):
        yield Case("Range", [m.np.asarray(1.5, "float32"), m.np.asarray(7.0, "float32"),
                             m.np.asarray(0.75, "float32") if delta else None])
    yield Case("GatherND", [x, m.ints(0, 2, 5, 2, dtype="int64")])
    yield Case("Unique", [m.ints(0, 5, 17).astype("float32")], {}, (1, 1, 1))
    for mode, pad, align in itertools.product(("bilinear", "nearest", "bicubic"),
                                              ("zeros", "border", "reflection"), (0, 1)):
        yield Case("GridSample", [m.f(2, 3, 5, 4), m.f(2, 3, 6, 2, scale=0.7)],
                   {"mode": mode, "padding_mode": pad, "align_corners": align})
    for bias in (0, 1):
        yield Case("ConvTransposeWithDynamicPads",
                   [m.f(1, 2, 5, 4), m.f(2, 3, 3, 3), m.np.asarray([1, 0, 1, 1], "int64"), m.f(3) if bias
                    else None], {"strides": [2, 2], "kernel_shape": [3, 3]}, constant={2})
    yield Case("GatedAdd", [x, m.f(2, 3, 4), m.f(2, 3, 1)])
    old = {"domain": "", "opset": 9}
    yield Case("Affine", [x], {"alpha": 2.0, "beta": 0.5}, **old)
    yield Case("Scale", [x], {"scale": 2.0}, **old)
    yield Case("ParametricSoftplus", [x], {"alpha": 2.0, "beta": 0.5}, **old)
    yield Case("ScaledTanh", [x], {"alpha": 2.0, "beta": 0.5}, **old)
    yield Case("ImageScaler", [m.f(2, 3, 4, 5)], {"scale": 2.0, "bias": [0.1, 0.2, 0.3]}, **old)
    yield Case("Crop", [m.f(2, 3, 7, 8)], {"border": [1, 2, 3, 1]}, **old)
    yield Case("Crop", [m.f(2, 3, 7, 8)], {"border": [1, 2, 0, 0], "scale": [3, 4]}, **old)
    yield Case("DynamicSlice", [x, m.np.asarray([1, 0], "int64"), m.np.asarray([3, 2], "int64"),
                                m.np.asarray([1, 2], "int64")], {}, constant={1, 2, 3}, **old)


def packed_weights(m, experts, n, k, bits, block, zero):
    """Weights [experts, n, k] of few bits, their scales and zero points (or None), as QMoE has them."""
    np, per, blocks = m.np, 8 // bits, k // block if block else 1
    # noqa: E731
    pack = lambda v: np.stack([sum(v[..., i + j] << bits * j for j in range(per) if i + j < v.shape[-1])
                               for i in range(0, v.shape[-1], per)], -1).astype("uint8")
    scales = (m.rng.random((experts, n, blocks) if block else (experts, n)) * 0.2 / (1 << bits)
              + 0.01).astype("float32")
    zeros = pack(m.rng.integers(0, 1 << bits, (experts, n, blocks) if block
                                else (experts, n))) if zero else None
    return pack(m.rng.integers(0, 1 << bits, (experts, n, k))), scales, zeros


def mixtures(m):
    """ONNX Runtime's CPU has no fc3 and of swiglu only the interleaved form: the others are compared with
    what they are made of in tests/test_contrib.c."""
    for number, (activation, bias,
                 normalize) in enumerate(itertools.product(("relu", "silu", "gelu", "identity", "swiglu"),
                                                           (0, 1), (0, 1))):
        experts, hidden, inner = 5, 32, 48
        fused = 2 if activation == "swiglu" else 1
        x = m.f(7, hidden) if number % 3 else m.f(2, 3, hidden)
        router = m.f(7 if number % 3 else 6, experts)
        attrs = {"k": 1 + number % 4, "activation_type": activation, "normalize_routing_weights": normalize}
        if fused == 2:
            attrs |= {"swiglu_fusion": 1} | (
                {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 1.5} if bias else {})
        biases = [m.f(experts, fused * inner), m.f(experts, hidden)] if bias else [None, None]
        symbolic = m.flip()
        yield Case("MoE", [x, router, m.f(experts, fused * inner, hidden, scale=0.2), biases[0],
                           m.f(experts, hidden, inner, scale=0.2), biases[1]], attrs, constant={2, 3, 4, 5}
                           if m.flip() else {}, symbolic=symbolic)
        for bits, block, zero in ((2, 16, 1), (4, 0, 0), (4, 0, 1), (4, 16, 1),
                                  (4, 32 if inner % 32 == 0 else 16, 0), (8, 0, 1), (8, 16, 0)):
            w1, s1, z1 = packed_weights(m, experts, fused * inner, hidden, bits, block, zero)
            w2, s2, z2 = packed_weights(m, experts, hidden, inner, bits, block, zero)
            more = {"expert_weight_bits": bits} | ({"block_size": block} if block else {})
            weights = m.np.abs(m.f(*router.shape)) + 0.1 if number % 4 == 0 else None
            # constant 8-bit blocks: ONNX Runtime rounds x, too
            yield Case("QMoE", [x, router, w1, s1, biases[0], w2, s2, biases[1], None, None, None, z1, z2,
                                None, weights], attrs | more, constant={2, 3, 5, 6, 11, 12} if m.flip()
                                and (bits, block) != (8, 16) else {}, symbolic=symbolic)


FAMILIES = (fused, activations, norms, attention, rotary, group_query, quantized, decoder, others, mixtures)


def cases(numpy, seed):
    for number, family in enumerate(FAMILIES):
        yield from family(Maker(numpy, seed + number))
