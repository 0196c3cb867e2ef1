"""A world of boxes: small bodies of one shape."""

from __future__ import annotations

from functools import cache
from typing import Any

import phyxel as px

SOFT = px.Material(young=1e5, poisson=0.3, density=1000.0)
DAMPED = SOFT.but(damping=2e-3)
G = 9.81
MASS = 125.0
"""of the box: 0.5 m sides, water's density [kg]"""
NOWHERE = (0.0, 0.0, 0.0)


@cache
def box_cloud() -> px.PointCloud:
    return px.load("box", points=300)


def box(**options: Any) -> px.Body:
    known: dict[str, Any] = {"nodes": 64, "material": SOFT, "place": "center"} | options
    return px.Body(box_cloud(), **known)
