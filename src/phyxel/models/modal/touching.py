"""What a modal body is held by, and what it touches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phyxel.contact.touch import Touch
from phyxel.models.modal.constraints import FramePose, PointPatch, Rows
from phyxel.models.protocol import Hold
from phyxel.rotation import axes_about

Floats = NDArray[np.float64]


@dataclass
class Grip:
    """A hold that is not part of the clamped base."""

    hold: Hold
    chosen: NDArray[np.int64]
    """those of its points that are followed"""
    turned: Floats
    """the body's rotation there when it was taken, 3 × 3"""
    patch: PointPatch


class TouchingPoints:
    """Points that touch something in a step of dt [s]."""

    def __init__(self, touch: Touch, patch: PointPatch, before: Floats, predicted: Floats, dt: float) -> None:
        self.touch, self.patch = touch, patch
        self._predicted = predicted
        self._stuck = before + dt * touch.velocity
        self._approach = np.einsum("ka,ka->k", (predicted - before) / dt - touch.velocity, touch.normal)
        self._axes = axes_about(touch.normal)
        """normal and two tangents, shape (k, 3, 3)"""

    def rows(self, z: Floats, pose: FramePose) -> Rows:
        """Of the points, along their axes."""
        self.patch.see(z)
        self.patch.follow()
        return self.patch.rows(pose).along(self._axes)

    def gaps(self, pose: FramePose) -> Floats:
        """Gap of each point, and how far it has slipped in the step, shape (3k,)."""
        places = self.patch.places(pose)
        result = np.einsum("kab,kb->ka", self._axes, places - self._stuck)
        result[:, 0] = self.touch.gap + np.einsum("ka,ka->k", places - self._predicted, self.touch.normal)
        return result.ravel()

    def velocities(self, slow: float) -> Floats:
        """What they are to have at the end along their axes, shape (3k,): the collider's, and what bounces back of an
        approach that is not `slow`."""
        wanted = np.einsum("kab,kb->ka", self._axes, self.touch.velocity)
        bounces = self._approach < -slow
        wanted[:, 0] -= np.where(bounces, self.touch.restitution * self._approach, 0.0)
        return wanted.ravel()
