# SPDX-License-Identifier: Apache-2.0
"""Reports: what the library tells as JSON, as plain dicts and lists that a notebook shows as tables."""

from __future__ import annotations

import html
import json
from typing import Any

MOST_ROWS = 200


def _cell(value: Any) -> str:
    if isinstance(value, dict) and set(value) >= {"name", "shape"}:
        return html.escape(f"{value['name']} {value['shape']}")
    if isinstance(value, list):
        return ", ".join(_cell(v) for v in value[:20]) + (" …" if len(value) > 20 else "")
    if isinstance(value, dict):
        return _rows(value)
    if isinstance(value, float):
        value = f"{value:.6g}"
    return html.escape(str(value))


def _rows(of: dict) -> str:
    return (
        "<table>"
        + "".join(f"<tr><th>{html.escape(str(k))}</th><td>{_cell(v)}</td></tr>" for k, v in of.items())
        + "</table>"
    )


class Report(dict):
    """One thing's report: a dict."""

    def _repr_html_(self) -> str:
        return _rows(self)


class Reports(list):
    """A report with one dict a thing: a list."""

    def _repr_html_(self) -> str:
        columns = list(dict.fromkeys(key for row in self for key in row))
        head = "".join(f"<th>{html.escape(c)}</th>" for c in columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{_cell(row.get(c, ''))}</td>" for c in columns) + "</tr>"
            for row in self[:MOST_ROWS]
        )
        more = f"<p>{len(self) - MOST_ROWS} more</p>" if len(self) > MOST_ROWS else ""
        return f"<table><tr>{head}</tr>{body}</table>{more}"


def of(text: str) -> Any:
    """A report of the library's JSON."""
    read = json.loads(text)
    if isinstance(read, dict):
        return Report(read)
    return Reports(read) if isinstance(read, list) and all(isinstance(row, dict) for row in read) else read
