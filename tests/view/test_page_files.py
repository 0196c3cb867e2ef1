"""The page as files: what is in one that plays a recording, and whether it can be read again."""

import base64
import gzip
import json
import re

import numpy as np
import pytest

import phyxel as px
from phyxel.view.messages import read
from phyxel.view.page_files import inline_hashes, live_page, packed, page_files, saved_html
from tests.view.idle import SCENE, snapshot
from tests.view.unpacked import seen, unpacked

NUMBERS = {"kind": "numbers", "kinetic": float("inf")}


def entries(recording):
    """The messages in a recording."""
    data, found = gzip.decompress(recording), []
    while data:
        length = int.from_bytes(data[:4], "little")
        found.append(data[4 : 4 + length])
        data = data[4 + length :]
    return found


def test_a_file_holds_all_that_it_takes_to_play_it(monkeypatch):
    shown = [(k / 10, snapshot(k)) for k in range(20)]
    shown.insert(3, (0.25, NUMBERS))
    files = page_files()
    name, page, remark = saved_html({**SCENE, "name": "../A bear, 2!"}, shown, files)
    text = page.decode()
    assert name == "A-bear-2.html" and remark == ""
    # Nothing is fetched: all modules and the style are inside.
    imports = json.loads(re.search(r'<script type="importmap">(.*?)</script>', text, re.DOTALL)[1])["imports"]
    assert set(imports) == {f"phyxel/{one}" for one in files if one.endswith(".js")}
    for one, url in imports.items():
        head, data = url.split(",", 1)
        assert head == "data:text/javascript;charset=utf-8;base64"
        assert base64.b64decode(data) == files[one.removeprefix("phyxel/")]
    assert files["style.css"].decode() in text and not re.search(r'(src|href)="(?!data:)', text)
    recording = re.search(r'id="recording">(.*?)</script>', text, re.DOTALL)[1]
    messages = entries(base64.b64decode(recording))
    scene = json.loads(messages[0])
    assert scene["mode"] == "saved" and scene["duration"] == 1.9
    assert json.loads(messages[4]) == {"kind": "numbers", "kinetic": None, "at": 0.25}
    kept = {}
    frames = [read(one, kept) for one in messages[1:] if not one.startswith(b"{")]
    assert [one.about["at"] for one in frames] == [k / 10 for k in range(20)]
    pictures = [one for _, one in shown if not isinstance(one, dict)]
    assert [one.parts[0].blobs["colors"] for one in frames] == [one.parts[0].blobs["colors"] for one in pictures]
    for one, now in zip(pictures, unpacked(frames), strict=True):
        part = one.parts[0]
        np.testing.assert_allclose(now["body"].x, seen(part).positions, atol=1e-3 * np.sqrt(3))
    # Too large a file has fewer frames, from the first to about the last.
    most = len(page) - len(recording) * 2 // 3
    monkeypatch.setattr("phyxel.view.page_files.LARGEST", most)
    monkeypatch.setattr("phyxel.view.page_files.PER_SECOND", 0)
    _, page, remark = saved_html(SCENE, shown, files)
    fewer = re.search(r'id="recording">(.*?)</script>', page.decode(), re.DOTALL)[1]
    assert len(page) <= most and "one frame in" in remark
    assert 2 <= len(entries(base64.b64decode(fewer))) < 12


def test_nothing_shown_is_nothing_to_save():
    for shown in ([], [(0.0, NUMBERS)]):
        with pytest.raises(px.PhyxelError, match="nothing has been shown"):
            saved_html(SCENE, shown, page_files())
    assert len(entries(packed(SCENE, [(0.0, snapshot(0))]))) == 2


def test_scripts_of_the_page_are_known_by_their_hashes():
    """That of "alert(1)" as browsers compute it."""
    page = '<script type="module">alert(1)</script><script src="/x.js"></script><script id="recording"></script>'
    assert inline_hashes(page) == ["'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"]
    assert len(inline_hashes(live_page(page_files()))) >= 2
