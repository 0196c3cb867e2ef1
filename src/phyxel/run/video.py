"""The video of a run, as Python has it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

from phyxel.notebook import data_uri

MOST_INLINE = 20_000_000
"""Bytes of a video that a cell takes in; notebooks are saved with all that their cells show."""


@dataclass(frozen=True, repr=False)
class Video:
    """A video file. A notebook plays it in the cell, and `open` and others take it for its path."""

    path: Path

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"<Video {self.path}>"

    def _repr_html_(self) -> str:
        if not self.path.is_file():
            return f"<p>{escape(str(self.path))} is gone; play the run again</p>"
        size = self.path.stat().st_size
        if size > MOST_INLINE:
            return (
                f"<p>{escape(str(self.path))} has {1e-6 * size:.0f} MB, and a cell takes {1e-6 * MOST_INLINE:.0f} MB: "
                "open the file, or run the scene with a smaller width and height in [output] or for fewer seconds</p>"
            )
        source = data_uri(self.path.read_bytes(), "video/mp4")
        return f'<video src="{source}" controls="controls" loop="loop" style="max-width:100%"></video>'
