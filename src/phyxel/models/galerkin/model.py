"""Element-free Galerkin motion of one body (G04 §4.1): consistent mass, exact nonlinear law, implicit steps, in double.

A step of implicit Euler is the minimum, over where it ends, of

    ½ (u' − u)·A(u' − u) − M(v/Δt + a)·(u' − u) + U(u') + contacts,   A = M/Δt² + αM/Δt,   v' = (u' − u)/Δt,

with U the elastic energy and its damping (`point_forces`), and static equilibrium is the same without A and v. Points
that are held, G u' = d with G = φ at the points, fix part of the unknowns exactly: with G = U S Vᵀ that is Vᵀu', and
the search for the minimum keeps to what is orthogonal to V (Baraff and Witkin's filter). Where more points are held
than there are independent functions at them, they are so in the sense of least squares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import bsr_array, csr_array, diags_array, vstack

from phyxel.contact.touch import Feel
from phyxel.errors import PhyxelError
from phyxel.material import Mixture
from phyxel.mls.corrected_gradients import VANISHED
from phyxel.mls.neighbours import nearest
from phyxel.mls.shape_functions import ShapeValues
from phyxel.models.galerkin.crossing import FAINT, TRIES, KeptSums, PartedMotion, rigid_part
from phyxel.models.galerkin.cuts import Cracked, Extent
from phyxel.models.galerkin.footing import Footing
from phyxel.models.galerkin.forces import PointForces
from phyxel.models.galerkin.newton import Effort, descend
from phyxel.models.galerkin.preconditioner import RestSystem
from phyxel.models.galerkin.space import Space
from phyxel.models.law import LawRow
from phyxel.models.protocol import Floats, Goal, Hold, check_solid
from phyxel.state import unprefixed

DEPENDENT = VANISHED
"""Singular values of held points below this, over the largest, are no conditions of their own."""
CONTACT = 100.0
"""Springs of contact, over the body's stiffness times the node spacing."""
MOST_RUBS = 5
"""Times that friction is found anew in a step."""
MOST_NEWTON, MOST_STATIC = 20, 60
"""Newton iterations of a step, and towards equilibrium."""
PUSHED, MOVING, ROUNDED = 1e-8, 1e-8, 1e-16
"""What of the energy of a step's pushes, of its motion, and of a spacing's strain need not be found."""
OFTEN = 1.3
"""Factor by which the step may change before the system at rest is inverted anew."""
TURNED = 0.2
"""Change of a rotation (Frobenius) from which on it counts."""
LONG, MOST_SETTLING = 100, 400
"""Steps towards equilibrium: how long the last ones are, in times that sound takes, and how many there are at most."""
FRESH = 4
"""Iterations of conjugate gradients that a step takes with a system at rest that has all cracks."""
SETUP, MANY = 4.0, 80.0
"""What it takes to invert that system anew, in such iterations: so many, and the square of nodes over MANY."""
TINY = 1e-9
"""Share of the strain that is taken away beyond what must be."""
SPARE = 0.2
"""Share by which more energy is aimed to be taken away than must be."""
FLOWED = 1e9
"""[s]: all that can flow has flowed."""


@dataclass
class _Held:
    """Conditions on the coefficients, as an orthonormal basis of the fields they fix."""

    holds: tuple[Hold, ...]
    basis: Floats
    """V, shape (n, r)"""
    pull: Floats
    """S⁻¹ Uᵀ: what Vᵀu has to be is `pull` @ goals, shape (r, rows)"""
    rows: csr_array
    """G, shape (rows, n)"""

    @staticmethod
    def of(space: Space, holds: Sequence[Hold]) -> _Held:
        parts: list[csr_array] = []
        for hold in holds:
            at, own = space.at(hold.points), diags_array((~space.led(hold.points)).astype(float))
            # What others lead has nothing of its own to hold: it would only pull at them.
            parts += [own @ part for part in (at.values, *(at.gradients if hold.turns else ()))]
        if not parts:
            return _Held((), np.zeros((len(space), 0)), np.zeros((0, 0)), csr_array((0, len(space))))
        rows = csr_array(vstack(parts))
        U, S, Vt = np.linalg.svd(rows.toarray(), full_matrices=False)
        kept = DEPENDENT * S[0] < S
        return _Held(tuple(holds), Vt[kept].T.copy(), U[:, kept].T / S[kept, None], rows)

    def aims(self, goals: Sequence[Goal]) -> Floats:
        """What Vᵀu has to be, shape (r, 3)."""
        parts: list[Floats] = []
        for hold, goal in zip(self.holds, goals, strict=True):
            parts.append(np.asarray(goal.displacements, np.float64).reshape(-1, 3))
            if hold.turns:
                # ∂u/∂X_k = (R − I) e_k: no strain there, either
                parts.append((np.asarray(goal.rotation) - np.eye(3)).T)
        return self.pull @ np.concatenate(parts) if parts else np.zeros((0, 3))


