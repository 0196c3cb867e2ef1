"""What pages send: commands are understood, everything else is one clear error."""

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phyxel.errors import PhyxelError
from phyxel.view import commands
from phyxel.view.commands import coalesced

AIM = {"ray": [0, 0, 1], "way": [0.0, 0.1, -1.0]}
GOOD = [
    {"do": "grab", **AIM, "ahead": [0, 0, -1]},
    {"do": "pull", **AIM},
    {"do": "let_go", "pin": True},
    {"do": "pin", **AIM},
    {"do": "unpin"},
    {"do": "push", **AIM, "force": 3},
    {"do": "stop_push"},
    {"do": "cut", **AIM, "to_way": [1, 0, -1]},
    {"do": "drop"},
    {"do": "restart"},
    {"do": "reset"},
    {"do": "pause", "on": True},
    {"do": "step"},
    {"do": "speed", "factor": 0.25},
    {"do": "material", "body": "bear", "numbers": {"young": 1e5, "yield_strain": None}},
    {"do": "preset", "body": "bear", "name": "rubber"},
    {"do": "model", "body": "bear", "model": "modal", "nodes": 300},
    {"do": "melt", "body": "bear"},
    {"do": "solidify", "body": "bear"},
    {"do": "gravity", "value": [0, -1.6, 0]},
    {"do": "show", "field": "stress", "mode": "surface", "surface": "mesh"},
    {"do": "slice", "normal": [1, 0, 0], "place": [0, 0.1, 0]},
    {"do": "save", "camera": {"eye": [1, 2, 3], "target": [0, 0.1, 0], "fov": 32}},
    {"do": "record", "on": False},
    {"do": "html"},
    {"do": "seek", "time": 1.5},
    {"do": "seen", "frame": 7},
]


@pytest.mark.parametrize("given_", GOOD, ids=lambda command: command["do"])
def test_every_command_is_understood_and_no_key_more(given_):
    command = commands.parse(json.dumps({**given_, "n": 4}))
    said = command.model_dump(mode="json")
    assert command.n == 4 and all(said[key] == value for key, value in given_.items())
    with pytest.raises(PhyxelError, match="more"):
        commands.parse(json.dumps({**given_, "more": 1}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"do": "fly"}',
        '{"do": "pull", "ray": [0, 0, NaN], "way": [0, 0, 1]}',
        '{"do": "pull", "ray": [0, 0, 1e400], "way": [0, 0, 1]}',
        '{"do": "pull", "ray": [0, 0, 1e200], "way": [0, 0, 1]}',
        '{"do": "pull", "ray": [0, 0, "1"], "way": [0, 0, 1]}',
        '{"do": "pull", "ray": [0, 0], "way": [0, 0, 1]}',
        '{"do": "pull", "ray": [0, 0, 0], "way": [0, 0, 0]}',
        '{"do": "speed", "factor": 0}',
        '{"do": "pause", "on": true, "n": -1}',
        '{"do": "pause", "on": true, "n": 1.5}',
        '{"do": "melt", "body": "' + "b" * 300 + '"}',
        '{"do": "melt", "body": "' + "b" * 10**6 + '"}',
        "[" * 4000,
        '{"do": "melt", "body": "\\ud800"}',
    ],
    ids=lambda text: text[:40],
)
def test_what_is_no_command_is_one_clear_error(text):
    with pytest.raises(PhyxelError, match="command") as error:
        commands.parse(text)
    assert len(str(error.value)) < 400


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.text() | anything.map(json.dumps) | st.tuples(st.sampled_from(GOOD), st.dictionaries(
    st.sampled_from(["do", "n", "ray", "way", "body", "numbers", "on", "value"]), anything)).map(
        lambda pair: json.dumps({**pair[0], **pair[1]})))  # fmt: skip
def test_nothing_but_phyxel_errors_ever_comes_of_a_message(text):
    try:
        command = commands.parse(text)
        assert command.do in {known["do"] for known in GOOD} and commands.checked(json.loads(text)) == command
    except PhyxelError as error:
        assert str(error)


def test_many_moves_of_a_pointer_or_a_slider_are_one():
    def heard(page, **what):
        return page, commands.checked(what)

    pulls = [heard(1, do="pull", ray=[0, 0, k], way=[0, 0, -1], n=k) for k in range(100)]
    moves = [heard(2, do="material", body="bear", numbers={name: 10.0}) for name in ("young", "density", "young")]
    mixed = [one for pair in itertools.zip_longest(pulls, moves) for one in pair if one is not None]
    (first, pulled), (second, moved), last = coalesced([*mixed, heard(1, do="let_go")])
    assert (first, pulled.n, pulled.ray[2], second, last[1].do) == (1, 99, 99, 2, "let_go")
    assert moved.numbers == {"young": 10.0, "density": 10.0}
    grabs = [heard(1, do="grab", ray=[0, 0, 1], way=[0, 0, -1], ahead=[0, 0, -1]), *pulls, heard(1, do="let_go")] * 2
    assert [command.do for _, command in coalesced(grabs)] == ["grab", "pull", "let_go"] * 2
