# SPDX-License-Identifier: Apache-2.0
# What clients send that mean no good, or whose connection breaks: eleven kinds, over HTTP and gRPC.
from serve_common import frame
from onnx_bytes import field

import json, random, socket, struct

body = json.dumps(
    {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 64], "data": [1.0] * 64}]}
).encode()
post = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"


def word(text):
    return bytes([len(text)]) + text


head = b"\x83\x86" + b"".join(
    b"\0" + word(n) + word(v)
    for n, v in (
        (b":authority", b"x"),
        (b":path", b"/inference.GRPCInferenceService/ModelInfer"),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
    )
)
tensor = field(5, field(1, "x") + field(2, "FP32") + field(3, b"\1\x40")) + field(
    7, struct.pack("<f", 1) * 64
)
request = field(1, "m") + tensor
message = b"\0" + struct.pack(">I", len(request)) + request
noise = random.Random(1)


def connect(port):
    s = socket.create_connection(("127.0.0.1", port), timeout=10)
    s.settimeout(10)
    return s


bad = {
    "opened and left": {"HTTP": b"", "gRPC": b""},
    "cut in the middle of a body": {
        "HTTP": post % len(body) + body[: len(body) // 2],
        "gRPC": preface + frame(1, 4, 1, head) + frame(0, 0, 1, message[: len(message) // 2]),
    },
    "cut in the middle of the head": {"HTTP": post[:20], "gRPC": preface + frame(1, 0, 1, head[:20])},
    "garbage": {"HTTP": noise.randbytes(600), "gRPC": noise.randbytes(600)},
    "garbage behind the preface": {
        "HTTP": post % 100 + noise.randbytes(100),
        "gRPC": preface + noise.randbytes(600),
    },
    "garbage in a frame": {
        "HTTP": post % len(body) + body[::-1],
        "gRPC": preface + frame(1, 4, 1, head) + frame(0, 1, 1, message[:5] + noise.randbytes(len(request))),
    },
    "HPACK of garbage": {
        "HTTP": b"GET /" + b"a" * 70000,
        "gRPC": preface + frame(1, 4, 1, noise.randbytes(200)),
    },
    "too large": {
        "HTTP": post % (1 << 33) + b"x" * 5000,
        "gRPC": preface + frame(1, 4, 1, head) + frame(0, 0, 1, b"\0\xff\xff\xff\xff" + b"x" * 5000),
    },
    "answers that are never read": {
        "HTTP": (post % len(body) + body) * 300,
        "gRPC": preface
        + b"".join(frame(1, 4, 2 * k + 1, head) + frame(0, 1, 2 * k + 1, message) for k in range(300)),
    },
    "a reset of each call": {
        "HTTP": post % len(body),
        "gRPC": preface
        + b"".join(
            frame(1, 4, 2 * k + 1, head)
            + frame(0, 0, 2 * k + 1, message[:50])
            + frame(3, 0, 2 * k + 1, b"\0\0\0\x08")
            for k in range(300)
        ),
    },
    "settings and pings without end": {
        "HTTP": b"\r\n" * 5000,
        "gRPC": preface + (frame(4, 0, 0, b"") + frame(6, 0, 0, b"12345678")) * 500,
    },
}
