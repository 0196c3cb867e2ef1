"""Where ties of bodies end on each of the two, and what carries them there (physics 15.15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.body import Body
from phyxel.meeting.stitches import BesideTriangles
from phyxel.mls.carry import Carriers

Floats = NDArray[np.float64]

BY_SHAPE, BY_NODES = "shape functions", "neighbours"


@dataclass
class Ends:
    """The ties of an attachment, on one of the two sides."""

    X: Floats
    """places at birth, in units, shape (k, 3)"""
    body: list[Body]
    """that has each of them: pieces take their own along"""
    stitches: BesideTriangles | None = None
    """of a surface, by its particles"""


def carried(body: Body, X: Floats) -> tuple[csr_array, Sequence[csr_array]]:
    """φ at places X (k, 3) of a body and its slopes."""
    if body.kind.carried_by == BY_SHAPE:
        values = body.space.at(X)
        return values.values, values.gradients
    phi, slopes = Carriers.found(X, body.birth_places, body.sees).fit(X, body.birth_places)
    return phi, slopes


def carried_by(body: Body) -> object:
    """What is another thing when a body's places are carried otherwise."""
    if body.kind.carried_by == BY_SHAPE:
        return body.space
    return 0 if body.fracture is None else body.fracture.cracks.revision


def summing_up(phi: csr_array) -> csr_array:
    """With sums of 1 to rounding: momenta are kept to their last digits."""
    data = phi.data / np.repeat(phi.sum(axis=1), np.diff(phi.indptr))
    return csr_array((data, phi.indices, phi.indptr), phi.shape)
