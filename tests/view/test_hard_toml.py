"""What the journal writes as TOML is read as what it was, whatever letters, numbers and tables are in it."""

import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phyxel.scene.event_tables import EventPart
from phyxel.scene.scene import Scene, SceneFile, gallery, gallery_names
from phyxel.view.journal import Journal, _document

NOW = SimpleNamespace(world=SimpleNamespace(time=0.1))
"""as much of a performance as the journal looks at when it is written"""
ODD = "say \"ä\\n\" \n\t\r \x00\x1b\x7f\x85\u2028 😀 ''' # [x] = 1"

keys = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=8)
plain = st.text() | st.floats(allow_nan=False) | st.integers(-(2**63), 2**63 - 1) | st.booleans()
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
)


def told(value):
    """With the kinds of numbers: 1 is not 1.0, 0.0 is not -0.0, True is not 1."""
    if isinstance(value, dict):
        return {key: told(one) for key, one in value.items()}
    return [told(one) for one in value] if isinstance(value, list) else repr(value)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.dictionaries(keys, values.filter(lambda value: value != []), max_size=6))
def test_any_table_comes_back(table):
    assert told(tomllib.loads(_document(table))) == told(table)


@pytest.mark.parametrize("name", gallery_names())
def test_gallery_scenes_come_back(name):
    scene = gallery(name)
    content = scene.content
    text = Journal(scene).toml(NOW)
    again = SceneFile.model_validate(tomllib.loads(text))
    assert again.model_copy(update={"seconds": content.seconds}) == content
    assert again.seconds == pytest.approx(content.seconds, abs=1 / content.fps)


def test_odd_names_come_back_and_stay_out_of_the_comments():
    content = SceneFile.model_validate(
        {
            "title": ODD,
            "body": [{"name": ODD, "shape": "box", "vary": {"young": {"channel": "red", "low": 1e4, "high": 2e4}}}],
            "collider": [{"kind": "ground", "name": ODD + "floor"}],
            "event": [{"at": 0, "body": ODD, "hold": {"name": ODD, "near": [0, 1e-300, -0.0]}}],
        }
    )
    journal = Journal(Scene(content, "two\nlines \x07\udcff", Path(), "", "two"))
    journal.record(EventPart(at=0.05, body=ODD, release=ODD))
    again = SceneFile.model_validate(tomllib.loads(journal.toml(NOW)))
    assert again.model_copy(update={"event": again.event[:1]}) == content
    assert again.event[1] == journal.events[0]
    journal.toml(NOW).encode()
