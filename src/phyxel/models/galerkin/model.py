"""Element-free Galerkin motion of one body (G04 §4.1, physics 10.4): consistent mass, exact nonlinear law, implicit
steps, in double.

A step of implicit Euler is the minimum, over where it ends, of

    ½ (u' − u)·A(u' − u) − M(v/Δt + a)·(u' − u) + U(u') + contacts,   A = M/Δt² + αM/Δt,   v' = (u' − u)/Δt,

with U the elastic energy and its damping (`forces`), and static equilibrium is the same without A and v. Held points
(`held`) fix part of the unknowns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from phyxel.contact.touch import Feel
from phyxel.errors import PhyxelError
from phyxel.material import Mixture
from phyxel.mls.neighbours import nearest
from phyxel.mls.shape_values import ShapeValues
from phyxel.models.galerkin.assembly import Inertia, PointMaterials, square
from phyxel.models.galerkin.crossing import Departure, crossed
from phyxel.models.galerkin.cuts import Cracked
from phyxel.models.galerkin.footing import Footing
from phyxel.models.galerkin.forces import PointForces
from phyxel.models.galerkin.held import Held
from phyxel.models.galerkin.point_functions import Extent
from phyxel.models.galerkin.preconditioner import Preconditioner, RestSystem
from phyxel.models.galerkin.rigid_motion import PartedMotion, momenta_of, with_momenta
from phyxel.models.galerkin.space import Space
from phyxel.models.galerkin.step_energy import Effort, StepEnergy
from phyxel.models.law import LawRow
from phyxel.models.protocol import FieldValues, Floats, Goal, Hold
from phyxel.state import State, prefixed, unprefixed

CONTACT = 100.0
"""Springs of contact, over the body's stiffness times the node spacing."""
MOST_NEWTON, MOST_STATIC = 20, 60
"""Newton iterations of a step, and towards equilibrium."""
PUSHED, MOVING, ROUNDED = 1e-8, 1e-8, 1e-16
"""What of the energy of a step's pushes, of its motion, and of a spacing's strain need not be found."""
LONG, MOST_SETTLING = 100, 400
"""Steps towards equilibrium: how long the last ones are, in times that sound takes, and how many there are at most."""
FLOWED = 1e9
"""[s]: all that can flow has flowed."""


