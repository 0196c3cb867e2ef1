"""Equations can be found: docstrings name sections that are there, docs/equations.md the lines that are there."""

import ast
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
WITHOUT: set[str] = {
    "models/reductions.py",
}
"""Files of models/ with kernels that name no equation."""
ODD: set[str] = set()
"""Files that name sections otherwise than `physics 4.2`."""


@pytest.fixture(scope="module")
def equations() -> ModuleType:
    spec = importlib.util.spec_from_file_location("equations", ROOT / "tools" / "equations.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(equations: ModuleType) -> None:
    assert equations.PAGE.read_text(encoding="utf-8") == equations.page(), "run `python tools/equations.py`"


def test_sections_that_docstrings_name_are_there(equations: ModuleType) -> None:
    titles = equations.sections()
    lost = [
        f"{line.file}:{line.line}: physics {place}"
        for line, docstring in equations.lines()
        for paper, place in equations.references(docstring)
        if paper == "physics" and place not in titles
    ]
    assert not lost, f"docs/physics.md has no such section: {', '.join(lost)}"


def test_sections_are_named_in_one_way(equations: ModuleType) -> None:
    odd = {line.file for line, said in equations.lines() if re.search(r"physics(\.md)? §", said)}
    assert odd <= ODD, f"write `physics 4.2`, without §: {', '.join(sorted(odd - ODD))}"
    assert odd >= ODD, f"take off ODD in tests/test_equations.py: {', '.join(sorted(ODD - odd))}"


def test_sections_are_numbered_in_order(equations: ModuleType) -> None:
    numbers = [[int(part) for part in number.split(".")] for number in equations.sections()]
    assert numbers == sorted(numbers)
    assert [number for number in numbers if len(number) == 1] == [[n + 1] for n in range(numbers[-1][0])]


def test_every_kernel_file_of_a_model_names_an_equation(equations: ModuleType) -> None:
    named = {line.file for line, docstring in equations.lines() for _ in equations.references(docstring)}
    silent = {file for file in kernel_files(equations.SOURCE) if file not in named}
    new, gone = sorted(silent - WITHOUT), sorted(WITHOUT - silent)
    assert not new, f"say in a docstring which equation it computes (`M04 eq. 15`, `physics 4.2`): {', '.join(new)}"
    assert not gone, f"take off WITHOUT in tests/test_equations.py: {', '.join(gone)}"


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_links_between_pages_lead_somewhere(equations: ModuleType, page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        file, _, place = target.partition("#")
        if "://" in target:
            continue
        path = ROOT / "docs" / (file or page)
        assert path.exists(), f"docs/{page}: {target}: no such file"
        if place and path.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert place in {equations.slug(heading) for heading in headings}, f"docs/{page}: {target}: no such heading"


def kernel_files(source: Path) -> set[str]:
    return {
        path.relative_to(source).as_posix()
        for path in (source / "models").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and any(re.match(r"wp\.(kernel|func)\b", ast.unparse(one)) for one in node.decorator_list)
    }
