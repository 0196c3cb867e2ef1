"""The page as files: one template, filled for a live server or as one HTML file that plays a recording without one."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from typing import Any

from phyxel.errors import PhyxelError
from phyxel.view.hub import Shown, json_text
from phyxel.view.patches import Packer

PAGE = "phyxel/"
"""what names of the page's modules begin with"""
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
LARGEST, PER_SECOND = 6_000_000, 750_000
"""[bytes] of a file that can still be sent to somebody; of a long recording, in a second."""


def page_files() -> dict[str, bytes]:
    """The files of the page by name: these and no others are ever served."""
    folder = resources.files("phyxel.view") / "page"
    found = {one.name: one for one in folder.iterdir() if one.is_file()} if folder.is_dir() else {}
    return {name: one.read_bytes() for name, one in sorted(found.items()) if _ending(name) in TYPES}


def content_type(name: str) -> str:
    return TYPES[_ending(name)]


def live_page(files: dict[str, bytes]) -> str:
    """The page that a server gives out, with its modules beside it."""
    imports = {PAGE + name: f"/page/{name}" for name in files if _ending(name) == ".js"}
    return _filled(files, '<link rel="stylesheet" href="/page/style.css">', imports, "")


def saved_page(files: dict[str, bytes], recording: bytes) -> str:
    """The page as one file, with its modules and a recording inside."""
    imports = {PAGE + name: _data_url(name, data) for name, data in files.items() if _ending(name) == ".js"}
    style = f"<style>\n{files['style.css'].decode()}</style>"
    return _filled(files, style, imports, base64.b64encode(recording).decode())


def inline_hashes(page: str) -> list[str]:
    """What a content security policy calls the scripts that stand in a page itself."""
    scripts = re.findall(r"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", page, flags=re.DOTALL)
    return [f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts if one]


def _filled(files: dict[str, bytes], style: str, imports: dict[str, str], recording: str) -> str:
    page = files["index.html"].decode()
    for mark, text in (("$style", style), ("$imports", json.dumps({"imports": imports})), ("$recording", recording)):
        page = page.replace(mark, text, 1)
    return page


def _data_url(name: str, data: bytes) -> str:
    return f"data:{content_type(name).replace(' ', '')};base64,{base64.b64encode(data).decode()}"


def _ending(name: str) -> str:
    return name[name.rfind(".") :] if "." in name else ""


# A recording as one file


def saved_html(scene: dict[str, Any], shown: Sequence[Shown], files: dict[str, bytes]) -> tuple[str, bytes, str]:
    """Name and content of the file, and what is to be said of it."""
    if not any(map(_is_picture, shown)):
        raise PhyxelError("nothing has been shown yet that could be saved; let it run for a moment")
    largest = max(LARGEST, PER_SECOND * shown[-1][0])
    every = 1
    while True:
        kept = thinned(shown, every)
        page = saved_page(files, packed(scene, kept)).encode()
        excess = len(page) / largest
        if excess <= 1 or len(kept) <= 2:
            break
        every = max(every + 1, math.ceil(every * excess))
    name = re.sub(r"[^A-Za-z0-9-]+", "-", str(scene.get("name", ""))).strip("-") or "phyxel"
    remark = f"one frame in {every} was kept, so that the file stays under {largest / 1e6:.0f} MB" if every > 1 else ""
    return f"{name}.html", page, remark


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
    packer = Packer()
    about = {**scene, "kind": "scene", "mode": "saved", "paused": False, "recording": False, "duration": shown[-1][0]}
    messages = [json_text(about).encode()]
    for at, one in shown:
        if isinstance(one, dict):
            messages.append(json_text({**one, "at": at}).encode())
        else:
            messages.append(replace(one, parts=packer.packed(one.parts)).message(known, {"at": at}))
    return gzip.compress(b"".join(len(one).to_bytes(4, "little") + one for one in messages), compresslevel=9, mtime=0)
