"""How a Galerkin body takes what others do to it in a step (`protocol.Tangible`, physics 15.8): impulses on its points,
answered by the system of an Euler step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from phyxel.models.galerkin.assembly import Inertia
from phyxel.models.galerkin.footing import Footing
from phyxel.models.galerkin.held import Held
from phyxel.models.galerkin.preconditioner import Preconditioner, RestSystem
from phyxel.models.galerkin.rigid_motion import PartedMotion, momenta_of, with_momenta
from phyxel.models.galerkin.space import Space
from phyxel.models.protocol import FieldValues, Floats

ROUNDING = 1e-10
"""Share of the largest response that counts as one."""


class TouchedField(FieldValues):
    """A Galerkin body as others meet it."""

    with_others = False
    space: Space
    u: Floats
    v: Floats
    unit: float
    held: Held
    _inertia: Inertia
    _footing: Footing
    _push: Floats
    _preconditioner: Preconditioner
    """of Euler's steps"""
    _borne: Floats | None
    """forces of other bodies in the last step, if it is not free: the next one foresees them, shape (n, 3)"""
    _unpushed: Floats
    """where the last step would have ended without them"""

    if TYPE_CHECKING:

        def _tuned_to(self, dt: float, u: Floats, kept: Preconditioner) -> RestSystem: ...

        def middle(self) -> Floats: ...

    @property
    def margin(self) -> float:
        """How far its surface may lie outside the box around its coefficients: beside a crack there are no nodes."""
        return 1.0

    def unload(self, dt: float) -> None:
        """A step of dt [s] was taken: leave aside what others did to the body before, if that was foreseen in it."""
        if self._borne is not None:
            change = self._responded(dt * self._borne, dt)
            self.u, self.v, self._borne = self.u - change, self.v - change / dt, None

    def _at_hand(self, dt: float, u: Floats) -> RestSystem:
        """The system of Euler's steps."""
        return self._tuned_to(dt, u, self._preconditioner)

    def _responded(self, impulses: Floats, dt: float) -> Floats:
        """How far impulses (n, 3) on the coefficients move these in a step."""
        response = self._at_hand(dt, self.u).respond(impulses)
        return dt / self._preconditioner.dt**2 * response

    def drift(self, before: Floats, dt: float) -> Floats:
        """The velocity that the last step left: impulses lead on from where it began."""
        return self.v

    def response(self, rows: csr_array, dt: float) -> Floats:
        """A root of what unit impulses at points with φ in `rows` (k, n), within the last step of dt [s], do to their
        velocities, shape (3k, r)."""
        compliance = self._at_hand(dt, self.u).compliance(rows)
        values, vectors = np.linalg.eigh(compliance / self._preconditioner.dt**2)
        felt = values > ROUNDING * values[-1]
        return np.asarray(vectors[:, felt] * np.sqrt(values[felt]))

    def push(self, rows: csr_array, places: Floats, impulses: Floats, before: Floats, dt: float) -> None:
        """Let impulses (k, 3) at such points, which are at `places` (k, 3), act within that step, which began at u =
        `before`, so that it leads where the velocity after it says."""
        if not impulses.any():
            return
        change = self._responded(rows.T @ impulses, dt)
        x, v = self.space.nodes + self.u, self.v
        # Impulses lead on from where the step began, but for what pushes have added to it meanwhile.
        weight = self._inertia.weight / self._inertia.weight.sum()
        x = x - weight @ (self.u - before - dt * v)
        self._unpushed = before + dt * v
        self.u, self.v = self._unpushed + change, v + change / dt
        if self.held.holds or self._footing.touching:
            borne = rows.T @ impulses / dt
            self._borne = borne if self._borne is None else self._borne + borne
            return
        # The system at rest knows little of how the body has turned: momenta are those of the impulses. As it goes on
        # from where the step began, they are the same there and at its end.
        resisting, begun = self._inertia.resisting(dt), self.space.nodes + before
        middle = weight @ begun
        target = momenta_of(x - middle, resisting @ v) + momenta_of(places - middle, impulses)
        self.v = with_momenta(self.v, target, begun - middle, resisting)
        self.u = before + dt * self.v

    def work(self, before: Floats) -> float:
        """What the pushes of the last step have done since u was `before` (n, 3) [J]."""
        return float(np.vdot(self._inertia.mass @ self._push, self.u - before)) * self.unit**3

    def calm(self, energy: float) -> float:
        """Take some energy of vibration away, as far as there is any; how much that was [J]. Momenta stay."""
        mass, x = self._inertia.mass, self.space.nodes + self.u
        rigid = PartedMotion(mass, x, np.zeros_like(x))
        rigid.with_momenta(*self._parted_motion().momenta)
        vibration = self.v - rigid.v
        there = 0.5 * float(np.vdot(vibration, mass @ vibration)) * self.unit**3
        taken = min(energy, there)
        self.v = rigid.v + math.sqrt(1 - taken / max(there, 1e-300)) * vibration
        return taken

    def ease(self) -> None:
        """Take half of what the last impulses have moved back, and leave velocities such that momenta stay."""
        momentum, spin = self._parted_motion().momenta
        middle = self.middle()
        self.u = 0.5 * (self.u + self._unpushed)
        eased = self._parted_motion()
        eased.with_momenta(momentum, spin + np.cross(middle - self.middle(), momentum))
        self.v = eased.v

    def _parted_motion(self) -> PartedMotion:
        return PartedMotion(self._inertia.mass, self.space.nodes + self.u, self.v)
