"""The page on accuracy: a table of all rows, which is also where a run that was stopped goes on from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path

from phyxel.bench.accuracy.row import Finding, Row
from phyxel.errors import PhyxelError
from phyxel.files import whole_file

Cells = tuple[str, ...]
"""of one row, what was measured with each number of nodes"""

COLUMNS = ("test", "what is right", "model", "asked [%]", "few nodes", "more", "many")
TRIED = 3
"""columns with what was measured"""
MISSED = re.compile(r"\*\*.+\*\*")
INTRODUCTION = """\
# Accuracy

How far bodies are off what beam theory, Lamb, conservation laws or finite elements say, in per cent of that; above 0 is
too much. Made by

    phyxel bench accuracy --page docs/accuracy.md

`--only cantilever` measures those rows alone that have this word in their test or model, and leaves the others as they
are; `--resume` goes on with a run that was stopped. In brackets: the nodes that a body had. **Bold**: further off than
asked, or *failed*: refused, or not at rest in time. Of {asked} numbers of which something is asked {missed} are bold.

- *Models*: all of the [table of models](architecture.md), their schemes and bases each by itself; the first of each is
  what you get. *Turned* bodies are turned by 30° about (1, 1, ½), so that no face lies along an octant; a *scan* is
  {scanned} points at random on the surface, without triangles or normals.
- *Finite elements* as what is right are quadratic hexahedra, finer towards a clamp and the surface, and refined until
  they hardly change; as a model, even hexahedra with about as many nodes as ours. Both by scikit-fem.
- Bars are clamped by the face of one end: by the nodes on it, or by the first layer where nodes lie inside.
- Where several numbers belong to a test (six frequencies, nine stresses) the one that is furthest off is shown.
- Measured on the CPU.
"""


def cells_of(row: Row, findings: list[Finding | None]) -> Cells:
    """What was measured, in words: misses in bold."""
    texts = ["failed" if one is None else f"{100 * one.error:+.2f} ({one.nodes:,})" for one in findings]
    missed = row.misses(findings)
    return tuple(f"**{text}**" if miss else text for text, miss in zip(map(_with_minus, texts), missed, strict=True))


def _with_minus(text: str) -> str:
    return re.sub(r"^[+-]0.00 ", "0.00 ", text).replace("-", "−")


def written(rows: Iterable[Row], cells: Mapping[str, Cells], scanned: int) -> str:
    """The page. Tests are named once, above all models that are tried in them."""
    listed = list(rows)
    shown = [(asked, cell) for row in listed for asked, cell in zip(row.asked, cells.get(row.name, ()), strict=False)]
    asked = [cell for number, cell in shown if number is not None]
    missed = sum(bool(MISSED.search(cell)) for cell in asked)
    lines = [INTRODUCTION.format(asked=len(asked), missed=missed, scanned=f"{scanned:,}")]
    lines += ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for _, group in groupby(listed, lambda row: row.test):
        for k, row in enumerate(group):
            test, right = (row.test, row.reference) if k == 0 else ("", "")
            found = cells.get(row.name, ("",) * TRIED)
            lines.append("| " + " | ".join((test, right, row.model, _asked(row), *found)) + " |")
    return "\n".join(lines) + "\n"


def _asked(row: Row) -> str:
    """One number if it is the same for all, else three."""
    words = ["–" if number is None else f"{number:g}" for number in row.asked]
    return words[0] if len(set(words)) == 1 else ", ".join(words)


def read(path: Path) -> dict[str, Cells]:
    """What a page has by the names of its rows; rows that were not measured are left out."""
    if not path.exists():
        return {}
    found, test = {}, ""
    for line in path.read_text(encoding="utf-8").splitlines():
        parts = [part.strip() for part in line.strip("|").split("|")]
        if not line.startswith("| ") or len(parts) != len(COLUMNS) or tuple(parts) == COLUMNS:
            continue
        test = parts[0] or test
        if all(parts[-TRIED:]):
            found[f"{test}: {parts[2]}"] = tuple(parts[-TRIED:])
    return found


def write(path: Path, text: str) -> None:
    """Whole, or not at all."""
    if path.suffix != ".md":
        raise PhyxelError(f"{path}: give a page that ends in .md")
    with whole_file(path) as file:
        file.write(text.encode())
