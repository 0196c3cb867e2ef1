"""What Tab offers."""

import pytest

from phyxel.cli.completion import scenes, scenes_and_scans
from phyxel.scene import gallery_names


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with a scene, a scan, something else, and a folder with a scene."""
    for name in ("jelly.toml", "bear.ply", "notes.txt", "deep/deeper.toml", ".hidden.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)


def test_scenes_of_the_gallery_and_files_are_offered():
    assert scenes("") == [*gallery_names(), "deep/", "jelly.toml"]
    assert scenes("je") == ["jelly.toml"]
    assert scenes("dem") == ["demo"]
    assert scenes("deep/") == ["deep/deeper.toml"]
    assert scenes("nowhere/") == []


def test_what_can_be_viewed_has_scans_too():
    assert scenes_and_scans("b") == [name for name in gallery_names() if name.startswith("b")] + ["bear.ply"]


@pytest.mark.parametrize("command, offered", [("run je", "jelly.toml"), ("view bear", "bear.ply"), ("modes ba", "bar")])
def test_the_command_line_offers_them(phyxel, monkeypatch, tmp_path, command, offered):
    """As a shell asks: by variables of the environment."""
    monkeypatch.chdir(tmp_path)
    asked = {"_PHYXEL_COMPLETE": "complete_bash", "COMP_WORDS": f"phyxel {command}", "COMP_CWORD": "2"}
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    _, output, _ = phyxel()
    assert offered in output.split()
