"""A real browser without a window, for what only pixels and pointers can tell."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

SOFTWARE = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
"""WebGL2 without a graphics card."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium as it is installed; tests that need it are skipped where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("needs Chromium (Debian: apt-get install chromium)")
    alone = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # it refuses to start as root
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=[*SOFTWARE, *alone])
        yield chromium
        chromium.close()
