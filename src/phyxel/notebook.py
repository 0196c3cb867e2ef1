"""What a notebook shows: things as a picture beside a table, videos, and how far long work is.

IPython is asked for nothing but what it has loaded already: where it does not run, nothing of it is imported.
"""

from __future__ import annotations

import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from html import escape
from itertools import islice
from typing import Any

MOST_OFTEN = 0.2
"""Seconds between two pictures of a bar, at least."""
TEXT_FACTS = 3
"""Facts that a thing says of itself in one line."""

Fact = tuple[str, str]
"""What of, and what."""
Painter = Callable[[Any], bytes]
"""A small picture (PNG) of a thing."""

_painters: list[Painter] = []


def paint_with(painter: Painter) -> None:
    """Have the pictures beside tables drawn by this one: what is shown is made in rooms above the one that draws."""
    _painters[:] = [painter]


class Showable:
    """A thing that a notebook shows as a small picture beside a table of facts, and a terminal as one line."""

    def facts(self) -> Iterator[Fact]:
        """What is known of it, in words, with units; what is known at once comes first."""
        raise NotImplementedError

    def thumbnail(self) -> bytes:
        """A small picture of it (PNG)."""
        return _painters[0](self)

    @property
    def _heading(self) -> str:
        return f"{type(self).__name__} {getattr(self, 'name', '')}".strip()

    def __repr__(self) -> str:
        said = (f"{what} {text}" for what, text in islice(self.facts(), TEXT_FACTS))
        return f"<{self._heading}: {', '.join(said)}>"

    def _repr_html_(self) -> str:
        rows = list(_all_there_are(self.facts()))
        try:
            picture = self.thumbnail()
        except Exception as error:  # what cannot be drawn has a table all the same
            picture, rows = b"", [*rows, ("no picture", str(error))]
        return card(self._heading, rows, picture)


def _all_there_are(facts: Iterator[Fact]) -> Iterator[Fact]:
    try:
        yield from facts
    except Exception as error:  # a table with less in it says more than a traceback
        yield "not known", str(error)


def card(heading: str, rows: Iterable[Fact], picture: bytes = b"") -> str:
    """A picture (PNG) beside a table, as HTML; all words are text, whatever is in them."""
    image = f'<img src="{data_uri(picture, "image/png")}" alt="{escape(heading)}"/>' if picture else ""
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(what)}</th><td style="text-align:left">{escape(text)}</td></tr>'
        for what, text in rows
    )
    table = f"<div><strong>{escape(heading)}</strong><table>{cells}</table></div>"
    return f'<div style="display:flex;gap:1em;align-items:flex-start">{image}{table}</div>'


def data_uri(data: bytes, kind: str) -> str:
    """Bytes of a media type as the address of themselves."""
    return f"data:{kind};base64,{b64encode(data).decode()}"


def shell() -> Any | None:
    """The IPython that this code was typed into, if its front end shows HTML: a notebook's, not a terminal's."""
    ipython = sys.modules.get("IPython")
    found = None if ipython is None else ipython.get_ipython()
    return found if hasattr(found, "kernel") else None


class Bar:
    """How far long work is, in one place of each cell; it goes when the work is done."""

    def __init__(self) -> None:
        self._cell: Any = None
        self._handle: Any = None
        self._shown_at = 0.0

    def show(self, cell: Any, what: str, done: int, most: int) -> None:
        """Say how far it is, if that was not said a moment ago; `cell` is which one is being run."""
        now, ends = time.monotonic(), done >= most
        if cell == self._cell and 0 < done < most and now - self._shown_at < MOST_OFTEN:
            return
        drawn = "" if ends else _drawn(what, done, most)
        told = {"text/html": drawn, "text/plain": "" if ends else f"{what} {done}/{most}"}
        if cell != self._cell:
            self._cell, self._handle = cell, None
        if self._handle is not None:
            self._handle.update(told, raw=True)
        elif not ends:
            self._handle = sys.modules["IPython"].display.display(told, raw=True, display_id=True)
        self._shown_at = now


def _drawn(what: str, done: int, most: int) -> str:
    return f'<progress value="{done}" max="{most}"></progress> {escape(what)} <small>{done}/{most}</small>'
