"""Bodies that several files of tests write; not to be changed."""

from pathlib import Path

import pytest

import phyxel as px
from tests.export.bodies import COLUMNS, bent, write_cube, write_mat


@pytest.fixture(scope="module")
def bear() -> px.Body:
    return bent(px.load("bear", points=700), size=1.0)


@pytest.fixture(scope="module")
def cube(tmp_path_factory: pytest.TempPathFactory) -> px.Body:
    return bent(px.load(write_cube(tmp_path_factory.mktemp("cube") / "cube.obj")))


@pytest.fixture(scope="module")
def mat(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, px.Body]:
    """What came in, and a body of it that fell, turned and is bent."""
    path = write_mat(tmp_path_factory.mktemp("mat") / "mat.obj")
    body = px.Body(px.load(path), model="particles", links="none", rotate=(30, 40, 0), spin=(1, 2, 3), name="mat")
    world = px.World()
    world.add(body)
    body.fix([0, COLUMNS - 1])
    world.advance(0.1)
    return path, body
