"""What users of Phyxel rely on, word by word: Python names with their signatures, commands, keys of scene files.

`tests/api.txt` has it as it was last agreed on. After a change that is meant, `python tests/test_api.py` writes it
anew; the difference belongs in CHANGELOG.md.
"""

import ast
import difflib
import inspect
import pkgutil
import pydoc
import subprocess
import sys
import types
import typing
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.models import OptionInfo

import phyxel as px
from phyxel.cli import main
from phyxel.surface.surfels import Surfels

LISTED = Path(__file__).with_name("api.txt")
HEAVY = ("numpy", "scipy", "warp", "pydantic", "PIL", "av", "websockets", "phyxel.view", "phyxel.scene", "phyxel.world")
"""What takes long to import, or only some need."""
BY_PATH = (
    "phyxel.bench.mold.paper_scene",
    "phyxel.mls.shape_functions.ShapeFunctions",
    "phyxel.surface.isosurface.isosurface",
    "phyxel.view.view",
)
"""What docs/ names by its full path."""
SURFELS = ("carried", "colors", "layers", "normals", "positions")
"""What users read of `body.surface`."""
MADE_FOR_USERS = ("Frame", "Handle", "Scene", "Vibrations")
"""Classes whose objects users are given: how they are made may change."""
INSIDE = {
    "Bone": "moves",
    "Channel": "over",
    "Collider": "box extent grid label middle moves near_wall rotation see_through shows signature sizes wall",
    "ForceField": "acceleration acts_on enter is_on label meet pressure switches",
    "Ground": "signature",
    "Handle": "dealt_out goals",
    "Inside": "glows",
    "PointCloud": "checked",
    "Scene": "blaming fingerprint restored state",
    "Run": "encode log",
    "ShapeFunctions": "condition pairs with_covers",
    "Showable": "facts thumbnail",
    "Skeleton": "motion moves",
    "Solid": "sees",
    "World": "acting changed company field integrator material_changed membranes mover_of movers next_tick "
    "phyxels replay set_clock synchronize",
}
"""Members that are not for users: rooms use them among themselves. By the class, or one that it builds on."""
MOST_LINES_SHOWN = 40


def test_what_users_rely_on_is_unchanged() -> None:
    listed, live = LISTED.read_text(encoding="utf-8").splitlines(), list(api())
    changed = list(difflib.unified_diff(listed, live, "api.txt", "now", lineterm="", n=0))
    if changed:
        shown = "\n".join(changed[:MOST_LINES_SHOWN])
        pytest.fail(
            f"{shown}\nscripts, scenes and commands of users would break: undo it, or, if it is meant, run "
            "`python tests/test_api.py` and say in CHANGELOG.md what changed",
            pytrace=False,
        )


def test_importing_the_package_imports_nothing_heavy() -> None:
    asked = f"import sys, phyxel; print(*[name for name in {HEAVY} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=60, check=True)
    assert said.stdout.split() == []


def test_the_first_name_that_is_used_brings_all_that_bodies_need() -> None:
    """Also where a body is made before a world: the table of models is filled."""
    asked = "import phyxel as px; print(len(px.Body(px.load('box', points=300), nodes=64).positions))"
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=120, check=True)
    assert said.stdout.split() == ["64"]


def test_dir_shows_what_is_for_users() -> None:
    listed = {name for name in dir(px) if not name.startswith("__")}
    assert listed == {*px.__all__, "render"}
    assert all(getattr(px, name) is not None for name in listed)


def test_help_on_a_body_lists_what_users_do_with_it() -> None:
    text = pydoc.plain(pydoc.render_doc(px.Body))
    for verb in ("melt", "change", "drag", "diagnostics", "positions"):
        assert f" {verb}" in text
    for verb in ("be_born_again", "crumble", "check_cut", "follow_ramp", "needs_solid", "placed_cloud", "birth_places"):
        assert f" {verb}" not in text


