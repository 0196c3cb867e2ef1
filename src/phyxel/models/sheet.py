"""What never changes of a particle surface: where its points belong, the area of each, and what is linked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from phyxel.models.elements import Elements
from phyxel.models.filling import is_closed

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]


@dataclass(frozen=True)
class Sheet:
    """Particles of a surface. Lengths are in body units about the body's origin."""

    X: Floats
    """reference positions, shape (n, 3)"""
    normals: Floats
    """shape (n, 3)"""
    areas: Floats
    """of each particle [units²], shape (n,)"""
    faces: NDArray[np.int32] | None
    """triangles, shape (m, 3)"""
    elements: Elements

    @cached_property
    def closed(self) -> bool:
        """Whether it has faces, and these enclose something."""
        return self.faces is not None and is_closed(self.faces)

    @staticmethod
    def made(
        positions: Floats,
        normals: Floats,
        faces: Ints | None = None,
        quads: Ints | None = None,
        links: str | int | None = None,
        warp: tuple[float, float, float] = (1.0, 0.0, 0.0),
    ) -> Sheet:
        """From points (n, 3) and their normals, with triangles (m, 3) and quads (q, 4) if there are any.

        `links`: "edges" of triangles, "weave" (warp, weft, diagonals and bending of quads), "none", or a number of
        nearest neighbours; None is weave where there are quads, edges where there are faces, else 8. `warp` is the
        direction that warp threads run along."""
        raise NotImplementedError
