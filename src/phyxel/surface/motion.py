"""What surfels follow: how the nodes that carry them have moved, and what stands in their way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import warp as wp

from phyxel.rotation import Floats
from phyxel.surface.implicit_skin import ImplicitSkin
from phyxel.surface.walls import Walls


@dataclass(frozen=True)
class Motion:
    """How a body's nodes have moved, on the device. Lengths in its node spacings about its origin."""

    u: wp.array
    """displacements, or coefficients of shape functions, (n,) of vec3; of all bodies that share the array"""
    unit: float
    """node spacing [m]"""
    origin: Floats
    """[m], shape (3,), in double: far away costs no digits"""
    walls: Walls
    X: wp.array | None = None
    """reference positions of the nodes, (n,) of vec3; None where shape functions carry the surfels"""
    gradient: wp.array | None = None
    """∇u at the nodes, (n,) of mat33; None where shape functions carry the surfels"""
    nodes: tuple[int, int] = (0, 0)
    """first and end of the body's nodes in these arrays"""
    skin: Callable[[], ImplicitSkin] | None = None
    """of a body that flows: places the implicit skin of all that flow together where they are now"""
