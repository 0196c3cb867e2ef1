# mypy: disable-error-code="valid-type,no-untyped-def"
"""Reference shapes that change: absorbed deformations, other units, stress that stays while laws change (M04 §4.2).

    X ← X + u,  u ← 0,   εᵖ ← ½(J⁻ᵀ(I + 2εᵖ)J⁻¹ − I),   s ← s|J|,   F ← J F                        (physics 7.1)

I + 2εᵖ is the metric in which the phyxel is at rest, so absorbing is exact: it is the same metric in new coordinates.
M04's εᵖ ← εᵖ − ε leaves it in the old ones, and a tumbling body shears itself. F is the way from the shape at birth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.mls.visibility import Sees
from phyxel.models.law import LawRow
from phyxel.models.phyxel.crowds import rest_density
from phyxel.models.phyxel.forces import deformation
from phyxel.models.phyxel.matter import Ties
from phyxel.structs import as_struct

if TYPE_CHECKING:
    from phyxel.models.phyxel.model import PhyxelModel

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.floating]

CRUSHED = wp.constant(0.05)
"""|J| below which a phyxel has been crushed or turned inside out, and its strain is forgotten."""
UPRIGHT = 1e-4
"""Singular value of F⁻ᵀ(I − P) below which a direction is along the surface: others are those of F⁻ᵀ."""


@wp.func
def absorbed_strain(J: Any, plastic: Any):
    """εᵖ in the coordinates of the present shape (physics 1.5)."""
    one = wp.identity(n=3, dtype=J.dtype)
    inverse = wp.inverse(J)
    metric = wp.transpose(inverse) * (one + plastic * J.dtype(2.0)) * inverse
    return (metric - one) * J.dtype(0.5)


@wp.kernel
def absorb_deformation(first: int, nodes: wp.array(dtype=wp.int32), shift: wp.array(dtype=Any), matter: Any, now: Any):
    """The present shape, moved by −shift, becomes the reference shape of some phyxels (M04 §4.2, physics 1.5, 7.1)."""
    i = nodes[first + wp.tid()]
    J = deformation(now.gradient[i])
    ratio = wp.determinant(J)
    if ratio > J.dtype(CRUSHED):
        now.plastic[i] = absorbed_strain(J, now.plastic[i])
        now.swell[i] = now.swell[i] * ratio
        matter.past[i] = J * matter.past[i]
    else:
        now.plastic[i] = J * J.dtype(0.0)
    now.bend[i] = now.bend[i] * J.dtype(0.0)  # in the shape it has, a phyxel is flat
    matter.volume[i] = now.rest_volume[i] * now.swell[i]
    matter.X[i] = matter.X[i] + now.u[i] - shift[0]
    now.u[i] = now.u[i] * J.dtype(0.0)
    now.gradient[i] = J * J.dtype(0.0)


def absorb(model: PhyxelModel, nodes: wp.array) -> NDArray[np.float64]:
    """The present shape of some phyxels, (m,) int32, becomes their reference shape; by how much their origin has
    moved, in spacings, (3,). Their neighbours are still to be found."""
    model.ensure_forces()
    first = int(nodes.numpy()[0])
    shift = wp.clone(model.u[first : first + 1])
    inputs = [nodes, shift, as_struct(model.matter), as_struct(model.now)]
    dev.launch(absorb_deformation, len(nodes), inputs, model.device)
    model.reshaped = True
    model.shape_changed()
    return shift.numpy()[0].astype(np.float64)


@dataclass(frozen=True)
class Evened:
    """Phyxels of a body as they are to be once it flows, in its units."""

    away: Floats
    """from where they were at birth, shape (n, 3)"""
    volumes: Floats
    """at rest, shape (n,)"""
    masses: Floats
    """shape (n,), of the same sum as before"""


def even_out(model: PhyxelModel, body: int, evened: Evened) -> None:
    """Let the phyxels of a body whose shape has just been absorbed be others, which fill the same room (physics 7.8):
    what strain they have stays theirs, and so do the momenta of the body."""
    low, high = model.ranges[body]
    matter, now = model.matter, model.now
    X, past, v, m = (
        array.numpy()[low:high].astype(np.float64) for array in (matter.X, matter.past, now.v, matter.mass)
    )
    there = X + np.einsum("nab,nb->na", past, evened.away)
    dev.write(matter.X, low, there)
    dev.write(matter.birth, low, matter.birth.numpy()[low:high] + evened.away)
    dev.write(now.rest_volume, low, evened.volumes)
    dev.write(matter.volume, low, evened.volumes * now.swell.numpy()[low:high])
    dev.write(now.v, low, v + _rigid_change(X, m, v, there, evened.masses))


def _rigid_change(X: Floats, m: Floats, v: Floats, there: Floats, masses: Floats) -> NDArray[np.float64]:
    """The rigid motion (n, 3) that gives nodes of other masses (n,) at other places (n, 3) the momentum and the angular
    momentum of those of masses m at X, all with velocities v."""
    middle = np.average(there, axis=0, weights=masses)
    arm = there - middle
    momentum = m @ v - masses @ v
    spin = (m[:, None] * np.cross(X - middle, v) - masses[:, None] * np.cross(arm, v)).sum(axis=0)
    inertia = masses @ (arm * arm).sum(axis=1) * np.eye(3) - (masses * arm.T) @ arm
    return momentum / masses.sum() + np.cross(np.linalg.lstsq(inertia, spin, rcond=None)[0], arm)


def absorb_body(
    model: PhyxelModel,
    body: int,
    support: float,
    sees: Sees,
    free: Floats | None,
    evened: Evened | None = None,
) -> NDArray[np.float64]:
    """The present shape of a body that has never melted becomes its reference shape; see `absorb`. Weights become
    consistent along what at birth was `free` to its phyxels (n, 3, 3), or plain; phyxels are `evened` out, if they are
    to be."""
    low, high = model.ranges[body]
    nodes = np.arange(low, high)
    shift = absorb(model, wp.array(nodes.astype(np.int32), dtype=wp.int32, device=model.device))
    if evened is not None:
        even_out(model, body, evened)
    X, birth = (array.numpy()[low:high].astype(np.float64) for array in (model.matter.X, model.matter.birth))
    volumes = model.matter.volume.numpy()[low:high].astype(np.float64)
    if free is not None:
        free = _carried_along(free, model.matter.past.numpy()[low:high].astype(np.float64))
    ties = Ties.chosen(X, support, model.device, sees, birth, free, volumes)
    dev.write(model.matter.support, low, ties.support)
    dev.write(model.matter.lean, low, ties.lean)
    model.lay_out(model.matter.near.pairs().replaced(nodes, ties.pairs), nodes, 0)
    return shift


def _carried_along(free: Floats, past: Floats) -> Floats:
    """Projections (n, 3, 3) onto where F, (n, 3, 3), takes what others project onto: of the rest, which is upright, F⁻ᵀ
    makes what is upright then."""
    turned = np.swapaxes(np.linalg.inv(past), 1, 2) @ (np.eye(3) - free)
    axes, sizes, _ = np.linalg.svd(turned)
    return np.asarray((axes * (sizes < UPRIGHT)[:, None, :]) @ np.swapaxes(axes, 1, 2))


def let_go_of_birth(model: PhyxelModel, body: int) -> None:
    """The shape of a body at birth no longer says where its surface is: its phyxels are balls of their volume
    (physics 15.1)."""
    low, high = model.ranges[body]
    matter = model.matter
    volume = model.now.rest_volume.numpy()[low:high]
    if math.isnan(matter.rest_density.numpy()[low]):
        X, h = (array.numpy()[low:high] for array in (matter.birth, matter.support))
        dev.write(matter.rest_density, low, rest_density(X, h, volume, model.device))
    dev.write(matter.past, low, np.broadcast_to(np.eye(3), (high - low, 3, 3)))
    dev.write(matter.birth, low, matter.X.numpy()[low:high])
    dev.write(matter.reach, low, -0.5 * np.cbrt(volume))


def stress_under(
    model: PhyxelModel, nodes: NDArray[np.integer], law: LawRow
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The two parts of the stress that phyxels have under a law; see `LawRow.stress`."""
    plastic, swell = (array.numpy()[nodes].astype(np.float64) for array in (model.now.plastic, model.now.swell))
    return law.stress(_deformation(model, nodes), plastic, swell)


