"""A recording as one HTML file that plays it in any browser, without a server."""

from __future__ import annotations

import gzip
import math
import re
from collections.abc import Sequence
from typing import Any

from phyxel.errors import PhyxelError
from phyxel.view.hub import json_text
from phyxel.view.recorder import Shown
from phyxel.view.template import saved_page

LARGEST = 60_000_000
"""[bytes] of a file that mail and browsers still take well"""


def saved_html(scene: dict[str, Any], shown: Sequence[Shown], files: dict[str, bytes]) -> tuple[str, bytes, str]:
    """Name and content of the file, and what is to be said of it."""
    if not any(map(_is_picture, shown)):
        raise PhyxelError("nothing has been shown yet that could be saved; let it run for a moment")
    every = 1
    while True:
        kept = thinned(shown, every)
        recording = packed(scene, kept)
        excess = len(recording) * 4 / 3 / LARGEST
        if excess <= 1 or len(kept) <= 2:
            break
        every = max(every + 1, math.ceil(every * excess))
    name = re.sub(r"[^A-Za-z0-9-]+", "-", str(scene.get("name", ""))).strip("-") or "phyxel"
    remark = f"one frame in {every} was kept, so that the file stays under 60 MB" if every > 1 else ""
    return f"{name}.html", saved_page(files, recording).encode(), remark


def thinned(shown: Sequence[Shown], every: int) -> list[Shown]:
    """One picture in `every`, and all that was told."""
    pictures = [one for one in shown if _is_picture(one)]
    dropped = {id(one) for k, one in enumerate(pictures) if k % every}
    return [one for one in shown if id(one) not in dropped]


def _is_picture(one: Shown) -> bool:
    return not isinstance(one[1], dict)


def packed(scene: dict[str, Any], shown: Sequence[Shown]) -> bytes:
    """The scene and what was shown as messages one after the other, each after its length, compressed."""
    known: set[str] = set()
    about = {**scene, "kind": "scene", "mode": "saved", "paused": False, "recording": False, "duration": shown[-1][0]}
    messages = [json_text(about).encode()]
    for at, one in shown:
        if isinstance(one, dict):
            messages.append(json_text({**one, "at": at}).encode())
        else:
            messages.append(one.message(known, {"at": at}))
    return gzip.compress(b"".join(len(one).to_bytes(4, "little") + one for one in messages), compresslevel=6, mtime=0)
