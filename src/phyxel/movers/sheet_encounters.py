"""Particle surfaces meet solids, each other and themselves (physics 15.16): their links and all that bears them are
solved for together, other bodies being guests that answer."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from phyxel.body import Body
from phyxel.meeting.kept import KeptForces
from phyxel.meeting.party import Party
from phyxel.meeting.skin import Skin
from phyxel.models.particles.together import Together
from phyxel.movers.attachments import Attachments
from phyxel.movers.met_solid import MetSolid
from phyxel.movers.outlines import skin_of
from phyxel.movers.sheet_bodies import SheetBodies, SheetBody
from phyxel.movers.sheet_guests import SheetGuest
from phyxel.movers.sheet_interval import MetInterval
from phyxel.movers.sheet_neighbours import Boxes, Company, SelfWatch, come_close
from phyxel.state import State, prefixed, unprefixed

Floats = NDArray[np.float64]


class SheetEncounters:
    """How surfaces of a world meet what is near."""

    def __init__(self, attachments: Attachments) -> None:
        self.attachments = attachments
        self._skins: dict[Body, Skin] = {}
        self._watch = SelfWatch()
        self._aloft: tuple[MetInterval, list[SheetBody]] | None = None
        """a step that has not landed yet"""
        self._together: tuple[tuple[Body, ...], Together] | None = None
        self._borne: dict[Body, tuple[csr_array, Floats]] = {}
        """what surfaces pressed each solid with in the last interval: φ there, and forces [N]"""
        self._against: dict[Body, Floats] = {}
        """what phyxel bodies' own forces did in the last interval to nodes that surfaces pressed [m/s²], (n, 3) each"""
        self.kept = KeptForces()
        self.unclear = False
        """whether something was missing where the last interval was first solved to: then it may be in the next one"""

    def forget(self) -> None:
        """Bodies have come or gone."""
        self._together = None
        self._borne.clear()
        self._against.clear()
        self._watch.looked.clear()

    def state(self) -> State:
        """What a checkpoint keeps of it."""
        kept: State = {f"looked.{body.name}": x for body, x in self._watch.looked.items()}
        kept |= prefixed("kept.", self.kept.state()) | {"unclear": np.array(self.unclear)}
        kept |= {f"against.{body.name}": a for body, a in self._against.items()}
        for body, (rows, forces) in self._borne.items():
            of_rows = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": np.array(rows.shape)}
            kept |= prefixed(f"borne.{body.name}.", of_rows | {"forces": forces})
        return kept

    def restore(self, state: State, bodies: Sequence[Body]) -> None:
        """Take over what `state` gave, of these bodies."""
        self.forget()
        self.kept.restore(unprefixed("kept.", state))
        self.unclear = bool(state["unclear"])
        for body in bodies:
            if f"looked.{body.name}" in state:
                self._watch.looked[body] = state[f"looked.{body.name}"]
            if f"against.{body.name}" in state:
                self._against[body] = state[f"against.{body.name}"]
            if borne := unprefixed(f"borne.{body.name}.", state):
                rows = csr_array((borne["data"], borne["indices"], borne["indptr"]), tuple(borne["shape"]))
                self._borne[body] = rows, borne["forces"]

    def skin_of(self, body: Body) -> Skin:
        if body not in self._skins:
            self._skins[body] = skin_of(body)
        return self._skins[body]

    def near(self, sheets: Sequence[Body], solids: Sequence[Body], span: float, gravity: Floats) -> Company | None:
        """Who of some surfaces may come to touch solids, each other or itself within a span of time [s], and which
        solids that are; None if nobody."""
        if not sheets:
            return None
        boxes, sewn = Boxes(span, gravity), self.attachments.sewn

        def meet(one: Body, other: Body) -> bool:
            if (one, other) in sewn or (other, one) in sewn:
                return True
            return boxes.overlap(one, other) and come_close(one, other, span, gravity)

        met = [one for one in solids if any(meet(one, sheet) for sheet in sheets)]
        busy = [
            one
            for one in sheets
            if any(meet(one, other) for other in met)
            or any(one in pair for pair in sewn)
            or any(meet(one, other) for other in sheets if other is not one and _linked(one) and _linked(other))
            or (one.meets_itself and self._watch.may_meet(one, self.skin_of(one), span))
        ]
        return Company(busy, met) if busy else None

    @staticmethod
    def near_boxes(sheets: Sequence[Body], solids: Sequence[Body], span: float, gravity: Floats) -> bool:
        """Whether some surfaces might come to touch anything within a span of time [s], by boxes around them."""
        boxes, linked = Boxes(span, gravity), [body for body in sheets if _linked(body)]
        pairs = itertools.chain(itertools.product(sheets, solids), itertools.combinations(linked, 2))
        return any(body.meets_itself for body in sheets) or any(boxes.overlap(*pair) for pair in pairs)

    def load(self, solids: Sequence[MetSolid], dt: float) -> None:
        """Let solids bear within their step of dt [s] what they bore in the last interval."""
        for one in solids:
            if one.mass is None and one.body in self._borne:
                rows, forces = self._borne[one.body]
                one.party.push(rows, self._places_before(one.party, rows), dt * forces, dt)

    @staticmethod
    def _places_before(party: Party, rows: csr_array) -> Floats:
        """Where places with φ in rows were when the step began."""
        x = party.origin + party.unit * (party.model.space.nodes + party.before)
        return np.asarray(rows @ x)

    def meet(
        self, mover: SheetBodies, bodies: Sequence[Body], solids: Sequence[MetSolid], guests: Sequence[SheetGuest],
        dt: float, end: float,
    ) -> dict[Body, Floats]:  # fmt: skip
        """Let surfaces go on by dt [s] until `end` among solids, to be landed when those that are sewn to phyxels have
        been their guests; what nodes of bodies that move each by itself get [N s], shape (n, 3) each. Others are given
        theirs."""
        sheets = [mover.sheet_of(body) for body in bodies]
        flights = [sheet.depart(dt, end) for sheet in sheets]
        step = MetInterval(self, bodies, flights, solids, dt, guests)
        step.solve()
        for seam, force in step.borne_by_seams():
            self.attachments.bear_seam(seam, force, end)
        self._aloft = step, sheets
        return self._settle(step, solids, dt)

    def land(self, end: float) -> None:
        """Surfaces that met something end their step at a time [s], after all others."""
        if self._aloft is None:
            self._against.clear()
            return
        (step, sheets), self._aloft = self._aloft, None
        step.hear_phyxels()
        self._against = step.held_against()
        for k, sheet in enumerate(sheets):
            own = slice(step.starts[k], step.starts[k + 1])
            sheet.land(step.x_end[own] - sheet.body.origin, step.v_end[own], step.pull[own], end)

    def _settle(self, step: MetInterval, solids: Sequence[MetSolid], dt: float) -> dict[Body, Floats]:
        """Give solids what they got less what was foreseen."""
        kicks = {}
        for number, one in enumerate(solids):
            rows, places, forces = step.on_guest(number)
            before = self._borne.pop(one.body, None)
            if len(forces):
                self._borne[one.body] = rows, forces
            if one.mass is not None:
                kicks[one.body] = np.asarray(rows.T @ (dt * forces)) if len(forces) else np.zeros((len(one.mass), 3))
                continue
            if before is not None:
                old, foreseen = before
                rows = csr_array(vstack([rows, old]))
                places = np.concatenate([places, self._places_before(one.party, old)])
                forces = np.concatenate([forces, -foreseen])
            if len(forces):
                one.party.push(rows, places, dt * forces, dt)
        return kicks

    def foreseen_on(self, body: Body) -> tuple[csr_array, Floats] | None:
        """What surfaces pressed a solid with in the last interval: φ there, and forces [N]."""
        return self._borne.get(body)

    def held_against(self, body: Body) -> Floats:
        """What a phyxel body's own forces are thought to do to its nodes that surfaces press, over dt² of an interval
        [m/s²], shape (n, 3). A push is given to them at once, and what holds against it turns them back within the
        interval: by their velocities at its start they would be thought to go on, and take along what lies on them."""
        return self._against.get(body, np.zeros_like(body.positions))

    def together(self, bodies: Sequence[Body], mover_k: Floats) -> Together:
        """Links of some surfaces, of stiffness k [N/m]."""
        if self._together is None or self._together[0] != tuple(bodies):
            sheets = [body.sheet for body in bodies if body.sheet is not None]
            self._together = tuple(bodies), Together(sheets, [body.unit for body in bodies])
        links = self._together[1]
        links.set_stiffness(mover_k)
        return links


def _linked(body: Body) -> bool:
    """Whether it is a surface that hangs together: particles each by itself meet solids only."""
    return body.sheet is not None and len(body.sheet.elements) > 0
