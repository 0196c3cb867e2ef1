"""Element-free Galerkin motion of one body (G04 §4.1, physics 10.4): consistent mass, exact nonlinear law, implicit
steps, in double.

A stage of a step (`second_order`) is the minimum, over where it ends, of

    ½ (u' − ū)·A(u' − ū) − M(v̂/h + a)·(u' − ū) + U(u') + contacts,   A = M/h² + αM/h,   v' = (u' − ū)/h,

with U the elastic energy and its damping (`forces`), and static equilibrium is the same without A and v̂. Held points
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
from phyxel.models.galerkin.assembly import Inertia, PointMaterials, cauchy_stress, square, times
from phyxel.models.galerkin.crossing import Departure, crossed
from phyxel.models.galerkin.cuts import Cracked
from phyxel.models.galerkin.footing import Footing
from phyxel.models.galerkin.forces import PointForces
from phyxel.models.galerkin.held import Held
from phyxel.models.galerkin.point_functions import Extent
from phyxel.models.galerkin.preconditioner import OFTEN, Preconditioner, RestSystem
from phyxel.models.galerkin.rigid_motion import momenta_of, with_momenta
from phyxel.models.galerkin.space import Space
from phyxel.models.galerkin.step_energy import Effort, StepEnergy
from phyxel.models.galerkin.step_start import StepStart
from phyxel.models.galerkin.touched import TouchedField
from phyxel.models.protocol import Floats, Goal, Hold
from phyxel.models.second_order import GAMMA, EulerStage
from phyxel.state import State, prefixed, unprefixed

CONTACT = 100.0
"""Springs of contact, over the body's stiffness times the node spacing."""
MOST_NEWTON, MOST_STATIC = 20, 60
"""Newton iterations of a step, and towards equilibrium."""
PUSHED, MOVING, ROUNDED = 1e-8, 1e-8, 1e-16
"""What of the energy of a step's pushes, of its motion, and of a spacing's strain need not be found."""
FINER = 1e-2
"""How much less that is in steps of second order: what a thousand of them leave must not show."""
ROUGHER = 10.0
"""How much more in touch: less would be within what the next change of touch makes of it."""
LONG, MOST_SETTLING = 100, 400
"""Steps towards equilibrium: how long the last ones are, in times that sound takes, and how many there are at most."""
FOLLOWED = 0.25
"""Steps over the time that sound takes through the body, up to which they follow waves in it."""
FLOWED = 1e9
"""[s]: all that can flow has flowed."""