@dataclass
class _Search:
    """The energy that a step minimises (`newton.Potential`)."""

    forces: PointForces
    footing: Footing
    system: RestSystem
    held: Floats
    inertia: csr_array
    load: Floats
    base: Floats

    def at(self, u: Floats) -> tuple[float, Floats]:
        way = u - self.base
        resisting = self.inertia @ way
        energy, force = self.forces.at(u)
        standing, held_up = self.footing.at(u)
        energy += 0.5 * np.vdot(way, resisting) - np.vdot(way, self.load) + standing
        return float(energy), self.load - resisting + force + held_up

    def settle_on(self) -> None:
        self.system.grip(*self.footing.grips())

    def bend(self, p: Floats, positive: bool) -> Floats:
        return self.inertia @ p + self.forces.tangent(p, positive) + self.footing.bend(p)

    def precondition(self, residual: Floats) -> Floats:
        return self.system.apply(residual)

    def free(self, field: Floats) -> Floats:
        return field - self.held @ (self.held.T @ field)


class GalerkinModel:
    """Moves one body by its Galerkin space (`lone.LoneModel`).

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
        self._unit = unit
        self.u: Floats = np.zeros((len(space), 3))
        self.v: Floats = np.array(velocities, np.float64).reshape(-1, 3)
        self._forces = PointForces(space)
        self._contact = np.asarray(contact)
        self._faces = np.zeros((0, 3)) if faces is None else faces
        self._footing = Footing(self._contact_rows(), np.concatenate([space.nodes[contact], self._faces]))
        self._held = _Held.of(space, ())
        self._goals: Sequence[Goal] | None = None
        """where the last step has brought what is held"""
        self._system: RestSystem | None = None
        self._tuned, self._tuned_in = math.nan, space
        self._stiffness: bsr_array | None = None
        """K₀ in the space `_tuned_in`, for laws that are scaled as `_scales` (k,) says"""
        self._scales = np.zeros(0)
        self._owed = 0
        """iterations that steps have taken for cracks that are not in the system at rest"""
        self._turns = np.tile(np.eye(3), (len(space), 1, 1))
        self.effort = Effort()
        """what the last step took"""
        self._borne: Floats | None = None
        """forces of other bodies in the last step, if it is not free: the next one foresees them, shape (n, 3)"""
        self._unpushed = self.u
        """where the last step would have ended without them"""
        self.cracks: Cracked | None = None
        """whether cracks leave the straight way between two places free, if there are any"""

    # What it is made of, and what has hold of it

    def set_material(self, mixture: Mixture, rotation: Floats) -> None:
        """What each node is made of, with the material's axes turned by `rotation`; a point has the law of its node."""
        check_solid("galerkin", mixture.materials)
        self._mixture, self._rotation = mixture, np.asarray(rotation, np.float64)
        self._rows = [LawRow.of(material, self._rotation) for material in mixture.materials]
        self._law = mixture.which[self.space.owner]
        self._beta = np.array([material.damping for material in mixture.materials])
        self._density = self._unit**2 * mixture.number("density")[self.space.owner]
        self._resistance = self._density * mixture.number("drag")[self.space.owner]
        self._weigh()
        self._forces.set_laws(self._rows, self._law)
        hardness = np.array([row.stiffness.max() + row.k_v for row in self._rows])
        self._hardest = float(hardness.max())
        of = np.concatenate([self._contact, nearest(self._faces, self.space.nodes, 1)[1][:, 0]])
        self._footing.stiffness = CONTACT * hardness[mixture.which[of]]
        self._system = self._stiffness = None

    def _weigh(self, before: Space | None = None) -> None:
        if before is None:
            self._mass, self._slopes = self.space.products(self._density)
        else:
            known = self._mass, self._slopes
            self._mass, self._slopes = self.space.products_from(before, self._density, known)
        self._drag = self.space.mass(self._resistance) if self._resistance.any() else 0 * self._mass
        self._pace = math.nan, self._mass

    def _contact_rows(self) -> csr_array:
        nodes = csr_array(self.space.at_nodes.values[self._contact])
        return csr_array(vstack([nodes, self.space.at(self._faces).values])) if len(self._faces) else nodes

    def set_holds(self, holds: Sequence[Hold]) -> None:
        """What is held from now on; nothing jumps."""
        self._held = _Held.of(self.space, holds)
        self._goals = None
        self._system = self._stiffness = None

    def crack(self, boxes: Sequence[Extent] | None = None) -> bool:
        """Cut the space where `cracks` deny sight, which are new in boxes if these are given; whether that changed
        anything."""
        assert self.cracks is not None
        space = self.space.cut(self.cracks, boxes)
        if space is self.space:
            return False
        self._go_over(space)
        return True

    def _go_over(self, space: Space) -> None:
        """Go on in a space with other cracks: fields as `crossing` has them, permanent strain where it was.

        What is held stays there, and so does the middle of mass; a body that nothing holds keeps its momenta: the rigid
        motion that is missing is added. Elastic and kinetic energy together do not grow. Should the elastic one, the
        strain about the nearest rigid motion is scaled down till it does not, or what is held goes along its elastic
        forces; what is above the old sum then is taken from vibration, and
        from the spin if that is not enough.
        """
        elastic, kinetic = (energy / self._unit**3 for energy in self.energies())
        gradient = self._forces.J - np.eye(3)
        weight = (space.weights * self._density)[:, None]
        u_load, v_load = (space.values.T @ (weight * (self.space.values @ field)) for field in (self.u, self.v))
        motion, middle = PartedMotion(self._mass, self.space.nodes + self.u, self.v), self.middle()
        there, moving = self._held.rows @ self.u, self._held.rows @ self.v
        self._enter(space, self.space)
        goals = self._held.pull @ there if self._goals is None else self._held.aims(self._goals)
        share = FAINT / self._density.mean()
        strain_load = self._forces.spread(space.weights[:, None, None] * gradient)
        stretching = csr_array(self._slopes + share * self._mass)
        held, amount = self._held.basis, np.asarray(self._mass.sum(axis=0)).reshape(-1, 1)
        kept = KeptSums.of(np.hstack([held, amount / amount.sum()]))
        aims = np.vstack([goals, middle - amount[:, 0] @ space.nodes / amount.sum()])
        self.u = kept.imposed(stretching, strain_load + share * u_load, self.u, aims)
        left = self._eased(elastic, kept) if self._held.holds else self._calmed(elastic)
        v = KeptSums.of(held).imposed(self._mass, v_load, self.v, self._held.pull @ moving)
        moved = PartedMotion(self._mass, space.nodes + self.u, v)
        if not self._held.holds:
            moved.with_momenta(*motion.momenta)
        moved.with_at_most(kinetic + elastic - left, bool(self._held.holds))
        self.v = moved.v

    def _enter(self, space: Space, before: Space | None = None) -> None:
        """Another space with the same points, cut from that `before`, if it was; coefficients are still those of the
        old one."""
        self.space = space
        self._forces.follow(space)
        self._weigh(before)
        self._footing.follow(self._contact_rows())
        held = _Held.of(space, self._held.holds)
        if not np.array_equal(held.basis, self._held.basis):
            self._held = held
            if self._system is not None:
                self._system.hold(held.basis)

    def _renew(self, space: Space) -> None:
        """The space as it was at another time; it may have had other points then."""
        if not np.array_equal(space.points, self.space.points):
            system = self._system
            self._forces = PointForces(space)
            self.space = space
            self.set_material(self._mixture, self._rotation)
            self._system = system
        self._enter(space)

    def _calmed(self, most: float) -> float:
        """Take strain away, about the nearest rigid motion, till elastic energy is not above `most`; what it is."""
        energy = self._elastic()
        weight = np.asarray(self._mass.sum(axis=0)).reshape(-1)
        for _ in range(TRIES):
            if energy <= most:
                break
            x = self.space.nodes + self.u
            rigid = rigid_part(x, self.space.nodes, weight)
            kept, self.u = self.u, rigid + (1 - TINY) * math.sqrt(most / energy) * (x - rigid) - self.space.nodes
            before, energy = energy, self._elastic()
            if energy > before:
                self.u, energy = kept, before
                break
        return energy

    def _eased(self, most: float, kept: KeptSums) -> float:
        """Go along elastic forces, but not in what is kept, till elastic energy is not above `most`; what it is."""
        energy = self._elastic()
        for _ in range(TRIES):
            if energy <= most or math.isnan(self._tuned):
                break
            self._forces.begin(self.u, 0 * self._beta)
            force = kept.free(self._forces.at(self.u)[1])
            way = kept.free(self._at_hand(self._tuned).apply(force))
            gain = max(float(np.vdot(force, way)), 1e-300)
            length = min(1.0, (1 + SPARE) * (energy - most) / gain)
            start, before = self.u, energy
            for _ in range(TRIES):
                self.u = start + length * way
                energy = self._elastic()
                if energy < before:
                    break
                self.u, energy, length = start, before, length / 4
        return energy

    def _elastic(self) -> float:
        """Elastic energy in the body's units."""
        return self._forces.energy(self.u)

    def part(
        self, space: Space, nodes: NDArray[np.integer], contact: NDArray[np.integer], faces: Floats
    ) -> GalerkinModel:
        """A model of a piece of the body that has these nodes (k,), and its own space; where it is. What it is made of
        and what has hold of it is for its body to say."""
        piece = GalerkinModel(space, self._unit, self.v[nodes], contact, self.device, faces)
        piece.u = self.u[nodes].copy()
        piece._forces.plastic = self._forces.plastic[self.space.points_of(space)]
        piece._turns = self._turns[nodes].copy()
        rows, count = np.searchsorted(self._contact, nodes[contact]), len(contact)
        footing = piece._footing
        footing.anchor[:count], footing.pressure[:count] = self._footing.anchor[rows], self._footing.pressure[rows]
        return piece

    # Motion

    def step(self, dt: float, push: Floats, goals: Sequence[Goal], feel: Feel | None) -> None:
        """Go on by dt [s] under accelerations `push` (n, 3) [1/s²], with every hold at its goal at the end."""
        if dt != self._pace[0]:
            self._pace = dt, self._inertia(dt)
        inertia = self._pace[1]
        system = self._tune(dt)
        start = self.u + dt * self.v
        start = start + system.lift(self._held.aims(goals) - self._held.basis.T @ start)
        pushed, moving = (float(np.vdot(w, self._mass @ w)) for w in (dt * push, (start - self.u) / dt))
        enough = PUSHED * pushed + MOVING * moving + ROUNDED * self._hardest
        self._push, self._goals = push, goals
        load = self._mass @ (self.v / dt + push)
        if self._borne is not None:
            load = load + self._borne
        self._forces.begin(self.u, self._beta / dt)
        self._footing.begin(feel, self.u, self.v, dt, push)
        end, self.effort = self._seek(system, inertia, load, start, enough, MOST_NEWTON)
        if not np.isfinite(end).all():
            raise PhyxelError("galerkin: a step has no solution; take a shorter one")
        v = (end - self.u) / dt
        if not self._held.holds and not self._footing.touching and self._borne is None:
            end, v = self._with_momenta(end, v, dt, push)
        self.u, self.v = end, v
        if self._tuned_in is not self.space:
            self._owed += max(self.effort.cg - FRESH, 0)
        self._footing.end()
        if self._forces.flows:
            self._forces.flow(dt)

    def _seek(
        self,
        system: RestSystem,
        inertia: csr_array,
        load: Floats,
        start: Floats,
        enough: float,
        most: int,
        near: float = 0.0,
    ) -> tuple[Floats, Effort]:
        search = _Search(self._forces, self._footing, system, self._held.basis, inertia, load, self.u)
        total = Effort()
        for _ in range(MOST_RUBS):
            start, effort = descend(search, start, enough, most, near)
            total = replace(effort, newton=total.newton + effort.newton, cg=total.cg + effort.cg)
            if not self._footing.renew():
                break
        return start, total

    def _tune(self, dt: float) -> RestSystem:
        """The preconditioner for steps of about dt."""
        if not (dt == self._tuned or 1 / OFTEN < dt / self._tuned < OFTEN):
            self._tuned, self._system = dt, None
        if self._system is None or self._owed > SETUP + (len(self.space) / MANY) ** 2:
            self._system = self._rest_system(self._held.basis)
        turns = self._forces.turns(self.u)
        if np.square(turns - self._turns).sum(axis=(1, 2)).max() > TURNED**2:
            self._turns = turns
            self._system.turn(turns)
        return self._system

    def _rest_system(self, held: Floats) -> RestSystem:
        """That of the space as it is now, with springs for what is held, V (n, r)."""
        lag = 1 + self._beta / self._tuned
        scales = lag / lag[0]
        if self._stiffness is None or not np.array_equal(scales, self._scales):
            self._stiffness = self.space.stiffness(self._scaled(scales), self._law)
        elif self._tuned_in is not self.space:
            known = self._tuned_in, self._stiffness
            self._stiffness = self.space.stiffness_from(*known, self._scaled(scales), self._law)
        self._scales, self._tuned_in, self._tuned_mass, self._owed = scales, self.space, self._mass, 0
        system = RestSystem(self._inertia(self._tuned), lag[0] * self._stiffness, held, self.device)
        system.turn(self._turns)
        return system

    def _scaled(self, scales: Floats) -> list[LawRow]:
        """The laws, (k,) times as stiff."""
        return [
            replace(row, stiffness=more * row.stiffness, k_v=more * row.k_v)
            for row, more in zip(self._rows, scales, strict=True)
        ]

    def _inertia(self, dt: float) -> csr_array:
        """A = M/Δt² + αM/Δt"""
        return csr_array(self._mass / dt**2 + self._drag / dt)

    def _with_momenta(self, end: Floats, v: Floats, dt: float, push: Floats) -> tuple[Floats, Floats]:
        """u' and v' with the momentum and, about the middle of mass, the angular momentum that v and the pushes leave.

        Rigid fields are in the space, their coefficients are their values at the nodes: t + ω × x is added to v', and
        Δt t to u'. The middle of mass goes by the mean of its velocities before and after: it falls along a parabola,
        whatever the step.
        """
        weight = np.asarray(self._mass.sum(axis=0)).reshape(-1)
        total = weight.sum()
        resisting = csr_array(self._mass + dt * self._drag)
        old, new = self.space.nodes + self.u, self.space.nodes + end
        impulse = self._mass @ (self.v + dt * push)
        arm_old, arm = old - weight @ old / total, new - weight @ new / total
        target = np.concatenate([impulse.sum(axis=0), np.cross(arm_old, impulse).sum(axis=0)])
        fields = [np.tile(axis, (len(arm), 1)) for axis in np.eye(3)] + [np.cross(axis, arm) for axis in np.eye(3)]

        def momenta(w: Floats) -> Floats:
            carried = resisting @ w
            return np.concatenate([carried.sum(axis=0), np.cross(arm, carried).sum(axis=0)])

        matrix = np.stack([momenta(field) for field in fields], axis=1)
        amounts = np.linalg.solve(matrix, target - momenta(v))
        after = v + np.einsum("k,kna->na", amounts, np.stack(fields))
        ahead = 0.5 * dt * (weight @ (after - self.v)) / total
        return end + dt * amounts[:3] - ahead, after

    # What others do to it (`lone.Tangible`)

    @property
    def margin(self) -> float:
        """How far its surface may lie outside the box around its coefficients: beside a crack there are no nodes."""
        return 1.0

    def unload(self, dt: float) -> None:
        """A step of dt [s] was taken: leave aside what others did to the body before, if that was foreseen in it."""
        if self._borne is not None:
            change = self._responded(dt * self._borne, dt)
            self.u, self.v, self._borne = self.u - change, self.v - change / dt, None

    def _at_hand(self, dt: float) -> RestSystem:
        """The system as the last step left it."""
        return self._tune(dt) if self._system is None else self._system

    def _responded(self, impulses: Floats, dt: float) -> Floats:
        """How far impulses (n, 3) on the coefficients move these in a step."""
        return dt / self._tuned**2 * self._at_hand(dt).respond(impulses)

    def compliance(self, rows: csr_array, dt: float) -> Floats:
        """How far unit impulses within the last step, of dt [s], at points with φ in `rows` (k, n), move these points
        until its end, shape (3k, 3k)."""
        return dt / self._tuned**2 * self._at_hand(dt).compliance(rows)

    def push(self, rows: csr_array, impulses: Floats, shifts: Floats, before: Floats, dt: float) -> None:
        """Let impulses (k, 3) at such points act within that step, which began at u = `before`, so that it leads where
        the velocity after it says; `shifts` move as much as impulses but leave no velocity."""
        if not impulses.any() and not shifts.any():
            return
        change, shift = (self._responded(rows.T @ part, dt) for part in (impulses, shifts))
        x, v = self.space.nodes + self.u, self.v
        start = self._unpushed = before + dt * v
        self.u, self.v = start + change + shift, v + change / dt
        if self._held.holds or self._footing.touching:
            self._borne = rows.T @ impulses / dt
            return
        # The system at rest knows little of how the body has turned: momenta are those of the impulses.
        resisting, middle = csr_array(self._mass + dt * self._drag), self.middle()
        arm, places = self.space.nodes + self.u - middle, rows @ (self.space.nodes + start) - middle

        def momenta(arms: Floats, carried: Floats) -> Floats:
            return np.concatenate([carried.sum(axis=0), np.cross(arms, carried).sum(axis=0)])

        target = momenta(x - middle, resisting @ v) + momenta(places, impulses)
        fields = [np.tile(axis, (len(arm), 1)) for axis in np.eye(3)] + [np.cross(axis, arm) for axis in np.eye(3)]
        matrix = np.stack([momenta(arm, resisting @ field) for field in fields], axis=1)
        amounts = np.linalg.solve(matrix, target - momenta(arm, resisting @ self.v))
        self.v = self.v + np.einsum("k,kna->na", amounts, np.stack(fields))

    def work(self, before: Floats) -> float:
        """What the pushes of the last step have done since u was `before` (n, 3) [J]."""
        return float(np.vdot(self._mass @ self._push, self.u - before)) * self._unit**3

    def calm(self, energy: float) -> float:
        """Take some energy of vibration away, as far as there is any; how much that was [J]. Momenta stay."""
        x = self.space.nodes + self.u
        rigid = PartedMotion(self._mass, x, np.zeros_like(x))
        rigid.with_momenta(*PartedMotion(self._mass, x, self.v).momenta)
        vibration = self.v - rigid.v
        there = 0.5 * float(np.vdot(vibration, self._mass @ vibration)) * self._unit**3
        taken = min(energy, there)
        self.v = rigid.v + math.sqrt(1 - taken / max(there, 1e-300)) * vibration
        return taken

    def ease(self) -> None:
        """Take half of what the last impulses have moved back, and leave velocities such that momenta stay."""
        x = self.space.nodes + self.u
        momentum, spin = PartedMotion(self._mass, x, self.v).momenta
        middle = self.middle()
        self.u = 0.5 * (self.u + self._unpushed)
        eased = PartedMotion(self._mass, self.space.nodes + self.u, self.v)
        eased.with_momenta(momentum, spin + np.cross(middle - self.middle(), momentum))
        self.v = eased.v

    # Equilibrium

    def stop(self) -> None:
        """Be at rest in the present shape, out of touch with everything."""
        self.v = np.zeros_like(self.u)
        self._borne = None
        self._footing.pressure[:] = 0

    def settle(self, push: Floats, goals: Sequence[Goal], feel: Feel | None, tolerance: float) -> None:
        """Go to static equilibrium: till nothing has further to go than `tolerance` spacings.

        What is held gets there at once, by Newton's method. What stands on something, or finds no way there at once,
        goes by steps that forget their speed, longer and longer ones; as long as it falls, by about a spacing.
        """
        self.v = np.zeros_like(self.u)
        if self._tuned_in is not self.space:
            self._system = None
        size, density = np.ptp(self.space.nodes, axis=0).max(), self._mass.sum() / self.space.weights.sum()
        crossing = float(size * math.sqrt(density / self._hardest))
        falling = 1 / math.sqrt(max(np.linalg.norm(push, axis=1).max(), 1e-30))
        fixed = self._fixed()
        if not self._held.holds and feel is None and push.any():
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
        system = self._tune(dt)
        start = self.u + system.lift(self._held.aims(goals) - self._held.basis.T @ self.u)
        self._forces.begin(self.u, 0 * self._beta)
        self._footing.begin(feel, self.u, self.v, 0.0, push)
        load = self._mass @ push
        end, self.effort = self._seek(system, self._inertia(dt), load, start, 0.0, MOST_STATIC, near)
        if not self.effort.done or not np.isfinite(end).all():
            return False
        self.u = end
        self._footing.end()
        return True

    def _fixed(self) -> bool:
        """Whether what is held cannot move as a whole."""
        x = self.space.nodes
        fields = [np.tile(axis, (len(x), 1)) for axis in np.eye(3)] + [np.cross(axis, x) for axis in np.eye(3)]
        seen = np.stack([(self._held.basis.T @ field).reshape(-1) for field in fields], axis=1)
        return len(seen) > 0 and bool(np.linalg.svd(seen, compute_uv=False)[-1] > 1e-3) and seen.shape[0] >= 6

    # What it is like

    def shown(self) -> tuple[wp.array, Floats]:
        """Coefficients about their mean, on the device in single precision, and that mean."""
        mean = self.u.mean(axis=0)
        return wp.array((self.u - mean).astype(np.float32), dtype=wp.vec3, device=self.device), mean

    def displacement(self, at: ShapeValues) -> Floats:
        """u at points, shape (m, 3)."""
        return at.values @ self.u

    def gradient(self, at: ShapeValues) -> Floats:
        """∇u at points, (∇u)_ab = ∂u_a/∂X_b, shape (m, 3, 3)."""
        return np.stack([part @ self.u for part in at.gradients], axis=2)

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
            self._elastic() * self._unit**3,
            0.5 * float(np.vdot(self.v, self._mass @ self.v)) * self._unit**3,
        )

    def momenta(self, nodes: NDArray[np.integer] | slice = slice(None)) -> tuple[Floats, Floats]:
        """∫ρ v [kg m/s] and ∫ρ (X + u) × v [kg m²/s] about where the body counts from, shape (3,) each; or what some
        nodes have of them."""
        carried = (self._mass @ self.v)[nodes]
        turning = np.cross((self.space.nodes + self.u)[nodes], carried).sum(axis=0)
        return carried.sum(axis=0) * self._unit**2, turning * self._unit**3

    def middle(self) -> Floats:
        """The middle of mass, shape (3,)."""
        weight = np.asarray(self._mass.sum(axis=0)).reshape(-1)
        return weight @ (self.space.nodes + self.u) / weight.sum()

    def volume(self) -> float:
        """∫ |J| [m³]."""
        self._forces.at(self.u)
        return float(self.space.weights @ np.linalg.det(self._forces.J)) * self._unit**3

    def state(self) -> dict[str, NDArray[Any]]:
        """All that a checkpoint must keep. How the preconditioner was tuned goes with it: it decides the last bits."""
        spaces = {"space": self.space, "tuned": self.space if self._system is None else self._tuned_in}
        cut = {f"{name}.{key}": part for name, space in spaces.items() for key, part in space.state().items()}
        return (
            cut
            | {
                "u": self.u.copy(),
                "v": self.v.copy(),
                "plastic": self._forces.plastic,
                "anchor": self._footing.anchor.copy(),
                "pressure": self._footing.pressure.copy(),
                "turns": self._turns.copy(),
                "tuned": np.array(self._tuned),
                "mass": self._mass.data,
                "slopes": self._slopes.data,
                "tuned_mass": self._mass.data if self._system is None else self._tuned_mass.data,
                "tuned_held": self._held.basis if self._system is None else self._system.springs,
                "owed": np.array(self._owed),
            }
            | ({} if self._system is None or self._stiffness is None else {"stiffness": self._stiffness.data})
            | ({} if self._borne is None else {"borne": self._borne})
        )

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave; of what was cut, `cracks` know already."""

        def cut(name: str) -> Space:
            kept = unprefixed(f"{name}.", state)
            return self.space.restored(kept, self.cracks)

        now, tuned = cut("space"), cut("tuned")
        if now.same_as(tuned):
            tuned = now
        self._turns, self._tuned = state["turns"].copy(), float(state["tuned"])
        self._system = None
        if "stiffness" in state:
            self._renew(tuned)
            self._mass = tuned.square(state["tuned_mass"])
            lag = 1 + self._beta / self._tuned
            self._scales, self._tuned_in = lag / lag[0], self.space
            self._stiffness = self.space.blocks(state["stiffness"])
            self._system = self._rest_system(state["tuned_held"])
        self._owed = int(state["owed"])
        self._renew(now)
        self._mass, self._slopes = now.square(state["mass"]), now.square(state["slopes"])
        self._pace = math.nan, self._mass
        if self._system is not None:
            self._system.hold(self._held.basis)
        self.u, self.v = state["u"].copy(), state["v"].copy()
        self._forces.plastic = state["plastic"]
        self._footing.anchor, self._footing.pressure = state["anchor"].copy(), state["pressure"].copy()
        self._borne = state.get("borne")
