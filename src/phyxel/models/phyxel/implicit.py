"""Implicit steps for phyxels (M04 §3.6, physics 5.4): stiff bodies at frame-sized steps, of second order (`stages`) but
where something happens; and steps towards rest (physics 5.8). Momenta of bodies that nothing else touches are put right
afterwards."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.models.phyxel.conjugate import GAINED
from phyxel.models.phyxel.momenta import freely, put_to, with_momenta
from phyxel.models.phyxel.newton import Newton
from phyxel.models.phyxel.stages import EULER, FIRST, IDLE, SECOND
from phyxel.models.second_order import SHARE

if TYPE_CHECKING:
    from phyxel.models.phyxel.model import PhyxelModel

Floats = NDArray[np.float64]

FEWEST_NEWTON, MOST_NEWTON = 2, 8
"""Newton iterations; more than the fewest only while contacts change or corrections have to be shortened."""
MOST_STATIC, STATIC_SHARE = 20, 1e-2
"""Newton iterations of a step towards rest, and what of its way may be left to go."""
ROUNDED, NOTICED = 1e-6, 0.01
"""Share of the energy below which a correction is rounding; and change of friction that is found anew."""
HALVINGS = 4
"""How often a step is halved, at most, in which a blow would give energy."""


class Implicit(Newton):
    """Implicit steps of a phyxel model."""

    def __init__(self, model: PhyxelModel) -> None:
        super().__init__(model)
        self._h = np.zeros(len(model.ranges))
        """of each body's last stage [s]"""

    @property
    def state(self) -> dict[str, wp.array]:
        """What one step leaves to the next: how phyxels met the colliders and each other, and accelerations."""
        pressing = {f"pressing_{name}": array for name, array in self._pressing.items()}
        return self._contacts | pressing | self.carried.arrays

    @property
    def _contacts(self) -> dict[str, wp.array]:
        return {field.name: getattr(self._met, field.name) for field in fields(self._met)}

    def forget_contacts(self) -> None:
        """A collider is gone."""
        self._met.contact.zero_()

    def step(self, dt: float, halvings: int = HALVINGS) -> None:
        """One step of dt [s]: of second order where accelerations are known and touch stays as it is (physics 5.4). Its
        halves, where a blow against colliders alone would leave a body with more energy than it can have."""
        guarded = halvings > 0 and self._may_hit_colliders()
        if guarded:
            self._know_budget()
        before = [(array, wp.clone(array)) for array in self._contacts.values()] if guarded else []
        steady = self._attempt(dt)
        alone = guarded and not (self._touching or self._receiving)
        if alone and not steady.all() and not self.carried.sane(*self._energies()).all():
            for array, kept in [*before, (self._model.v, self._step.v_start)]:
                wp.copy(array, kept)
            self.step(dt / 2, halvings - 1)
            self.step(dt / 2, halvings - 1)
        else:
            self._finish(dt, steady)

    def _attempt(self, dt: float) -> NDArray[np.bool_]:
        """Find the end of a step; of which bodies (bodies,) touch stayed as it was."""
        carried, party = self.carried, self._near_parties()
        self._step.v_start.assign(self._model.v)
        self._whole.host[:] = dt
        self._whole.push()
        self._negligible, self._acceptable = self._small_energies(dt)
        stage = np.where(_of_parties(carried.known(), party), FIRST, EULER)
        self._pass(dt, stage)
        changed = self._touch_changed(party, dt)
        stage = np.select([stage == EULER, changed], [IDLE, EULER], SECOND)
        if stage.any():
            self._pass(dt, stage)
            changed = self._touch_changed(party, dt)
            again = (stage == SECOND) & changed
            if again.any():
                self._pass(dt, np.where(again, EULER, IDLE))
        return ~changed

    def _pass(self, dt: float, stage: NDArray[np.integer]) -> None:
        """Solve for the end of a stage of each body, (bodies,)."""
        self._stage.host[:] = stage
        self._stage.push()
        h = np.select([stage == IDLE, stage == EULER], [0.0, dt], SHARE * dt)
        self._start(h)
        self._loosen(1.0)
        self._largest = 0.0
        whole = True
        for iteration in range(MOST_NEWTON):
            changed = self._update_contacts()
            if iteration >= FEWEST_NEWTON and whole and not changed and self._settled:
                break
            whole = self._iterate(self._solve)
        self._run("residual")
        self._h = np.where(h > 0, h, self._h)

    def _near_parties(self) -> NDArray[np.integer]:
        """The number of each body's group of bodies that may touch, shape (bodies,): they step alike."""
        contact = self._model.contact
        return np.arange(len(self._model.ranges)) if contact is None else contact.near_parties()

    def _touch_changed(self, party: NDArray[np.integer], dt: float) -> NDArray[np.bool_]:
        """Which bodies (bodies,) of groups `party` touch colliders otherwise than after the last step; or something
        that moves: a collider stands where it will be at the end of the step, and springs between bodies and of guests
        push by where a stage begins, so that what they did is none of the acceleration at the start of the next."""
        met = self._met.contact.numpy() > 0
        steady = (met == self.carried.met.numpy()) & ~(met & self._met.wall.numpy().any(axis=1))
        if self._springs is not None and self._touching:
            steady &= self._springs.pressed == 0
        if self._guests is not None and self._receiving:
            steady &= ~self._guests.closing(dt)
        return ~_of_parties(self.carried.of_bodies(steady), party)

    def relax(self, dt: float, near: float, flows: bool) -> tuple[bool, bool]:
        """One step of dt [s] from rest that forgets its speed, till no phyxel has further to go in it than `near`
        spacings, or a small share of its way; whether that was found, and whether friction is what pressure allows
        there. What can flow does, if `flows` (physics 5.8)."""
        model, bodies = self._model, len(self._model.ranges)
        self.carried.forget()
        if model.contact is not None:
            model.contact.contacts.slip.zero_()
        self._met.slip.zero_()
        self._step.v_start.zero_()
        self._stage.host[:] = EULER
        self._stage.push()
        self._whole.host[:] = dt
        self._whole.push()
        self._start(np.full(bodies, dt))
        whole, there, found, steady = False, False, False, False
        for iteration in range(MOST_STATIC):
            rubbed = self._met.rub.numpy().copy()
            found = not self._update_contacts() and whole and there
            if iteration == 0:
                self._rub_as_before(rubbed, dt)
            steady = np.allclose(rubbed, self._met.rub.numpy(), rtol=NOTICED, atol=0.0)
            if found and steady:
                break
            # Of a body that something holds, no long step moves the whole by as much as its mass alone would let it.
            self._loosen(0.0)
            whole = self._iterate(self._solve_wholly)
            far = dt * _largest(self._step.delta)
            rounded = self._solver.host[GAINED] <= ROUNDED * abs(self._merit())
            there = bool(rounded or far <= max(near, STATIC_SHARE * dt * _largest(model.v)))
        self._run("residual")
        self._h[:] = dt
        model.u.assign(self._step.ahead)
        model.v.zero_()
        if found and flows:
            self._run("flow")
        # At rest the balls that touch have followed all the way (physics 15.2).
        past = model.matter.past.numpy()
        model.now.ball.assign(past + model.now.gradient.numpy() @ past)
        return found, steady

    def _rub_as_before(self, rubbed: NDArray[np.floating], dt: float) -> None:
        """Let what rubbed (n,) in the step before slide on as fast, in spacings a step, though nothing has a speed yet:
        found anew from rest in each step, a phyxel that has far to slide would hardly get on."""
        ratio = (dt / np.where(self._h > 0, self._h, dt))[self._model.matter.body.numpy()]
        rub = self._met.rub.numpy()
        self._met.rub.assign(np.where((rub > 0) & (rubbed > 0), rubbed * ratio**2, rub).astype(rub.dtype))

    def falling_time(self) -> float:
        """Time [s] in which a body that nothing holds or touches falls about a spacing; infinite if there is none."""
        m = self._model
        push = np.abs(m.outside.pushes(m.matter.body.numpy())).max(axis=1)
        free = [party for party in self._parties() if not self._touched[party].any()]
        fastest = max((float(push[party].max()) for party in free), default=0.0)
        return 1 / np.sqrt(fastest) if fastest > 0 else np.inf

    def _finish(self, dt: float, steady: NDArray[np.bool_]) -> None:
        """Go where v' leads, and put the momenta of bodies that nothing else touches right. Accelerations of `steady`
        bodies (bodies,) serve the next step."""
        m = self._model
        body = m.matter.body.numpy()
        unit, h, push = np.array(m.units)[body][:, None], self._h[body][:, None], m.outside.pushes(body)
        v = m.v.numpy().astype(np.float64)
        inner = (v - self._step.v_old.numpy()) / h - push
        drag = m.matter.drag.numpy().astype(np.float64)[:, None]
        free = unit * freely(self._step.v_start.numpy().astype(np.float64), push, drag, dt, h)
        origins = np.zeros((len(m.ranges), 3)) if m.contact is None else m.contact.offsets
        X = m.matter.X.numpy().astype(np.float64)
        x, ahead = (origins[body] + unit * (X + u.numpy()) for u in (m.u, self._step.ahead))
        v, mass, touched = unit * v, m.matter.mass.numpy() * unit[:, 0], self._touched
        received = np.zeros(len(m), bool)
        if self._guests is not None and self._receiving:
            free += self._guests.book(dt, ahead - x) / (mass[:, None] * (1 + dt * drag))
            received = self._guests.pressed
        for part in self._parties():
            if not touched[part].any():
                before = mass[part] @ v[part]
                v[part] = with_momenta(x[part], ahead[part], free[part], v[part], mass[part])
                if received[part].any():  # where guests push, middles go with the velocity that they leave
                    ahead[part] += dt * (mass[part] @ v[part] - before) / mass[part].sum()
        m.v.assign((v / unit).astype(m.v.numpy().dtype))
        if received.any():
            self._step.ahead.assign(((ahead - origins[body]) / unit - X).astype(m.u.numpy().dtype))
        energies = self._energies()
        self._run("follow")
        m.u.assign(self._step.ahead)
        met, steady = self._met.contact.numpy() > 0, steady & ~self._flowed()
        self.carried.keep(inner, met, steady, *energies)

    def _energies(self) -> tuple[Floats, Floats, Floats]:
        """Energy of each phyxel at the end of a step, what pushes have done on it, NaN if something else has,
        too, and what takes it a spacing against pushes, (n,) each [J]."""
        m = self._model
        body = m.matter.body.numpy()
        unit, pushes = np.array(m.units)[body], m.outside.pushes(body)
        mass, v = m.matter.mass.numpy() * unit, unit[:, None] * m.v.numpy().astype(np.float64)
        self._run("energy")
        energy = unit**3 * self._step.energy.numpy() + 0.5 * mass * (v * v).sum(axis=1)
        pull = (mass * unit)[:, None] * pushes
        way = unit[:, None] * (self._step.ahead.numpy().astype(np.float64) - m.u.numpy())
        work, lift = (pull * way).sum(axis=1), unit * np.linalg.norm(pull, axis=1)
        work[self._driven()] = np.nan
        return energy, work, lift

    def _may_hit_colliders(self) -> bool:
        """Whether there are any, and all stand still."""
        colliders = self._model.colliders
        return colliders.count > 0 and not (colliders.drift.numpy().any() or colliders.spin.numpy().any())

    def _know_budget(self) -> None:
        """What energy bodies have, of which that is not known: before something new acts on them."""
        if self.carried.budgeted():
            return
        self._dt.host[:] = 0.0
        self._dt.push()
        for array in (self._step.ahead, self._step.y):
            array.assign(self._model.u)
        self._run("residual")
        energy, _, _ = self._energies()
        self.carried.learn(energy)

    def push(self, dt: float, impulses: Floats, momentum: Floats, spin: Floats, origins: Floats) -> float:
        """Let impulses (n, 3) [N s] act within the last step, of dt [s]: one more solve of its system (physics 15.14).
        Bodies with these origins (bodies, 3) [m] are to get so much momentum and angular momentum about the world's
        origin, (bodies, 3) each [N s, N m s]; they do to rounding, unless something else holds them. How far phyxels
        move by it, at most [m]."""
        m, a = self._model, self._step
        body = m.matter.body.numpy()
        unit = np.array(m.units)[body][:, None]
        self._dt.host[:] = dt
        self._dt.push()
        if self._receiving:  # guests have been given theirs
            self._receiving = False
            a.coupling.zero_()
            a.stiffer.zero_()
        self._run("precondition")
        wanted = np.einsum("nab,nb->na", self.freedoms(), impulses / unit**2).astype(a.r.numpy().dtype)

        def again() -> None:
            a.r.assign(wanted)

        again()
        self._solve(again)
        delta, u, v = (array.numpy().astype(np.float64) for array in (a.delta, m.u, m.v))
        mass = m.matter.mass.numpy() * unit[:, 0]
        x = origins[body] + unit * (m.matter.X.numpy() + u)
        ahead, new = x + dt * unit * delta, unit * (v + delta)
        for part in self._parties():
            if not self._touched[part].any():
                before, own = mass[part][:, None] * unit[part] * v[part], np.unique(body[part])
                P = before.sum(axis=0) + momentum[own].sum(axis=0)
                L = np.cross(x[part], before).sum(axis=0) + spin[own].sum(axis=0)
                new[part] = put_to(ahead[part], new[part], mass[part], P, L)
        m.v.assign((new / unit).astype(m.v.numpy().dtype))
        m.u.assign((u + dt * delta).astype(m.u.numpy().dtype))
        return dt * float(np.linalg.norm(unit * delta, axis=1).max())

    def freedoms(self) -> Floats:
        """The ways that holds and colliders leave to each phyxel, as a projection onto them, shape (n, 3, 3)."""
        normal = self._met.normal.numpy() * (self._met.contact.numpy() > 0)[:, None]
        free = np.eye(3) - np.einsum("na,nb->nab", normal, normal).astype(np.float64)
        return np.where(self._model.outside.hold.numpy()[:, None, None] >= 0, 0.0, free)

    def answers(self) -> Floats:
        """How phyxels answer impulses in the last step by their own blocks of its system [1/kg], shape (n, 3, 3)."""
        unit = np.array(self._model.units)[self._model.matter.body.numpy()][:, None, None]
        free = self.freedoms()
        return np.asarray(free @ (self._step.inverse_block.numpy() / unit) @ free)

    def _driven(self) -> NDArray[np.bool_]:
        """Phyxels (n,) on which something that moves may have done work in the step."""
        outside, met = self._model.outside, self._met
        driven = (met.contact.numpy() > 0) & met.wall.numpy().any(axis=1)
        hold = outside.hold.numpy()
        driven |= (hold >= 0) & outside.hold_velocity.numpy()[np.maximum(hold, 0)].any(axis=1)
        if self._springs is not None and self._touching:
            driven |= self._springs.pressed == 1
        if self._guests is not None and self._receiving:
            driven |= self._guests.pressed
        return driven

    def _flowed(self) -> NDArray[np.bool_]:
        """Let what can flow; which bodies did, shape (bodies,)."""
        if not self._model.materials.flows:
            return np.zeros(len(self._model.ranges), bool)
        before = self._model.now.plastic.numpy().copy()
        self._run("flow")
        return ~self.carried.of_bodies((self._model.now.plastic.numpy() == before).all(axis=(1, 2)))


def _largest(field: wp.array) -> float:
    return float(np.abs(field.numpy()).max())


def _of_parties(good: NDArray[np.bool_], party: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Which bodies are of a group `party` (bodies,) all of which are `good` (bodies,)."""
    return np.bincount(party[~good], minlength=party.max() + 1)[party] == 0
