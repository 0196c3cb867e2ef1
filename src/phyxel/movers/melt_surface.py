"""The surfaces of bodies that flow (physics 8.5): one implicit skin for all of them, detail of their own, and the
relief of molds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.contact.mold import Mold
from phyxel.surface.implicit_skin import ImplicitSkin
from phyxel.surface.topology import outside_probability
from phyxel.surface.walls import Walls

if TYPE_CHECKING:
    from phyxel.movers.melting import Melting
    from phyxel.movers.phyxel_bodies import PhyxelBodies

RENEWED, OFTEN = 4, 1 / 30
"""Absorptions after which surfaces are renewed, since phyxels have then moved a spacing against each other; and the
time [s] after which at the earliest."""


class MeltSurface:
    """The surfaces of bodies that have melted, while any of them flows."""

    def __init__(self, phyxels: PhyxelBodies, melting: Melting) -> None:
        self._phyxels, self._melting = phyxels, melting
        self._skin: ImplicitSkin | None = None
        self._nodes: NDArray[np.int64] = np.zeros(0, np.int64)
        self.renewals = 0
        """how often surfaces have changed"""
        self._waiting = 0
        """absorptions since"""
        self._last = 0.0
        """when [s]"""

    @property
    def numbers(self) -> NDArray[np.float64]:
        """What a checkpoint keeps of it."""
        return np.array([self.renewals, self._waiting, self._last])

    @numbers.setter
    def numbers(self, numbers: NDArray[np.float64]) -> None:
        renewals, waiting, self._last = numbers.tolist()
        self.renewals, self._waiting = int(renewals), int(waiting)

    def begin(self) -> None:
        """The bodies flow together from now on."""
        model, bodies = self._phyxels.model, self._melting.bodies
        assert model.melt is not None
        self._nodes = model.melt.nodes
        index = [self._phyxels.bodies.index(body) for body in bodies]
        owner = np.concatenate([np.full(len(body.birth), b) for b, body in zip(index, bodies, strict=True)])
        volumes = np.concatenate([body.volumes / body.unit**3 for body in bodies])
        order = np.argsort(owner, kind="stable")  # as the model has them
        self._skin = ImplicitSkin(volumes[order], owner[order], model.device)
        skin, X = self._placed(model.matter.X.numpy()), model.matter.X
        outside = outside_probability(X, model.matter.near, model.matter.body.numpy())
        for body in bodies:
            if body.blends:
                low, high = model.ranges[self._phyxels.bodies.index(body)]
                body.surfels.begin_to_blend(outside[low:high], skin)

    def refresh(self, now: bool) -> None:
        """The reference shape has just been absorbed: renew surfaces, if it has gone far enough since, or `now`."""
        self._waiting += 1
        if now or (self._waiting >= RENEWED and self._phyxels.time - self._last >= OFTEN):
            self._waiting, self._last = 0, self._phyxels.time
            self.renewals += 1
            self._renew()

    def _renew(self) -> None:
        """Let surfaces change with the topology."""
        model = self._phyxels.model
        skin = self._placed(model.matter.X.numpy())
        outside = outside_probability(model.matter.X, model.matter.near)
        for body in self._melting.bodies:
            body.anchor.surfaced = self.renewals
            index = self._phyxels.bodies.index(body)
            low, high = model.ranges[index]
            places, spacing = model.matter.X.numpy()[low:high], body.born.unit / body.unit
            if body.surfels.blend is not None:
                body.surfels.blend.renew(outside[low:high], skin, self._walls(body), places, index, spacing)
            else:
                body.surfels.find_carriers(places, spacing)

    def skin_now(self) -> ImplicitSkin:
        """The skin of all that flow, where they are now."""
        model = self._phyxels.model
        return self._placed(model.matter.X.numpy() + model.u.numpy())

    def end(self) -> None:
        """All is solid: surfaces stay as they are now."""
        for body in self._melting.bodies:
            surface = body.surface
            if surface.blend is not None:
                molds = [one for one in self._phyxels.world.colliders if isinstance(one, Mold)]
                surface.blend.take_relief(molds, self._phyxels.time, body.unit)
                surface.end_to_blend(body.unit, body.origin)

    def _walls(self, body: Body) -> Walls:
        phyxels = self._phyxels
        return Walls(phyxels.model.colliders, phyxels.device, phyxels.bodies.index(body))

    def _placed(self, places: NDArray[np.floating]) -> ImplicitSkin:
        assert self._skin is not None
        self._skin.place(places[self._nodes], self._walls(self._melting.bodies[0]))
        return self._skin
