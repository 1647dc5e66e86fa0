# SPDX-License-Identifier: Apache-2.0
"""Outputs of a run: a tuple in the model's order that is a dict by name too."""

from __future__ import annotations

from typing import Any, Iterator


class Outputs(tuple):
    """What a run gave. `a, b = outputs` and `outputs[0]` go by order, `outputs["name"]`, `dict(outputs)` and
    `outputs.items()` by name."""

    _names: tuple[str, ...] = ()
    _index: dict[str, int] = {}

    def __getitem__(self, key):
        if isinstance(key, str):
            try:
                return tuple.__getitem__(self, self._index[key])
            except KeyError:
                raise KeyError(f"no output '{key}'; there are {', '.join(self._names)}") from None
        return tuple.__getitem__(self, key)

    def __contains__(self, key: Any) -> bool:
        return key in self._index if isinstance(key, str) else any(key is value for value in self)

    def keys(self) -> tuple[str, ...]:
        """The names, in order."""
        return self._names

    def values(self) -> tuple:
        """The outputs, in order."""
        return tuple(self)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Names with outputs, in order."""
        return zip(self._names, self)

    def get(self, key: str, default: Any = None) -> Any:
        """The output of that name, or `default`."""
        return self[key] if key in self._index else default

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{name!r}: {value!r}" for name, value in self.items()) + "}"

    def __reduce__(self):
        return _make, (self._names, tuple(self))


def named(names: tuple[str, ...]) -> type[Outputs]:
    """The class of one model's outputs."""
    return type(
        "Outputs",
        (Outputs,),
        {"_names": names, "_index": {n: k for k, n in enumerate(names)}, "__slots__": ()},
    )


def _make(names: tuple[str, ...], values: tuple) -> Outputs:
    return named(names)(values)
