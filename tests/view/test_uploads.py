"""Files of pages: whole, under plain names, in a folder of their own."""

import pytest

from phyxel.errors import PhyxelError
from phyxel.view import commands
from phyxel.view.commands import LARGEST_FILE, FileAhead
from phyxel.view.uploads import Arriving, plain_name


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PHYXEL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("bunny.ply", "bunny.ply"),
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/abs/olute.obj", "olute.obj"),
        ("..", "file"),
        (".hidden", "hidden"),
        ("a\0b\n.ply", "a_b_.ply"),
        ("Bär 2.ply", "Bär 2.ply"),
        ("x" * 200 + ".ply", "x" * 96 + ".ply"),
    ],
)
def test_names_are_bare_and_plain(given, taken):
    assert plain_name(given) == taken


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_pieces_of_any_size_make_the_files_and_the_scene_is_opened(piece, cache):
    contents = {"ball.obj": b"0123456789", "ball.mtl": b"m", "a.toml": b"[[body]]"}
    arriving = Arriving([FileAhead(name=name, size=len(data)) for name, data in contents.items()])
    stream = b"".join(contents.values())
    *early, last = [arriving.add(stream[at : at + piece]) for at in range(0, len(stream), piece)]
    assert not any(early) and last is not None
    assert last.name == "a.toml" and last.path.parent.parent == cache / "dropped"
    assert {file.name: file.read_bytes() for file in last.path.parent.iterdir()} == contents
    again = Arriving([FileAhead(name=name, size=len(data)) for name, data in contents.items()]).add(stream)
    assert again is not None and again.path == last.path, "the same files lie there once"


def test_a_scan_goes_before_its_pictures():
    arriving = Arriving(
        [FileAhead(name="t.png", size=1), FileAhead(name="t.mtl", size=1), FileAhead(name="t.obj", size=1)]
    )
    opened = arriving.add(b"123")
    assert opened is not None and opened.name == "t.obj"


def test_what_is_too_much_is_refused():
    with pytest.raises(PhyxelError, match="200 MB"):
        Arriving([FileAhead(name=f"{k}.ply", size=LARGEST_FILE // 2 + 1) for k in range(2)])
    with pytest.raises(PhyxelError, match="same name"):
        Arriving([FileAhead(name=name, size=1) for name in ("a/x.ply", "b/x.ply")])
    for files in ([], [{"name": "x.ply", "size": 0}], [{"name": "x.ply", "size": LARGEST_FILE + 1}], [{"name": "x"}]):
        with pytest.raises(PhyxelError, match="files"):
            commands.checked({"do": "upload", "files": files})


def test_no_page_can_name_a_path():
    with pytest.raises(PhyxelError):
        commands.checked({"do": "open", "name": "x", "path": "/etc/passwd"})
