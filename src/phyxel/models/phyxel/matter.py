"""What phyxels are: constants, state, and what acts on them from outside, each a dataclass of Warp arrays.

Lengths are in each body's mean node spacing; with the pascal and the second, mass is in pascal·spacing·s². Kernels find
their arguments in them by name (`device.over`), or take one as a struct (`structs.as_struct`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.material import Mixture
from phyxel.mls.consistent_weights import consistent_lean
from phyxel.mls.moments import Moments, choose_supports, prepare_neighbourhood
from phyxel.mls.neighbours import Neighbourhood, PairList
from phyxel.mls.visibility import Sees
from phyxel.models.law import LawRow, Laws
from phyxel.state import State

Floats = NDArray[np.floating]


def kept(arrays: dict[str, wp.array]) -> State:
    """What a checkpoint keeps of arrays."""
    return {name: array.numpy().copy() for name, array in arrays.items()}


def assign(arrays: dict[str, wp.array], state: State) -> None:
    """Take over what `kept` gave."""
    for name, array in arrays.items():
        array.assign(state[name])


@dataclass(frozen=True)
class PhyxelPart:
    """What the model needs to know of one body; lengths in units of its mean node spacing."""

    positions: Floats
    """about the body's origin, shape (n, 3)"""
    velocities: Floats
    """[1/s], shape (n, 3)"""
    volumes: Floats
    """shape (n,)"""
    reach: Floats
    """shape (n,)"""
    unit: float
    """the mean node spacing [m]"""
    support: float
    """support radius over the mean distance r̄ to the ten nearest"""
    sees: Sees | None = None
    """whether positions see each other inside the body"""
    free: Floats | None = None
    """projections onto directions along which uniform stress is to leave nodes alone, shape (n, 3, 3); none: with plain
    weights (physics 2.9)"""
    heft: Floats | None = None
    """mass over that of the volume, shape (n,); none: 1"""
    hourglass: float = 0.1
    """β of the hourglass stiffness, as a share of Young's modulus (physics 4.1)"""
    known: Ties | None = None
    """what ties its phyxels, if it has been chosen before"""

    def tied(self, device: wp.Device) -> Ties:
        """What ties its phyxels, known or chosen now."""
        return self.known or Ties.chosen(
            self.positions, self.support, device, self.sees, free=self.free, volumes=self.volumes
        )


@dataclass(frozen=True)
class Ties:
    """What ties phyxels to each other."""

    support: Floats
    """h_i, shape (n,)"""
    pairs: PairList
    lean: Floats
    """ξ and v of consistent weights, 0 for plain ones, shape (n, 4)"""

    @staticmethod
    def chosen(
        X: Floats,
        factor: float,
        device: wp.Device,
        sees: Sees | None,
        birth: Floats | None = None,
        free: Floats | None = None,
        volumes: Floats | None = None,
    ) -> Ties:
        """Supports of phyxels at X (n, 3), see `choose_supports`, and weights that are consistent along what is
        `free` to each, (n, 3, 3)."""
        support, pairs = choose_supports(X, factor, device, sees, birth)
        if free is None or volumes is None:
            return Ties(support, pairs, np.zeros((len(X), 4)))
        return Ties(support, pairs, consistent_lean(X, volumes, support, pairs, free, device))


@dataclass
class PhyxelState:
    """What varies while phyxels move: exactly what a checkpoint keeps of every run. Shape (n,) each."""

    u: wp.array
    """displacement from the reference shape, vectors"""
    v: wp.array
    """velocity [1/s], vectors"""
    force: wp.array
    """[Pa·spacing²], vectors"""
    gradient: wp.array
    """∇u, 3 × 3"""
    plastic: wp.array
    """εᵖ, 3 × 3"""
    bend: wp.array
    """B, how εᵖ varies within each: six parts along each axis, 3 × 6 (physics 6.5)"""
    swell: wp.array
    """s, volume of the reference shape over that at rest"""
    rest_volume: wp.array
    """volume at rest"""
    ball: wp.array
    """deformation of the ball with which a phyxel touches colliders, 3 × 3"""
    ripple: wp.array
    """the fastest vibration as last found, vectors"""
    ripple_before: wp.array
    """that of the laws by which they last moved, vectors"""

    @staticmethod
    def at_rest(velocities: Floats, matter: Matter) -> PhyxelState:
        n, vector, tensor, device = len(matter.X), matter.X.dtype, matter.past.dtype, matter.X.device

        def blank(dtype: Any) -> wp.array:
            return wp.zeros(n, dtype=dtype, device=device)

        return PhyxelState(
            u=blank(vector),
            v=wp.array(velocities, dtype=vector, device=device),
            force=blank(vector),
            gradient=blank(tensor),
            plastic=blank(tensor),
            bend=blank(wp.types.matrix((3, 6), matter.volume.dtype)),
            swell=wp.ones(n, dtype=matter.volume.dtype, device=device),
            rest_volume=wp.clone(matter.volume),
            ball=wp.clone(matter.past),
            ripple=blank(vector),
            ripple_before=blank(vector),
        )

    @property
    def arrays(self) -> dict[str, wp.array]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


