"""Bodies whose reference shape changes while they move: what melts, flows together, and is solid again (physics 7.7).

All that have ever melted share one anchor, so that their phyxels can become each other's neighbours. While any part of
them is fluid they are absorbed together, again and again; strain is carried along exactly, so that solid parts do not
notice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.body.placement import Anchor
from phyxel.body.shape import NodeData
from phyxel.material import Mixture
from phyxel.models.law import LawRow
from phyxel.models.phyxel import reference_shape
from phyxel.models.phyxel.reference_shape import Evened
from phyxel.movers.melt_surface import MeltSurface
from phyxel.movers.phyxel_nodes import free_directions
from phyxel.state import unprefixed
from phyxel.surface.hull import Hull
from phyxel.surface.surfels import Surfels

if TYPE_CHECKING:
    from phyxel.movers.phyxel_bodies import PhyxelBodies

STIFFER = 2.0
NOTICEABLE = 0.02
"""How much stiffer than when last absorbed, and how large a |∇u|, for a body to be absorbed."""


class Melting:
    """The bodies that have melted."""

    def __init__(self, phyxels: PhyxelBodies) -> None:
        self._phyxels = phyxels
        self.bodies: list[Body] = []
        self._anchor: Anchor | None = None
        self.absorptions = 0
        """how often the reference shape has changed"""
        self._stiffness: dict[Body, float] = {}
        """of bodies that have never melted, when they were last absorbed [Pa]"""
        self._at_birth: dict[Body, tuple[NodeData, str, float]] = {}
        """nodes, scheme and support of bodies that have been evened out, as they were before"""
        self.surface = MeltSurface(phyxels, self)

    def adopt(self, body: Body, other: Melting) -> None:
        """A body that has never melted comes, which another flock had."""
        if body in other._stiffness:
            self._stiffness[body] = other._stiffness.pop(body)

    @property
    def flows(self) -> bool:
        """Whether anything is molten now."""
        return any(is_fluid(body) for body in self.bodies)

    def material_changed(self, body: Body, before: Mixture) -> None:
        """A body got other laws: it may have melted, or be solid again, or only stiffer."""
        self.take_in(body)
        self._keep_stress(body, before)
        if not self.flows:
            self.absorb()
            self.surface.end()
        if self.flows != (self._phyxels.model.melt is not None):
            self.set_melt()
            self._phyxels.write_surroundings()

    def set_melt(self) -> None:
        """Tell the model which bodies flow."""
        bodies = [self._phyxels.bodies.index(body) for body in self.bodies]
        for body in bodies if not self.flows else []:
            reference_shape.let_go_of_birth(self._phyxels.model, body)
        self._phyxels.model.set_melt(bodies if self.flows else [])
        if self.flows:
            self.surface.begin()
        self._phyxels.renew_contact()

    def take_in(self, body: Body) -> None:
        """If a body is molten for the first time: from now on it is counted from where the others are."""
        if not is_fluid(body) or body in self.bodies:
            return
        model, index = self._phyxels.model, self._phyxels.bodies.index(body)
        self.absorb_alone(body, self._evened(body))
        if self._anchor is None:
            self._anchor = body.anchor
        else:
            old, new = body.anchor, self._anchor
            reference_shape.rescale(model, index, new.unit, old.unit / new.unit, (old.origin - new.origin) / new.unit)
            body.anchor = new
            model.set_material(index, body.mixture, body.shape.rotation)
            body.surfels.absorb(new.unit, new.origin)
        reference_shape.let_go_of_birth(model, index)
        self.bodies.append(body)
        body.has_melted = True
        self.set_melt()
        self._phyxels.write_surroundings()

    def _evened(self, body: Body) -> Evened | None:
        """What the phyxels of a body become as it melts for the first time (physics 7.8), if its scheme wants that."""
        if not (melted := body.kind.scheme(body.scheme).once_melted):
            return None
        assert body.made.evened is not None
        self._at_birth[body] = body.nodes, body.scheme, body.support
        there, volumes = (values[body.nodes.number] for values in body.made.evened())
        density, mass = body.mixture.number("density"), float(body.masses.sum())
        volumes = volumes * (mass / float(density @ volumes))
        away = (there - body.birth) / body.unit
        away -= (density * volumes @ there - body.masses @ body.birth) / (mass * body.unit)  # the middle stays
        body.nodes = replace(body.nodes, volumes=volumes, heft=np.ones(len(volumes)))
        body.scheme = melted
        scheme = body.kind.scheme(melted)
        body.support = max(body.support, scheme.support)
        self._phyxels.model.materials.become(self._phyxels.bodies.index(body), volumes, scheme.hourglass)
        return Evened(away, volumes / body.unit**3, density * volumes / body.unit)

    def be_born_again(self) -> None:
        """Bodies that have been evened out have the nodes that they were born with."""
        for body, before in self._at_birth.items():
            body.nodes, body.scheme, body.support = before

    def absorb_alone(self, body: Body, evened: Evened | None = None) -> None:
        """The present shape of one body becomes its reference shape, of phyxels that are `evened` out if they are to
        be."""
        model, anchor = self._phyxels.model, body.anchor
        surface = self._carried(body)
        index, free = self._phyxels.bodies.index(body), None if is_fluid(body) else free_directions(body)
        shift = reference_shape.absorb_body(model, index, body.support, body.sees, free, evened)
        self._move(anchor, shift)
        body.reshaped = True
        anchor.absorbed += 1
        surface.absorb(anchor.unit, anchor.origin)
        if evened is not None:
            model.set_material(index, body.mixture, body.shape.rotation)
            surface.find_carriers(self._phyxels.nodal(body).X, body.born.unit / body.unit)

    def _carried(self, body: Body) -> Surfels:
        """All surfels of a body, where it is at this moment."""
        surfels = body.surfels
        self._phyxels.world.revision += 1
        surfels.carry(self._phyxels.motion(body))
        return surfels

    def _move(self, anchor: Anchor, shift: NDArray[np.float64]) -> None:
        anchor.origin = anchor.origin + anchor.unit * shift
        anchor.centre = anchor.origin.copy()
        self._phyxels.write_surroundings()

    def _keep_stress(self, body: Body, before: Mixture) -> None:
        """Stiffening must not multiply the stress that is there (M04 §4.1, physics 6.3): so much strain is stored as
        makes that stress. Hourglass control has no such store: its part is dropped by absorbing the deformation."""
        model, index = self._phyxels.model, self._phyxels.bodies.index(body)
        old, new = ([LawRow.of(m, body.shape.rotation) for m in mix.materials] for mix in (before, body.mixture))
        pairs = {(a, b) for a, b in zip(before.which.tolist(), body.mixture.which.tolist(), strict=True)}
        stiffer = [(a, b) for a, b in pairs if new[b].shear_norm > old[a].shear_norm]
        if not stiffer:
            return
        low, _ = model.ranges[index]
        chosen = [low + np.flatnonzero((before.which == a) & (body.mixture.which == b)) for a, b in stiffer]
        stresses = [
            reference_shape.stress_under(model, nodes, old[a]) for nodes, (a, _) in zip(chosen, stiffer, strict=True)
        ]
        if body in self.bodies:
            self.absorb()
        elif self._is_due(body, max(old[a].shear_norm for a, _ in stiffer), max(new[b].shear_norm for _, b in stiffer)):
            self.absorb_alone(body)
        for nodes, stress, (_, b) in zip(chosen, stresses, stiffer, strict=True):
            reference_shape.take_up_stress(model, nodes, stress, new[b])

    def _is_due(self, body: Body, old: float, new: float) -> bool:
        """Whether a body has become so much stiffer [Pa] since it was last absorbed, and is so deformed, that it should
        be again. A ramp passes here many times."""
        since = self._stiffness.setdefault(body, old)
        strained = float(np.abs(self._phyxels.nodal(body).gradient).max()) > NOTICEABLE
        if new > STIFFER * since and strained:
            self._stiffness[body] = new
            return True
        return False

    def refresh(self) -> None:
        """Absorb what has flowed, if it has gone far enough."""
        melt = self._phyxels.model.melt
        if melt is not None and melt.moved():
            self.absorb()

    def absorb(self) -> None:
        """The present shape of all that has ever melted becomes its reference shape."""
        model = self._phyxels.model
        if model.melt is None or self._anchor is None:
            return
        surfaces = [self._carried(body) for body in self.bodies]
        self._move(self._anchor, model.melt.absorb())
        self.absorptions += 1
        self._anchor.absorbed = self.absorptions
        for surface in surfaces:
            surface.absorb(self._anchor.unit, self._anchor.origin)
        self.surface.refresh(now=not self.flows)

    def state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint keeps of surfaces that are not those of birth."""
        reshaped = [body for body in self._phyxels.bodies if body.reshaped]
        centres = {f"centre.{body.name}": body.centre for body in reshaped}
        surfaces = {
            f"surface.{body.name}.{name}": array for body in reshaped for name, array in body.surfels.state().items()
        }
        surfaces |= {
            f"skin.{body.name}.{name}": array for body in self.bodies for name, array in body.hull.state().items()
        }
        stiffness = [self._stiffness.get(body, 0.0) for body in self._phyxels.bodies]
        counts = {
            "absorptions": np.array(self.absorptions),
            "stiffness": np.array(stiffness),
            "surface": self.surface.numbers,
        }
        return counts | centres | surfaces

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.absorptions = int(state["absorptions"])
        self.surface.numbers = state["surface"]
        if self._anchor is not None:
            self._anchor.absorbed, self._anchor.surfaced = self.absorptions, self.surface.renewals
        known = zip(self._phyxels.bodies, state["stiffness"].tolist(), strict=True)
        self._stiffness = {body: stiffness for body, stiffness in known if stiffness > 0}
        for body in self._phyxels.bodies:
            if body.reshaped:
                body.anchor.centre = state[f"centre.{body.name}"]
                body.surfels.restore(unprefixed(f"surface.{body.name}.", state), body.unit)
        for body in self.bodies:
            body.hull = Hull.restored(unprefixed(f"skin.{body.name}.", state))


def is_fluid(body: Body) -> bool:
    """Whether any part of a body is molten."""
    return any(material.viscosity is not None for material in body.mixture.materials)
