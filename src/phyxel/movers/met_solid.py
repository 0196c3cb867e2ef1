"""A solid that particle surfaces meet, in an interval (physics 15.16)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.body import Body
from phyxel.meeting.party import Party, SeenBody

Floats = NDArray[np.float64]


@dataclass
class MetSolid:
    """A body that is no surface, in an interval."""

    body: Body
    seen: SeenBody
    mass: Floats | None
    """of nodes that move each by itself [kg], infinite if held; none: it answers as a whole"""
    way: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    """of its coefficients in the interval, as foreseen [m], shape (n, 3)"""

    def __post_init__(self) -> None:
        self._before, self._speed = self.body.positions, self.body.velocities
        """of its nodes when the interval began, shape (n, 3) each"""

    def look(self) -> None:
        """It has gone its step, under what was foreseen."""
        self.party.go()
        self.way = self.party.way

    @property
    def party(self) -> Party:
        assert isinstance(self.seen, Party)
        return self.seen

    def held_against(self, answered: Floats, rows: csr_array, forces: Floats, dt: float) -> Floats:
        """What its own forces did in an interval of dt [s] to nodes that surfaces pressed [m/s²], shape (n, 3): how
        much farther those went than they would have flown, and have answered (n, 3) [m], over dt². It was pressed at
        places with φ in `rows` (k, n) by forces (k, 3) [N]."""
        more = self.body.positions - self._before - dt * self._speed - answered
        pressed: NDArray[np.bool_] = (abs(rows).T @ np.abs(forces)).sum(axis=1) > 0
        return np.where(pressed[:, None], more, 0.0) / dt**2
