"""What several test files share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing that a user's runs have left on disk, and nothing left there for them."""
    os.environ["PHYXEL_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def models() -> Path:
    """The folder of scanned models: PHYXEL_MODELS, or shared/models beside the checkout."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "models"
    folder = Path(os.environ.get("PHYXEL_MODELS", beside))
    if not folder.is_dir():
        pytest.skip(f"no models in {folder}; set PHYXEL_MODELS to the folder with igea.ply, spot.obj, ...")
    return folder
