"""Messages: what a page that keeps blobs reads is what was sent to it."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from phyxel.errors import PhyxelError
from phyxel.view.messages import Blob, DrawnThing, Snapshot, read


def snapshot(frame: int, *blobs: Blob) -> Snapshot:
    named = {f"blob{k}": blob for k, blob in enumerate(blobs)}
    return Snapshot({"frame": frame, "title": "Bär"}, (DrawnThing("bear", "surfels", {"count": 3}, named),))


def test_a_page_reads_what_was_sent_and_kept_blobs_are_sent_once():
    rng = np.random.default_rng(0)
    moving, color, faces, empty = rng.bytes(16 * 3), Blob(rng.bytes(1001), "color"), Blob(rng.bytes(7), "faces"), b""
    known, kept = set(), {}
    lengths = []
    for frame, blobs in enumerate(
        [
            (Blob(moving), color, faces, color, Blob(empty)),
            (Blob(moving), color, faces),
            (Blob(moving), faces),
            (color,),
        ]
    ):
        sent = snapshot(frame, *blobs)
        message = sent.message(known, {"heard": 5})
        lengths.append(len(message))
        assert read(message, kept) == Snapshot({**sent.about, "heard": 5}, sent.parts)
        assert known == set(kept) == {blob.key for blob in blobs if blob.key}
    # Colours come again only after they were forgotten.
    assert lengths[1] < 500 and lengths[3] > 1001


def test_blobs_can_be_read_in_place():
    blobs = [Blob(b"\x07" * length) for length in (1, 16, 0, 33, 5)]
    message = snapshot(0, *blobs).message(set(), {})
    (length,) = struct.unpack_from("<I", message)
    head = json.loads(message[4 : 4 + length].decode())
    assert (4 + length) % 16 == 0
    places = list(head["parts"][0]["blobs"].values())
    assert all(offset % 16 == 0 and offset >= 4 + length for offset, _ in places)
    assert [message[offset : offset + size] for offset, size in places] == [blob.data for blob in blobs]


@pytest.mark.parametrize("cut", [0, 3, 60, -16])
def test_what_is_no_message_is_refused_in_words(cut):
    message = snapshot(0, Blob(bytes(64))).message(set(), {})
    with pytest.raises(PhyxelError, match="no snapshot"):
        read(message[:cut], {})


def test_numbers_that_json_lacks_are_not_sent():
    with pytest.raises(ValueError, match="JSON"):
        Snapshot({"time": float("nan")}).message(set(), {})
