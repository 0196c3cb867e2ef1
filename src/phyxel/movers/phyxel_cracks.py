"""Cracks of phyxel bodies: what drives them, and what they part (physics 12.3, 12.7)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.body.fragments import held_places, reach_beside_cracks, shear_speeds
from phyxel.cracks.fracture import Samples
from phyxel.models.phyxel import cuts

if TYPE_CHECKING:
    from phyxel.body import Body
    from phyxel.movers.phyxel_bodies import PhyxelBodies

Floats = NDArray[np.float64]

TENSE = 0.8
"""Largest stress over the strength from which on it is looked at often."""
WAY = 1.0
"""Spacings that a shear wave goes between two looks at what is tense."""
RESTING_WAY = 2.0
"""The same while no crack runs."""


FEWEST = 40
"""Phyxels of a body that can crack: with fewer, all of them are at a surface, and a crack is as large as the body."""


class PhyxelCracks:
    """Lets the cracks of a flock of phyxel bodies run."""

    def __init__(self, phyxels: PhyxelBodies) -> None:
        self._phyxels = phyxels
        self._known: dict[Body, int] = {}
        """revision of the cracks that the model's neighbours go by"""
        self._strength: wp.array | None = None
        self._since = 0.0
        """time since cracks last could run [s]"""
        self._running = False
        """whether any crack did, when they last could"""
        self.longest = math.inf
        """time after which to look again [s]"""

    def laid_out(self, body: Body) -> None:
        """The model has found the neighbours of a body as its cracks are now."""
        self._known[body] = _revision(body)

    def take_after(self, piece: Body, whole: Body) -> None:
        """A piece has come of a body."""
        if whole in self._known:
            self._known[piece] = self._known[whole]

    def adopt(self, body: Body, other: PhyxelCracks) -> None:
        """A body comes that another flock had."""
        if body in other._known:
            self._known[body] = other._known.pop(body)

    def outdate(self) -> None:
        """Materials have changed, or bodies."""
        self._strength = None

    def follow(self, fewest: int = 1) -> None:
        """Part what cracks have come to lie between, but for parts of less than `fewest` phyxels."""
        changed = [body for body in self._phyxels.bodies if self._known.get(body) != _revision(body)]
        for body in changed:
            self._part(body, fewest)
        if changed:
            self.outdate()
            self._phyxels.renew_contact()
            self._phyxels.write_surroundings()

    def _part(self, body: Body, fewest: int) -> None:
        self.laid_out(body)
        if body.fracture is None or body.has_melted:
            return
        model, index = self._phyxels.model, self._phyxels.bodies.index(body)
        dev.write(model.matter.reach, model.ranges[index][0], reach_beside_cracks(body))
        cuts.cut(model, index, body.birth_places, body.fracture.cracks.sees, body.sees, fewest)

    def advance(self, dt: float) -> None:
        """Let cracks run after dt [s] more, if anything is near its strength."""
        brittle = [body for body in self._phyxels.bodies if body.is_brittle and len(body.birth) >= FEWEST]
        if not brittle:
            return
        self._since += dt
        least = min(body.fracture.least for body in brittle if body.fracture is not None)
        ratio = cuts.overload(self._phyxels.model, self._strengths()) / least
        way = WAY if self._running else RESTING_WAY
        self.longest = math.inf if ratio < TENSE else way / max(float(shear_speeds(body).max()) for body in brittle)
        if ratio < 1:
            self._since = 0.0
        elif self._since >= self.longest * (1 - 1e-9):
            self._running = self._grow(brittle)
            self._since = 0.0
            self.follow(cuts.SPLINTER)

    def _grow(self, brittle: list[Body]) -> bool:
        """Let the cracks of bodies start and run; whether any did."""
        model = self._phyxels.model
        stress, J = model.stress().astype(np.float64), np.eye(3) + model.now.gradient.numpy()
        grown = False
        for body in brittle:
            own = self._phyxels.nodes_of(body)
            assert body.fracture is not None
            samples = Samples(
                body.birth_places, stress[own], J[own], body.strength, shear_speeds(body), held_places(body)
            )
            if samples.load.max() > body.fracture.least:
                grown |= body.fracture.grow(samples, self._since)
        return grown

    def state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint keeps of it."""
        known = [self._known.get(body, -1) for body in self._phyxels.bodies]
        return {"known": np.array(known), "times": np.array([self._since, self.longest, self._running])}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self._known = dict(zip(self._phyxels.bodies, state["known"].tolist(), strict=True))
        self._since, self.longest, running = state["times"].tolist()
        self._running = bool(running)
        self.outdate()

    def _strengths(self) -> wp.array:
        """[Pa], shape (n,); infinite where nothing cracks."""
        if self._strength is None:
            bodies, model = self._phyxels.bodies, self._phyxels.model
            breaks = [body.is_brittle and len(body.birth) >= FEWEST for body in bodies]
            given = [
                b.strength if yes else np.full(len(b.birth), np.inf) for b, yes in zip(bodies, breaks, strict=True)
            ]
            numb = model.matter.volume.numpy() == 0
            strength = np.where(numb, np.inf, np.concatenate(given))
            self._strength = wp.array(strength, dtype=model.real, device=model.device)
        return self._strength


def _revision(body: Body) -> int:
    return 0 if body.fracture is None else body.fracture.cracks.revision
