"""A recording as one HTML file that plays it in any browser, without a server."""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from phyxel.errors import PhyxelError
from phyxel.view.hub import json_text
from phyxel.view.template import saved_page

if TYPE_CHECKING:
    from phyxel.view.parts import Snapshot

LARGEST = 60_000_000
"""[bytes] of a file that mail and browsers still take well"""


def saved_html(
    scene: dict[str, Any], shown: Sequence[tuple[float, Snapshot]], files: dict[str, bytes]
) -> tuple[str, bytes, str]:
    """Name and content of the file, and what is to be said of it; `shown` are snapshots with their times [s]."""
    if not shown:
        raise PhyxelError("nothing has been shown yet that could be saved; let it run for a moment")
    every = 1
    while True:
        kept = shown[::every]
        recording = packed(scene, kept)
        share = len(recording) * 4 / 3 / LARGEST
        if share <= 1 or len(kept) <= 2:
            break
        every = max(every + 1, int(every * share + 0.99))
    name = f"{re.sub(r'[^A-Za-z0-9-]+', '-', str(scene.get('name') or 'phyxel')).strip('-') or 'phyxel'}.html"
    remark = f"one frame in {every} was kept, so that the file stays under 60 MB" if every > 1 else ""
    return name, saved_page(files, recording).encode(), remark


def packed(scene: dict[str, Any], shown: Sequence[tuple[float, Snapshot]]) -> bytes:
    """The scene and the frames as messages one after the other, each after its length, compressed."""
    known: set[str] = set()
    about = {**scene, "kind": "scene", "mode": "saved", "recording": False, "duration": shown[-1][0]}
    messages = [json_text(about).encode()]
    messages += [snapshot.message(known, {"at": at}) for at, snapshot in shown]
    return gzip.compress(b"".join(len(one).to_bytes(4, "little") + one for one in messages), compresslevel=6, mtime=0)
