"""What pages say can be done: the code of README.md and docs/ runs as it stands there.

A page is gone through from top to bottom, in a folder of its own in which a small `scan.ply` lies:

- Python blocks share one namespace;
- a block of TOML that begins with the name of a file (`# mine.toml`) is written there;
- on pages of `FOLLOWED`, indented lines that begin with one of `PROGRAMS` are run, if that is `phyxel`.

Not run are lines that begin with `pip` and `phyxel demo` (`.ci/run` has README's two commands), `phyxel view`, whose
page waits for a browser, and Python that opens it; but all commands must be such that the command line takes them, and
scripts for Blender those that `px.export.blender` writes.
"""

import ast
import doctest
import importlib.util
import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import typer

import phyxel as px
from phyxel.cli import app
from phyxel.scene import gallery_names

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
PROGRAMS = ("phyxel", "pip", "pytest", "blender", "ssh")
FOLLOWED = ("docs/first-hour.md",)
"""Pages that are followed word by word; README's commands are among theirs, and those of others play scenes of the
gallery, which has tests."""
ELSEWHERE = ("view", "demo")
QUICK = ("docs/export.md", "docs/scenes.md")
"""Pages that take a second or two; others are for the slow lane."""
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(rf"(?<=\n\n)(?:    (?:{'|'.join(PROGRAMS)}) .*\n)+", re.MULTILINE)
INLINE = re.compile(r"`(phyxel [^`]+)`")


@dataclass(frozen=True)
class Block:
    """Code of a page."""

    page: str
    line: int
    kind: str
    """python, toml, shell or the like"""
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    def compiled(self) -> Any:
        """Python whose errors name the line of the page."""
        return compile("\n" * (self.line - 1) + self.text, self.page, "exec")

    def lines(self) -> Iterator[list[list[str]]]:
        """Of a shell block: commands of a line (`a && b`), each as a list of words."""
        for line in self.text.strip().splitlines():
            yield [shlex.split(command) for command in line.split("&&")]


def blocks(page: str) -> list[Block]:
    """Those of a page, from top to bottom."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = [(match.start(2), match[1], match[2]) for match in FENCED.finditer(text)]
    found += [(match.start(), "shell", match[0]) for match in INDENTED.finditer(text)]
    return [Block(page, text.count("\n", 0, at) + 1, kind, code) for at, kind, code in sorted(found)]


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(one, id=str(one)) for page in PAGES for one in blocks(page) if one.kind == kind]


# ---- As it stands ----


def lanes() -> list[Any]:
    """Pages with code that runs."""
    with_code = [page for page in PAGES if {block.kind for block in blocks(page)} & {"python", "shell"}]
    return [pytest.param(page, marks=[] if page in QUICK else pytest.mark.slow) for page in with_code]


@pytest.mark.parametrize("page", lanes())
def test_pages_run_as_they_stand(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    write_scan(tmp_path / "scan.ply")
    names: dict[str, Any] = {}
    for block in blocks(page):
        if block.kind == "python" and not opens_a_page(block):
            exec(block.compiled(), names)
        elif block.kind == "toml" and (named := re.match(r"# ([\w-]+\.toml)\b", block.text)):
            Path(named[1]).write_text(block.text, encoding="utf-8")
        elif block.kind == "shell" and page in FOLLOWED:
            for commands in block.lines():
                if commands[0][0] != "pip":
                    run(commands, block)


def opens_a_page(block: Block) -> bool:
    """Whether it would wait for a browser."""
    return "phyxel.view" in block.text


def run(commands: list[list[str]], block: Block) -> None:
    for command in commands:
        if command[0] == "phyxel" and command[1] not in ELSEWHERE:
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
            assert done.returncode == 0, f"{block}: {shlex.join(command)}: {done.stdout}{done.stderr}"
        elif command[0] == "blender":
            check_script(Path(command[command.index("--python") + 1]))


def check_script(path: Path) -> None:
    """It is Python, and what `px.export.blender` writes for such a run."""
    written = path.read_text(encoding="utf-8")
    compile(written, str(path), "exec")
    px.export.blender(path.with_name("scene.usdc"), path, fps=px.Scene.read(path.with_name("scene.toml")).fps)
    assert path.read_text(encoding="utf-8") == written


def write_scan(path: Path) -> None:
    """A bust as a scanner has it: points with normals, no faces."""
    cloud = px.load("bust", points=3000)
    header = ["ply", "format ascii 1.0", f"element vertex {len(cloud)}"]
    header += [f"property float {column}" for column in ("x", "y", "z", "nx", "ny", "nz")]
    rows = np.hstack([cloud.positions, cloud.normals])
    np.savetxt(path, rows, "%.6f", header="\n".join([*header, "end_header"]), comments="")


# ---- Whether it could ----


@pytest.mark.parametrize("block", of_kind("python"))
def test_python_names_what_is_there(block: Block) -> None:
    block.compiled()
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "px":
            assert hasattr(px, node.attr), f"{block}: px.{node.attr}"


@pytest.mark.parametrize("block", of_kind("toml"))
def test_scenes_and_parts_of_scenes_are_read(block: Block) -> None:
    some_body = "" if "[[body]]" in block.text else '[[body]]\nshape = "bear"\n'
    px.Scene.parse(some_body + block.text)


@pytest.mark.parametrize("page", PAGES)
def test_the_command_line_takes_what_pages_say(page: str) -> None:
    lines = [line for block in blocks(page) if block.kind == "shell" for line in block.lines()]
    commands = [command for line in lines for command in line]
    commands += [shlex.split(said) for said in INLINE.findall((ROOT / page).read_text(encoding="utf-8"))]
    for command in commands:
        if command[0] == "phyxel" and command[1][0] not in "-.<":
            taken(command[1], command[2:])


def taken(name: str, arguments: list[str]) -> None:
    """The options of a command are parsed, and scenes it names are there; nothing is run."""
    group: Any = typer.main.get_command(app.app)
    command = group.commands[name]
    if arguments:
        given = command.make_context(name, arguments).params
        scene = given.get("scene", "")
        assert not re.fullmatch(r"[a-z-]+", scene) or scene in gallery_names(), f"phyxel {name} {scene}"


# ---- All names ----


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("api", ROOT / "tools" / "api.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


API = tool()


def test_the_page_of_all_names_is_up_to_date() -> None:
    assert API.PAGE.read_text(encoding="utf-8") == API.page(), "run `python tools/api.py`"


@pytest.mark.parametrize("name", API.public())
def test_every_name_says_what_its_arguments_are(name: str) -> None:
    thing = API.public()[name]
    said, _ = API.parts(thing)
    explained = set(re.findall(r"`(\w+)", said)) | set(API.fields(thing) if inspect.isclass(thing) else ())
    left = [one.name for one in API.arguments(name, thing) if one.name not in explained]
    assert said and not left, f"px.{name}: say in its docstring what `{'`, `'.join(left)}` are, and in which unit"


@pytest.mark.parametrize("name", API.public())
def test_every_name_has_an_example_that_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, example = API.parts(API.public()[name])
    test = doctest.DocTestParser().get_doctest(example, {"px": px, "np": np}, f"px.{name}", None, None)
    assert test.examples, f"px.{name}: its docstring has no example (`>>> ...`, at the end)"
    told: list[str] = []
    assert doctest.DocTestRunner().run(test, out=told.append).failed == 0, "".join(told)