class GalerkinModel(FieldValues):
    """Moves one body by its Galerkin space (`protocol.FieldModel`, `protocol.Tangible`).

    `unit` [m] is the body's length; `velocities` (n, 3) [1/s] are coefficients. Nodes `contact` (c,) can touch
    colliders: those on the surface; and so can `faces` (k, 3), places on cracks that have parted it from others.
    """

    def __init__(
        self,
        space: Space,
        unit: float,
        velocities: Floats,
        contact: NDArray[np.integer],
        device: wp.Device,
        faces: Floats | None = None,
    ) -> None:
        self.space, self.device = space, device
        self.unit = unit
        """mean node spacing [m]"""
        self.u: Floats = np.zeros((len(space), 3))
        self.v: Floats = np.array(velocities, np.float64).reshape(-1, 3)
        self._forces = PointForces(space)
        self._contact = np.asarray(contact)
        self._faces = np.zeros((0, 3)) if faces is None else faces
        self._footing = Footing(self._contact_rows(), np.concatenate([space.nodes[contact], self._faces]))
        self.held = Held.of(space, ())
        self._goals: Sequence[Goal] | None = None
        """where the last step has brought held points"""
        self._preconditioner = Preconditioner(space)
        self.effort = Effort()
        """what the last step took"""
        self._borne: Floats | None = None
        """forces of other bodies in the last step, if it is not free: the next one foresees them, shape (n, 3)"""
        self._unpushed = self.u
        """where the last step would have ended without them"""
        self.cracks: Cracked | None = None
        """whether cracks leave the straight way between two places free, if there are any"""

    # Material, holds and cracks

    def set_material(self, mixture: Mixture, rotation: Floats) -> None:
        """What each node is made of, with the material's axes turned by `rotation`; a point has the law of its node."""
        self._mixture, self._rotation = mixture, np.asarray(rotation, np.float64)
        self._materials = PointMaterials.of(mixture, self._rotation, self.space.owner, self.unit)
        self._inertia = Inertia.of(self._materials, self.space.functions)
        self._forces.set_laws(self._materials.rows, self._materials.which)
        of = np.concatenate([self._contact, nearest(self._faces, self.space.nodes, 1)[1][:, 0]])
        self._footing.stiffness = CONTACT * self._materials.hardness[mixture.which[of]]
        self._preconditioner.forget()

    def _contact_rows(self) -> csr_array:
        nodes = csr_array(self.space.at_nodes.values[self._contact])
        return csr_array(vstack([nodes, self.space.at(self._faces).values])) if len(self._faces) else nodes

    def set_holds(self, holds: Sequence[Hold]) -> None:
        """Points are held so from now on; nothing jumps."""
        self.held = Held.of(self.space, holds)
        self._goals = None
        self._preconditioner.forget()

    def look_by(self, cracks: Cracked) -> None:
        """Let `cracks` say from now on what they leave free: the same as was known so far."""
        self.cracks, self.space = cracks, self.space.looked_at(cracks)

    def crack(self, boxes: Sequence[Extent] | None = None) -> bool:
        """Cut the space where `cracks` deny sight, which are new in boxes if these are given; whether that changed
        anything."""
        space = self.space if self.cracks is None else self.space.cut(self.cracks, boxes)
        if space is self.space:
            return False
        self._go_over(space)
        return True

    def _go_over(self, space: Space) -> None:
        """Go on in a space with other cracks: fields as `crossing` has them, permanent strain where it was."""
        elastic, kinetic = (energy / self.unit**3 for energy in self.energies())
        gradient = self._forces.J - np.eye(3)
        weight, fields = (space.weights * self._materials.density)[:, None], (self.u, self.v)
        weighed = [space.values.T @ (weight * (self.space.values @ field)) for field in fields]
        held = [self.held.rows @ field for field in fields]
        kept = self._parted_motion().momenta, self.middle()
        left = Departure(*fields, elastic, kinetic, gradient, weighed, *kept, held)
        self._enter(space, Inertia.of(self._materials, space.functions, (self.space.functions, self._inertia)))

        def respond(u: Floats, force: Floats) -> Floats:
            return self._at_hand(self._preconditioner.dt, u).apply(force)

        known = None if math.isnan(self._preconditioner.dt) else respond
        about = self._forces, self._materials, self._inertia, self.held, self._goals
        self.u, self.v = crossed(left, space, *about, known)

    def _enter(self, space: Space, inertia: Inertia) -> None:
        """Another space with the same points; coefficients are still those of the old one."""
        self.space, self._inertia = space, inertia
        self._forces.follow(space)
        self._footing.follow(self._contact_rows())
        held = Held.of(space, self.held.holds)
        if not np.array_equal(held.basis, self.held.basis):
            self.held = held
            self._preconditioner.hold(held.basis)

    def _renew(self, space: Space) -> None:
        """The space as it was at another time; it may have had other points then."""
        if not np.array_equal(space.points, self.space.points):
            self._forces = PointForces(space)
            self.space = space
            self.set_material(self._mixture, self._rotation)
        self._enter(space, Inertia.of(self._materials, space.functions))

    def part(
        self, space: Space, nodes: NDArray[np.integer], contact: NDArray[np.integer], faces: Floats
    ) -> GalerkinModel:
        """A model of a piece of the body that has these nodes (k,), and its own space; where it is. Its
        body gives it material and holds."""
        piece = GalerkinModel(space, self.unit, self.v[nodes], contact, self.device, faces)
        piece.u = self.u[nodes].copy()
        piece._forces.plastic = self._forces.plastic[self.space.points_of(space)]
        piece._preconditioner.turns = self._preconditioner.turns[nodes].copy()
        rows, count = np.searchsorted(self._contact, nodes[contact]), len(contact)
        footing = piece._footing
        footing.anchor[:count], footing.pressure[:count] = self._footing.anchor[rows], self._footing.pressure[rows]
        return piece

    # Motion

    def step(self, dt: float, push: Floats, goals: Sequence[Goal], feel: Feel | None) -> None:
        """Go on by dt [s] under accelerations `push` (n, 3) [1/s²], with every hold at its goal at the end."""
        mass, system = self._inertia.mass, self._tuned_to(dt, self.u)
        start = self.u + dt * self.v
        start = start + system.lift(self.held.aims(goals) - self.held.basis.T @ start)
        pushed, moving = (float(np.vdot(w, mass @ w)) for w in (dt * push, (start - self.u) / dt))
        enough = PUSHED * pushed + MOVING * moving + ROUNDED * self._materials.hardness.max()
        self._push, self._goals = push, goals
        load = mass @ (self.v / dt + push)
        if self._borne is not None:
            load = load + self._borne
        self._forces.begin(self.u, self._materials.damping / dt)
        self._footing.begin(feel, self.u, self.v, dt, push)
        end, self.effort = self._energy(system, dt, load).minimum(start, enough, MOST_NEWTON)
        if not np.isfinite(end).all():
            raise PhyxelError("galerkin: a step has no solution; take a shorter one")
        v = (end - self.u) / dt
        if not self.held.holds and not self._footing.touching and self._borne is None:
            end, v = self._freely(end, v, dt, push)
        self.u, self.v = end, v
        self._preconditioner.count(self.space, self.effort.cg)
        self._footing.end()
        if self._forces.flows:
            self._forces.flow(dt)

    def _energy(self, system: RestSystem, dt: float, load: Floats) -> StepEnergy:
        """What a step of dt from u minimises, under a load (n, 3)."""
        inertia = self._inertia.over(dt)
        return StepEnergy(self._forces, self._footing, system, self.held.basis, inertia, load, self.u)

    def _tuned_to(self, dt: float, u: Floats) -> RestSystem:
        """The preconditioner for steps of about dt from u."""
        about = self.space, self._materials, self._inertia, self.held.basis, self._forces.turns(u)
        return self._preconditioner.tuned_to(dt, *about)

    def _freely(self, end: Floats, v: Floats, dt: float, push: Floats) -> tuple[Floats, Floats]:
        """u' and v' with the momentum and, about the middle of mass, the angular momentum that v and the pushes leave
        (physics 5.6).

        Rigid motion t + ω × x is added to v', and Δt t to u'. The middle of mass goes by the mean of its velocities
        before and after: it falls along a parabola, whatever the step.
        """
        weight = self._inertia.weight
        total = weight.sum()
        old, new = self.space.nodes + self.u, self.space.nodes + end
        impulse = self._inertia.mass @ (self.v + dt * push)
        arm_old, arm = old - weight @ old / total, new - weight @ new / total
        after, drift = with_momenta(v, momenta_of(arm_old, impulse), arm, self._inertia.resisting(dt))
        ahead = 0.5 * dt * (weight @ (after - self.v)) / total
        return end + dt * drift - ahead, after

    # Contact with other bodies

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
        """The system as the last step left it."""
        return self._preconditioner.system or self._tuned_to(dt, u)

    def _responded(self, impulses: Floats, dt: float) -> Floats:
        """How far impulses (n, 3) on the coefficients move these in a step."""
        response = self._at_hand(dt, self.u).respond(impulses)
        return dt / self._preconditioner.dt**2 * response

    def compliance(self, rows: csr_array, dt: float) -> Floats:
        """How far unit impulses within the last step, of dt [s], at points with φ in `rows` (k, n), move these points
        until its end, shape (3k, 3k)."""
        compliance = self._at_hand(dt, self.u).compliance(rows)
        return dt / self._preconditioner.dt**2 * compliance

    def push(self, rows: csr_array, impulses: Floats, shifts: Floats, before: Floats, dt: float) -> None:
        """Let impulses (k, 3) at such points act within that step, which began at u = `before`, so that it leads where
        the velocity after it says; `shifts` move as much as impulses but leave no velocity."""
        if not impulses.any() and not shifts.any():
            return
        change, shift = (self._responded(rows.T @ part, dt) for part in (impulses, shifts))
        x, v = self.space.nodes + self.u, self.v
        start = self._unpushed = before + dt * v
        self.u, self.v = start + change + shift, v + change / dt
        if self.held.holds or self._footing.touching:
            self._borne = rows.T @ impulses / dt
            return
        # The system at rest knows little of how the body has turned: momenta are those of the impulses.
        resisting, middle = self._inertia.resisting(dt), self.middle()
        arm, places = self.space.nodes + self.u - middle, rows @ (self.space.nodes + start) - middle
        target = momenta_of(x - middle, resisting @ v) + momenta_of(places, impulses)
        self.v, _ = with_momenta(self.v, target, arm, resisting)

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

    # Equilibrium

    def stop(self) -> None:
        """Be at rest in the present shape, out of touch with everything."""
        self.v = np.zeros_like(self.u)
        self._borne = None
        self._footing.pressure[:] = 0

    def settle(self, push: Floats, goals: Sequence[Goal], feel: Feel | None, tolerance: float) -> None:
        """Go to static equilibrium: till nothing has further to go than `tolerance` spacings.

        A held body gets there at once, by Newton's method. A body that stands on something, or finds no way there at
        once, goes by steps that forget their speed, longer and longer ones; as long as it falls, by about a spacing.
        """
        self.v = np.zeros_like(self.u)
        self._preconditioner.forget_before(self.space)
        size, density = np.ptp(self.space.nodes, axis=0).max(), self._inertia.mass.sum() / self.space.weights.sum()
        crossing = float(size * math.sqrt(density / self._materials.hardness.max()))
        falling = 1 / math.sqrt(max(np.linalg.norm(push, axis=1).max(), 1e-30))
        fixed = self.held.fixes(self.space.nodes)
        if not self.held.holds and feel is None and push.any():
            raise PhyxelError("settle: nothing holds the body, and it falls; hold it, or put a ground under it")
        dt = math.inf if fixed else crossing
        for _ in range(MOST_SETTLING):
            u, plastic = self.u, self._forces.plastic
            touching = self._footing.touching
            found = self._relax(dt if fixed or touching else min(dt, falling), push, goals, feel, 0.1 * tolerance)
            if self._forces.flows:
                self._forces.flow(FLOWED)
            moved = max(np.abs(self.u - u).max(), np.abs(self._forces.plastic - plastic).max())
            if found and moved <= tolerance and dt > LONG * crossing:
                return
            dt = 2 * dt if found else min(dt / 8, crossing)
        raise PhyxelError("settle: no rest found; is the body held, or on the ground?")

    def _relax(self, dt: float, push: Floats, goals: Sequence[Goal], feel: Feel | None, near: float) -> bool:
        """A step of dt from rest, without damping, to the end of which nothing has further to go than `near`; whether
        it was found."""
        system = self._tuned_to(dt, self.u)
        start = self.u + system.lift(self.held.aims(goals) - self.held.basis.T @ self.u)
        self._forces.begin(self.u, 0.0)
        self._footing.begin(feel, self.u, self.v, 0.0, push)
        search = self._energy(system, dt, self._inertia.mass @ push)
        end, self.effort = search.minimum(start, 0.0, MOST_STATIC, near)
        if not self.effort.done or not np.isfinite(end).all():
            return False
        self.u = end
        self._footing.end()
        return True

    # Quantities

    def stress(self, at: ShapeValues, material: Mixture, which: NDArray[np.integer]) -> Floats:
        """Cauchy stress [Pa] at points whose laws are `which` of the mixture's, shape (m, 3, 3)."""
        J, stored = np.eye(3) + self.gradient(at), self.plastic(at)
        result = np.zeros_like(J)
        for k, one in enumerate(material.materials):
            of = np.asarray(which) == k
            if of.any():
                shear, pressure = LawRow.of(one, self._rotation).stress(J[of], stored[of], np.ones(of.sum()))
                result[of] = shear + pressure[:, None, None] * np.eye(3)
        return result

    def point_stress(self) -> tuple[Floats, Floats]:
        """Cauchy stress [Pa] and J at the points of the quadrature after a step, shape (q, 3, 3) each."""
        return self._forces.cauchy(), self._forces.J

    def plastic(self, at: ShapeValues) -> Floats:
        """Permanent strain of the quadrature point nearest to each point, shape (m, 3, 3)."""
        # Shape functions reproduce positions: this is where the points are.
        return self._forces.plastic[nearest(at.values @ self.space.nodes, self.space.points, 1)[1][:, 0]]

    def energies(self) -> tuple[float, float]:
        """Elastic and kinetic energy [J]."""
        return (
            self._forces.energy(self.u) * self.unit**3,
            0.5 * float(np.vdot(self.v, self._inertia.mass @ self.v)) * self.unit**3,
        )

    def momenta(self, nodes: NDArray[np.integer] | slice = slice(None)) -> tuple[Floats, Floats]:
        """∫ρ v [kg m/s] and ∫ρ (X + u) × v [kg m²/s] about where the body counts from, shape (3,) each; or what some
        nodes have of them."""
        carried = (self._inertia.mass @ self.v)[nodes]
        turning = np.cross((self.space.nodes + self.u)[nodes], carried).sum(axis=0)
        return carried.sum(axis=0) * self.unit**2, turning * self.unit**3

    def middle(self) -> Floats:
        """The middle of mass, shape (3,)."""
        weight = self._inertia.weight
        return weight @ (self.space.nodes + self.u) / weight.sum()

    def volume(self) -> float:
        """∫ |J| [m³]."""
        self._forces.at(self.u)
        return float(self.space.weights @ np.linalg.det(self._forces.J)) * self.unit**3

    def state(self) -> State:
        """All that a checkpoint must keep. How the preconditioner was tuned goes with it: it decides the last bits."""
        inertia, footing = self._inertia, self._footing
        return (
            prefixed("space.", self.space.state())
            | self._preconditioner.state(self.space, inertia.mass, self.held.basis)
            | {"u": self.u.copy(), "v": self.v.copy(), "plastic": self._forces.plastic}
            | {"anchor": footing.anchor.copy(), "pressure": footing.pressure.copy()}
            | {"mass": inertia.mass.data, "slopes": inertia.slopes.data}
            | ({} if self._borne is None else {"borne": self._borne})
        )

    def restore(self, state: State) -> None:
        """Take over what `state` gave; `cracks` are already as they were then."""
        now, tuned = (self.space.restored(unprefixed(name, state), self.cracks) for name in ("space.", "tuned."))
        if now.functions.same_as(tuned.functions):
            tuned = now
        self._renew(tuned)
        mass = square(tuned.functions.lists, state["tuned_mass"])
        inertia = Inertia(mass, self._inertia.slopes, self._inertia.drag)
        self._preconditioner.restore(state, tuned, self._materials, inertia)
        self._renew(now)
        mass, slopes = (square(now.functions.lists, state[name]) for name in ("mass", "slopes"))
        self._inertia = Inertia(mass, slopes, self._inertia.drag)
        self._preconditioner.hold(self.held.basis)
        self.u, self.v = state["u"].copy(), state["v"].copy()
        self._forces.plastic = state["plastic"]
        self._footing.anchor, self._footing.pressure = state["anchor"].copy(), state["pressure"].copy()
        self._borne = state.get("borne")