class GalerkinModel(TouchedField):
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
        self._preconditioner, self._finer = Preconditioner(space), Preconditioner(space)
        """of Euler's steps, and of stages of second order"""
        self._carried: tuple[Floats, Floats, Floats] | None = None
        """u and v as the last step left them, and the acceleration there but for pushes, if it is known; (n, 3) each"""
        self.effort = Effort()
        """what the last step took"""
        self._borne, self._unpushed, self._answering, self._given = None, self.u, None, None
        self._met = self._followed = self._second = False
        self.cracks: Cracked | None = None
        """whether cracks leave the straight way between two places free, if there are any"""

    # Material, holds and cracks

    def set_material(self, mixture: Mixture, rotation: Floats) -> None:
        """What each node is made of, with the material's axes turned by `rotation`; a point has the law of its node."""
        self._mixture, self._rotation = mixture, np.asarray(rotation, np.float64)
        self._materials = PointMaterials.of(mixture, self._rotation, self.space.owner, self.unit)
        self._join()
        self._inertia = Inertia.of(self._materials, self.space.functions)
        self._forces.set_laws(self._materials.rows, self._materials.which)
        of = np.concatenate([self._contact, nearest(self._faces, self.space.nodes, 1)[1][:, 0]])
        self._footing.stiffness = CONTACT * self._materials.hardness[mixture.which[of]]
        self._forget()

    def _contact_rows(self) -> csr_array:
        nodes = csr_array(self.space.at_nodes.values[self._contact])
        return csr_array(vstack([nodes, self.space.at(self._faces).values])) if len(self._faces) else nodes

    def set_holds(self, holds: Sequence[Hold]) -> None:
        """Points are held so from now on; nothing jumps."""
        self.held = Held.of(self.space, holds)
        self._goals = None
        if self._join():
            self._inertia = Inertia.of(self._materials, self.space.functions)
        self._forget()

    def _join(self) -> bool:
        """Cells of held faces belong to the nodes beside them (physics 10.3); whether that is new."""
        space = self.space.joined(self.held.faces, self._materials.rows, self._mixture.which)
        if space is self.space:
            return False
        self.space = space
        self._forces.follow(space)
        return True

    def _forget(self) -> None:
        """Laws or holds are others from now on."""
        self._carried = None
        self._preconditioner.forget()
        self._finer.forget()

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
        self._carried = self._borne = None

        def respond(u: Floats, force: Floats) -> Floats:
            return self._tuned_to(self._preconditioner.dt, u, self._preconditioner).apply(force)

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
            self._finer.hold(held.basis)

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
        piece._finer.turns = self._finer.turns[nodes].copy()
        rows, count = np.searchsorted(self._contact, nodes[contact]), len(contact)
        footing = piece._footing
        footing.anchor[:count], footing.pressure[:count] = self._footing.anchor[rows], self._footing.pressure[rows]
        return piece

    # Motion

    def step(self, dt: float, push: Floats, goals: Sequence[Goal], feel: Feel | None) -> None:
        """Go on by dt [s] under accelerations `push` (n, 3) [1/s²], with every hold at its goal at the end."""
        self._push, self._goals, self.effort, self._answering, self._given = push, goals, Effort(), None, None
        self._begun = StepStart.of(self.u, self.v, self._footing, self._forces, feel)
        acceleration = self._acceleration(push)
        found = None if acceleration is None else self._of_second_order(dt, acceleration, feel)
        self._second = found is not None
        last, end = found or self._by_euler(dt, feel)
        self.u, self.v, self._carried, self._met = end, last.velocity(end), None, False
        self._followed = self._free and dt <= FOLLOWED * self._crossing
        if self._free and self._borne is None:
            self._go_freely(dt)
        self._footing.end()
        if np.array_equal(self._begun.pressure > 0, self._footing.pressure > 0) and not self._flow(dt):
            self._carried = self.u.copy(), self.v.copy(), last.acceleration(end) - push

    def _acceleration(self, push: Floats) -> Floats | None:
        """At the start of a step, as the last one left it, or others have since, unless something else has happened.
        Nothing but pushes acts on a body at rest as it was born, and Euler would take ½m(Δt a)² off what it falls with.
        Pressed by others, it goes by Euler unless waves in it are followed: what steps do not resolve comes to rest."""
        if self._carried is None:
            unmoved = not (self.u.any() or self.v.any() or self._forces.plastic.any()) and self._borne is None
            return push if unmoved else None
        u, v, inner = self._carried
        if self._met:
            return self._inner() + push if self._followed else None
        return inner + push if np.array_equal(u, self.u) and np.array_equal(v, self.v) else None

    def _by_euler(self, dt: float, feel: Feel | None) -> tuple[EulerStage, Floats]:
        """The only stage of a step of Euler, and where it ends."""
        stage = EulerStage.euler(self.u, self.v, dt)
        return stage, self._end_of(stage, 1.0, dt, feel, None)

    def _of_second_order(self, dt: float, a: Floats, feel: Feel | None) -> tuple[EulerStage, Floats] | None:
        """The last stage of a step of second order, and where it ends; unless touch changes, or is with what moves."""
        u, v, footing = self.u, self.v, self._footing
        kept = footing.anchor.copy(), footing.pressure.copy()
        stage = EulerStage.first(u, v, a, dt)
        end = self._end_of(stage, GAMMA, dt, feel, kept[1])
        if footing.stands_as(kept[1]):
            stage = EulerStage.second(u, v, end, stage.velocity(end), dt)
            end = self._end_of(stage, 1.0, dt, feel, kept[1])
            if footing.stands_as(kept[1]):
                return stage, end
        footing.anchor, footing.pressure = kept
        return None

    def _end_of(self, stage: EulerStage, share: float, dt: float, feel: Feel | None, pressed: Floats | None) -> Floats:
        """Where a stage ends, at a share of a step of dt [s]; of no use unless the `pressed` points (c,) then are."""
        mass, second = self._inertia.mass, stage.h < dt
        kept = self._finer if second else self._preconditioner
        system = self._tuned_to(stage.h, stage.guess if second else self.u, kept)
        there = self.held.basis.T @ self.u
        aims = there + share * (self.held.aims(self._goals or ()) - there)
        start = stage.guess + system.lift(aims - self.held.basis.T @ stage.guess)
        pushed, moving = (float(np.vdot(w, times(mass, w))) for w in (stage.h * self._push, stage.velocity(start)))
        least = (FINER if second else 1.0) * (ROUGHER if self._footing.touching else 1.0)
        enough = least * (PUSHED * pushed + MOVING * moving) + ROUNDED * self._materials.hardness.max()
        load = times(mass, stage.speed / stage.h + self._push)
        load = load if self._borne is None else load + self._borne
        self._forces.begin(stage.base, self._materials.damping / stage.h)
        self._footing.begin(feel, self.u, self.v, dt, self._push)
        about = start, enough, MOST_NEWTON, 0.0, pressed
        end, effort = self._energy(system, stage.h, load, stage.base).minimum(*about)
        if not np.isfinite(end).all():
            raise PhyxelError("galerkin: a step has no solution; take a shorter one")
        kept.count(self.space, effort.cg)
        self.effort = self.effort + effort
        return end

    @property
    def _crossing(self) -> float:
        """Time that sound takes through the body [s]."""
        density = self._inertia.mass.sum() / self.space.weights.sum()
        return float(np.ptp(self.space.nodes, axis=0).max() * math.sqrt(density / self._materials.hardness.max()))

    def _flow(self, dt: float) -> bool:
        """Let what can flow over dt [s]; whether anything did."""
        if not self._forces.flows:
            return False
        before = self._forces.plastic.copy()
        self._forces.flow(dt)
        return not np.array_equal(before, self._forces.plastic)

    def _energy(self, system: RestSystem, dt: float, load: Floats, base: Floats) -> StepEnergy:
        """What a step of dt from `base` minimises, under a load (n, 3)."""
        inertia = self._inertia.over(dt)
        return StepEnergy(self._forces, self._footing, system, inertia, load, base)

    def _tuned_to(self, dt: float, u: Floats, kept: Preconditioner, within: float = OFTEN) -> RestSystem:
        """The preconditioner for steps of dt from u, up to a factor."""
        about = self.space, self._materials, self._inertia, self.held.basis, self._forces.turns(u)
        return kept.tuned_to(dt, *about, within)

    def _go_freely(self, dt: float, led: bool = True) -> None:
        """End the last step, of dt [s], with the momentum and, about where the middle of mass then is, the angular
        momentum that its start and the pushes leave (physics 5.6).

        Rigid motion is added to v'. The middle of mass goes by the mean of its velocities before and after: it falls
        along a parabola, whatever the step. If it was not `led` there, for others bore it, it stays where it is.
        """
        begun, weight, inertia = self._begun, self._inertia.weight, self._inertia
        total = weight.sum()
        old, new = self.space.nodes + begun.u, self.space.nodes + self.u
        impulse, resisting = inertia.mass @ (begun.v + dt * self._push), inertia.resisting(dt)
        if self._second:
            impulse, resisting = impulse - 0.5 * dt * (inertia.drag @ (begun.v + self.v)), inertia.mass
        middle_old, middle = weight @ old / total, weight @ new / total
        momenta = momenta_of(old - middle_old, impulse)
        after = with_momenta(self.v, momenta, new - middle, resisting)
        falls_to = middle_old + 0.5 * dt * (weight @ (begun.v + after)) / total
        if led:
            self.u, self.v = self.u + falls_to - middle, after
        else:
            self.v = with_momenta(self.v, momenta, new - falls_to, resisting)

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
        crossing = self._crossing
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
        system = self._tuned_to(dt, self.u, self._preconditioner)
        start = self.u + system.lift(self.held.aims(goals) - self.held.basis.T @ self.u)
        self._forces.begin(self.u, 0.0)
        self._footing.begin(feel, self.u, self.v, 0.0, push)
        search = self._energy(system, dt, self._inertia.mass @ push, self.u)
        end, self.effort = search.minimum(start, 0.0, MOST_STATIC, near)
        if not self.effort.done or not np.isfinite(end).all():
            return False
        self.u = end
        self._footing.end()
        return True

    # Quantities

    def stress(self, at: ShapeValues, material: Mixture, which: NDArray[np.integer]) -> Floats:
        """Cauchy stress [Pa] at points whose laws are `which` of the mixture's, shape (m, 3, 3)."""
        return cauchy_stress(material, self._rotation, which, np.eye(3) + self.gradient(at), self.plastic(at))

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
            | prefixed("finer.", self._finer.state(self.space, inertia.mass, self.held.basis))
            | ({} if (inner := self._acceleration(np.zeros_like(self.u))) is None else {"inner": inner})
        )

    def restore(self, state: State) -> None:
        """Take over what `state` gave; `cracks` are already as they were then."""
        now = self.space.restored(unprefixed("space.", state), self.cracks)
        for kept, tuned in ((self._preconditioner, state), (self._finer, unprefixed("finer.", state))):
            self._restore_tuned(kept, tuned, now)
        self._renew(now)
        mass, slopes = (square(now.functions.lists, state[name]) for name in ("mass", "slopes"))
        self._inertia = Inertia(mass, slopes, self._inertia.drag)
        self._preconditioner.hold(self.held.basis)
        self._finer.hold(self.held.basis)
        self.u, self.v = state["u"].copy(), state["v"].copy()
        self._forces.plastic = state["plastic"]
        self._footing.anchor, self._footing.pressure = state["anchor"].copy(), state["pressure"].copy()
        self._borne = state.get("borne")
        self._carried = (self.u.copy(), self.v.copy(), state["inner"]) if "inner" in state else None

    def _restore_tuned(self, kept: Preconditioner, state: State, now: Space) -> None:
        """Tune a preconditioner as it was, in the space of then, unless that is the one of `now`."""
        tuned = self.space.restored(unprefixed("tuned.", state), self.cracks)
        if now.functions.same_as(tuned.functions):
            tuned = now
        self._renew(tuned)
        mass = square(tuned.functions.lists, state["tuned_mass"])
        kept.restore(state, tuned, self._materials, Inertia(mass, self._inertia.slopes, self._inertia.drag))
