"""Whether a body has enough nodes across it to bend as it should, and how many would do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from phyxel.errors import tell
from phyxel.models.kind import ModelKind, Scheme, named, public_kinds

Floats = NDArray[np.float64]
Filled = TypeVar("Filled")
NodeCount = int | Literal["auto"]
"""How many nodes a body is asked to have; "auto": the usual number, or as many as its thin parts need."""

USUAL_NODES = 800
"""Nodes of a body that look right, and with which compact bodies bend as they should."""
MOST_AUTO = 50_000
"""Nodes that nobody gets without asking for them by number: a thin plate would need millions."""
TRIES = 4
"""to find how many nodes are enough: each is made from what the one before has shown"""
MOST = 0.5
"""Share of the volume that is too thin, from which on it is told of: ears and fingers may be, a bar may not."""
AROUND = 1.5
"""Over a node's distance from the surface: what lies so near to it is about as thick as there."""


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


def tell_if_coarse(name: str, kind: ModelKind, scheme: Scheme, X: Floats, reach: Floats, volumes: Floats) -> None:
    """Warn of a body most of which is too few nodes thick for its model; nodes (n, 3) [m], how far they are from the
    surface (n,) [m], and their volumes (n,) [m³]."""
    if (enough := nodes_to_bend(scheme, X, reach, volumes)) is not None:
        tell(f"{name}: {remedy(kind, scheme, len(X), enough)}")


def remedy(kind: ModelKind, scheme: Scheme, count: int, enough: int) -> str:
    """What is wrong with so many nodes where so many would be enough, and what to do."""
    others = [one for one in public_kinds() if one.has_inside and one is not kind and one.across < scheme.across]
    instead = f", or model = {' or '.join(named(others))}" if others else ""
    return (
        f'{count:,} nodes are fewer than {scheme.across} across most of it, and with model = "{kind.name}" it does not '
        f'bend as it should then; give about nodes = {enough:,} ("auto" finds it){instead}'
    )


def nodes_to_bend(scheme: Scheme, X: Floats, reach: Floats, volumes: Floats) -> int | None:
    """How many nodes would be enough, if these are too few."""
    if not scheme.across:
        return None
    # Of n layers of nodes the middle one is (n − 1)/2 spacings below the outermost, which is half a spacing deep or on
    # the surface itself; half a spacing is for layers that do not lie even.
    needed = 0.5 * (scheme.across - (1 if scheme.nodes == "inside" else 2))
    depth = reach / np.cbrt(volumes)
    deep = depth >= needed
    thick = np.zeros(len(X), bool)
    if deep.any():
        away, nearest = cKDTree(X[deep]).query(X)
        thick = away <= AROUND * reach[deep][nearest]
    if volumes[~thick].sum() <= MOST * volumes.sum():
        return None
    layers = 2 * float(np.quantile(depth[~thick], 0.95)) + (0.5 if scheme.nodes == "inside" else 1.5)
    return int(float(f"{len(X) * max(scheme.across / layers, 1.0) ** 3:.1e}"))
