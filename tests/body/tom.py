"""A box of 64 nodes, finely sampled, that is picked, held and turned."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import phyxel as px

SOFT = px.Material(young=1e5, poisson=0.3, density=1000.0, damping=2e-3)
NOWHERE = (0.0, 0.0, 0.0)
SPACING = 0.125
"""of the 64 nodes in the box of 0.5 m [m]"""


@cache
def skin() -> px.PointCloud:
    return px.Solid(px.load("box", points=2000)).skin


def tom(**options: Any) -> px.Body:
    known: dict[str, Any] = {"nodes": 64, "material": SOFT, "name": "tom", "place": "center"} | options
    return px.Body(skin(), **known)


def everywhere(positions: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.ones(len(positions), bool)
