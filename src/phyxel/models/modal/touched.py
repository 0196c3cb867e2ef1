"""How a modal body takes what others do to it in a step (`protocol.Tangible`, physics 15.8): impulses on its middle,
its turn and its modes. The next step foresees them as forces, so that a body that lies on another is at rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from phyxel.models.galerkin.space import Space
from phyxel.models.modal.budget import EnergyBudget, ModalEnergy
from phyxel.models.modal.constraints import PointPatch, Rows
from phyxel.models.modal.field import BorneForce, FramePose, ModalField
from phyxel.models.protocol import FieldValues, Floats
from phyxel.rotation import rotation_by
from phyxel.state import State


@dataclass(frozen=True)
class Kick:
    """Impulses on the coordinates of a body."""

    move: Floats
    """shape (3,)"""
    turn: Floats
    """about its middle, in the world's axes, shape (3,)"""
    z: Floats
    """shape (l,)"""


class TouchedModes(FieldValues):
    """A modal body as others meet it."""

    with_others = None
    space: Space
    unit: float
    budget: EnergyBudget

    if TYPE_CHECKING:

        def ready(self) -> ModalField: ...

        @property
        def u(self) -> Floats: ...

        @property
        def v(self) -> Floats: ...

    @property
    def margin(self) -> float:
        """How far its surface may lie outside the box around its coefficients."""
        return 1.0

    def drift(self, before: Floats, dt: float) -> Floats:
        """Velocity (n, 3) with which the coefficients got from u = `before` to where they are, in dt [s]."""
        return (self.u - before) / dt

    def unload(self, dt: float) -> None:
        """A step of dt [s] was taken: leave aside what others did to the body before, if that was foreseen in it."""
        field = self.ready()
        borne, field.borne = field.borne, None
        if borne is None:
            return
        motion, frame = field.motion, field.frame
        _, rigid = field.pace(dt, False)
        total = np.zeros(3)
        if frame is not None:  # as if it had not been: only the way that it led differs, as impulses see it
            motion.L = motion.L - rigid.s * borne.torque
            motion.v = motion.v - rigid.s * borne.force / frame.mass
            middle = motion.c - rigid.g * borne.force / frame.mass
            total = frame.mass * np.cross(middle, motion.v) + motion.L
        self._move(field, Kick(-dt * borne.force, -dt * borne.torque, -dt * borne.z), total, dt)

    @property
    def _scale(self) -> float:
        """Mass in the body's units over that in the modes' own scales."""
        return self.ready().matter.density * self.unit**2

    def _rows(self, field: ModalField, rows: csr_array) -> tuple[Rows, FramePose]:
        """How points with φ in `rows` (k, n) move with the coordinates."""
        field.lay()
        pose = field.pose()
        patch = PointPatch(rows @ self.space.nodes, rows.toarray(), None, field.basis)
        patch.see(field.motion.z)
        patch.follow()
        return patch.rows(pose), pose

    def response(self, rows: csr_array, dt: float) -> Floats:
        """A root of what unit impulses at points with φ in `rows` (k, n) do to their velocities, shape (3k, r)."""
        field = self.ready()
        found, pose = self._rows(field, rows)
        answers = [found.z * np.sqrt(self._answers(field, dt))]
        if field.frame is not None:
            turn = found.turn @ np.linalg.cholesky(pose.inverse_inertia)
            answers = [np.sqrt(pose.inverse_mass) * found.move, turn, *answers]
        return np.concatenate(answers, axis=1) / np.sqrt(self._scale)

    def push(self, rows: csr_array, places: Floats, impulses: Floats, before: Floats, dt: float) -> None:
        """Let impulses (k, 3) at points with φ in `rows`, which are at `places` (k, 3), act within the last step; the
        next one foresees them."""
        field = self.ready()
        motion, frame = field.motion, field.frame
        found, _ = self._rows(field, rows)
        impulses = impulses / self._scale
        turn = np.cross(places - motion.c, impulses).sum(axis=0)
        kick = Kick(impulses.sum(axis=0), turn, found.z.T @ impulses.reshape(-1))
        total = np.zeros(3)
        if frame is not None:
            total = frame.mass * np.cross(motion.c, motion.v) + motion.L + np.cross(places, impulses).sum(axis=0)
            motion.v = motion.v + kick.move / frame.mass
        self._move(field, kick, total, dt)
        borne = field.borne or BorneForce(np.zeros(3), np.zeros(3), np.zeros_like(kick.z))
        field.borne = BorneForce(borne.force + kick.move / dt, borne.torque + kick.turn / dt, borne.z + kick.z / dt)
        self.budget = EnergyBudget(field)

    def _move(self, field: ModalField, kick: Kick, total: Floats, dt: float) -> None:
        """Change where a step of dt [s] led by what impulses within it make of it, and the rates of the modes. Its
        angular momentum about where it counts from is `total` (3,) then."""
        motion, frame = field.motion, field.frame
        modes, _ = field.pace(dt, False)
        motion.rate = motion.rate + modes.s / dt * kick.z
        shift = dt * self._answers(field, dt) * kick.z
        if frame is not None:
            pose = field.pose()
            motion.c = motion.c + dt * kick.move / frame.mass
            turned = rotation_by(dt * pose.inverse_inertia @ kick.turn)
            motion.Q = turned @ motion.Q @ rotation_by(-pose.spin @ shift)
            motion.L = total - frame.mass * np.cross(motion.c, motion.v)
        motion.z = motion.z + shift
        field.lay()
        field.show()

    def _answers(self, field: ModalField, dt: float) -> Floats:
        """How far an impulse within a step of dt [s] leads each mode, over its time, shape (l,): at least as far as one
        that has all the time to give way."""
        modes, _ = field.pace(dt, False)
        return np.maximum(modes.s / dt, 1 / (1 + np.maximum(field.values, 0.0) * dt**2))

    def work(self, before: Floats) -> float:
        """What the pushes of the last step have done since u was `before` (n, 3) [J]."""
        field = self.ready()
        return float(np.vdot(field.force, self.u - before)) * field.matter.density * self.unit**5

    def calm(self, energy: float) -> float:
        """Take some energy of vibration away, as far as there is any; how much that was [J]. Momenta stay."""
        field = self.ready()
        swing = max(ModalEnergy.of(field).swing, 0.0)
        share = min(energy / (field.matter.density * self.unit**5), swing) / max(swing, 1e-300)
        field.motion.rate = np.sqrt(1 - share) * field.motion.rate
        field.show()
        self.budget = EnergyBudget(field)
        return share * swing * field.matter.density * self.unit**5

    def ease(self) -> None:
        """Its response is its own."""

    def borne_state(self) -> State:
        """What a checkpoint keeps of that."""
        borne = self.ready().borne
        return {} if borne is None else {f"borne_{name}": part for name, part in vars(borne).items()}

    def restore_borne(self, state: State) -> None:
        """Take over what `borne_state` gave."""
        names = ("force", "torque", "z")
        known = "borne_z" in state
        self.ready().borne = BorneForce(*(state[f"borne_{name}"] for name in names)) if known else None