def _deformation(model: PhyxelModel, nodes: NDArray[np.integer]) -> NDArray[np.float64]:
    model.ensure_forces()
    return model.now.gradient.numpy()[nodes].astype(np.float64) + np.eye(3)


def take_up_stress(
    model: PhyxelModel, nodes: NDArray[np.integer], parts: tuple[NDArray[np.float64], NDArray[np.float64]], law: LawRow
) -> None:
    """Store so much strain and volume that phyxels have the stress that `stress_under` gave, now under a law
    (physics 6.3)."""
    store(model, nodes, *law.stored(_deformation(model, nodes), *parts))


def store(model: PhyxelModel, nodes: NDArray[np.integer], strain: Floats, swell: Floats) -> None:
    """Give some phyxels another stored strain εᵖ (m, 3, 3) and volume ratio s (m,); their reference shape stays."""
    now = model.now
    rest = model.matter.volume.numpy()[nodes] / swell.astype(now.swell.numpy().dtype)
    for array, values in ((now.plastic, strain), (now.swell, swell), (now.rest_volume, rest)):
        whole = array.numpy()
        whole[nodes] = values
        array.assign(whole)
    model.shape_changed()


def rescale(model: PhyxelModel, body: int, unit: float, factor: float, shift: Floats) -> None:
    """Another unit [m] and origin for a body at u = 0: X ← factor·X + shift."""
    low, high = model.ranges[body]
    matter = model.matter
    for array, power, moved in (
        (matter.X, 1, shift), (matter.birth, 1, shift), (model.v, 1, 0), (matter.reach, 1, 0),
        (matter.support, 1, 0), (matter.volume, 3, 0), (model.now.rest_volume, 3, 0),
    ):  # fmt: skip
        dev.write(array, low, array.numpy()[low:high] * factor**power + moved)
    model.units[body] = unit
    model.shape_changed()
