"""What tests of files share."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def put(tmp_path: Path) -> Callable[[str, bytes | str], Path]:
    """Write a file, get its path."""

    def write(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
