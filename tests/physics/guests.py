"""A phyxel box and simple bodies that are its guests, for the physics tests: what the guests do is written out here."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from phyxel import device as dev
from phyxel.material import Material, Mixture
from phyxel.mls.carry import Carriers
from phyxel.models.phyxel.contact.guests import Booked, GuestContacts
from phyxel.models.phyxel.matter import PhyxelPart
from phyxel.models.phyxel.model import PhyxelModel
from tests.physics.matter import block

UNIT = 0.05
INTERVAL = 1 / 240
UPRIGHT = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
"""a normal and two tangents, for a guest below"""


class GuestBox:
    """A cube of so many phyxels along each edge, turned, whose lower face has a sample below each of its nodes."""

    def __init__(
        self,
        integrator: str = "leapfrog",
        young: float = 1e6,
        damping: float = 0.0,
        gravity: np.ndarray | None = None,
        turn: np.ndarray | None = None,
        cells: int = 4,
    ) -> None:
        self.integrator, self.turn = integrator, np.eye(3) if turn is None else turn
        self.half = 0.5 * cells * UNIT
        X, side = block(cells, cells, cells) @ self.turn.T, np.arange(cells) - (cells - 1) / 2
        n = len(X)
        part = PhyxelPart(X, np.zeros((n, 3)), np.ones(n), np.full(n, 0.5), unit=UNIT, support=2.0)
        self.model = PhyxelModel([part], dev.pick("cpu"))
        material = Material(young=young, poisson=0.3, density=1000.0, damping=damping)
        self.model.set_material(0, Mixture.even(material, n), np.eye(3))
        if gravity is not None:
            self.model.set_acceleration(0, gravity / UNIT)
        self.X, self.masses = X, self.model.matter.mass.numpy().astype(np.float64) * UNIT
        self.mass = float(self.masses.sum())
        samples = np.stack(np.meshgrid(side, [-cells / 2], side, indexing="ij"), axis=-1).reshape(-1, 3) @ self.turn.T
        carriers = Carriers.found(samples, X)
        self.rows, _ = carriers.fit(samples, X)
        self.nodes, self.weights = carriers.nodes, self.rows.data.reshape(carriers.nodes.shape)
        self.count = len(samples)
        self.pressing, self.slip = np.zeros(self.count, bool), np.zeros((self.count, 2))

    def throw(self, velocity: np.ndarray, spin: np.ndarray) -> None:
        """Let it move rigidly [m/s], [1/s]."""
        v = velocity + np.cross(spin, UNIT * self.X)
        self.model.v.assign((v / UNIT).astype(self.model.v.numpy().dtype))

    @property
    def x(self) -> np.ndarray:
        """[m], (n, 3)"""
        return UNIT * (self.X + self.model.u.numpy())

    @property
    def v(self) -> np.ndarray:
        """[m/s], (n, 3)"""
        return UNIT * self.model.v.numpy().astype(np.float64)

    @property
    def places(self) -> np.ndarray:
        """Of the samples [m], (k, 3)."""
        return self.rows @ self.x

    @property
    def momentum(self) -> np.ndarray:
        return self.masses @ self.v

    @property
    def angular_momentum(self) -> np.ndarray:
        return np.cross(self.x, self.masses[:, None] * self.v).sum(axis=0)

    @property
    def energy(self) -> float:
        """Elastic and kinetic [J]."""
        return float(self.model.measure()[0].sum() * UNIT**3 + 0.5 * self.masses @ (self.v**2).sum(axis=1))

    def meet(
        self,
        axes: np.ndarray,
        gap: np.ndarray,
        velocity: np.ndarray,
        response: np.ndarray,
        friction: float = 0.0,
        restitution: float = 0.0,
        foreseen: np.ndarray | None = None,
        interval: float = INTERVAL,
    ) -> Booked:
        """Go on for an interval [s] among contacts of all samples with the same axes."""
        k = self.count
        guests = self.model.set_guests(
            GuestContacts(
                nodes=self.nodes,
                weights=self.weights,
                axes=np.tile(axes, (k, 1, 1)),
                gap=gap,
                friction=np.full(k, friction),
                restitution=np.full(k, restitution),
                velocity=velocity,
                response=response,
                foreseen=np.zeros((k, 3)) if foreseen is None else foreseen,
                slip=self.slip,
                pressing=self.pressing,
                resting=0.05,
            )
        )
        self.go_on(interval)
        booked = guests.booked()
        self.pressing, self.slip = booked.pressing, booked.slip
        return booked

    def go_on(self, interval: float = INTERVAL) -> None:
        """Take steps for an interval [s]."""
        if self.integrator == "implicit":
            self.model.step_implicitly(interval, 1)
        else:
            steps = int(np.ceil(interval / self.model.stable_step()))
            self.model.step(interval / steps, steps)
            self.model.synchronise()


class RigidSlab:
    """A free rigid body below the box, as heavy as `ratio` boxes, with a face that at first is the plane of its lower
    face: it is a guest that does not know of gravity and goes on evenly."""

    def __init__(self, box: GuestBox, ratio: float) -> None:
        self.mass = ratio * box.mass
        self.inertia = self.mass * (2 * box.half) ** 2 / 6
        self.x, self.turn = np.array([0.03, -2 * box.half, -0.02]), np.eye(3)
        self.v, self.spin = np.zeros(3), np.zeros(3)

    @property
    def angular_momentum(self) -> np.ndarray:
        return self.mass * np.cross(self.x, self.v) + self.inertia * self.spin

    @property
    def energy(self) -> float:
        return float(0.5 * self.mass * self.v @ self.v + 0.5 * self.inertia * self.spin @ self.spin)

    def receive(self, box: GuestBox, friction: float, restitution: float) -> Booked:
        """An interval of both. What is booked is given to the slab: momentum, angular momentum and shifts."""
        axes = self.turn.T[[1, 0, 2]]
        arms = box.places - self.x
        J = np.concatenate([axes @ np.hstack([np.eye(3), -_cross(arm)]) for arm in arms])
        response = J @ np.diag([1 / self.mass] * 3 + [1 / self.inertia] * 3) @ J.T
        velocity = (J @ np.concatenate([self.v, self.spin])).reshape(-1, 3)
        booked = box.meet(axes, arms @ axes[0] - box.half, velocity, response, friction, restitution)
        push, shift = (-J.T @ numbers.reshape(-1) for numbers in (booked.impulses, booked.shifts))
        angular = self.angular_momentum + np.cross(self.x, push[:3]) + push[3:] - booked.moments.sum(axis=0)
        self.v = self.v + push[:3] / self.mass
        self.x = self.x + INTERVAL * self.v + shift[:3] / self.mass
        self.spin = (angular - self.mass * np.cross(self.x, self.v)) / self.inertia
        self.turn = Rotation.from_rotvec(INTERVAL * self.spin + shift[3:] / self.inertia).as_matrix() @ self.turn
        return booked


class SprungTable:
    """A table as heavy as `ratio` boxes that moves up and down only, on a damped spring to the floor, by implicit
    Euler steps: (M + cT + kT²) v' = M v + T (−M g − k y) − impulses. The weight of a box makes it sink by `sag` [m]."""

    def __init__(self, box: GuestBox, ratio: float, gravity: float, interval: float, sag: float = 2.5e-4) -> None:
        self.mass, self.gravity, self.interval = ratio * box.mass, gravity, interval
        self.stiffness = box.mass * gravity / sag
        self.inertia = self.mass + interval**2 * self.stiffness
        damping = 2 * np.sqrt((self.mass + box.mass) * self.stiffness)
        self.inertia += interval * damping
        self.y, self.v = -self.mass * gravity / self.stiffness, 0.0
        self.load = np.zeros((box.count, 3))
        """impulses of the interval before, (k, 3)"""

    def _after(self, load: np.ndarray) -> float:
        pushed = self.interval * (self.mass * self.gravity + self.stiffness * self.y) + load[:, 0].sum()
        return (self.mass * self.v - pushed) / self.inertia

    def receive(self, box: GuestBox, friction: float) -> Booked:
        """An interval of both, the table's foreseen with the load of the one before."""
        k, foreseen = box.count, self._after(self.load)
        response = np.kron(np.ones((k, k)), np.diag([1 / self.inertia, 0.0, 0.0]))
        gap, velocity = box.places[:, 1] + box.half - self.y, np.tile([foreseen, 0.0, 0.0], (k, 1))
        force = self.load / self.interval
        booked = box.meet(UPRIGHT, gap, velocity, response, friction, foreseen=force, interval=self.interval)
        self.load = booked.impulses
        self.v = self._after(self.load)
        self.y += self.interval * self.v - booked.shifts[:, 0].sum() / self.inertia
        return booked


def _cross(arm: np.ndarray) -> np.ndarray:
    """The matrix of arm ×."""
    return np.cross(np.eye(3), arm)
