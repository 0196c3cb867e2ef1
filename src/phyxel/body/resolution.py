"""Whether a body has enough nodes across it to bend as it should, and how many would do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import tell
from phyxel.models.kind import ModelKind, Scheme, named, public_kinds

Floats = NDArray[np.float64]
Filled = TypeVar("Filled")
NodeCount = int | Literal["auto"]
"""How many nodes a body is asked to have; "auto": the usual number, or as many as its thin parts need."""

USUAL_NODES = 800
"""Nodes of a body that look right, and with which compact bodies bend as they should."""
UNBENT_NODES = 100
"""Nodes of a body that never bends, at most: fields push at them, and hands take hold of them."""
MOST_AUTO = 50_000
"""Nodes that nobody gets without asking for them by number: a thin plate would need millions."""
TRIES = 4
"""to find how many nodes are enough: each is made from what the one before has shown"""
MOST = 0.5
"""Share of the volume that is too thin, from which on it is told of: ears and fingers may be, a bar may not."""
UNEVEN = 0.5
"""Spacings that a thickness may seem less than it is: octants do not end where the solid does."""


def nodes_for(kind: ModelKind, nodes: NodeCount) -> NodeCount:
    """How many nodes a body is to have that is asked to have so many."""
    if kind.bends:
        return nodes
    return UNBENT_NODES if nodes == "auto" else min(nodes, UNBENT_NODES)


def filled_with(nodes: NodeCount, fill: Callable[[int], Filled], enough: Callable[[Filled], int | None]) -> Filled:
    """What `fill` makes of so many nodes; where it is left to us, of so many that nothing is said to be `enough`."""
    if nodes != "auto":
        return fill(nodes)
    made, asked = fill(USUAL_NODES), USUAL_NODES
    for _ in range(TRIES):
        if (needed := enough(made)) is None or asked == MOST_AUTO:
            break
        # A tenth of what is asked for may be missing, and a layer with it.
        asked = min(max(needed, int(1.1 * asked)), MOST_AUTO)
        made = fill(asked)
    return made


def tell_if_coarse(name: str, kind: ModelKind, scheme: Scheme, thickness: Floats, volumes: Floats) -> None:
    """Warn of a body most of which is too few nodes thick for its model: how thick it is about them, in spacings, and
    their volumes, (n,) each."""
    if (enough := nodes_to_bend(scheme, thickness, volumes)) is not None:
        tell(f"{name}: {remedy(kind, scheme, len(volumes), enough)}")


def remedy(kind: ModelKind, scheme: Scheme, count: int, enough: int) -> str:
    """What is wrong with so many nodes where so many would be enough, and what to do."""
    others = [one for one in public_kinds() if one is not kind and 0 < one.across < scheme.across]
    instead = f", or model = {' or '.join(named(others))}" if others else ""
    return (
        f'{count:,} nodes are fewer than {scheme.across} across most of it, and with model = "{kind.name}" it does not '
        f'bend as it should then; give about nodes = {enough:,} ("auto" finds it){instead}'
    )


def nodes_to_bend(scheme: Scheme, thickness: Floats, volumes: Floats) -> int | None:
    """How many nodes would be enough, if these are too few: how thick the body is about them, in spacings, and their
    volumes, (n,) each."""
    if not scheme.across:
        return None
    # Of n layers the outermost two are n − 1 spacings apart, and that is all where they lie on the surface.
    layers = thickness + (0 if scheme.nodes == "inside" else 1)
    thin = layers < scheme.across - UNEVEN
    if volumes[thin].sum() <= MOST * volumes.sum():
        return None
    # Near its ends and edges a bar is thinner than it is.
    there = float(np.quantile(layers[thin], 0.9))
    return int(float(f"{len(volumes) * (scheme.across / max(there, 1.0)) ** 3:.1e}"))
