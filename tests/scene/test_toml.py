"""TOML that reads back as what was written."""

import tomllib

from phyxel.scene.toml import comment, document


def test_what_is_written_reads_back():
    table = {
        "title": 'a "quoted" 🐻\n\x7f',
        "seconds": 1e-300,
        "flag": True,
        "camera": {"eye": [0.1, float("inf"), -1e22]},
        "body": [{"name": "a", "hold": [{"to": [k, 0.5, 0]} for k in range(40)], "empty": {}}, {"name": "b"}],
    }
    assert tomllib.loads(document(table)) == table


def test_a_comment_is_one_line():
    assert comment("two\nlines\x07") == "# two lines \n"
    assert tomllib.loads(comment("x\r= 1")) == {}
