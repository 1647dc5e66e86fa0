# SPDX-License-Identifier: Apache-2.0
"""Runs a program with Hone in onnxruntime's place, whether that is installed or not:

    python -m hone.as_onnxruntime script.py …
    python -m hone.as_onnxruntime -m module …
    python -m hone.as_onnxruntime -c "code" …

`hone.as_onnxruntime.install()` does the same for the rest of a process. `import onnxruntime` and its
submodules give hone.onnxruntime's; importlib.metadata finds a distribution of that name and version.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import runpy
import sys

NAME, OURS = "onnxruntime", "hone.onnxruntime"


class _Distribution(importlib.metadata.Distribution):
    """What importlib.metadata tells of onnxruntime."""

    def read_text(self, filename: str):
        from hone import onnxruntime

        lines = (
            "Metadata-Version: 2.1",
            f"Name: {NAME}",
            f"Version: {onnxruntime.__version__}",
            "Summary: Hone, with the interface of onnxruntime",
        )
        return {"METADATA": "\n".join(lines) + "\n", "top_level.txt": NAME + "\n"}.get(filename)

    def locate_file(self, path):
        import pathlib

        return pathlib.Path(__file__).parent / path


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """onnxruntime and what is under it are hone.onnxruntime and what is under that."""

    def find_spec(self, fullname: str, path=None, target=None):
        if fullname != NAME and not fullname.startswith(NAME + "."):
            return None
        ours = OURS + fullname[len(NAME) :]
        try:
            module = importlib.import_module(ours)
        except ModuleNotFoundError as missing:
            if missing.name != ours:
                raise
            raise ModuleNotFoundError(f"{fullname} is not part of hone.onnxruntime", name=fullname) from None
        spec = importlib.machinery.ModuleSpec(
            fullname, self, origin=getattr(module, "__file__", None), is_package=hasattr(module, "__path__")
        )
        spec.submodule_search_locations = list(module.__path__) if hasattr(module, "__path__") else None
        return spec

    def create_module(self, spec):
        return importlib.import_module(OURS + spec.name[len(NAME) :])

    def exec_module(self, module) -> None:
        pass

    def find_distributions(self, context=importlib.metadata.DistributionFinder.Context()):
        return [_Distribution()] if context.name in (None, NAME) else []


def install() -> None:
    """From now on `import onnxruntime` gives hone.onnxruntime, in this process."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        for name in [n for n in sys.modules if n == NAME or n.startswith(NAME + ".")]:
            del sys.modules[name]
        sys.meta_path.insert(0, _Finder())


def main(arguments: "list[str]") -> int:
    """The command line."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if arguments else 2
    install()
    if arguments[0] in ("-m", "-c"):
        if len(arguments) < 2:
            print(
                f"hone.as_onnxruntime: {arguments[0]} wants a {'module' if arguments[0] == '-m' else 'text'}",
                file=sys.stderr,
            )
            return 2
        sys.argv = arguments[1:]
        sys.path[0] = ""
        if arguments[0] == "-m":
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv[0] = "-c"
            main_module = sys.modules["__main__"].__dict__
            exec(
                compile(arguments[1], "<string>", "exec"),
                {"__name__": "__main__", "__builtins__": main_module["__builtins__"]},
            )
        return 0
    sys.argv = arguments
    import os

    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    # the module once more under its own name, so that the program finds one and the same
    from hone.as_onnxruntime import main as _main

    sys.exit(_main(sys.argv[1:]))
