"""The shapes a modal body moves by, and the field they make on the device."""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.mls.shape_values import ShapeValues
from phyxel.models.galerkin.space import Space
from phyxel.models.modal.modes import Clamp, Modes
from phyxel.models.modal.warping import (
    CHUNK,
    LANES,
    clamp_nodes,
    place_nodes,
    project_forces,
    take_off,
    vec6d,
    warp_nodes,
)  # fmt: skip

Floats = NDArray[np.float64]


def curls(at: ShapeValues, shapes: Floats) -> Floats:
    """½∇×u (G05 eq. 6) of fields (n, 3, l) at points, shape (m, 3, l)."""
    n, _, l = shapes.shape
    m = len(at.condition)
    dx, dy, dz = ((gradient @ shapes.reshape(n, 3 * l)).reshape(m, 3, l) for gradient in at.gradients)
    return 0.5 * np.stack([dy[:, 2] - dz[:, 1], dz[:, 0] - dx[:, 2], dx[:, 1] - dy[:, 0]], axis=1)


def turning(space: Space, shapes: Floats) -> Floats:
    """[Ψ; W] of shapes Ψ (n, 3, l) that turn the body as they bend it: W = ½∇×Ψ, shape (n, 6, l)."""
    return np.concatenate([shapes, curls(space.at_nodes, shapes)], axis=1)


def straight(shapes: Floats) -> Floats:
    """[Ψ; 0] of shapes that turn nothing, shape (n, 6, l)."""
    return np.concatenate([shapes, np.zeros_like(shapes)], axis=1)


class Basis:
    """Modes, and the shapes that handles brought, with the field u of their amplitudes z."""

    def __init__(self, space: Space, modes: Modes, clamp: Clamp | None, coefficients: wp.array) -> None:
        device, n, l = coefficients.device, len(space), len(modes.values)
        self.shapes: Floats = modes.shapes
        """[Ψ; W], shape (n, 6, l)"""
        self.values, self.clamp = modes.values, clamp
        padded = -(-max(l, 1) // LANES) * LANES
        stored = np.zeros((n, 6, padded), np.float32)
        stored[:, :, :l] = modes.shapes
        self.rows: Floats = stored[:, :, :l].astype(np.float64)
        """the same as the device has them"""
        self._z = dev.Shared(padded, wp.float64, device)
        self._linear = dev.Shared(n, vec6d, device)
        self._u = dev.Shared(n, wp.vec3d, device)
        self._frame = dev.Shared(1, wp.mat33d, device)
        self._force = dev.Shared(n, wp.vec3d, device)
        chunks = -(-n // CHUNK)
        self._sums = dev.Shared(chunks * padded, wp.float64, device)
        self._padded = padded
        rows = wp.array(stored.reshape(-1), dtype=wp.float32, device=device)
        # One thread is soonest done: waking another takes as long as all of it.
        lay = [dev.Launch(warp_nodes, n, [padded, rows, self._z.array, self._linear.array, self._u.array], 0.1)]
        if clamp is not None:
            nodes = wp.array(clamp.nodes.astype(np.int32), dtype=wp.int32, device=device)
            held = wp.array(clamp.held.reshape(-1), dtype=wp.float64, device=device)
            excess = wp.zeros(len(nodes), dtype=wp.vec3d, device=device)
            lay.append(dev.Launch(clamp_nodes, len(nodes), [nodes, held, self._u.array, excess], 0.1))
            lay.append(dev.Launch(take_off, len(nodes), [nodes, excess, self._u.array], 0.1))
        X = wp.array(space.nodes, dtype=wp.vec3d, device=device)
        turned = wp.zeros(n, dtype=wp.vec3d, device=device)
        place = [X, self._linear.array, self._u.array, self._frame.array, self._force.array, coefficients, turned]
        project = [n, padded, rows, turned, self._sums.array]
        self._lay = dev.Program(lay, device)
        self._show = dev.Program(
            [
                dev.Launch(place_nodes, n, place, 0.1),
                dev.Launch(project_forces, chunks * (padded // LANES), project, 0.5),
            ],
            device,
        )

    def __len__(self) -> int:
        return len(self.values)

    def lay(self, z: Floats) -> None:
        """Make the field of amplitudes z (l,)."""
        self._z.host[: len(z)] = z
        self._z.push()
        self._lay.run()

    @property
    def u(self) -> Floats:
        """Warped coefficients, clamped where the body is, shape (n, 3)."""
        return self._u.pull()

    @property
    def linear(self) -> Floats:
        """p = Ψ z and w = W z, shape (n, 6)."""
        return self._linear.pull()

    def load(self, force: Floats) -> None:
        """Forces (n, 3) on the coefficients from now on."""
        self._force.host[:] = force if self.clamp is None else self.clamp.without(force)
        self._force.push()

    def show(self, Q: Floats) -> Floats:
        """Leave the field's coefficients, turned by Q, on the device, and give the forces on the modes, shape (l,)."""
        if not np.array_equal(self._frame.host[0], Q):
            self._frame.host[0] = Q
            self._frame.push()
        self._show.run()
        return self._sums.pull().reshape(-1, self._padded).sum(axis=0)[: len(self)]
