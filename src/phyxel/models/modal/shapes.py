"""Shapes that a modal body can move by (physics 11.1): its modes, and what pulls at points make of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from phyxel.models.galerkin.space import Space
from phyxel.models.modal.basis import straight, turning
from phyxel.models.modal.modes import (
    Clamp,
    Compliance,
    ModalMatrices,
    Modes,
    Progress,
    diagonal,
    eigenmodes,
    orthonormal,
    pins,
    rigid_shapes,
)
from phyxel.models.protocol import Hold
from phyxel.rotation import cross_matrix

Floats = NDArray[np.float64]


class ModalShapes:
    """Those of a body that some holds clamp, if they keep it from turning, or that is free; found when asked for."""

    def __init__(
        self, space: Space, matter: ModalMatrices, holds: Sequence[Hold], count: int, progress: Progress | None
    ) -> None:
        """With `count` modes; `progress` hears how far these are found."""
        points = np.concatenate([hold.points for hold in holds]) if holds else np.zeros((0, 3))
        held = pins(points)
        self.base: list[Hold] = list(holds) if held else []
        """holds that clamp it"""
        self.clamp = Clamp(space, points) if held else None
        self._space, self._matter, self._count, self._progress = space, matter, count, progress
        self._responses: dict[bytes, Floats] = {}

    @cached_property
    def _compliance(self) -> Compliance:
        return Compliance(self._matter, self.clamp)

    @cached_property
    def modes(self) -> Modes:
        """The body's own modes."""
        return eigenmodes(self._matter, self.clamp, self._count, lambda: self._compliance, self._progress)

    def joined(self, pulls: Sequence[tuple[Floats, bool]], present: Floats) -> Modes:
        """Modes of a body that can move by its own modes, by what pulls at points (k, 3) make of it, and by shapes
        `present` (n, 6, 2) that it has now and goes to: so nothing jumps.

        A pull at a few points bends the body by its modes; the rest of its shape is local, and turns nothing. If it
        did, the sharp peak under a single point would roll up.
        """
        matter = self._matter
        shapes = [turning(self._space, self.modes.shapes)]
        rigid = [straight(rigid_shapes(matter))] if self.clamp is None else []
        for points, turns in pulls:
            shapes.append(straight(orthonormal(matter, self._response(points, turns), [*rigid, *shapes])))
        shapes.append(orthonormal(matter, present, shapes))
        return diagonal(matter, np.concatenate(shapes, axis=2))

    def _response(self, points: Floats, turns: bool) -> Floats:
        """The static shapes that unit forces at points (k, 3) make, and unit torques at the first if that is to turn,
        shape (n, 3, m)."""
        at = self._space.at(points)
        forces = np.einsum("ci,ab->iacb", at.values.toarray(), np.eye(3)).reshape(len(self._space), 3, -1)
        if turns:
            gradients = np.stack([part[[0]].toarray()[0] for part in at.gradients], axis=1)
            forces = np.concatenate([forces, 0.5 * cross_matrix(gradients)], axis=2)
        if self.clamp is None:  # a free body's frame takes the rest, next to which its bending would be lost
            rigid = rigid_shapes(self._matter)
            amounts = np.tensordot(rigid, forces, ([0, 1], [0, 1]))
            forces = forces - self._matter.weighed(rigid) @ amounts
        key = forces.tobytes()
        if key not in self._responses:
            self._responses[key] = self._compliance.response(forces)
        return self._responses[key]
