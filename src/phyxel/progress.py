"""Work that takes long says what it is and how far it has come, to whoever listens.

    with progress.heard_by(report):
        world = scene.world()

A command shows it as a bar, the browser's page in its own way. Where nobody listens, a notebook has a bar in the cell,
people at a terminal read one line, and nobody else anything.

Who waits for it may also lose patience: inside `ended_by(asked)`, work ends with `Ended` as soon as `asked()` is true,
at the next `breathe()`, which all that takes long calls many times a second.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from phyxel.notebook import Bar, shell

Report = Callable[[str, int, int], None]
"""Told what is being done, how far it is, and how far it will go."""

_listeners: list[Report] = []
_bar = Bar()
_patience = threading.local()
"""what each thread asks whether it should go on"""


class Ended(BaseException):
    """Nobody waits any longer for what was being done. What it was done to may be left half way."""


@contextmanager
def heard_by(report: Report) -> Iterator[None]:
    """Let `report` hear of long work from now on, on whatever thread it is done, in place of who heard of it before."""
    _listeners.append(report)
    try:
        yield
    finally:
        _listeners.remove(report)


def tell(what: str, done: int, most: int) -> None:
    """Say that so much of something long is done; the first time, before anything is (`done` = 0)."""
    breathe()
    if _listeners:
        _listeners[-1](what, done, most)
    elif (cell := shell()) is not None:
        _bar.show(cell.execution_count, what, done, most)
    elif done == 0 and sys.stderr.isatty():
        print(f"phyxel: {what} ...", file=sys.stderr, flush=True)


@contextmanager
def ended_by(asked: Callable[[], bool]) -> Iterator[None]:
    """Let what this thread does inside end with `Ended` once `asked()` is true."""
    before = getattr(_patience, "asked", None)
    _patience.asked = asked
    try:
        yield
    finally:
        _patience.asked = before


def can_be_ended() -> bool:
    """Whether somebody may end what this thread does: it should breathe often."""
    return getattr(_patience, "asked", None) is not None


def breathe() -> None:
    """Go on, unless nobody waits any longer for what this thread does."""
    asked = getattr(_patience, "asked", None)
    if asked is not None and asked():
        raise Ended
