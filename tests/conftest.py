"""Lanes, workers, jitter, and what several test files share."""

import gc
import os
from pathlib import Path
from typing import Any

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # before NumPy and Warp ask: workers share the cores among them
    cores, workers = os.cpu_count() or 1, int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for threads in ("PHYXEL_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(threads, str(max(1, cores // workers)))

gc.set_threshold(20_000, 20, 20)  # thousands of tests are collected, and none of them is garbage


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--jitter", type=int, metavar="SEED", help="move all nodes and particles by 1e-7 of a spacing")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """A single file runs here: a second process would only wait for it."""
    return 0 if len(config.args) == 1 and ".py" in config.args[0] else None


def pytest_configure(config: pytest.Config) -> None:
    if all("::" in argument for argument in config.args):
        config.option.markexpr = ""  # tests asked for by name run, whatever lane they are in
    seed = config.getoption("--jitter")
    if seed is not None:
        from tests.jitter import move_bodies

        move_bodies(seed)


def pytest_collection_finish() -> None:
    """All that is there before the first test stays: it need not be looked through for garbage again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    jitters = config.getoption("--jitter") is not None
    for item in items:
        if "gallery" in item.path.parent.parts:
            item.add_marker("gallery")
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
        exact = item.get_closest_marker("exact")
        if exact is not None and jitters:
            item.add_marker(pytest.mark.skip(reason=exact.kwargs["reason"]))


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing that a user's runs have left on disk, and nothing left there for them."""
    os.environ["PHYXEL_CACHE"] = str(tmp_path_factory.mktemp("cache"))


class LastOnes(dict[str, Any]):
    """Forgets the oldest of more than a hundred."""

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        if len(self) > 100:
            del self[next(iter(self))]


@pytest.fixture(scope="session", autouse=True)
def interiors() -> None:
    """Bodies of the same few shapes are in many tests: their nodes are found once."""
    from phyxel.body import birth

    birth.interiors = LastOnes()


@pytest.fixture(scope="session")
def models() -> Path:
    """The folder of scanned models: PHYXEL_MODELS, or shared/models beside the checkout."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "models"
    folder = Path(os.environ.get("PHYXEL_MODELS", beside))
    if not folder.is_dir():
        pytest.skip(f"no models in {folder}; set PHYXEL_MODELS to the folder with igea.ply, spot.obj, ...")
    return folder