SHAPE = ("X", "birth", "past", "reach", "support", "volume", "hourglass", "rest_density", "loose", "lean")


@dataclass
class Matter:
    """What does not change while phyxels move: their reference shape, their neighbours, what they are made of.

    Shape (n,) each. Melting, cracks and `reference_shape` give them another reference shape, `set_material` other laws.
    """

    X: wp.array
    """vectors"""
    birth: wp.array
    """X in the first reference shape, vectors"""
    past: wp.array
    """deformation gradient of the reference shape against the first one, 3 × 3"""
    reach: wp.array
    """radius of the ball that at birth just touches the surface; minus the radius of a phyxel that has ever melted"""
    body: wp.array
    """body of each phyxel, int32"""
    support: wp.array
    """h_i, float64"""
    volume: wp.array
    """of the reference shape; 0 for a phyxel with too few neighbours to have a stress of its own"""
    hourglass: wp.array
    """c_i = β E v_i / tr A_i (physics 4.1)"""
    rest_density: wp.array
    """c⁰ of phyxels that have ever melted, else not a number; float64 (physics 7.4)"""
    loose: wp.array
    """share of the hourglass stiffness that is left to phyxels beside cracks, float64"""
    lean: wp.array
    """ξ and v of consistent weights, 0 for plain ones, vec4d (physics 2.9)"""
    mass: wp.array
    grip: wp.array
    """β E of hourglass control [Pa]"""
    damping: wp.array
    """Rayleigh's β [s]"""
    drag: wp.array
    """Rayleigh's α [1/s]"""
    near: Neighbourhood
    moments: Moments
    laws: Laws

    @staticmethod
    def made(parts: Sequence[PhyxelPart], real: Any, device: wp.Device) -> Matter:
        """Phyxels of all bodies; their laws still to be set."""
        found = [part.tied(device) for part in parts]
        support = np.concatenate([ties.support for ties in found]).astype(np.float64)
        positions = np.concatenate([part.positions for part in parts])
        n = len(positions)

        def number(values: Any, dtype: Any = real) -> wp.array:
            return wp.array(np.full(n, values), dtype=dtype, device=device)

        X = wp.array(positions, dtype=wp.types.vector(3, real), device=device)
        lean = wp.array(np.concatenate([ties.lean for ties in found]), dtype=wp.vec4d, device=device)
        pairs = PairList.joined([ties.pairs for ties in found])
        near, moments = prepare_neighbourhood(X, support, pairs, device, lean=lean)
        one = np.broadcast_to(np.eye(3), (n, 3, 3))
        return Matter(
            X=X,
            birth=wp.clone(X),
            past=wp.array(one, dtype=wp.types.matrix((3, 3), real), device=device),
            reach=number(np.concatenate([part.reach for part in parts])),
            body=number(np.repeat(np.arange(len(parts)), [len(part.positions) for part in parts]), wp.int32),
            support=number(support, wp.float64),
            volume=number(np.concatenate([part.volumes for part in parts])),
            hourglass=number(0.0),
            rest_density=number(math.nan, wp.float64),
            loose=number(1.0, wp.float64),
            lean=lean,
            mass=number(1.0),
            grip=number(0.0),
            damping=number(0.0),
            drag=number(0.0),
            near=near,
            moments=moments,
            laws=Laws.blank(n, 1, real, device),
        )

    @property
    def shape(self) -> dict[str, wp.array]:
        """What a checkpoint keeps besides the state when reference shapes are not those of birth."""
        return {name: getattr(self, name) for name in SHAPE} | {"inverse": self.moments.inverse}

    def ties(self, nodes: NDArray[np.integer]) -> Ties:
        """What ties some phyxels (m,) to each other now."""
        return Ties(self.support.numpy()[nodes], self.near.pairs().taken(nodes), self.lean.numpy()[nodes])

    def lay_out(self, pairs: PairList, room: NDArray[np.integer]) -> None:
        """Other neighbours; `room` (n,) of them a phyxel may come to have."""
        device = self.X.device
        self.near, self.moments = prepare_neighbourhood(self.X, self.support.numpy(), pairs, device, room, self.lean)
        self.tie()

    def tie(self) -> None:
        """c_i of hourglass control. A degenerate phyxel has no stress, but this still ties it to its neighbours."""
        trace, volume = self.moments.trace.numpy(), self.volume.numpy()
        grip = self.loose.numpy().astype(trace.dtype) * self.grip.numpy()
        c = np.divide(grip * volume, trace, out=np.zeros(len(trace), trace.dtype), where=trace > 0)
        self.hourglass.assign(c)


