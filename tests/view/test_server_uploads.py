"""Files over the live connection: what arrives whole is opened, and nothing else of it is left."""

import json
import tempfile
from pathlib import Path

import pytest

from phyxel.view.server import LARGEST_MESSAGE, Server
from tests.view.test_server import heard, page, served
from tests.view.waiting import wait_for


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("PHYXEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with served() as one:
        yield one


def ahead(**files: int) -> str:
    return json.dumps(
        {"do": "upload", "files": [{"name": f"{name}.ply", "size": size} for name, size in files.items()]}
    )


def opened(server: Server) -> Path:
    """The file that the show was asked to open."""
    (path,) = wait_for(lambda: [command.path for _, command in server.show.asked if command.do == "open"])
    server.show.asked.clear()
    return path


def notice(live) -> str:
    while True:
        message = heard(live)
        if isinstance(message, dict) and message["kind"] == "notice":
            return message["text"]


def test_a_file_of_many_messages_arrives_soon(server):
    data = bytes(range(256)) * 40_000
    with page(server) as live:
        live.send(ahead(scan=len(data)))
        for at in range(0, len(data), LARGEST_MESSAGE):
            live.send(data[at : at + LARGEST_MESSAGE])
        assert opened(server).read_bytes() == data


def test_bytes_that_nobody_told_of_are_refused(server):
    with page(server) as live:
        live.send(b"1234")
        assert "text, not bytes" in notice(live)
        live.send(ahead(scan=3))
        live.send(b"12345")
        assert "more bytes" in notice(live)
        live.send(b"6")
        assert "text, not bytes" in notice(live), "what was too long is forgotten"
    assert not server.show.asked


def test_what_does_not_come_whole_leaves_nothing(server, tmp_path):
    def waiting() -> list[Path]:
        return list(tmp_path.glob("phyxel-*"))

    with page(server) as live:
        live.send(ahead(scan=10))
        live.send(b"123")
        (first,) = wait_for(waiting)
        live.send(ahead(other=2))
        wait_for(lambda: waiting() and first not in waiting(), what="the first is forgotten for the second")
        live.send(b"12")
        assert opened(server).name == "other.ply"
        live.send(ahead(scan=10))
        live.send(b"123")
        wait_for(waiting)
    wait_for(lambda: not waiting(), what="and the third when its page goes")
    assert not server.show.asked
