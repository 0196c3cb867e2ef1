"""Small pieces of matter for the physics tests, in units of the node spacing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp
from scipy.spatial.transform import Rotation

from phyxel import device as dev
from phyxel.material import Material, Mixture
from phyxel.models.phyxel.matter import PhyxelPart
from phyxel.models.phyxel.model import PhyxelModel

UNIT = 0.04


def block(*cells: int) -> np.ndarray:
    """Centres of a block of unit cells about the origin, (n, 3)."""
    axes = [np.arange(count) - (count - 1) / 2 for count in cells]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


def shaken_block(cells: int = 5, seed: int = 0) -> np.ndarray:
    """A block whose nodes sit at random, so that nothing cancels by symmetry."""
    nodes = block(cells, cells, cells)
    return nodes + np.random.default_rng(seed).uniform(-0.3, 0.3, nodes.shape)


def model_of(positions: np.ndarray, material: Material, real: type = wp.float64, support: float = 2.0) -> PhyxelModel:
    """A phyxel model of one body with unequal volumes."""
    n = len(positions)
    volumes = np.random.default_rng(1).uniform(0.7, 1.3, n)
    part = PhyxelPart(positions, np.zeros((n, 3)), volumes, np.full(n, 0.5), unit=UNIT, support=support)
    model = PhyxelModel([part], dev.pick("cpu"), real)
    model.set_material(0, Mixture.even(material, n), np.eye(3))
    return model


def displace(model: PhyxelModel, u: np.ndarray) -> None:
    """Put phyxels at displacements u, (n, 3)."""
    model.u.assign(u.astype(model.u.numpy().dtype))
    model.shape_changed()


def forces_at(model: PhyxelModel, u: np.ndarray) -> np.ndarray:
    """Elastic force for displacements u, (n, 3)."""
    displace(model, u)
    model.ensure_forces()
    return model.now.force.numpy().copy()


def damping_at(model: PhyxelModel, u: np.ndarray, change: np.ndarray) -> np.ndarray:
    """What damping adds to the force at displacements u where they change by `change` = βv, (n, 3)."""
    elastic = forces_at(model, u)
    y = wp.array((u + change).astype(elastic.dtype), dtype=model.u.dtype, device=model.device)
    dev.Program(model.forces.damped(model.u, y, model.now.force), model.device).run()
    return model.now.force.numpy() - elastic


def energy_at(model: PhyxelModel, u: np.ndarray) -> float:
    """Elastic energy for displacements u."""
    forces_at(model, u)
    return float(model.measure()[0].sum())


def tangent_along(model: PhyxelModel, p: np.ndarray) -> np.ndarray:
    """−K p at the displacements of the last force, (n, 3)."""
    return model.vibration.tangent(p).copy()


def rotation(degrees: float, axis: Sequence[float] = (0.3, -0.5, 0.8)) -> np.ndarray:
    """A rotation about an axis, 3 × 3."""
    direction = np.asarray(axis) / np.linalg.norm(axis)
    return np.array(Rotation.from_rotvec(np.radians(degrees) * direction).as_matrix())
