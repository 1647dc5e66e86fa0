# SPDX-License-Identifier: Apache-2.0
# What tests of the server share: checks that are counted, a model whose answer says which version it is of, a
# frame of HTTP/2. They import it before anything else: here lies html.py, which is not the html that others
# want.
import sys

from onnx_bytes import field

del sys.path[0]
import resource, struct

failed = []
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def check(what, good):
    print(("ok      " if good else "FAILED  ") + what, flush=True)
    if not good:
        failed.append(what)


def scale(by):  # y = x * by: an answer tells which version it is of, and whether it is of one version alone
    def port(name):
        return field(1, name) + field(
            2, field(1, field(1, 1) + field(2, field(1, field(2, "n")) + field(1, field(1, 64))))
        )

    constant = field(1, 64) + field(2, 1) + field(8, "c") + field(9, struct.pack("<f", by) * 64)
    node = field(1, "x") + field(1, "c") + field(2, "y") + field(4, "Mul")
    graph = field(1, node) + field(2, "g") + field(5, constant) + field(11, port("x")) + field(12, port("y"))
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))


def frame(kind, flags, stream, data=b""):
    return struct.pack(">I", len(data))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + data


def finish(name):
    print("%s: %s" % (name, "%d failed" % len(failed) if failed else "all as it should be"))
    sys.exit(1 if failed else 0)