def test_type_checkers_see_the_same_names() -> None:
    source = Path(px.__file__)
    (block,) = (node for node in ast.parse(source.read_text()).body if isinstance(node, ast.If))
    seen = {alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == {*px.__all__, "render"}
    assert source.with_name("py.typed").exists()


def api() -> Iterator[str]:
    yield from ("# Python: px.NAME", "")
    for name in px.__all__:
        yield from named(name, getattr(px, name))
    for name, line in members("Body.surface", Surfels):
        if name in SURFELS:
            yield line
    for path in BY_PATH:
        yield from named(path, pkgutil.resolve_name(path))
    yield from ("", "# Commands", "")
    for command in vars(inspect.getmodule(main))["app"].registered_commands:
        yield from commanded(command.name or command.callback.__name__, command.callback)
    yield from ("", "# Scene files", "")
    yield from keys("", annotation_of(px.Scene.__init__, "content"))


# ---- Python ----


def named(name: str, thing: Any) -> Iterator[str]:
    if inspect.ismodule(thing) and not callable(thing):
        for inner in sorted(thing.__all__):
            yield from named(f"{name}.{inner}", getattr(thing, inner))
    elif inspect.isclass(thing):
        made = issubclass(thing, BaseException) or name in MADE_FOR_USERS
        yield name if made else f"{name}{inspect.signature(thing)}"
        yield from (line for _, line in members(name, thing))
    else:
        yield f"{name}{inspect.signature(thing)}"


def members(name: str, kind: type) -> Iterator[tuple[str, str]]:
    """Names and lines of methods and properties of a class and of those of ours that it builds on."""
    left_out = {inner for base in kind.__mro__ for inner in INSIDE.get(base.__name__, "").split()}
    for inner, thing in inspect.getmembers_static(kind):
        if inner.startswith("_") or inner in left_out or not is_ours(inner, kind):
            continue
        if isinstance(thing, staticmethod | classmethod | types.FunctionType):
            function = getattr(kind, inner) if isinstance(thing, classmethod) else getattr(thing, "__func__", thing)
            yield inner, f"{name}.{inner}{inspect.signature(function)}"
        elif isinstance(thing, property):
            settable = "" if thing.fset is None else ", settable"
            yield inner, f"{name}.{inner}: {returned(thing.fget)}{settable}"
        elif isinstance(thing, cached_property):
            yield inner, f"{name}.{inner}: {returned(thing.func)}"


def is_ours(inner: str, kind: type) -> bool:
    return any(inner in vars(base) and base.__module__.startswith("phyxel") for base in kind.__mro__)


def returned(function: Any) -> str:
    return inspect.formatannotation(inspect.signature(function).return_annotation).strip("'")


# ---- Commands ----


def commanded(name: str, function: Any) -> Iterator[str]:
    """A command, its arguments and its options, each with its type and its default."""
    yield f"phyxel {name}"
    hints = typing.get_type_hints(function, include_extras=True)
    for key, param in inspect.signature(function).parameters.items():
        kind, info = typing.get_args(hints[key])
        is_option = isinstance(info, OptionInfo)
        given = [word for word in (info.default, *(info.param_decls or ())) if isinstance(word, str)]
        words = " ".join(given or ([f"--{key.replace('_', '-')}"] if is_option else [key.upper()]))
        default = ", required" if param.default is inspect.Parameter.empty else f" = {param.default!r}"
        yield f"phyxel {name} {words}: {kind_in_file(kind)}{default}"


# ---- Scene files ----


def annotation_of(function: Any, name: str) -> Any:
    return typing.get_type_hints(function)[name]


def keys(path: str, table: type[BaseModel]) -> Iterator[str]:
    """Every key of a table and of the tables in it, with its type, its limits and its default."""
    for name, field in table.model_fields.items():
        here = f"{path}.{field.alias or name}".removeprefix(".")
        yield f"{here}: {kind_in_file(field.annotation)}{limits(field)}{default_of(field)}"
        for inner in tables_in(field.annotation):
            kinds = typing.get_args(inner.model_fields["kind"].annotation) if "kind" in inner.model_fields else ()
            yield from keys(f"{here}({'|'.join(kinds)})" if kinds else here, inner)


def tables_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from tables_in(part)


def kind_in_file(annotation: Any) -> str:
    """A type as it reads, whatever our classes are called."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return kind_in_file(parts[0]) + "".join(f" {limit}" for limit in bounds(parts[1:]))
    if origin is typing.Literal:
        return " | ".join(map(repr, parts))
    if origin in (typing.Union, types.UnionType):
        return " | ".join(dict.fromkeys(map(kind_in_file, parts)))
    if origin is not None:
        return f"{origin.__name__}[{', '.join('...' if part is ... else kind_in_file(part) for part in parts)}]"
    if annotation is types.NoneType:
        return "None"
    if inspect.isclass(annotation):
        return "table" if issubclass(annotation, BaseModel) else annotation.__name__
    return str(annotation)


def limits(field: FieldInfo) -> str:
    return "".join(f" {limit}" for limit in bounds(tuple(field.metadata)))


def bounds(metadata: tuple[Any, ...]) -> list[str]:
    """Those that are numbers: Gt(gt=0), MinLen(min_length=1), ..."""
    return [repr(one) for one in metadata if type(one).__module__ == "annotated_types"]


def default_of(field: FieldInfo) -> str:
    if field.is_required():
        return ", required"
    value = field.get_default(call_default_factory=True)
    return "" if isinstance(value, BaseModel) else f" = {value!r}"


if __name__ == "__main__":
    LISTED.write_text("\n".join(api()) + "\n", encoding="utf-8")
