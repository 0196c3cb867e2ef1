"""What would let a machine keep up with a live world that it is too slow for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from phyxel.body import Body
from phyxel.body.resolution import USUAL_NODES
from phyxel.models.kind import ModelKind, public_kinds
from phyxel.scene import Scene
from phyxel.view.panels import with_content, with_model
from phyxel.view.play import Play

KEEPS_UP = 0.95
"""Pace from which on nobody is offered anything."""
SPARE = 0.8
"""Share of the time that is to be needed then."""
COST = 4 / 3
"""Power of the number of nodes with which the work of a second goes: so many nodes, in steps that a wave takes from one
to the next."""
LEAST = 0.25
"""Share of the nodes that are left at least: who needs less may ask again."""
FEWEST = 60
"""Nodes of a body that still looks like one."""
ANOTHER = 1.5
"""Factor by which the pace is another: what is offered does not change under the pointer."""


@dataclass(frozen=True)
class Remedy:
    """A scene that is easier to move."""

    name: str
    text: str
    tip: str
    scene: Scene

    def told(self) -> dict[str, str]:
        return {"name": self.name, "text": self.text, "tip": self.tip}


class Remedies:
    """What is offered now."""

    def __init__(self) -> None:
        self.offered: list[Remedy] = []
        self._for: tuple[Play, float] | None = None
        """for whom, and for which pace"""

    def update(self, play: Play, scene: Scene, pace: float) -> None:
        """See what to offer where this is played so fast; `scene` is what would begin again."""
        if pace >= KEEPS_UP:
            self.offered, self._for = [], None
        elif self._for is None or self._for[0] is not play or not 1 / ANOTHER < pace / self._for[1] < ANOTHER:
            self.offered, self._for = [*remedies(scene, play.performance.world.bodies, pace)], (play, pace)


def remedies(scene: Scene, bodies: list[Body], pace: float) -> Iterator[Remedy]:
    """Fewer nodes, or a model that is made for real time."""
    parts = scene.content.body
    share = max((SPARE * pace) ** (1 / COST), LEAST)
    sizes = {body.name: len(body.reference) for body in bodies}
    counts = [
        sizes.get(name, USUAL_NODES) if part.nodes == "auto" else part.nodes
        for part, name in zip(parts, scene.body_names(), strict=True)
    ]
    fewer = [max(_rounded(count * share), min(FEWEST, count)) for count in counts]
    before, after = sum(counts), sum(fewer)
    if after < 0.9 * before:
        body = [part.model_copy(update={"nodes": nodes}) for part, nodes in zip(parts, fewer, strict=True)]
        dumped = [part.model_dump(exclude_none=True) for part in body]
        faster = share**-COST
        tip = f"Begin again with {after} nodes in place of {before}: coarser, and about {faster:.0f} times as fast"
        yield Remedy("nodes", f"{after} nodes", tip, with_content(scene, body=dumped))
    quick = _quickest(scene, bodies)
    if quick is not None:
        other = with_model(scene, scene.body_names()[0], quick.name, None)
        tip = f"Begin again with the {quick.name} model, {quick.summary}; it cannot {', '.join(quick.cannot)}"
        yield Remedy("model", f"{quick.name} model", tip, other)


def _quickest(scene: Scene, bodies: list[Body]) -> ModelKind | None:
    """The model of bodies that never change, where the only one of a scene never does: what else changes nothing can
    be computed beforehand."""
    lasting = [kind for kind in public_kinds() if kind.has_inside and {"melt", "yield", "crack"} <= kind.cannot.keys()]
    events = scene.content.event
    if len(bodies) != 1 or not lasting or bodies[0].kind in lasting or not bodies[0].kind.has_inside:
        return None
    if any(event.melt or event.cut or event.material or event.add for event in events) or not _is_lasting(bodies[0]):
        return None
    return lasting[0]


def _is_lasting(body: Body) -> bool:
    bounds = (body.mixture.number(name) for name in ("yield_strain", "yield_stress", "strength", "viscosity"))
    return not (body.has_melted or body.has_cracked or any(np.isfinite(one).any() for one in bounds))


def _rounded(nodes: float) -> int:
    """To two digits."""
    step = 10 ** max(math.floor(math.log10(nodes)) - 1, 0)
    return int(nodes // step * step)