class Materials:
    """The materials of all bodies, as they are written into matter."""

    def __init__(self, matter: Matter, parts: Sequence[PhyxelPart]) -> None:
        self._matter = matter
        hefts = [1.0 if part.heft is None else part.heft for part in parts]
        born = [part.volumes * part.unit**3 * heft for part, heft in zip(parts, hefts, strict=True)]
        self._born = np.concatenate(born)
        """volume whose mass each phyxel has [m³], which stays what it is, whatever the unit and the strain"""
        self._hourglass = [part.hourglass for part in parts]
        counts = [len(part.positions) for part in parts]
        self._ranges = list(itertools.pairwise(np.cumsum([0, *counts]).tolist()))
        self._rows: list[list[LawRow]] = [[] for _ in counts]
        self._row_of = [np.zeros(count, np.int64) for count in counts]
        self.sounds = np.zeros(len(counts))
        """fastest sound of each body, in its spacings per second"""
        self.yields = self.fades = False
        """whether any solid can flow, and whether there is a melt"""
        self.most_damping = self.most_drag = 0.0

    def become(self, body: int, born: Floats, hourglass: float) -> None:
        """Let phyxels of one body have the mass of other volumes [m³] (n,), and another hourglass stiffness, as soon as
        its materials are set."""
        low, high = self._ranges[body]
        self._born[low:high], self._hourglass[body] = born, hourglass

    @property
    def sound(self) -> float:
        """Fastest sound of all bodies, in spacings per second."""
        return float(self.sounds.max())

    def set(self, body: int, mixture: Mixture, rotation: NDArray[np.float64], unit: float) -> bool:
        """Give the phyxels of one body their laws and masses; whether the table of laws has moved in memory, or other
        kernels are needed. In a unit [m] of the body's own a mass is one over it."""
        low, high = self._ranges[body]
        self._rows[body] = [LawRow.of(material, rotation) for material in mixture.materials]
        self._row_of[body] = mixture.which
        moved = self._write_laws()
        matter, density = self._matter, mixture.number("density")
        dev.write(matter.damping, low, mixture.number("damping"))
        dev.write(matter.drag, low, mixture.number("drag"))
        sounds = [math.sqrt(row.stiffness.max() + row.k_v) for row in self._rows[body]]
        self.sounds[body] = max(sounds) / math.sqrt(density.min()) / unit
        dev.write(matter.mass, low, density * self._born[low:high] / unit)
        dev.write(matter.grip, low, self._hourglass[body] * mixture.number("young"))
        matter.tie()
        damped = self.most_damping > 0
        self.most_damping, self.most_drag = float(matter.damping.numpy().max()), float(matter.drag.numpy().max())
        return moved or damped != (self.most_damping > 0)

    @property
    def flows(self) -> bool:
        """Whether any law can flow."""
        return self.yields or self.fades

    def _write_laws(self) -> bool:
        matter, rows = self._matter, [row for some in self._rows for row in some]
        firsts = np.cumsum([0] + [len(some) for some in self._rows])
        which = np.concatenate([first + of for first, of in zip(firsts[:-1], self._row_of, strict=True)])
        yields = any(row.flows and not row.fluid for row in rows)
        fades = any(row.fluid for row in rows)
        moved = len(rows) != len(matter.laws) or (yields, fades) != (self.yields, self.fades)
        if moved:
            matter.laws = Laws.blank(len(which), len(rows), matter.volume.dtype, matter.X.device)
            self.yields, self.fades = yields, fades
        matter.laws.write(rows, which)
        return moved


@dataclass
class Outside:
    """What acts on phyxels from outside."""

    acceleration: wp.array
    """of each body [1/s²], shape (bodies,) of vectors"""
    extra: wp.array
    """what fields add for each phyxel [1/s²], shape (n,) of vectors; empty if there are no fields"""
    hold: wp.array
    """the hold that each phyxel follows, -1 for none; shape (n,), int32"""
    hold_velocity: wp.array
    """of each hold [1/s], shape (slots,) of vectors"""

    def pushes(self, body: NDArray[np.integer]) -> NDArray[np.float64]:
        """Acceleration of every phyxel, given its body (n,), in the body's units [1/s²], shape (n, 3)."""
        even = self.acceleration.numpy().astype(np.float64)[body]
        return even + self.extra.numpy() if len(self.extra) else even
