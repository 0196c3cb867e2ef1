"""What newcomers type wrong, and what they are told."""

from pathlib import Path

import pytest

from tests.cli.command_line import refused

SCENE = '[[body]]\nshape = "box"\nnodes = 64\npoints = 300\n[output]\nvideo = false\n'

REFUSED = [
    ("run dmeo", ('"dmeo": no such scene in the gallery', 'did you mean "demo"?', ".toml")),
    ("run no.toml", ("no.toml: cannot be read", "No such file")),
    ("run scan.ply", ('"scan.ply": no scene file', ".toml", "phyxel view scan.ply")),
    ("run jelly.toml --nodes 2", ("jelly.toml: body[0].nodes = 2", "greater than or equal to 8")),
    ("run jelly.toml --seconds 0", ("jelly.toml: seconds = 0", "greater than 0")),
    ("run jelly.toml --device gpu", ('device = "gpu": not on this machine', "cpu", "leave it out")),
    ("run jelly.toml --device cuda:7", ('device = "cuda:7": not on this machine', "cpu")),
    ("run jelly.toml --out jelly.toml", ("jelly.toml: is a file", "--out")),
    ("modes jelly.toml --body tom", ('no body is named "tom"', "box")),
    ("sample baer", ('"baer"', 'did you mean "bear"?')),
    ("sample bear --units meter", ('units = "meter"', '"m"')),
    ("render nowhere", ("nowhere",)),
    ("view baer", ('"baer"',)),
]


@pytest.fixture
def folder(phyxel):
    """Where commands are run, with a scene and something that is none."""
    Path("jelly.toml").write_text(SCENE)
    Path("scan.ply").write_bytes(b"ply\n\xff\xfe")


@pytest.mark.parametrize("typed, words", REFUSED, ids=[typed for typed, _ in REFUSED])
def test_what_is_wrong_is_said_without_a_traceback(phyxel, folder, typed, words):
    result = phyxel(*typed.split())
    refused(result, "error:", *words)
    assert "gravity" not in result[2], "and blames nobody else"


USAGE = [
    ("rnu jelly.toml", "rnu"),
    ("run", "scene"),
    ("run jelly.toml --secnds 3", "--secnds"),
    ("run jelly.toml --nodes many", "neither a whole number nor auto"),
    ("view jelly.toml --port 0", "--port"),
]


@pytest.mark.parametrize("typed, word", USAGE, ids=[typed for typed, _ in USAGE])
def test_what_cannot_be_read_shows_how_it_is_used(phyxel, folder, typed, word):
    code, _, errors = phyxel(*typed.split())
    assert code == 2 and word in errors and "Usage" in errors and "--help" in errors
