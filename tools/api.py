"""What a user can call, from the docstrings of the source: writes docs/api.md.

Run `python tools/api.py` after a docstring or a signature of a public name has changed.
"""

import ast
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "api.md"
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.test_api import MADE_FOR_USERS, members  # noqa: E402  which of them are for users

import phyxel as px  # noqa: E402

HEAD = """# All names

Made by `python tools/api.py` from the docstrings of the source; examples are run by a test, with `import phyxel as px`
and `import numpy as np` before them. Quantities are in SI units, or texts with a unit of their own ("2 GPa", "20 cm");
axes are the world's, y up. Commands and their options: `phyxel --help`. Keys of scene files: [scenes.md](scenes.md).
"""
ROOMS = {
    "points": "Points",
    "solid": "Solids",
    "material": "Materials",
    "region": "Places in a body",
    "body": "Bodies",
    "world": "Worlds",
    "contact": "Colliders",
    "fields": "Fields",
    "scene": "Scenes",
    "run": "Runs",
    "render": "Pictures",
    "export": "Files",
    "errors": "Errors",
}
"""Titles of the page, by the room that a name comes from."""


def public() -> dict[str, Any]:
    """All names that users call, a module's as `export.ply`."""
    found: dict[str, Any] = {}
    for name in dir(px):
        thing = getattr(px, name)
        if inspect.ismodule(thing):
            found |= {f"{name}.{inner}": getattr(thing, inner) for inner in getattr(thing, "__all__", ())}
        if callable(thing):
            found[name] = thing
    return found


def parts(thing: Any) -> tuple[str, str]:
    """What a docstring says, and the example at its end."""
    said, prompt, example = (inspect.getdoc(thing) or "").partition(">>> ")
    return said.strip(), prompt + example


def fields(kind: type) -> dict[str, str]:
    """What the attributes of a class mean, by the texts that stand under them; those of what it builds on come last."""
    found: dict[str, str] = {}
    for base in kind.__mro__:
        if base.__module__.startswith("phyxel"):
            found = {**found, **{name: said for name, said in _fields_of(base).items() if name not in found}}
    return found


def _fields_of(kind: type) -> dict[str, str]:
    (tree,) = ast.parse(dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    return {
        node.target.id: " ".join(text.value.value.split())
        for node, text in zip(tree.body, tree.body[1:], strict=False)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and not node.target.id.startswith("_")
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def arguments(name: str, thing: Any) -> list[inspect.Parameter]:
    """Those of a function, or of a class that users make objects of."""
    if inspect.isclass(thing) and (name in MADE_FOR_USERS or issubclass(thing, Exception)):
        return []
    return list(inspect.signature(thing).parameters.values())


def call(name: str, thing: Any) -> str:
    """How it is called: names and defaults."""
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in arguments(name, thing)]
    shown = str(inspect.Signature(bare)) if bare or not inspect.isclass(thing) else ""
    return f"px.{name}{shown}"


def page() -> str:
    rooms: dict[str, list[str]] = {room: [] for room in ROOMS}
    for name, thing in public().items():
        home = thing.__name__ if inspect.ismodule(thing) else thing.__module__
        rooms[home.split(".")[1]].append(name)
    text = [HEAD]
    for room, names in rooms.items():
        if names:
            text.append(f"\n## {ROOMS[room]}\n")
        for name in names:
            text.extend(f"\n{part}\n" for part in _entry(name, public()[name]))
    return "".join(text)


def _entry(name: str, thing: Any) -> Iterator[str]:
    said, example = parts(thing)
    yield f"### {name}"
    yield f"```\n{call(name, thing)}\n```"
    yield said
    if inspect.isclass(thing):
        listed = [f"- `{field}`: {meaning}" for field, meaning in fields(thing).items()]
        listed += [_member(line, getattr(thing, inner)) for inner, line in members(name, thing)]
        if listed:
            yield "\n".join(listed)
    yield f"```pycon\n{example}\n```"


def _member(line: str, thing: Any) -> str:
    """A method or property: what of it is called how, and what it does."""
    said = " ".join((inspect.getdoc(getattr(thing, "func", thing)) or "").split())
    if not callable(thing):
        return f"- `.{line.split('.', 1)[1].split(':')[0]}`: {said}"
    given = [one.replace(annotation=inspect.Parameter.empty) for one in inspect.signature(thing).parameters.values()]
    shown = inspect.Signature([one for one in given if one.name != "self"])
    return f"- `.{thing.__name__}{shown}`: {said}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
