"""Blocks whose nodes lie on a regular grid, faces included, and modal bodies of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.touch import Feel, Touch
from phyxel.material import Material, Mixture
from phyxel.mls.corrected_gradients import consistent_gradients, vanishing_fields
from phyxel.mls.neighbours import nearest
from phyxel.mls.shape_functions import Basis, ShapeFunctions
from phyxel.models.galerkin.layout import Fabric, Layout, Placing
from phyxel.models.galerkin.space import Space
from phyxel.models.modal.model import ModalModel
from phyxel.models.protocol import Goal, Hold
from phyxel.solid.nodes import Nodes
from phyxel.solid.quadrature import Quadrature

Floats = NDArray[np.float64]


def block(cells: Sequence[int], size: Sequence[float], basis: Basis = "linear") -> tuple[Space, float]:
    """The space of a block [m] about the origin with so many cells between its nodes, and its unit [m]."""
    gauss, weight = np.polynomial.legendre.leggauss(3)
    nodes = [np.linspace(-s / 2, s / 2, n + 1) for n, s in zip(cells, size, strict=True)]
    points = [
        ((np.arange(n)[:, None] + 0.5 + 0.5 * gauss) * s / n - s / 2).ravel() for n, s in zip(cells, size, strict=True)
    ]
    weights = [np.tile(0.5 * weight * s / n, n) for n, s in zip(cells, size, strict=True)]
    X, places = (np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3) for axes in (nodes, points))
    h = np.array(size) / cells
    skin = X[(np.abs(np.abs(X) - np.array(size) / 2) < 1e-9).any(axis=1)]
    covers = np.full(len(X), 2.0001 * h.max())
    shapes = ShapeFunctions(X, covers, basis)
    volumes = np.einsum("i,j,k->ijk", *weights).ravel()
    share = np.bincount(nearest(places, X, 1)[1][:, 0], volumes, len(X)).astype(np.float64)
    none = np.zeros(len(X))
    grid = Nodes(X, share, none, np.full(len(X), h.max()), none.astype(np.int8), none, Quadrature(places, volumes))
    at_points, at_skin = shapes.at(places), shapes.at(skin)
    gradients = consistent_gradients(
        at_points.dphi.numpy(), at_points.values, places, volumes, X, vanishing_fields(at_skin.values), basis
    )
    fabric = Fabric(grid, basis, covers, at_points.with_gradients(gradients), shapes.at(X), at_skin)
    unit, device = float(h.mean()), dev.pick("cpu")
    return Space.whole(Layout(fabric, Placing(np.zeros(3), unit, np.eye(3)), skin / unit, None, device)), unit


def modal(
    space: Space,
    unit: float,
    holds: Sequence[Hold] = (),
    velocities: Floats | None = None,
    modes: int = 20,
    **material: float,
) -> ModalModel:
    """A body of one material; the nodes on its faces may touch something."""
    X = space.nodes
    skin = np.flatnonzero((np.isclose(X, X.min(axis=0)) | np.isclose(X, X.max(axis=0))).any(axis=1))
    still = np.zeros_like(X) if velocities is None else velocities
    model = ModalModel(space, unit, still, skin, space.device, modes)
    numbers: dict[str, Any] = {"young": 1e5, "poisson": 0.3, "density": 1000.0} | material
    model.set_material(Mixture.even(Material(**numbers), len(X)), np.eye(3))
    model.set_holds(holds)
    return model


def face(space: Space, axis: int, side: int) -> Floats:
    """Nodes on one face, the lower (−1) or the upper (1) one."""
    along = side * space.nodes[:, axis]
    return space.nodes[along > along.max() - 1e-6]


def base(space: Space) -> Hold:
    """Its lower face in x is fixed."""
    return Hold(face(space, 0, -1), still=True)


def unmoved(hold: Hold) -> Goal:
    return Goal(np.zeros_like(hold.points), np.eye(3))


def gravity(space: Space, unit: float, *direction: float) -> Floats:
    """9.81 m/s² along a direction, at every node."""
    return np.tile(9.81 / unit * np.array(direction), (len(space), 1))


def ground(height: float, friction: float = 0.5, restitution: float = 0.0) -> Feel:
    """A floor under y = height [spacings]."""

    def feel(x: Floats) -> Touch:
        up = np.tile([0.0, 1.0, 0.0], (len(x), 1))
        full = np.full(len(x), 1.0)
        return Touch(x[:, 1] - height, up, np.zeros_like(x), friction * full, restitution * full)

    return feel
