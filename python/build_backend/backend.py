# SPDX-License-Identifier: Apache-2.0
"""scikit-build-core, with one thing more: a source distribution takes along the C sources, which lie one
folder up."""

import shutil
from pathlib import Path

from scikit_build_core.build import *  # noqa: F401,F403
from scikit_build_core import build as _build

_HERE = Path(__file__).resolve().parents[1]
_CORE = ("CMakeLists.txt", "LICENSE", "cmake", "include", "ops", "src", "apps", "bench")


def build_sdist(sdist_directory, config_settings=None):
    core, above = _HERE / "core", _HERE.parent
    brought = (above / "src").is_dir() and not core.exists()
    try:
        if brought:
            core.mkdir()
            for name in _CORE:
                copy = shutil.copytree if (above / name).is_dir() else shutil.copy
                copy(above / name, core / name)
        return _build.build_sdist(sdist_directory, config_settings)
    finally:
        if brought:
            shutil.rmtree(core, ignore_errors=True)
