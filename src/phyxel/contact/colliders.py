# mypy: disable-error-code="valid-type,no-untyped-def"
"""Colliders, and what they do to a node that runs into them (physics by impulses, no penalty springs)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import warp as wp

from phyxel import device as dev
from phyxel.errors import PhyxelError

wp.set_module_options(dev.KERNEL_OPTIONS)


@dataclass(frozen=True)
class Ground:
    """A level plane that everything stays above."""

    height: float = 0.0
    """y of the plane [m]"""
    friction: float = 0.5
    """Coulomb's coefficient, 0 or more"""
    restitution: float = 0.0
    """share of the normal velocity that comes back, 0..1; an elastic body bounces by itself"""

    def __post_init__(self) -> None:
        if not math.isfinite(self.height):
            raise PhyxelError(f"ground.height = {self.height}: give a finite height in metres")
        if not (math.isfinite(self.friction) and self.friction >= 0):
            raise PhyxelError(f"ground.friction = {self.friction}: give 0 or more (ice 0.05, rubber 1)")
        if not 0 <= self.restitution <= 1:
            raise PhyxelError(f"ground.restitution = {self.restitution}: give a number from 0 to 1")

    @property
    def normal(self) -> tuple[float, float, float]:
        """Unit vector out of the ground."""
        return (0.0, 1.0, 0.0)


@wp.func
def rebound(v: Any, normal: Any, friction: Any, restitution: Any):
    """Velocity after an impact: v_n' = −e v_n, and Coulomb friction v_t' = v_t max(0, 1 − μ(1+e)|v_n|/|v_t|)."""
    v_n = wp.dot(v, normal)
    if v_n >= type(v_n)(0.0):
        return v
    v_t = v - v_n * normal
    sliding = wp.length(v_t)
    grip = friction * (restitution + type(restitution)(1.0)) * -v_n
    keep = type(restitution)(0.0)
    if sliding > grip:
        keep = type(restitution)(1.0) - grip / sliding
    return keep * v_t - restitution * v_n * normal
