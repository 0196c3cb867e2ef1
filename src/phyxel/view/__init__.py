"""The browser: a running world, or a finished run, on a page that can be touched."""

from __future__ import annotations

import gc
import os
import queue
import signal
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from phyxel.body.resolution import NodeCount
from phyxel.errors import PhyxelError
from phyxel.files import check_suffix, whole_file
from phyxel.scene import Scene


def view(
    what: str | Scene,
    *,
    host: str | None = None,
    port: int | None = None,
    browser: bool = True,
    device: str | None = None,
    nodes: NodeCount | None = None,
    model: Path | None = None,
    units: str | None = None,
    up: str | None = None,
    report: Callable[[str], None] = print,
) -> None:
    """Show a scene, a scan, a shape or the folder of a run in the browser, until Ctrl-C.

    Only this machine can reach it, unless `host` names another address to listen on; a token is then part of the
    address. `report` hears the address and what else there is to say.
    """
    if find_spec("websockets") is None:
        raise PhyxelError('the view needs websockets: pip install "phyxel[view]"')
    from phyxel.view.hub import Hub
    from phyxel.view.opened import opened
    from phyxel.view.server import Server

    unbuilt: queue.SimpleQueue[str] = queue.SimpleQueue()

    def overhear(message: dict[str, Any]) -> None:
        if message["kind"] == "blown" and hub.scene is None:
            unbuilt.put(message["text"])
        elif message["kind"] in ("busy", "blown") or message.get("level") == "warning" or message.get("done") == 0:
            report(message["text"])

    hub = Hub(overhear)
    thing = opened(what, nodes, model, units, up) if isinstance(what, str) else what
    if isinstance(thing, Scene) and thing.content.title:
        report(thing.content.title)
    show = _show(thing, hub, device)
    with modules_set_aside(), interrupted_by_signals(), Server(show, hub, host, port) as server:
        report(server.address)
        if server.token is not None:
            report("who knows this address can use it: keep it among those who may")
        if browser and _has_browser():
            webbrowser.open(server.address)
        raise PhyxelError(unbuilt.get())


def save(what: str, path: Path, device: str | None = None, report: Callable[[str], None] = print) -> None:
    """Write a finished run as one HTML file that plays it in any browser, without a server."""
    from phyxel.view.opened import opened
    from phyxel.view.page_files import page_files, saved_html
    from phyxel.view.playback import recording_of

    check_suffix(path, (".html", ".htm"))
    folder = opened(what)
    if not isinstance(folder, Path):
        raise PhyxelError(
            f"--html writes finished runs: first `phyxel run {what}`, or save from the page of a live view"
        )
    _, page, remark = saved_html(*recording_of(folder, device), page_files())
    with whole_file(path) as file:
        file.write(page)
    report(f"{path}{f': {remark}' if remark else ''}")


def _show(thing: Scene | Path, hub: Any, device: str | None) -> Any:
    if isinstance(thing, Path):
        from phyxel.view.playback import Playback

        return Playback(thing, hub, device)
    from phyxel.view.live import Live

    return Live(thing, hub, device)


def _has_browser() -> bool:
    """Whether there is a browser with a window of its own: one in the terminal would only be in the way."""
    graphic = sys.platform in ("win32", "darwin") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
    try:
        return bool(graphic and webbrowser.get())
    except webbrowser.Error:
        return False


@contextmanager
def modules_set_aside() -> Iterator[None]:
    """Inside, garbage collection leaves out all objects that are there already: when a new world is built, the old one
    is found in some milliseconds, not in a third of a second."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Inside, being told to end (SIGTERM) is the same as Ctrl-C, which is heard even where a shell has it ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ends = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(end, signal.default_int_handler) for end in ends]
    try:
        yield
    finally:
        for end, handler in zip(ends, before, strict=True):
            signal.signal(end, handler)
