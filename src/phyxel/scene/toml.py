"""TOML as a person would write it: short tables and lists on one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

WIDE = 110
"""Columns beyond which a list has its entries on lines of their own."""


def comment(text: str) -> str:
    """A line of a comment, whatever the text has in it."""
    return f"# {''.join(letter if letter.isprintable() else ' ' for letter in text)}\n"


def document(table: Mapping[str, Any]) -> str:
    """A TOML document of a table whose own tables and lists of tables stand under headings."""
    lines, below = [], []
    for key, value in table.items():
        if isinstance(value, Mapping):
            below += ["", f"[{key}]", *_lines(value)]
        elif _is_tables(value):
            below += [line for one in value for line in ("", f"[[{key}]]", *_lines(one))]
        else:
            lines.append(f"{key} = {written(value)}")
    return "\n".join([*lines, *below, ""])


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, Mapping) for one in value)


def _lines(table: Mapping[str, Any]) -> list[str]:
    """Its keys, lists of tables last: they are long."""
    return [f"{key} = {written(value)}" for key, value in sorted(table.items(), key=lambda item: _is_tables(item[1]))]


def written(value: Any) -> str:
    """A value of TOML."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(_lines(value))} }}" if value else "{}"
    if isinstance(value, list | tuple):
        entries = [written(one) for one in value]
        line = f"[{', '.join(entries)}]"
        return line if len(line) <= WIDE else "\n".join(["[", *(f"    {entry}," for entry in entries), "]"])
    if isinstance(value, float):
        return repr(float(value))
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON allows it, TOML does not
