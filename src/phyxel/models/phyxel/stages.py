# mypy: disable-error-code="valid-type,no-untyped-def"
"""The stages of an implicit step of phyxels (physics 5.4, `second_order`), and what one step leaves to the next."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.device import entries
from phyxel.models.phyxel.leapfrog import push_on
from phyxel.models.second_order import CARRY, GAMMA

if TYPE_CHECKING:
    from phyxel.models.phyxel.model import PhyxelModel

wp.set_module_options(dev.KERNEL_OPTIONS)

GOING_ON, PER_GAMMA = wp.constant(CARRY), wp.constant(1 / GAMMA)
"""c and 1/γ"""
IDLE, EULER, FIRST, SECOND = (wp.constant(k) for k in range(4))
"""What a body does in a pass: nothing, its h being 0; or a stage."""


GAINED, LIFTED = 0.02, 0.05
"""Share of its energy that a body may seem to gain, and of what lifts it by a spacing: what the solver may leave."""


@wp.kernel
def start_stage(
    first: int, body: entries, acceleration: entries, extra: entries, hold: entries, hold_velocity: entries,
    stage: entries, dt: entries, inner: entries, u: entries, v_start: entries, ahead: entries, base: entries,
    v_old: entries, v: entries, contact: entries, turns: entries,
):  # fmt: skip
    """ū (`base`) and v̂ (`v_old`) of a stage, and a first guess of the velocity at its end (physics 5.4).

    Euler's guess is v. With this step's pushes added, a body at rest on the ground would be crushed against it, and the
    first Newton iteration be lost on that; a whole acceleration, as the other stages have it, is none there. Held
    phyxels have the velocity that brings them where their hold is."""
    i = first + wp.tid()
    b = body[i]
    h = dt[b]
    begun = v_start[i]
    if stage[b] == IDLE:
        return
    contact[i] = wp.clamp(contact[i], 0, 1)
    turns[i] = 0
    held = hold[i] >= 0
    if stage[b] == EULER:
        base[i] = u[i]
        v_old[i] = begun
        v[i] = begun
        if held:
            v[i] = hold_velocity[hold[i]]
    elif stage[b] == FIRST:
        gain = h * (inner[i] + push_on(i, b, acceleration, extra))
        base[i] = u[i] + h * begun
        v_old[i] = begun + gain
        v[i] = begun + gain + gain
        if held:
            way = hold_velocity[hold[i]]
            v[i] = way + way - begun
    else:
        change = v[i] - begun
        base[i] = ahead[i] + type(h)(GOING_ON) * (ahead[i] - u[i])
        v_old[i] = v[i] + type(h)(GOING_ON) * change
        v[i] = begun + type(h)(PER_GAMMA) * change
        if held:
            v[i] = hold_velocity[hold[i]]


class Accelerations:
    """What one implicit step leaves to the next about accelerations."""

    def __init__(self, model: PhyxelModel) -> None:
        self._model = model
        n, bodies, vector, device = len(model), len(model.ranges), model.matter.X.dtype, model.device
        self.inner, self._left = (wp.zeros(n, dtype=vector, device=device) for _ in range(2))
        """acceleration but for what pushes from outside, which may be another by then [1/s²]; and v as the step left
        it, vectors, shape (n,)"""
        self.met, self._held = (wp.zeros(n, dtype=wp.int32, device=device) for _ in range(2))
        """1 where a collider is touched, and where something holds, shape (n,), int32"""
        self._sure = wp.zeros(bodies, dtype=wp.int32, device=device)
        """1 for bodies whose `inner` is to be relied on, unless v or holds are others since; shape (bodies,), int32"""
        self._budget = wp.full(bodies, value=math.nan, dtype=wp.float64, device=device)
        """energy that each body can have, as far as that is known; shape (bodies,), float64"""

    @property
    def arrays(self) -> dict[str, wp.array]:
        """What a checkpoint keeps."""
        fields = {"inner": self.inner, "left": self._left, "met": self.met, "held": self._held}
        return fields | {"sure": self._sure, "budget": self._budget}

    def forget(self, bodies: NDArray[np.integer] | slice = slice(None)) -> None:
        """What acts on some bodies, or on all, is something else from now on."""
        for array, unknown in ((self._sure, 0), (self._budget, math.nan)):
            values = array.numpy().copy()
            values[bodies] = unknown
            array.assign(values)

    def known(self) -> NDArray[np.bool_]:
        """Of which bodies the acceleration is known, shape (bodies,)."""
        same = (self._left.numpy() == self._model.v.numpy()).all(axis=1) & (self._held.numpy() == self._holds())
        self.forget(np.flatnonzero(~self.of_bodies(same)))
        sure = self._sure.numpy() == 1
        return sure if sure.all() else sure | self._unmoved()

    def _unmoved(self) -> NDArray[np.bool_]:
        """Which bodies (bodies,) are as they were born and at rest: nothing acts but pushes. Euler would take ½m(Δt a)²
        off what they fall with."""
        model = self._model
        parts = (model.u.numpy(), model.v.numpy(), model.now.plastic.numpy().reshape(len(model), -1))
        still = self.of_bodies(np.logical_and.reduce([(part == 0).all(axis=1) for part in parts]))
        inner = self.inner.numpy().copy()
        inner[still[model.matter.body.numpy()]] = 0.0
        self.inner.assign(inner)
        return still

    def keep(
        self,
        inner: NDArray[np.floating],
        met: NDArray[np.bool_],
        steady: NDArray[np.bool_],
        energy: NDArray[np.float64],
        work: NDArray[np.float64],
        lift: NDArray[np.float64],
    ) -> None:
        """A step is done that leaves all this, and touch of `steady` bodies (bodies,) as it was.

        A stiff body that has just hit something may have more energy than it had and `work` has given it: what the
        solver has left of a blow. Euler's steps take that out, and none of second order begins before they have. Both
        of each phyxel [J], (n,); NaN is work that is not known. `lift` is what takes it a spacing against pushes."""
        sane, energy, budget = self._judged(energy, work, lift)
        self._left.assign(self._model.v)
        self.inner.assign(inner.astype(self._left.numpy().dtype))
        self.met.assign(met.astype(np.int32))
        self._held.assign(self._holds())
        self._sure.assign((steady & sane).astype(np.int32))
        self._budget.assign(np.where(sane, energy, budget))

    def sane(
        self, energy: NDArray[np.float64], work: NDArray[np.float64], lift: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Which bodies (bodies,) have no more energy than they can have, see `keep`."""
        return self._judged(energy, work, lift)[0]

    def _judged(
        self, energy: NDArray[np.float64], work: NDArray[np.float64], lift: NDArray[np.float64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
        """`sane`, what energy bodies have, and what they can have, (bodies,) each."""
        energy, work, lift = (self._of_each(part) for part in (energy, work, lift))
        budget = self._budget.numpy() + work
        return ~((1 - GAINED) * energy > budget + LIFTED * lift), energy, budget

    def budgeted(self) -> bool:
        """Whether it is known what energy bodies can have."""
        self.known()
        return not np.isnan(self._budget.numpy()).any()

    def learn(self, energy: NDArray[np.float64]) -> None:
        """What energy (n,) phyxels have is what their bodies can have, where that was not known."""
        budget = self._budget.numpy()
        self._budget.assign(np.where(np.isnan(budget), self._of_each(energy), budget))
        self._left.assign(self._model.v)
        self._held.assign(self._holds())

    def _of_each(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums over the phyxels (n,) of each body, (bodies,)."""
        return np.add.reduceat(part, [low for low, _ in self._model.ranges])

    def _holds(self) -> NDArray[np.int32]:
        """1 for phyxels that something holds now, shape (n,)."""
        return (self._model.outside.hold.numpy() >= 0).astype(np.int32)

    def of_bodies(self, good: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Of which bodies all phyxels (n,) are."""
        return np.logical_and.reduceat(good, [low for low, _ in self._model.ranges])
