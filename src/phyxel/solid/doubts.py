"""What of a mesh may have been understood otherwise than it was meant, in sentences that name the part."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from phyxel.points.cloud import Floats
from phyxel.solid.shell import UNCLEAR, Part, Shell
from phyxel.solid.winding import by_neighbourhood
from phyxel.units import volume_text

Mask = NDArray[np.bool_]

SMALL_DOUBT = 0.02
"""Share of the volume, or of the area, that is not worth a word."""
PLACES = 40_000
"""Places in and around the box of a solid at which volumes are counted."""
BEYOND = 0.1
"""How far around the box of an open solid, over its size: an opening may be closed by a bulge."""
GOLDEN = 1.2207440846057596
"""The root of x⁴ = x + 1, whose powers fill three dimensions most evenly (Roberts 2018)."""
MOST_NAMED = 3
"""Parts that are named in a sentence."""


class Doubts:
    """Of a shell round a solid, in metres."""

    def __init__(self, shell: Shell, inside: Callable[[Floats], Mask], middle: Floats, size: float) -> None:
        """`inside` says which places (N, 3) the solid holds, in the shell's own units of `size` about `middle` [m]."""
        self._shell, self._middle, self._size = shell, middle, size
        around = BEYOND if len(shell.rims) else 0.0
        self._places, self._cell = _spread(shell.lower - around, shell.upper + around)
        self._wound = shell.soup.winding_number(self._places)
        self._held = inside(self._places)
        self._volume = self._cell * float(self._held.sum())

    def sentences(self) -> Iterator[str]:
        """None, if all is clear."""
        yield from self._solid_and_mesh()
        yield from self._openings()
        yield from self._cavities()
        yield from self._sheets()

    def _solid_and_mesh(self) -> Iterator[str]:
        """Whether the solid holds what the mesh winds round."""
        wrong = self._held != (self._wound > 0.5)
        if wrong.mean() > SMALL_DOUBT * self._held.mean():
            meant = self._cell * float((self._wound > 0.5).sum())
            yield (
                f"the solid has {self._litres(self._volume)}, but the mesh winds round {self._litres(meant)}; they "
                f"differ around {self._place(self._places[wrong].mean(axis=0))}: check the faces there"
            )

    def _openings(self) -> Iterator[str]:
        """Whether the volume depends on how openings are closed: what a mesh winds round is unclear beside them."""
        least, most = (self._cell * float((self._wound > 0.5 + off).sum()) for off in (UNCLEAR, -UNCLEAR))
        if max(most - self._volume, self._volume - least) <= SMALL_DOUBT * self._volume:
            return
        unclear = self._places[np.abs(self._wound - 0.5) < UNCLEAR]
        _, rim = cKDTree(self._shell.rims).query(unclear)
        shares = np.bincount(self._shell.rim_parts[rim], minlength=len(self._shell.parts)) / len(unclear)
        doubtful = [k for k in np.argsort(-shares)[:MOST_NAMED] if shares[k] > 1 / (2 * MOST_NAMED)]
        edges = sum(self._shell.parts[k].open_edges for k in doubtful)
        yield (
            f"open: {self._named(doubtful)}, {edges:,} open edges; depending on how that is closed the volume is "
            f"{self._litres(least)} to {self._litres(most)}, and {self._litres(self._volume)} were taken. Close it in "
            "a modelling tool to be sure"
        )

    def _cavities(self) -> Iterator[str]:
        inward = [k for k, part in enumerate(self._shell.parts) if part.volume < 0 and not part.is_sheet]
        hollow = -sum(self._shell.parts[k].volume for k in inward)
        if hollow > SMALL_DOUBT * self._volume:
            yield (
                f"hollow: {self._named(inward)}, inside and looking inward, are taken as cavities of "
                f"{self._litres(hollow)}, beside {self._litres(self._volume)} of solid. Turn or delete their faces if "
                "it shall be solid there"
            )

    def _sheets(self) -> Iterator[str]:
        parts = self._shell.parts
        sheets = [k for k, part in enumerate(parts) if part.is_sheet]
        area = sum(parts[k].area for k in sheets)
        if area > SMALL_DOUBT * sum(part.area for part in parts):
            yield f"sheets: {self._named(sheets)} enclose nothing; they are shown, but are no part of the solid"

    def _named(self, which: list[int]) -> str:
        """Parts by number, size and place, the largest first."""
        parts = self._shell.parts
        if len(parts) == 1:
            return "the mesh"
        which = sorted(which, key=lambda k: -parts[k].faces)
        shown = ", ".join(f"part {k + 1} ({self._described(parts[k])})" for k in which[:MOST_NAMED])
        more = len(which) - MOST_NAMED
        return f"of {len(parts)} parts " + shown + (f" and {more} more" if more > 0 else "")

    def _described(self, part: Part) -> str:
        return f"{part.faces:,} faces around {self._place(part.middle)}"

    def _place(self, x: Floats) -> str:
        return f"({', '.join(f'{c:.3g}' for c in self._middle + self._size * x)}) m"

    def _litres(self, volume: float) -> str:
        return volume_text(volume * self._size**3)


def _spread(lower: Floats, upper: Floats) -> tuple[Floats, float]:
    """Places spread evenly over a box, (N, 3), and the volume each stands for: multiples of irrational steps, so that
    no flat side of a solid falls between two layers of them."""
    steps = GOLDEN ** -np.arange(1.0, 4.0)
    x = (0.5 + np.arange(1, PLACES + 1)[:, None] * steps) % 1.0
    x = x[by_neighbourhood(x - 0.5)]
    return lower + (upper - lower) * x, float((upper - lower).prod() / PLACES)
