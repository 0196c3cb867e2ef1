"""Bodies for the tests of Galerkin motion, made once."""

from __future__ import annotations

from functools import cache

import numpy as np

import phyxel as px
from phyxel import device as dev
from phyxel.contact.touch import Feel, Touch
from phyxel.material import Material, Mixture
from phyxel.mls.shape_functions import Basis
from phyxel.models.galerkin.layout import Fabric, Layout, Placing
from phyxel.models.galerkin.model import GalerkinModel
from phyxel.models.galerkin.space import Space
from phyxel.models.protocol import Goal, Hold
from phyxel.solid.solid import Solid

SOFT = Material(young=1e6, poisson=0.3, density=1000.0)


@cache
def space_of(name: str, nodes: int, basis: Basis = "linear") -> tuple[Space, Solid, float]:
    """The space of a stock body, its solid, and its unit [m]."""
    solid = Solid(px.load(name, points=3000))
    sampled, device = solid.sample(nodes, on_surface=True, basis=basis), dev.pick("cpu")
    middle = np.average(sampled.positions, axis=0, weights=sampled.volumes)
    placing = Placing(middle, sampled.spacing, np.eye(3))
    fabric = Fabric.woven(solid, sampled, basis, device)
    layout = Layout(fabric, placing, placing.body(np.asarray(solid.skin.positions, np.float64)), solid.sees, device)
    return Space.whole(layout), solid, sampled.spacing


def skin_of(name: str, nodes: int, basis: Basis = "linear") -> np.ndarray:
    """Points of the body's surface, in its units, (m, 3)."""
    space, solid, _ = space_of(name, nodes, basis)
    return space.layout.placing.body(np.asarray(solid.skin.positions, np.float64))


def model_of(name: str, nodes: int, material: Material = SOFT, velocities: np.ndarray | None = None) -> GalerkinModel:
    """A model of a body whose outermost nodes can touch things."""
    space, solid, unit = space_of(name, nodes)
    depth = -solid.distance(space.layout.placing.cloud(space.nodes)) / unit
    outer = np.flatnonzero(depth < 1e-3)
    v = np.zeros((len(space), 3)) if velocities is None else velocities
    model = GalerkinModel(space, unit, v, outer, dev.pick("cpu"))
    model.set_material(Mixture.even(material, len(space)), np.eye(3))
    return model


def end_of_bar(model: GalerkinModel, side: int) -> np.ndarray:
    """A few points of the end face at low (-1) or high (1) x, as many as one layer of nodes has, (k, 3)."""
    X = model.space.nodes
    layer = X[np.abs(X[:, 0] - (side * np.abs(X[:, 0]).max())) < 0.3].copy()
    layer[:, 0] = side * 0.5 / model.unit
    return layer


def at_rest(points: np.ndarray) -> tuple[Hold, Goal]:
    """Points held where they are."""
    return Hold(points, True), Goal(np.zeros_like(points), np.eye(3))


def even(model: GalerkinModel, *acceleration: float) -> np.ndarray:
    """An acceleration [m/s²] of all nodes."""
    return np.tile(np.array(acceleration) / model.unit, (len(model.space), 1))


def ground(height: float, friction: float = 0.5, restitution: float = 0.0) -> Feel:
    """All below y = height, in the body's units."""

    def feel(x: np.ndarray) -> Touch:
        k, up = len(x), np.array([0.0, 1.0, 0.0])
        return Touch(
            x[:, 1] - height, np.tile(up, (k, 1)), np.zeros((k, 3)), np.full(k, friction), np.full(k, restitution)
        )

    return feel
