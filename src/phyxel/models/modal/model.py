"""Modal warping (G05; physics 11.2, 11.3, 11.5): a body moves by a few of its eigenmodes, each an oscillator of its
own, and bends along arcs.

    z̈ + (α + βΛ) ż + Λ z = Ψᵀ Rᵀ Qᵀ f,   x = c + Q (X + R̃(W z) Ψ z − ȳ)

What departs from the paper: each oscillator is followed by its exact solution instead of an implicit Euler step, which
would swallow its swing; a free body has a frame (c, Q) that carries momentum and angular momentum; constraints hold the
warped points, at the end of the step (eq. 13 with 2η = γ = 1/Δt, iterated since the rows turn), not the unwarped ones;
handles bring the shapes that they pull the body into.

A step predicts free motion; then impulses even over the step put held points at their goals and keep points out of
colliders; then impulses at its end give those points the velocities they must have. So a body at rest stays exactly so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.contact.touch import Feel
from phyxel.errors import PhyxelError
from phyxel.material.material import Mixture, rotated_elasticity
from phyxel.mls.shape_values import ShapeValues
from phyxel.models.galerkin.assembly import volume
from phyxel.models.galerkin.space import Space
from phyxel.models.law import hooke_stress
from phyxel.models.modal.budget import EnergyBudget
from phyxel.models.modal.constraints import SHALLOW, Grip, PointPatch, StepConstraints, Touchable, longest, spread
from phyxel.models.modal.field import FloatingFrame, ModalField, ModalMotion
from phyxel.models.modal.modes import ModalMatrices, ModalShapes, Modes, Progress, curls, turning
from phyxel.models.modal.touched import TouchedModes
from phyxel.models.modal.warping import Basis, unwarp, warp_derivative
from phyxel.models.protocol import Goal, Hold
from phyxel.rotation import rotation_vectors, rotations_by
from phyxel.state import State

Floats = NDArray[np.float64]

POINTS = 12
"""Most points of a hold that are followed: more only say the same again."""
SETTLING_STEPS = 3000


class ModalModel(TouchedModes):
    """One body that moves by its modes (`protocol.FieldModel`, `protocol.Tangible`). Lengths in units of its mean node
    spacing."""

    matter: ModalMatrices
    _shapes: ModalShapes

    def __init__(
        self,
        space: Space,
        unit: float,
        velocities: Floats,
        contact: NDArray[np.integer],
        device: wp.Device,
        modes: int = 64,
        progress: Progress | None = None,
    ) -> None:
        self.space, self.unit = space, unit
        self.coefficients = wp.zeros(len(space), dtype=wp.vec3, device=device)
        """of the displacement less an even one, as the last step left them, shape (n,), single precision"""
        self._velocities = np.array(velocities, np.float64)
        self._count, self._progress = modes, progress
        self._holds: list[Hold] = []
        self._grips: list[Grip] = []
        self._field: ModalField | None = None
        """made when it is first needed"""
        self._touchable = Touchable(space.nodes[contact], space.at_nodes.values[np.asarray(contact)])

    # Material and holds

    def set_material(self, mixture: Mixture, rotation: Floats) -> None:
        """What each node is made of, with the material's axes turned by `rotation`; motion goes on from where it is."""
        matter = ModalMatrices.of(self.space, mixture, rotation)
        self._rotation = np.asarray(rotation, np.float64)
        if self._field is None:
            self.matter = matter
        elif all(map(np.array_equal, matter.content, self.matter.content)):
            self.matter = matter
            self._field.set_matter(matter)
            self.budget = EnergyBudget(self._field)
        else:
            self.matter = matter
            self._restart(self._field, self._shapes.base)

    def set_holds(self, holds: Sequence[Hold]) -> None:
        """Points are held so from now on; nothing jumps."""
        holds, field = list(holds), self._field
        if field is None:
            self._holds = holds
            return
        if len(holds) == len(self._holds) and all(map(_same, holds, self._holds)):
            return
        kept = [hold for hold in holds if any(_same(hold, base) for base in self._shapes.base)]
        self._holds = holds
        if len(kept) < len(self._shapes.base):
            self._restart(field, kept)
        else:
            self._shapes.base = kept
            self._renew(field.fields(), field.frame, field.motion, field.push)

    def ready(self) -> ModalField:
        """The field, made when first needed."""
        if self._field is not None:
            return self._field
        self._shapes = self._shapes_with([hold for hold in self._holds if hold.still])
        motion, rate, frame = ModalMotion.none(), self._velocities, self._new_frame()
        if frame is not None:
            motion, _, rate, _ = frame.fitted(self.space.nodes, rate, np.eye(3))
        present = turning(self.space, np.stack([np.zeros_like(rate), rate], axis=2))
        return self._renew(present, frame, motion, self._still())

    def _still(self) -> Floats:
        return np.zeros((len(self.space), 3))

    def _shapes_with(self, holds: Sequence[Hold]) -> ModalShapes:
        """Shapes clamped where these hold the body, if that keeps it from turning."""
        return ModalShapes(self.space, self.matter, holds, self._count, self._progress)

    def _new_frame(self) -> FloatingFrame | None:
        return FloatingFrame(self.matter, self.space.nodes) if self._shapes.clamp is None else None

    def _restart(self, field: ModalField, base: list[Hold]) -> None:
        """Other modes, clamped by `base` only, from the same displacements and velocities.

        Where the clamp was, the warped field had a part taken off: what is left is the warp of another linear field
        with the same rotations.
        """
        u, v, motion, was_free, present = field.u, field.v, field.motion, field.frame is not None, field.fields()
        w, w_rate = present[:, 3:, 0], present[:, 3:, 1]
        self._shapes = self._shapes_with(base)
        frame = self._new_frame()
        if frame is not None:
            Q = motion.Q if was_free else None
            motion, u, v, spin = frame.fitted(self.space.nodes + u, v, Q)
            if not was_free:
                w = rotation_vectors(motion.Q.T @ rotations_by(w))
                w_rate = w_rate @ motion.Q - spin
        p = unwarp(u, w)
        turned = np.einsum("nab,nb->na", warp_derivative(np.concatenate([p, w], axis=1))[:, :, 3:], w_rate)
        fields = [np.concatenate([p, w], axis=1), np.concatenate([unwarp(v - turned, w), w_rate], axis=1)]
        self._renew(np.stack(fields, axis=2), frame, motion, field.push)

    def _renew(self, present: Floats, frame: FloatingFrame | None, motion: ModalMotion, push: Floats) -> ModalField:
        """A basis of the body's modes, the shapes of what holds it, and those it has now and goes to, `present`
        (n, 6, 2)."""
        chosen = self._chosen()
        modes = self._shapes.joined([(hold.points[some], hold.turns) for hold, some in chosen], present)
        motion.z, motion.rate = self.matter.products(modes.shapes, present).T.copy()
        field = self._adopt(modes, frame, motion, push)
        old, self._grips = self._grips, []
        pose = field.pose(False)
        for hold, some in chosen:
            patch = self._patch(hold, some, field.basis)
            patch.see(motion.z)
            before = [grip.turned for grip in old if _same(grip.hold, hold)]
            self._grips.append(Grip(hold, some, before[0] if before else patch.rotation(pose), patch))
        return field

    def _chosen(self) -> list[tuple[Hold, NDArray[np.int64]]]:
        """The holds that do not clamp the body, and those of their points that are followed."""
        followed = [hold for hold in self._holds if not any(_same(hold, base) for base in self._shapes.base)]
        points = max(1, min(POINTS, 4 * POINTS // max(1, len(followed))))
        return [(hold, spread(hold.points, points, 0)) for hold in followed]

    def _patch(self, hold: Hold, some: NDArray[np.int64], basis: Basis) -> PointPatch:
        X = hold.points[some]
        at = self.space.at(X)
        return PointPatch(X, at.values.toarray(), np.array([part[[0]].toarray()[0] for part in at.gradients]), basis)

    def _adopt(self, modes: Modes, frame: FloatingFrame | None, motion: ModalMotion, push: Floats) -> ModalField:
        basis = Basis(self.space, modes, self._shapes.clamp, self.coefficients)
        self._field = ModalField(self.space, self.unit, self.matter, basis, frame, motion, push)
        self.budget = EnergyBudget(self._field)
        return self._field

    # Time

    def step(self, dt: float, push: Floats, goals: Sequence[Goal], feel: Feel | None) -> None:
        """Go on by dt [s] under accelerations `push` (n, 3) [1/s²], with every hold at its goal at the end, and out of
        colliders."""
        self._advance(self.ready(), dt, push, goals, feel, False)

    def _advance(
        self, field: ModalField, dt: float, push: Floats, goals: Sequence[Goal], feel: Feel | None, calm: bool
    ) -> None:
        motion, budget = field.motion, self.budget
        budget.load(field, push)
        modes, rigid = field.pace(dt, calm)
        forces, before = field.forces, replace(motion)
        constraints = StepConstraints(field, self._gripped(goals), self._touchable, feel, dt)
        field.predict(modes, rigid, dt)
        budget.spend(constraints.place(modes, rigid))
        budget.damp(field, before, forces + constraints.forces, rigid)
        if not calm:
            budget.spend(constraints.match())
        if calm:
            motion.rate, motion.v, motion.L = np.zeros_like(motion.rate), np.zeros(3), np.zeros(3)
        if not np.isfinite(motion.z).all():
            raise PhyxelError("the body flew apart: its handles or colliders ask for more than it can follow")
        field.lay()
        field.show()
        if not calm:  # forces turn with the body: half of the step should have seen these
            motion.rate = motion.rate + 0.5 * modes.s * (field.forces - forces)
            if field.borne is None:  # what others do is bounded as they all meet
                budget.keep(field, before, constraints)

    def _gripped(self, goals: Sequence[Goal]) -> list[tuple[Grip, Goal]]:
        """The goals of the holds that are not clamped."""
        if len(goals) != len(self._holds):
            raise PhyxelError(f"{len(goals)} goals for {len(self._holds)} holds: give one for each")
        pairs = zip(self._holds, goals, strict=True)
        return [(grip, goal) for hold, goal in pairs for grip in self._grips if grip.hold is hold]

    # Rest

    def stop(self) -> None:
        """Be at rest in the present shape, out of touch with everything."""
        field = self.ready()
        motion = field.motion
        motion.rate, motion.v, motion.L = np.zeros_like(motion.rate), np.zeros(3), np.zeros(3)
        field.show()
        self.budget = EnergyBudget(field)

    def settle(self, push: Floats, goals: Sequence[Goal], feel: Feel | None, tolerance: float) -> None:
        """Go to static equilibrium, to `tolerance` [spacings]; the body is then at rest.

        Steps long enough for every mode to go nearly all the way, and shorter where that leads to and fro, since forces
        turn with what they bend. A free body falls and turns a little at a time until something holds it; what it
        touches it then rests on no more exactly than contact is kept.
        """
        field = self.ready()
        free = field.frame is not None
        if free and not self._grips and feel is None and np.any(push):
            raise PhyxelError("settle: nothing holds this body; fix it somewhere, or put a collider under it")
        slowest = float(np.sqrt(max(field.values.min(initial=np.inf), 1e-30)))
        dt = 6 / slowest
        if free:
            dt = min(dt, float(np.sqrt(0.2 / max(longest(np.asarray(push)), 1e-30))))
        if feel is not None:
            tolerance = max(tolerance, SHALLOW)
        shortest, quiet, before = 0.1 * dt, 0, self.u
        last = np.zeros_like(before)
        for _ in range(SETTLING_STEPS):
            self._advance(field, dt, push, goals, feel, True)
            now = self.u
            way = now - before
            gone = float(np.abs(way).max())
            share = 1 - np.exp(-slowest * dt) * (1 + slowest * dt)  # of what the slowest mode had to go
            quiet = quiet + 1 if gone <= 0.3 * share * tolerance else 0
            if quiet == 3:
                self.budget = EnergyBudget(field)
                return
            if gone > 0.8 * np.abs(last).max() and _turns_back(way, last):
                dt = max(0.7 * dt, shortest)
            last, before = way, now
        raise PhyxelError(f"settle: no rest after {SETTLING_STEPS} steps; is the body held or on the ground?")

    # Quantities

    @property
    def u(self) -> Floats:
        """Coefficients of the displacement, shape (n, 3)."""
        return np.zeros((len(self.space), 3)) if self._field is None else self._field.u

    @property
    def v(self) -> Floats:
        """Coefficients of the velocity [1/s], shape (n, 3): the exact change of u."""
        return self._velocities.copy() if self._field is None else self._field.v

    @property
    def frequencies(self) -> Floats:
        """Of the body's modes [Hz], ascending, shape (l,)."""
        squared = self.ready().squared
        return np.sqrt(np.maximum(self._shapes.modes.values, 0.0) * squared) / (2 * np.pi)

    @property
    def linear(self) -> Floats:
        """Coefficients of the linear field that is bent along arcs, shape (n, 3)."""
        return self.ready().basis.linear[:, :3]

    def mode_shape(self, k: int) -> Floats:
        """Coefficients of mode k, shape (n, 3)."""
        self.ready()
        return self._shapes.modes.shapes[:, :, k]

    def shown(self) -> tuple[wp.array, Floats]:
        """Coefficients of the displacement on the device, and the even part that they are without."""
        return self.coefficients, self.ready().offset

    def stress(self, at: ShapeValues, material: Mixture, which: NDArray[np.integer]) -> Floats:
        """Cauchy stress [Pa] at points whose laws are `which` of the mixture's, shape (m, 3, 3): that of the linear
        field's strain, turned with the body, R C ε Rᵀ."""
        field = self.ready()
        p = field.basis.linear[:, :3]
        gradient = np.stack([part @ p for part in at.gradients], axis=2)
        strain = 0.5 * (gradient + np.swapaxes(gradient, 1, 2))
        R = field.motion.Q @ rotations_by(curls(at, p[:, :, None])[:, :, 0])
        result = np.empty_like(strain)
        for k, one in enumerate(material.materials):
            C = one.elasticity if one.stiffness is None else rotated_elasticity(one.elasticity, self._rotation)
            result[which == k] = hooke_stress(C, strain[which == k])
        return R @ result @ np.swapaxes(R, 1, 2)

    def energies(self) -> tuple[float, float]:
        """Elastic and kinetic energy [J]."""
        v = self.v
        kinetic = 0.5 * float(np.sum(v * (self.matter.mass @ v))) * self.matter.density * self.unit**5
        if self._field is None:
            return 0.0, kinetic
        return self._field.elastic * self.matter.density * self.unit**5, kinetic

    def momenta(self) -> tuple[Floats, Floats]:
        """∫ρ v [kg m/s] and ∫ρ (X + u) × v [kg m²/s] about where the body counts from, shape (3,) each."""
        weighed = self.matter.mass @ self.v * (self.matter.density * self.unit**4)
        return weighed.sum(axis=0), np.cross(self.space.nodes + self.u, weighed).sum(axis=0) * self.unit

    def middle(self) -> Floats:
        """The middle of mass, shape (3,)."""
        weight = np.asarray(self.matter.mass.sum(axis=0)).reshape(-1)
        return weight @ (self.space.nodes + self.u) / weight.sum()

    def volume(self) -> float:
        """∫ |J| [m³]."""
        return volume(self.space.functions, self.u) * self.unit**3

    # Checkpoints

    def state(self) -> State:
        """All that a checkpoint must keep."""
        field = self.ready()
        motion = {name: getattr(field.motion, name).copy() for name in ModalMotion.__dataclass_fields__}
        holds = self._holds
        points = np.concatenate([*(hold.points for hold in holds), np.zeros((0, 3))])
        kinds = [
            [len(h.points), h.still, h.turns, h.fills, any(h is base for base in self._shapes.base)] for h in holds
        ]
        turned = np.array([grip.turned for grip in self._grips]).reshape(-1, 3, 3)
        return motion | {
            "shapes": field.basis.shapes.copy(), "values": field.basis.values.copy(), "push": field.push.copy(),
            "hold_points": points, "holds": np.array(kinds, np.int64).reshape(-1, 5), "turned": turned,
            "budget": np.array(self.budget.amount), **self.borne_state(),
        }  # fmt: skip

    def restore(self, state: State) -> None:
        """Take over what `state` gave."""
        starts = np.cumsum([0, *state["holds"][:, 0]])
        self._holds = [
            Hold(state["hold_points"][start : start + count], bool(still), bool(turns), bool(fills))
            for start, (count, still, turns, fills, _) in zip(starts, state["holds"], strict=False)
        ]
        base = [hold for hold, kind in zip(self._holds, state["holds"], strict=True) if kind[4]]
        self._shapes = self._shapes_with(base)
        motion = ModalMotion(**{name: state[name].copy() for name in ModalMotion.__dataclass_fields__})
        field = self._adopt(Modes(state["shapes"], state["values"]), self._new_frame(), motion, self._still())
        chosen = self._chosen()
        self._grips = [
            Grip(hold, some, turned, self._patch(hold, some, field.basis))
            for (hold, some), turned in zip(chosen, state["turned"], strict=True)
        ]
        field.load(state["push"])
        self.budget.amount = float(state["budget"])
        self.restore_borne(state)


def _turns_back(way: Floats, last: Floats) -> bool:
    """Whether a step (n, 3) does not go on where the last one went, as falling does."""
    return float(np.vdot(way, last)) < 0.5 * float(np.linalg.norm(way) * np.linalg.norm(last))


def _same(one: Hold, other: Hold) -> bool:
    kinds = [(hold.still, hold.turns, hold.fills) for hold in (one, other)]
    return kinds[0] == kinds[1] and np.array_equal(one.points, other.points)
