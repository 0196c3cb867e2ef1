"""The page: one template, filled for a live server or for a file that needs none."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources

PAGE = "phyxel/"
"""what names of the page's modules begin with"""
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


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
