"""`phyxel ...` as it is typed, in this process."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phyxel.cli import app as cli

Result = tuple[Any, str, str]
"""Exit code, stdout and stderr."""


@pytest.fixture
def phyxel(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Result]:
    """Runs `phyxel ...` in an empty folder."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str | Path) -> Result:
        monkeypatch.setattr(sys, "argv", ["phyxel", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
            raise SystemExit(0)
        code = ended.value.code
        return 0 if code is None else code, *capsys.readouterr()

    return call


def refused(result: Result, *words: str) -> None:
    """It ended with code 1 and said why, for people."""
    code, output, errors = result
    assert code == 1, errors
    assert "Traceback" not in errors and output == ""
    for word in words:
        assert word in errors
