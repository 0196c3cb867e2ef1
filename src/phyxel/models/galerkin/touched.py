"""How a Galerkin body takes what others do to it in a step (`protocol.Tangible`, physics 15.8): impulses on its points,
answered by the system of an Euler step. Where steps follow waves through the body, as they do in an impact, the next
one foresees them as forces and is of second order: only what they change by is of first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from phyxel.contact.touch import Feel
from phyxel.models.galerkin.assembly import Inertia, PointMaterials
from phyxel.models.galerkin.footing import Footing
from phyxel.models.galerkin.forces import PointForces
from phyxel.models.galerkin.held import Held
from phyxel.models.galerkin.preconditioner import SAME, Preconditioner, RestSystem
from phyxel.models.galerkin.rigid_motion import PartedMotion, momenta_of, with_momenta
from phyxel.models.galerkin.space import Space
from phyxel.models.galerkin.step_start import StepStart
from phyxel.models.protocol import FieldValues, Floats
from phyxel.models.second_order import EulerStage

ROUNDING = 1e-10
"""Share of the largest response that counts as one."""
LAG = 1e-6
"""[s] over which the rate of strain is found: short against all that moves."""


class TouchedField(FieldValues):
    """A Galerkin body as others meet it."""

    with_others = False
    space: Space
    u: Floats
    v: Floats
    unit: float
    held: Held
    _inertia: Inertia
    _forces: PointForces
    _materials: PointMaterials
    _footing: Footing
    _push: Floats
    _preconditioner: Preconditioner
    """of Euler's steps"""
    _borne: Floats | None
    """forces of other bodies in the last step, if the next one foresees them, shape (n, 3)"""
    _unpushed: Floats
    """where the last step would have ended without them"""
    _answering: RestSystem | None
    """of Euler's steps, as it answers after the last step, once it is asked for"""
    _met: bool
    """whether others have changed what the last step made of it"""
    _followed: bool
    """whether the last step was that of a free body, and short enough for waves in it to be followed"""
    _begun: StepStart
    """from where the last step has gone"""
    _given: Floats | None
    """forces of other bodies that have been given to the last step, shape (n, 3)"""

    if TYPE_CHECKING:

        def _tuned_to(self, dt: float, u: Floats, kept: Preconditioner, within: float = ...) -> RestSystem: ...

        def middle(self) -> Floats: ...

        def _by_euler(self, dt: float, feel: Feel | None) -> tuple[EulerStage, Floats]: ...

        def _flow(self, dt: float) -> bool: ...

        def _go_freely(self, dt: float, led: bool = True) -> None: ...

    @property
    def margin(self) -> float:
        """How far its surface may lie outside the box around its coefficients: beside a crack there are no nodes."""
        return 1.0

    @property
    def _free(self) -> bool:
        """Whether nothing but other bodies holds or bears it."""
        return not self.held.holds and not self._footing.touching

    def unload(self, dt: float) -> None:
        """A step of dt [s] was taken: leave aside what others did to the body before, if that was foreseen in it."""
        if self._borne is None:
            return
        self._shift(-self._responded(dt * self._borne, dt), dt)
        self._borne = None
        if self._free:  # what is led on from where the step began has to be where that leads it
            self._go_freely(dt, led=not self._followed)

    def _shift(self, change: Floats, dt: float) -> None:
        """Go (n, 3) farther in the last step of dt [s], as a force makes an Euler step do."""
        self.u, self.v, self._met = self.u + change, self.v + change / dt, True

    def _at_hand(self, dt: float) -> RestSystem:
        """The system of Euler's steps, turned as the body is at the end of its last one: what was foreseen is taken off
        by the same that answers. Tuned to a step of another length it would bend with the square of their ratio: a body
        that lies on another is bent anew in every step."""
        if self._answering is None:
            self._answering = self._tuned_to(dt, self.u, self._preconditioner, SAME)
        return self._answering

    def _responded(self, impulses: Floats, dt: float) -> Floats:
        """How far impulses (n, 3) on the coefficients move these in a step."""
        response = self._at_hand(dt).respond(impulses)
        return dt / self._preconditioner.dt**2 * response

    def drift(self, before: Floats, dt: float) -> Floats:
        """Velocity (n, 3) with which the coefficients got from u = `before` to where they are, in dt [s]; or, if they
        follow no waves, the one that the step left: impulses then lead on from where it began."""
        return (self.u - before) / dt if self._followed else self.v

    def response(self, rows: csr_array, dt: float) -> Floats:
        """A root of what unit impulses at points with φ in `rows` (k, n), within the last step of dt [s], do to their
        velocities, shape (3k, r)."""
        compliance = self._at_hand(dt).compliance(rows)
        values, vectors = np.linalg.eigh(compliance / self._preconditioner.dt**2)
        felt = values > ROUNDING * values[-1]
        return np.asarray(vectors[:, felt] * np.sqrt(values[felt]))

    def push(self, rows: csr_array, places: Floats, impulses: Floats, before: Floats, dt: float) -> None:
        """Let impulses (k, 3) at such points, which are at `places` (k, 3), act within that step, which began at u =
        `before`, so that it leads where the velocity after it says."""
        if not impulses.any():
            return
        forces = rows.T @ impulses / dt
        change = self._responded(dt * forces, dt)
        if not self._free or self._followed:
            self._borne = forces if self._borne is None else self._borne + forces
        self._given = forces if self._given is None else self._given + forces
        if self._followed:
            self._take(change, places, impulses, dt)
        else:
            self._lead_on(change, places, impulses, before, dt)
        if self._bends_too_far(change, dt * forces, dt):
            self._step_anew(dt)

    def _bends_too_far(self, change: Floats, impulses: Floats, dt: float) -> bool:
        """Whether `change`, the linear answer to impulses, takes more energy than these bring: what bodies that meet
        lose by it, by their linear answers, would not pay for that."""
        start = self._unpushed
        energy, force = self._forces.at(start)
        bent = self._forces.at(start + change)[0] - energy + float(np.vdot(force, change))
        bent += 0.5 * float(np.vdot(change, self._inertia.over(dt) @ change))
        return bent > float(np.vdot(impulses, change)) / dt

    def _step_anew(self, dt: float) -> None:
        """Take the last step, of dt [s], anew under all that it was given since as a load: its exact law answers. The
        momenta and the middle of mass of a free body are those that it has already."""
        middle, resisting, borne = self.middle(), self._inertia.resisting(dt), self._borne
        momenta = momenta_of(self.space.nodes + self.u - middle, resisting @ self.v)
        self._begun.restore(self._footing, self._forces)
        self.u, self.v, self._borne = self._begun.u, self._begun.v, self._given
        stage, end = self._by_euler(dt, self._begun.feel)
        self.u, self.v, self._borne, self._answering = end, stage.velocity(end), borne, None
        self._footing.end()
        self._flow(dt)
        if self._free:
            self.u = end + middle - self.middle()
            self.v = with_momenta(self.v, momenta, self.space.nodes + self.u - middle, resisting)

    def _take(self, change: Floats, places: Floats, impulses: Floats, dt: float) -> None:
        """Go `change` farther than the last step led, with the momenta of the impulses on top of those it has."""
        about, resisting = places[0], self._inertia.resisting(dt)
        momenta = momenta_of(self.space.nodes + self.u - about, resisting @ self.v)
        self._unpushed = self.u
        self._shift(change, dt)
        target = momenta + momenta_of(places - about, impulses)
        self.v = with_momenta(self.v, target, self.space.nodes + self.u - about, resisting)

    def _lead_on(self, change: Floats, places: Floats, impulses: Floats, before: Floats, dt: float) -> None:
        """Go on from where the step began with the velocity that it left and what impulses change it by, but for what
        pushes have added to it meanwhile."""
        weight = self._inertia.weight / self._inertia.weight.sum()
        v, x = self.v, self.space.nodes + self.u - weight @ (self.u - before - dt * self.v)
        self._unpushed = before + dt * v
        self.u, self.v, self._met = self._unpushed + change, v + change / dt, True
        if not self._free:
            return
        # The system at rest knows little of how the body has turned: momenta are those of the impulses. As it goes on
        # from where the step began, they are the same there and at its end.
        resisting, begun = self._inertia.resisting(dt), self.space.nodes + before
        middle = weight @ begun
        target = momenta_of(x - middle, resisting @ v) + momenta_of(places - middle, impulses)
        self.v = with_momenta(self.v, target, begun - middle, resisting)
        self.u = before + dt * self.v

    def _inner(self) -> Floats:
        """Acceleration of a free body by its own forces, and by what others do to it: M⁻¹ (F − αM v + borne)."""
        forces = self._forces
        forces.begin(self.u - LAG * self.v, self._materials.damping / LAG)
        force = forces.at(self.u)[1] - self._inertia.drag @ self.v
        return self._inertia.accelerated(force if self._borne is None else force + self._borne)

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
