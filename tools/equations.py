"""Which line computes which equation: writes docs/equations.md.

Docstrings of modules, classes, kernels and functions name what they compute: `M04 eq. 15`, `G04 §4.3.1`, `physics 4.2`
(a section of docs/physics.md). Run `python tools/equations.py` after lines have moved.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "phyxel"
PHYSICS = ROOT / "docs" / "physics.md"
PAGE = ROOT / "docs" / "equations.md"

PAPERS = ("M04", "G04", "G05", "W96", "STAR")
NUMBER = r"\d+(?:\.\d+)*"
LIST = rf"{NUMBER}(?:(?:, | and | to ){NUMBER})*"
PLACE = rf"(?:§{NUMBER}|(?:eq\.|fig\.|Table) {LIST})"
OF_PAPER = re.compile(rf"\b({'|'.join(PAPERS)})(?: ({PLACE}(?:(?:, | and ){PLACE})*)|(?=[);:]))")
OF_PHYSICS = re.compile(rf"\bphysics ({LIST})")

HEAD = """# Equations and where they are computed

Made by `python tools/equations.py` from the docstrings of the source; papers and sections are those of
[the physics](physics.md).
"""


@dataclass(frozen=True)
class Line:
    """A module, class, kernel or function whose docstring names an equation."""

    file: str
    """in src/phyxel"""
    line: int
    name: str
    """qualified; "" is the module"""

    def link(self) -> str:
        shown = f"`{self.name}` " if self.name else ""
        return f"[{shown}{self.file}:{self.line}](../src/phyxel/{self.file}#L{self.line})"


def lines() -> Iterator[tuple[Line, str]]:
    """All docstrings of the source, but for benchmarks, which only measure."""
    for path in sorted(SOURCE.rglob("*.py")):
        file = path.relative_to(SOURCE).as_posix()
        if not file.startswith("bench/"):
            yield from _lines_in(file, "", ast.parse(path.read_text(encoding="utf-8")))


def _lines_in(file: str, name: str, node: ast.AST) -> Iterator[tuple[Line, str]]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        said = ast.get_docstring(node)
        if said:
            yield Line(file, 1 if isinstance(node, ast.Module) else node.lineno, name), " ".join(said.split())
    for inner in ast.iter_child_nodes(node):
        own = getattr(inner, "name", "") if isinstance(inner, ast.ClassDef | ast.FunctionDef) else ""
        yield from _lines_in(file, f"{name}.{own}".strip("."), inner)


def references(docstring: str) -> Iterator[tuple[str, str]]:
    """Equations that a docstring names, as ("M04", "eq. 15"), ("physics", "4.2")."""
    for paper, places in OF_PAPER.findall(docstring):
        if not places:
            yield paper, ""
        for kind, numbers in re.findall(rf"(§|eq\. |fig\. |Table )({LIST})", places):
            for number in _listed(numbers):
                yield paper, f"{kind}{number}"
    for numbers in OF_PHYSICS.findall(docstring):
        for number in _listed(numbers):
            yield "physics", number


def _listed(numbers: str) -> Iterator[str]:
    """8, 10 to 12: 8, 10, 11, 12."""
    for part in re.split(", | and ", numbers):
        first, _, last = part.partition(" to ")
        yield from map(str, range(int(first), int(last) + 1)) if last else [first]


def sections() -> dict[str, str]:
    """Titles of docs/physics.md by their numbers."""
    return dict(re.findall(r"^#{2,3} (\d+(?:\.\d+)?)\.? (.+)$", PHYSICS.read_text(encoding="utf-8"), re.MULTILINE))


def page() -> str:
    found: dict[str, dict[str, list[Line]]] = {}
    for line, docstring in lines():
        for paper, place in dict.fromkeys(references(docstring)):
            found.setdefault(paper, {}).setdefault(place, []).append(line)
    titles = sections()
    parts = [HEAD]
    for paper in ("physics", *PAPERS):
        if paper in found:
            title = "Sections of the physics" if paper == "physics" else paper
            parts.append(f"\n## {title}\n\n| equation | computed by |\n|---|---|\n")
            parts += [
                f"| {_shown(paper, place, titles)} | {', '.join(line.link() for line in found[paper][place])} |\n"
                for place in sorted(found[paper], key=_order)
            ]
    return "".join(parts)


def _shown(paper: str, place: str, titles: dict[str, str]) -> str:
    if paper != "physics":
        return place or "as a whole"
    title = titles.get(place, "?")
    heading = f"{place} {title}" if "." in place else f"{place}. {title}"
    return f"[{place}](physics.md#{slug(heading)}) {title}"


def slug(heading: str) -> str:
    """What GitHub calls a heading in a link."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _order(place: str) -> tuple[str, list[int]]:
    return re.sub(r"[\d.]", "", place), [int(number) for number in re.findall(r"\d+", place)]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
