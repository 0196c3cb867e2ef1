"""What `phyxel drop` chose, and why, in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from phyxel.scene import Scene
from phyxel.scene.around import FALL, Bare
from phyxel.units import length_text


def bare(what: str, units: str | None, up: str | None) -> Bare:
    """A file, or a built-in shape."""
    path = Path(what).expanduser()
    return Bare(path.name, path, units, up) if path.is_file() else Bare(what, None, units, up)


def choices(thing: Bare, scene: Scene) -> Iterator[str]:
    """What was chosen for a thing that is dropped."""
    cloud, part = thing.cloud, scene.content.body[0]
    read = f"; read as {cloud.reading}" if thing.file is not None else ""
    extents = " × ".join(length_text(float(extent)) for extent in np.ptp(cloud.positions, axis=0))
    yield f"{len(cloud):,} points, {extents} (wide, high, deep){read}"
    if thing.is_sheet:
        yield f"it encloses nothing: a thin skin of particles, dropped from {length_text(thing.fall)}"
    else:
        yield f"dropped from {length_text(thing.fall)}, {100 * FALL:.0f} % of its height, onto the ground"
        yield f"young = {part.material.young:g} Pa: at its height it wobbles, and still stands"
        if part.nodes == "auto":
            yield "as many nodes as it needs to bend as it should"
        else:
            yield f"{part.nodes} nodes: smooth to see and quick; more (-n) are more accurate"
    yield f"{scene.seconds:g} s: until it has come to rest"
