"""The order of the house (docs/architecture.md), read off the source: who imports whom, names, lengths of files.

`LOCAL` and `BORROWED` list the exceptions, each with its reason; an entry that is no longer needed is taken off.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from phyxel.models.kind import KINDS
from phyxel.movers import kinds as _kinds  # noqa: F401  fills the table of models

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src" / "phyxel"
ROOTS = (SOURCE, HERE.parent)

FOUNDATION = (
    "errors",
    "notebook",
    "progress",
    "structs",
    "device",
    "kernels",
    "files",
    "units",
    "colors",
    "region",
    "cache",
    "rotation",
    "state",
)
CORE = (
    "points",
    "mls",
    "solid",
    "material",
    "cracks",
    "contact",
    "models",
    "meeting",
    "surface",
    "body",
    "fields",
    "movers",
    "world",
)
LEAVES = ("render", "export", "scene", "run", "view", "bench", "cli")
ROOMS = FOUNDATION + CORE + LEAVES
"""A room imports from those before it. Files of the foundation are one room each."""

MOST_LINES = 450

MODELS = tuple(sorted(folder.name for folder in (SOURCE / "models").iterdir() if (folder / "model.py").exists()))
"""Each a folder of models/, whose name is the name of the model."""
TABLE_OF_MODELS = "movers/kinds.py"

LOCAL = {
    "bench/accuracy/finite_elements.py": "optional: the bench extra",
    "bench/m04.py": "pictures are measured only when asked for",
    "bench/peer_mujoco.py": "optional: the bench extra",
    "bench/peer_pypbd.py": "optional: the bench extra",
    "bench/peer_taichi.py": "optional: the bench extra",
    "bench/pictures.py": "pictures are measured only when asked for",
    "bench/view.py": "optional: the view extra",
    "cli/app.py": "`phyxel --help` stays quick: a command imports what it needs",
    "cli/sample.py": "a report without a picture needs no renderer",
    "device.py": "threadpoolctl looks through all loaded libraries: not before the first solve",
    "export/usd.py": "optional: the usd extra",
    "points/texture.py": "Pillow is loaded when a picture is read",
    "points/usd.py": "optional: the usd extra",
    "run/redraw.py": "a run without pictures needs no renderer",
    "run/run.py": "a run without pictures needs no renderer",
    "view/__init__.py": "optional: the view extra",
}
"""Files with imports inside functions, and why."""

BORROWED = {
    ("modal", "galerkin"): "modes are those of a Galerkin space",
}
"""Models that import from another model's folder, and why."""

AT_LARGE = {"test_house.py", "test_api.py", "test_docs.py", "test_equations.py"}
"""Tests of the whole house."""
OTHERS = ("physics", "gallery", "view/page")
"""Folders of tests that belong to no one file: laws of nature, scenes, the page in a browser."""


@dataclass(frozen=True)
class Import:
    """That one file asks for a module; all names as in phyxel.<name>."""

    file: str
    module: str
    target: str
    local: bool
    """inside a function"""
    typing: bool
    """for types alone"""


def test_no_room_imports_from_a_room_below() -> None:
    found = {
        f"{one.file} -> {one.target}"
        for one in imports()
        if one.module and (ROOMS.index(room_of(one.module)) < place_of(one.target))
    }
    hold("upward imports", found, "take what is needed as arrays or as a protocol of a room above, also for types")


def test_every_file_is_in_a_room() -> None:
    for module in modules():
        assert module == "" or room_of(module) in ROOMS, (
            f"{module}: no such room; put it into one of {', '.join(CORE + LEAVES)}, or name the new room in "
            "tests/test_house.py and docs/architecture.md"
        )


def test_no_file_imports_itself_by_way_of_others() -> None:
    """Imports inside functions count as well. From room to room the order sees to it. For types alone a thing and its
    parts may know each other inside their room: a body and its appearance."""
    graph: dict[str, set[str]] = {module: set() for module in modules()}
    for one in imports():
        if room_of(one.module) == room_of(one.target) and one.target != one.module and not one.typing:
            graph[one.module].add(one.target)
    hold("rings", {" ".join(sorted(ring)) for ring in rings(graph)}, "move what both need into a file of its own")


def test_imports_inside_functions_are_listed() -> None:
    found = {one.file for one in imports(outside=True) if one.local}
    expect(found, set(LOCAL), "imports inside functions", "move it to the top, or give the reason in LOCAL")


