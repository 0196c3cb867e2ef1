"""A step of particle surfaces that meet something (physics 15.16)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from phyxel.body import Body
from phyxel.meeting.contacts import spread_out
from phyxel.meeting.kept import joined, keys_of, numbers_of
from phyxel.meeting.layers import Layers, OthersPoints, Places, in_solid, on_walls, touches_of
from phyxel.meeting.party import Party
from phyxel.meeting.skin import Skins
from phyxel.meeting.stitches import beside
from phyxel.meeting.zones import move_evenly
from phyxel.models.particles.met import MetFlight
from phyxel.models.particles.together import MetStep
from phyxel.models.particles.touches import Touches
from phyxel.movers.met_solid import MetSolid
from phyxel.movers.sewing import Seam
from phyxel.movers.sheet_guests import SheetGuest
from phyxel.rotation import cross

if TYPE_CHECKING:
    from phyxel.movers.sheet_encounters import SheetEncounters

Floats = NDArray[np.float64]

SOFTER, STIFFER, FIRMER = 0.1, 1.0, 30.0
"""How stiff a touch is, over the links of what it bears: of surfaces, which weigh little, and of solids, which may
stretch them; and over its inertia."""
SEWN = 30.0
"""How stiff a stitch is, over a touch of a solid."""
LOOKS = 4
"""How often all is solved, what would still have passed having joined."""
CLOSE = 0.05
"""Gap at the end beyond half a thickness, over how far particles move about the mean, below which surfaces are thought
to touch."""
SUNK, HARDER = 0.5, 10.0
"""Depth in a solid, over half the thickness, from which on touches are made so much stiffer, and all is solved again
with the pushes found: a surface that stops something heavy is stretched with far more than it weighs."""
UNDER_LOAD = 0.5
"""Of that depth, what touches of solids sink in at most under what they bore in the step before."""
MOST_ANSWERS = 40
"""Places at which a body that sees to its footing by itself is asked how it answers: others do as the nearest."""


class MetInterval:
    """A step of surfaces that meet something. Places are in metres about the world's origin."""

    def __init__(
        self, known: SheetEncounters, bodies: Sequence[Body], flights: Sequence[MetFlight], solids: Sequence[MetSolid],
        dt: float, guests: Sequence[SheetGuest],
    ) -> None:  # fmt: skip
        self._guests = guests
        self._known, self._bodies, self._flights, self._solids, self._dt = known, bodies, flights, solids, dt
        self.starts = np.cumsum([0, *(len(one.x) for one in flights)])
        self._whose = np.repeat(np.arange(len(bodies)), np.diff(self.starts))
        self._numbers = joined([numbers_of(body.name, len(one.x)) for body, one in zip(bodies, flights, strict=True)])
        origins = np.array([body.origin for body in bodies])
        self.x = np.concatenate([one.x for one in flights]) + origins[self._whose]
        self._v, self._B, self._pulled, self._wall, self._spot, self._grip = (
            np.concatenate([getattr(one, name) for one in flights])
            for name in ("v", "B", "pull", "wall", "spot", "grip")
        )
        self._spot = self._spot + origins[self._whose]
        for one in guests:
            self._v[self._own(one)] += self._B[self._own(one), None] * one.taken() / dt
        damping = max(float(body.mixture.number("damping").max()) for body in bodies)
        self._scale = 1 + max(damping - 0.5 * dt, 0.0) / dt
        k = np.concatenate([body.sheet.elements.stiffness(body.mixture, body.unit) for body in bodies if body.sheet])
        self._links = known.together(bodies, k)
        skins = [known.skin_of(body) for body in bodies]
        self._radius = np.concatenate([skin.radius for skin in skins])
        with np.errstate(divide="ignore"):
            self._inertia = 1 / (self._scale * dt * self._B)
        heaviest = float(self._inertia[self._B > 0].max(initial=0.0))
        borne = FIRMER * np.minimum(self._inertia, heaviest) + 1e-300
        self._firm = SOFTER * self._links.D + borne, STIFFER * self._links.D + borne
        """how stiffly particles bear each other, and solids do [N/m], shape (n,) each"""
        self._friction = np.array([body.friction for body in bodies])
        others = [one for number, solid in enumerate(solids) for one in self._points_of(number, solid)]
        radii = np.concatenate([np.zeros(0), *(np.full(len(one.start), one.radius) for one in others)])
        world = bodies[0].world
        assert world is not None
        self._skins = Skins.of(skins, radii)
        gained = self._v - np.concatenate([one.v_now for one in flights])
        kept_up = dt * float(np.linalg.norm(gained, axis=1).max())
        self._layers = Layers(self._skins, others, self._friction, self._whose, world.device, kept_up)
        self._seams = self._sew()
        self._layers.seams = [self._sides(one) for one in self._seams]
        self._led: Floats | None = None
        """what all was solved to last, shape (q,)"""
        self._pressed = np.zeros(0)
        """what touches pushed with then [N], shape (k,)"""
        self._led_by = np.zeros((0, 3))
        """how far what bears them has then gone in the step [m], shape (k, 3)"""
        self._number_guests()

    def _own(self, guest: SheetGuest) -> slice:
        """Where the particles of a surface are among all."""
        k = self._bodies.index(guest.body)
        return slice(self.starts[k], self.starts[k + 1])

    def _rub(self, solid: MetSolid) -> float:
        return math.sqrt(float(self._friction.mean()) * solid.body.friction)

    def _points_of(self, number: int, solid: MetSolid) -> list[OthersPoints]:
        """Points of a solid near surfaces, that meet their triangles."""
        seen = solid.seen
        margin = 2 * seen.unit
        lower, upper = self.x.min(axis=0) - margin, self.x.max(axis=0) + margin
        if seen.balls is not None:
            who = np.flatnonzero(((seen.x > lower) & (seen.x < upper)).all(axis=1))
            rows = csr_array((np.ones(len(who)), who, np.arange(len(who) + 1)), (len(who), len(seen.x)))
            end, normal, radius = seen.x[who], None, seen.balls
        else:
            outline = seen.outline
            skin = seen.skin[: outline.points]
            who = np.flatnonzero(((skin > lower) & (skin < upper)).all(axis=1))
            rows = outline.rows(who, np.zeros((len(who), 3)))
            end, normal, radius = skin[who], seen.normals[who], 0.0
        if not len(who):
            return []
        return [OthersPoints(end - rows @ solid.way, end, normal, radius, seen.unit, rows, number, self._rub(solid))]

    def _sew(self) -> list[Seam]:
        """What is sewn to what."""
        first = dict(zip(self._bodies, self.starts.tolist(), strict=False))
        guests = {one.body: (number, one.way, one.seen.x) for number, one in enumerate(self._solids)}
        return self._known.attachments.seams(self.x, first, guests)

    @property
    def _pulling(self) -> list[Seam]:
        """Those that are solved for here. Phyxels are pulled in their own steps, with surfaces as their guests."""
        return [one for one in self._seams if one.stitches.guest not in self._nodes]

    def _sides(self, seam: Seam) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which points of its two bodies are beside a seam, among all."""
        unit = max(seam.body.unit, seam.other.unit)
        sides = np.zeros((2, self._layers.count), bool)
        for side, body in zip(sides, (seam.body, seam.other), strict=True):
            if body in self._bodies:
                k = self._bodies.index(body)
                own = slice(self.starts[k], self.starts[k + 1])
                side[own] = beside(seam.places, self.x[own], unit)
        for at, one in self._layers.points_of(seam.stitches.guest):
            sides[1][at : at + len(one.start)] = beside(seam.places, one.start, unit)
        return sides[0], sides[1]

    def borne_by_seams(self) -> list[tuple[Seam, Floats]]:
        """Seams, and the forces of their stitches on surfaces [N], (k, 3) each."""
        starts = np.cumsum([0, *map(len, self._places)])
        at = [start for one, start in zip(self._places, starts, strict=False) if one.tied]
        return [(one, self._pushes[k : k + len(one.which)]) for one, k in zip(self._pulling, at, strict=True)]

    def _number_guests(self) -> None:
        """Where the unknowns of guests are: nodes behind particles, and answers."""
        self._nodes: dict[int, NDArray[np.integer]] = {}
        self._count = len(self.x)
        for number, solid in enumerate(self._solids):
            if solid.mass is not None:
                self._nodes[number] = self._count + np.arange(len(solid.mass))
                self._count += len(solid.mass)

    def solve(self) -> None:
        """Find where surfaces get to, and what bears them."""
        x, dt = self.x, self._dt
        ahead = x + dt * self._v
        speed = max(float(np.linalg.norm(self._v - self._v.mean(axis=0), axis=1).max()), 1e-9)
        found = self._layers.pairs(x, ahead, 0.25 * dt * speed)
        walls = on_walls(x, self._wall, self._spot, self._grip)
        fixed = [walls, *self._in_solids(), *(one.stitches for one in self._pulling)]
        all_passing, _ = self._layers.passing(found, x, ahead)
        guess = np.where(np.isinf(self._inertia)[:, None], ahead, ahead + dt * self._B[:, None] * self._pulled)
        passing, aside = self._sorted_out(all_passing, guess, float(self._radius.max()) + CLOSE * dt * speed)
        self._start = np.concatenate([x, np.zeros((self._count - len(x), 3))]).reshape(-1)
        self._links.begin()
        least = SUNK * float(self._radius.min())
        harder, about = 1.0, self._known.unclear
        for look in range(LOOKS + 1):
            self._places: list[Places] = [one for one in (*fixed, *passing) if len(one)]
            sunk = self._solve_once(harder, about) > least
            still = self._layers.hits(x, self.x_end)
            met, aside = self._sorted_out(aside, self.x_end, -least)
            clear = not (len(still) or met or sunk)
            if look == 0:
                self._known.unclear = not clear
            if clear and not about:
                break
            # Where nothing is missing, or for the last time, rounds go on to the end.
            about = not clear and look < LOOKS - 1
            harder = HARDER if sunk else harder
            passing = [*passing, *met, *self._layers.passing(still, x, self.x_end)[0]]
        if len(still):
            mass = np.where(self._B > 0, self._dt / np.maximum(self._B, 1e-300), np.inf)
            move_evenly(lambda end: self._layers.hits(x, end), x, self.x_end, self.v_end, mass, dt)
        self._known.kept.keep(self._keys(), self._pushes)
        self._calm()
        self._await_phyxels()

    def _sorted_out(self, places: Sequence[Places], end: Floats, least: float) -> tuple[list[Places], list[Places]]:
        """Places that come nearer than so much [m] where particles get to `end` (n, 3), and those of surfaces among
        themselves that do not: these are so many that it pays to leave them aside."""
        near, far = [], []
        for one in places:
            comes = np.full(len(one), one.guest >= 0)
            comes |= one.gap + np.einsum("ka,kb,kba->k", one.normal, one.weight, (end - self.x)[one.index]) < least
            near.append(one.some(np.flatnonzero(comes)))
            far.append(one.some(np.flatnonzero(~comes)))
        return [one for one in near if len(one)], [one for one in far if len(one)]

    def _await_phyxels(self) -> None:
        """Tell surfaces that are sewn to phyxels where they have got, and how they answer."""
        if not self._guests or self._led is None:
            return
        answer = self._links.answers(self._led, self._step, self.x)

        def gains(own: slice) -> Callable[[Floats], Floats]:
            def of(impulses: Floats) -> Floats:
                forces = np.zeros_like(self.x)
                forces[own] = impulses / self._dt
                return answer(forces)[own] / (self._scale * self._dt)

            return of

        for one in self._guests:
            one.step_done(self.x_end[self._own(one)], gains(self._own(one)))

    def held_against(self) -> dict[Body, Floats]:
        """What phyxel bodies' own forces did to nodes that were pressed [m/s²], (n, 3) each; see `MetSolid`."""
        assert self._led is not None
        answered = self._led[: 3 * self._count].reshape(-1, 3) / self._scale
        found = {}
        for number, nodes in self._nodes.items():
            solid, (rows, _, forces) = self._solids[number], self.on_guest(number)
            found[solid.body] = solid.held_against(answered[nodes], rows, forces, self._dt)
        return found

    def hear_phyxels(self) -> None:
        """Surfaces that are sewn to phyxels are given what these did to them more than was foreseen."""
        with np.errstate(divide="ignore"):
            mass = self._dt / self._B
        for one in self._guests:
            own = self._own(one)
            gained = one.gains(mass[own])
            self.v_end[own] += gained
            self.x_end[own] += self._dt * gained

    def _in_solids(self) -> list[Places]:
        found: list[Places] = []
        for number, solid in enumerate(self._solids):
            speed = float(np.linalg.norm(solid.way, axis=1).max()) / self._dt
            speed += float(np.linalg.norm(self._v, axis=1).max())
            margin = 0.1 * solid.seen.unit + 1.5 * self._dt * speed
            rub = self._rub(solid)
            touching = in_solid(self.x, self._skins, solid.seen, number, solid.way, rub, margin)
            found += [self._clear_of_seams(one) for one in touching]
        return found

    def _clear_of_seams(self, places: Places) -> Places:
        """Those that are not beside what sews them to their guest."""
        for seam, (own, _) in zip(self._seams, self._layers.seams, strict=True):
            if seam.stitches.guest == places.guest:
                places = places.some(np.flatnonzero(~own[places.index[:, 0]]))
        return places

    def _solve_once(self, harder: float, about: bool) -> float:
        """With solids so much harder, from the pushes that the last look has found, to the end or only about; how deep
        something is left in one [m]."""
        x, dt, scale = self.x, self._dt, self._scale
        answers, foreseen = self._answers()
        counts = self._count, len(foreseen)
        firm = [self._firmness(one, harder) for one in self._places]
        touches = Touches.none(*counts)
        if self._places:
            touches = touches_of(self._places, x, firm, counts, scale, self._nodes, answers)
        bears = np.array([one.guest >= 0 and not one.tied for one in self._places], bool)
        solid = np.repeat(bears, list(map(len, self._places)))
        kept = np.einsum("kab,kb->ka", touches.axes, self._known.kept.recalled(self._keys()))
        before = np.concatenate([self._pressed, np.zeros(len(touches) - len(self._pressed))])
        pushes = np.concatenate([self._pressed, np.maximum(kept[len(self._pressed) :, 0], 0.0)])
        borne = np.where(solid, pushes, 0.0)
        touches = replace(touches, stiff=np.maximum(touches.stiff, borne / (UNDER_LOAD * SUNK * self._radius.min())))
        pressed = np.where(solid & (harder > 1), before, 0.0)
        touches = touches.known(pressed).rubbed(kept)
        free = np.concatenate([x + scale * dt * self._v, self._nodes_free()]).reshape(-1)
        inertia = np.repeat(np.concatenate([self._inertia, self._nodes_inertia()]), 3)
        step = MetStep(
            np.concatenate([self._start, np.zeros(counts[1])]), np.concatenate([free, scale * foreseen]),
            np.concatenate([inertia, np.full(counts[1], 1 / scale)]), scale,
        )  # fmt: skip
        n = x.size
        start = step.free.copy()
        if self._led is None:
            start[:n] += np.where(np.isinf(inertia[:n]), 0.0, self._pulled.reshape(-1) / inertia[:n])
        else:
            known = len(start) if len(start) == len(self._led) else n
            start[:known] = self._led[:known]
        q, forces = self._links.solve(step, touches, start, pushes, about)
        self._led, self._pressed, self._step = q, forces[:, 0], step
        forces = self._as_felt(forces, touches, step, q)
        acting = touches.pull(forces)[:n].reshape(-1, 3)
        y = self._balanced(q[:n].reshape(-1, 3), acting, free[:n].reshape(-1, 3))
        held = np.isinf(self._inertia)[:, None]
        self.pull = np.where(held, 0.0, np.where(held, 0.0, self._inertia[:, None]) * (y - free[:n].reshape(-1, 3)))
        self.v_end = self._v + self._B[:, None] * self.pull
        self.x_end = np.where(held, x + dt * self._v, x + dt * self.v_end)
        self._fly_on(acting)
        self._pushes = (touches.axes.swapaxes(1, 2) @ forces[:, :, None])[:, :, 0]
        answered = touches.moved(np.concatenate([np.zeros(n), q[n:]])) / scale
        foreseen = np.concatenate([np.zeros((0, 3)), *(one.way for one in self._places)])
        self._led_by = foreseen - (touches.axes.swapaxes(1, 2) @ answered[:, :, None])[:, :, 0]
        return float(-(touches.seen(q, scale)[:, 0] + pressed / touches.stiff)[solid].min(initial=0.0))

    def _keys(self) -> NDArray[np.uint64]:
        """Of all touches, the same in every step."""
        names = [one.body.name for one in self._solids]
        return joined([keys_of(one, self._numbers, names[one.guest] if one.guest >= 0 else "") for one in self._places])

    def _firmness(self, places: Places, harder: float) -> Floats:
        """How stiffly particles are borne there [N/m], shape (n,)."""
        if places.tied:
            return SEWN * self._firm[1]
        return harder * self._firm[1] if places.guest >= 0 else self._firm[0]

    def _as_felt(self, forces: Floats, touches: Touches, step: MetStep, q: Floats) -> Floats:
        """Forces of touches (k, 3), no larger than free surfaces as a whole, and guests, have felt them (in terms of
        the energy that they give): of stiff ones the last digits of places say little where rounds end early. Surfaces
        that are sewn to a guest are not free: stitches and what lies on them all but cancel."""
        n, free = self.x.size, np.isfinite(step.inertia)
        inertia = np.where(free, step.inertia, 0.0)
        felt, acting = inertia * (q - step.free), np.where(free, touches.pull(forces), 0.0)
        weight = np.where(free, 1 / np.where(free, step.inertia, 1.0), 0.0)
        pairs = [(weight[n:], felt[n:], acting[n:])]
        sewn = {one.body for one in self._pulling if one.stitches.guest >= 0}
        for k, flight in enumerate(self._flights):
            if (flight.B > 0).all() and self._bodies[k] not in sewn:
                own = slice(3 * self.starts[k], 3 * self.starts[k + 1])
                sums = (part[own].reshape(-1, 3).sum(axis=0) for part in (felt, acting))
                pairs.append((np.array(3 / inertia[own].sum()), *sums))
        size = sum(float((w * there**2).sum()) for w, _, there in pairs)
        same = sum(float((w * here * there).sum()) for w, here, there in pairs)
        return forces * float(np.clip(same / size, 0.0, 1.0)) if size > 0 else forces

    def _calm(self) -> None:
        """What surfaces have got more than forces and guests have done is taken from how their particles move about
        the motion of each as a whole: rounds that end early would lend it."""
        mass, way = np.where(self._B > 0, self._dt / np.maximum(self._B, 1e-300), 0.0), self.x_end - self.x
        before, flown = np.concatenate([one.v_now for one in self._flights]), self._v
        done = float((mass[:, None] * (flown - before) * way).sum()) / self._dt
        done += float((self._pushes * self._led_by).sum())
        elastic = self._links.energy(self.x_end) - self._links.energy(self.x)
        gained = elastic - done + 0.5 * float(mass @ (np.square(self.v_end) - np.square(before)).sum(axis=1))
        if gained <= 0:
            return
        about = np.zeros_like(self.v_end)
        for k, flight in enumerate(self._flights):
            own = slice(self.starts[k], self.starts[k + 1])
            if (flight.B > 0).all():
                about[own] = _whole(self.x_end[own], self.v_end[own], mass[own])
        moving = np.where(self._B[:, None] > 0, self.v_end - about, 0.0)
        there = 0.5 * float(mass @ np.square(moving).sum(axis=1))
        self.v_end -= (1 - math.sqrt(max(1 - gained / max(there, 1e-300), 0.0))) * moving

    def _fly_on(self, acting: Floats) -> None:
        """A surface that nothing touches after all falls as far as it does by itself, as a whole."""
        for k, flight in enumerate(self._flights):
            own = slice(self.starts[k], self.starts[k + 1])
            if not acting[own].any() and (self._B[own] > 0).all():
                self.x_end[own] += (flight.x_free - flight.x - self._dt * flight.v).mean(axis=0)

    def _balanced(self, y: Floats, acting: Floats, free: Floats) -> Floats:
        """y moved and turned piece by piece until links push nothing about as a whole (physics 13.5)."""
        return y + self._links.unbalanced(y - free, self._inertia, acting, self.x)

    def _nodes_free(self) -> Floats:
        """Of nodes of guests, beyond where they are foreseen to be: what they were foreseen to bear, less (m, 3)."""
        parts = [np.zeros((0, 3))]
        for number in self._nodes:
            solid = self._solids[number]
            assert solid.mass is not None
            borne = self._known.foreseen_on(solid.body)
            force = np.zeros((len(solid.mass), 3)) if borne is None else np.asarray(borne[0].T @ borne[1])
            parts.append(-self._scale * self._dt**2 * force / solid.mass[:, None])
        return np.concatenate(parts)

    def _nodes_inertia(self) -> Floats:
        masses = [self._solids[number].mass for number in self._nodes]
        return np.concatenate([np.zeros(0), *masses]) / (self._dt**2 * self._scale)

    def _answers(self) -> tuple[dict[int, tuple[int, Floats]], Floats]:
        """Where answers of guests begin, how they move their places, (3k, r), and what answers they are foreseen to
        give back."""
        found, free, first = {}, [np.zeros(0)], 0
        for number, solid in enumerate(self._solids):
            mine = [one.rows for one in self._places if one.guest == number and one.rows is not None]
            if solid.mass is not None or not mine:
                continue
            borne = self._known.foreseen_on(solid.body)
            rows = csr_array(vstack([*mine, *([] if borne is None else [borne[0]])]))
            L = self._response(solid.party, rows)
            count = sum(one.shape[0] for one in mine)
            found[number] = first, self._dt * L[: 3 * count]
            back = np.zeros(L.shape[1]) if borne is None else -self._dt * (L[3 * count :].T @ borne[1].reshape(-1))
            free.append(back)
            first += L.shape[1]
        return found, np.concatenate(free)

    def _response(self, party: Party, rows: csr_array) -> Floats:
        """A root of how a guest answers at places, (3k, r)."""
        if party.model.with_others is not False or rows.shape[0] <= MOST_ANSWERS:
            return party.response(rows, self._dt)
        places = np.asarray(rows @ party.x)
        asked = spread_out(places, np.zeros(len(places)), party.unit, MOST_ANSWERS)
        nearest = np.linalg.norm(places[:, None] - places[asked], axis=2).argmin(axis=1)
        L = party.response(csr_array(rows[asked]), self._dt).reshape(len(asked), 3, -1)
        return np.asarray(L[nearest].reshape(3 * len(places), -1))

    def on_guest(self, number: int) -> tuple[csr_array, Floats, Floats]:
        """φ where surfaces press a solid, where that was when the step began, and forces on it [N], (k, 3) each."""
        starts = np.cumsum([0, *map(len, self._places)])
        rows, places, forces = [], [], []
        for one, start in zip(self._places, starts[:-1], strict=True):
            if one.guest != number or one.rows is None:
                continue
            force = -self._pushes[start : start + len(one)]
            acts = np.flatnonzero(force.any(axis=1))
            rows.append(csr_array(one.rows[acts]))
            places.append(np.einsum("kb,kba->ka", one.weight, self.x[one.index])[acts])
            forces.append(force[acts])
        if not rows:
            return csr_array((0, len(self._solids[number].way))), np.zeros((0, 3)), np.zeros((0, 3))
        return csr_array(vstack(rows)), np.concatenate(places), np.concatenate(forces)


def _whole(x: Floats, v: Floats, mass: Floats) -> Floats:
    """Velocities (n, 3) of particles that move and turn as a whole, with the momenta that they have."""
    arm, even = x - mass @ x / mass.sum(), mass @ v / mass.sum()
    inertia = np.eye(3) * (mass @ np.square(arm).sum(axis=1)) - (arm * mass[:, None]).T @ arm
    spin = np.linalg.solve(inertia + 1e-9 * np.trace(inertia) * np.eye(3), (mass[:, None] * cross(arm, v)).sum(axis=0))
    return np.asarray(even + np.cross(spin, arm))
