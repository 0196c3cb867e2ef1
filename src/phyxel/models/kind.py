"""What a model of motion is: one row of a table that bodies, scenes, panels, messages and docs read.

The rows stand in `movers/kinds.py`, where models and movers meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from phyxel.errors import PhyxelError, did_you_mean
from phyxel.material import Material

Deed = Literal["melt", "yield", "crack"]


NodesLie = Literal["inside", "to the surface", "points"]


@dataclass(frozen=True)
class Scheme:
    """How the nodes of a body lie and feel each other."""

    nodes: NodesLie
    """see `ModelKind.nodes`"""
    across: int
    """see `ModelKind.across`"""
    support: float = 2.0
    """radius within which nodes feel each other, over the mean distance to their ten nearest, unless told"""
    hourglass: float = 0.0
    """stiffness against what gradients do not see, over Young's modulus (physics 4.1)"""
    consistent: bool = False
    """whether uniform stress leaves inner nodes alone (physics 2.9)"""
    once_melted: str = ""
    """the scheme of what has melted, whose nodes are evened out then (physics 7.8); "": this one"""


@dataclass(frozen=True)
class ModelKind:
    """A model: what it is, can and takes."""

    name: str
    """as `model=` says it"""
    summary: str
    """what it is for, in a few words"""
    mover: Callable[[Any], Any]
    """makes the mover of a world's bodies of this kind; kinds with the same one are moved together"""
    nodes: NodesLie
    """how nodes lie: in the solid, in it and on its surface, or one for each point of a cloud without an inside"""
    carried_by: Literal["neighbours", "shape functions", "ring"]
    """what carries surfels and probes"""
    integrators: tuple[str, ...]
    """words for how it steps in time, that of its own choice first"""
    make: Callable[[Any, Any], Any] | None = None
    """the model of one body on a device, for movers that have a model for each body"""
    space: Callable[[Any, Any], Any] | None = None
    """the displacement fields that one body can have, on a device"""
    material: type[Material] = Material
    """what it is made of"""
    usual: Callable[[], Material] = Material.rubber
    """that unless it is told"""
    options: frozenset[str] = frozenset()
    """options of `Body` that not every model takes"""
    cannot: Mapping[Deed, str] = field(default_factory=dict)
    """what its bodies never do, and why"""
    crumbs: str = ""
    """the model of pieces of its bodies that are too small or too flat to bend"""
    meets: frozenset[str] = frozenset()
    """models whose bodies its bodies touch"""
    across: int = 0
    """nodes across a part from which on it bends as it should, to a tenth; 0: it needs none"""
    schemes: Mapping[str, Scheme] = field(default_factory=dict)
    """how its nodes can lie and feel each other, its own choice first; without: in one way"""
    bends: bool = True
    """whether its bodies do; if not, a few nodes are enough, and have the mass and the middle of the solid itself"""

    @property
    def has_inside(self) -> bool:
        """Whether its bodies are solids, not thin surfaces."""
        return self.nodes != "points"

    def scheme(self, name: str | None = None) -> Scheme:
        """The scheme of this name, or its own choice."""
        if not self.schemes:
            return Scheme(self.nodes, self.across)
        return self.schemes[name or next(iter(self.schemes))]

    def can(self, deed: Deed) -> bool:
        """Whether its bodies can do this."""
        return deed not in self.cannot

    def refusal(self, deed: Deed, asked: str = "") -> str:
        """That its bodies cannot do this, and whose can, in words; `asked` is what would make them."""
        able = named(kind for kind in public_kinds() if kind.can(deed) and kind.has_inside == self.has_inside)
        asked = f" ({asked})" if asked else ""
        does = f"; {' and '.join(able)} {'do' if len(able) > 1 else 'does'}" if able else ""
        return f'model = "{self.name}" cannot {deed}{asked}, {self.cannot[deed]}{does}'

    def refuse(self, deed: Deed, asked: str = "") -> None:
        """Refuse what its bodies cannot do."""
        if not self.can(deed):
            raise PhyxelError(self.refusal(deed, asked))


KINDS: dict[str, ModelKind] = {}
"""all models by their name, in the order in which they are told of"""


def register(*kinds: ModelKind) -> None:
    """Put rows into the table."""
    KINDS.update({kind.name: kind for kind in kinds})


def public_kinds() -> list[ModelKind]:
    """The models that users can ask for."""
    return list(KINDS.values())


def named(kinds: Iterable[ModelKind]) -> list[str]:
    """Their names, in quotation marks."""
    return [f'"{kind.name}"' for kind in kinds]


def checked_name(model: str) -> str:
    """The name of a model, if users can ask for it."""
    known = [kind.name for kind in public_kinds()]
    if model not in known:
        raise ValueError(f"not known{did_you_mean(model, known)}")
    return model