def test_models_keep_to_their_folders() -> None:
    shared, borrowed = set(), set()
    for one in imports():
        ours, theirs = model_of(one.module), model_of(one.target)
        if theirs is None or ours == theirs or room_of(one.module) != "models":
            continue
        if ours is None:
            shared.add(f"{one.file} -> {one.target}")
        elif (ours, theirs) not in BORROWED:
            borrowed.add(f"{one.file} -> {one.target}")
    hold("shared files that know a model", shared, "what models share lies in models/ itself and knows none of them")
    hold(
        "models that import from another", borrowed, "move what both need into models/, or give the reason in BORROWED"
    )


def test_nobody_asks_for_the_name_or_the_class_of_a_model() -> None:
    classes = {
        node.name
        for module, tree in modules().items()
        if model_of(module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith("Model")
    }
    found = set()
    for module, tree in modules().items():
        file = file_of(module)
        if file == TABLE_OF_MODELS:
            continue
        compared = {id(part) for node in ast.walk(tree) if isinstance(node, ast.Compare) for part in node.comparators}
        for node in ast.walk(tree):
            named = names_a_model(node) - {model_of(module) or ""}
            if (named and id(node) not in compared) or is_instance_of(node, classes if not model_of(module) else set()):
                found.add(f"{file}: {ast.unparse(node)}")
    hold("model names", found, f"ask the ModelKind of the body ({TABLE_OF_MODELS}), or a protocol")


def test_no_class_name_twice() -> None:
    counted = Counter(
        node.name for tree in modules().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    )
    hold("class names twice", {name for name, times in counted.items() if times > 1}, "name it by what it is of")


def test_no_file_is_too_long() -> None:
    found = {file_of(module) for module in modules() if len(path_of(module).read_text().splitlines()) > MOST_LINES}
    hold("long files", found, f"more than {MOST_LINES} lines: split it at a seam")


def test_tests_stand_where_the_source_stands() -> None:
    places = {file_of(module).removesuffix(".py").removesuffix("/__init__") for module in modules()}
    found = set()
    for path in HERE.rglob("test_*.py"):
        place = path.relative_to(HERE)
        if str(place) in AT_LARGE or any(place.is_relative_to(folder) for folder in OTHERS):
            continue
        words = place.stem.removeprefix("test_").split("_")  # of the file it tests, and maybe of what it tests there
        names = {str(place.with_name("_".join(words[: k + 1]))) for k in range(len(words))}
        if names.isdisjoint(places):
            found.add(str(place))
    hold("tests without a source", found, "tests/room/test_thing.py tests src/phyxel/room/thing.py: rename or merge it")


def test_the_page_on_the_house_names_what_is_there() -> None:
    page = (HERE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    lost = [path for path in re.findall(r"`([\w/]+\.py)`", page) if not any((root / path).exists() for root in ROOTS)]
    for path, name in re.findall(r"`([\w/]+\.py)` `([\w.]+)`", page):
        tree = ast.parse((SOURCE / path).read_text(encoding="utf-8"))
        if name not in {f"{outer}{node.name}" for outer, node in definitions(tree)}:
            lost.append(f"{path} {name}")
    lost += [f"{room}/" for room in CORE + LEAVES if room != "fields" and f"`{room}/`" not in page]
    assert not lost, f"docs/architecture.md is behind the source: {', '.join(lost)}"


def test_the_page_on_the_house_has_the_table_of_models() -> None:
    page = (HERE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = "\n".join(table_of_models())
    assert table in page, f"docs/architecture.md: the table of models is now\n{table}"


def table_of_models() -> Iterator[str]:
    yield "| model | is | nodes | surfels carried by | steps | options of its own | cannot | meets |"
    yield "|---|---|---|---|---|---|---|---|"
    for kind in (KINDS[name] for name in KINDS if name in MODELS):
        lists = (kind.integrators, sorted(kind.options), kind.cannot, sorted(kind.meets))
        steps, options, cannot, meets = (", ".join(words) for words in lists)
        cells = (kind.name, kind.summary, kind.nodes, kind.carried_by, steps, options, cannot, meets)
        yield f"| {' | '.join(cells)} |"


# ---- How the lists are kept ----


def hold(rule: str, found: set[str], remedy: str) -> None:
    """Nothing breaks a rule."""
    expect(found, set(), rule, remedy)


def expect(found: set[str], listed: set[str], rule: str, remedy: str) -> None:
    new = "".join(f"\n  {one}" for one in sorted(found - listed))
    gone = "".join(f"\n  {one}" for one in sorted(listed - found))
    if new:
        pytest.fail(f"{rule}:{new}\n{remedy}", pytrace=False)
    if gone:
        pytest.fail(f"{rule}: no longer so, take it off the list in tests/test_house.py:{gone}", pytrace=False)


# ---- Reading the source ----


@cache
def modules() -> dict[str, ast.Module]:
    """By name: "" is the package itself, "body" a room, "body.holds" a file."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def path_of(module: str) -> Path:
    path = SOURCE.joinpath(*module.split(".")) if module else SOURCE
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def file_of(module: str) -> str:
    return path_of(module).relative_to(SOURCE).as_posix()


def room_of(module: str) -> str:
    return module.split(".")[0]


def place_of(target: str) -> int:
    """Where a room stands. The package itself, which hands all of them on, is behind the last."""
    return ROOMS.index(room_of(target)) if target else len(ROOMS)


def model_of(module: str) -> str | None:
    """Whose folder a module is in."""
    parts = module.split(".")
    return parts[1] if parts[0] == "models" and len(parts) > 1 and parts[1] in MODELS else None


@cache
def imports(outside: bool = False) -> tuple[Import, ...]:
    """All imports of the source from itself; with `outside` those of everything."""
    found = []
    for module, tree in modules().items():
        inner = {id(node) for function in functions(tree) for node in ast.walk(function)}
        typing = {id(node) for block in ast.walk(tree) if is_typing(block) for node in ast.walk(block)}
        for node in ast.walk(tree):
            for target in targets(node):
                ours = target == "phyxel" or target.startswith("phyxel.")
                if ours or outside:
                    name = target.removeprefix("phyxel").removeprefix(".") if ours else target
                    found.append(Import(file_of(module), module, name, id(node) in inner, id(node) in typing))
    return tuple(found)


def is_typing(node: ast.AST) -> bool:
    """Whether it is a block under `if TYPE_CHECKING`."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def functions(tree: ast.Module) -> Iterator[ast.AST]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))


def definitions(tree: ast.Module) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef]]:
    """Classes and functions, and methods behind the name of their class and a dot."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield "", node
        if isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.", inner) for inner in node.body if isinstance(inner, ast.FunctionDef))


def targets(node: ast.AST) -> Iterable[str]:
    """Full names of the modules that a statement imports from."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "say from where in full: from phyxel.room.file import name"
        return {defined_in(node.module or "", alias.name) for alias in node.names if alias.name != "__version__"}
    return []


def defined_in(package: str, name: str) -> str:
    """The module behind `from package import name`: what a room hands on is of the file that has it."""
    short = package.removeprefix("phyxel").removeprefix(".")
    inside = f"{short}.{name}".removeprefix(".")
    if not package.startswith("phyxel") or short not in modules():
        return package
    if inside in modules():
        return f"phyxel.{inside}"
    for node in modules()[short].body:
        if isinstance(node, ast.ImportFrom) and name in {alias.asname or alias.name for alias in node.names}:
            return defined_in(node.module or "", name)
    return package


def rings(graph: dict[str, set[str]]) -> list[set[str]]:
    """Modules that reach each other."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        ways = [start]
        while ways:
            for target in graph[ways.pop()] - seen:
                seen.add(target)
                ways.append(target)
        return seen

    reach = {module: reached(module) for module in graph}
    found = {frozenset(b for b in reach[a] if a in reach[b]) for a in graph if a in reach[a]}
    return [set(ring) for ring in found]


def names_a_model(node: ast.AST) -> set[str]:
    """Models that an expression compares something with, or tells apart by a list or table of its own."""
    if isinstance(node, ast.Compare):
        return named_in([node.left, *node.comparators])
    if isinstance(node, ast.match_case):
        return named_in(list(ast.walk(node.pattern)))
    if isinstance(node, ast.Dict):
        named = named_in([key for key in node.keys if key is not None])
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        named = named_in([node])
    else:
        return set()
    return named if len(named) > 1 else set()


def named_in(nodes: list[ast.expr] | list[ast.AST]) -> set[str]:
    parts = [
        part for node in nodes for part in (node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node])
    ]
    return {part.value for part in parts if isinstance(part, ast.Constant) and part.value in MODELS}


def is_instance_of(node: ast.AST, classes: set[str]) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"):
        return False
    return any(isinstance(part, ast.Name) and part.id in classes for part in ast.walk(node.args[1]))
