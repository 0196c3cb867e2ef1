"""A material that becomes another one smoothly (physics 6.4)."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from phyxel.material.material import Material

GEOMETRIC = ("young", "yield_strain", "yield_stress", "creep", "foundation", "weft", "shear", "bending")
"""Numbers that span decades: they go the same factor, not the same step, in the same time."""


@dataclass(frozen=True)
class Ramp:
    """From one material to another within a time, as a function of the clock alone: so a resumed run finds the same."""

    start: Material
    end: Material
    begin: float
    """when it begins [s]"""
    duration: float
    """[s], above 0"""

    @property
    def finish(self) -> float:
        """When it is done [s]."""
        return self.begin + self.duration

    def at(self, time: float) -> Material:
        """The material at a time [s]: share s = t²(3 − 2t) of the way, t = 0..1 over the duration."""
        if time >= self.finish:
            return self.end
        t = max((time - self.begin) / self.duration, 0.0)
        share = t * t * (3 - 2 * t)
        start, end = self.start, self.end
        numbers = {
            entry.name: _between(entry.name, getattr(start, entry.name), getattr(end, entry.name), share)
            for entry in fields(end)
        }
        if start.stiffness != end.stiffness:
            numbers["stiffness"] = tuple(map(tuple, (1 - share) * start.elasticity + share * end.elasticity))
        return replace(end, **numbers)


def _between(name: str, start: Any, end: Any, share: float) -> Any:
    """A share of the way from start to end; a value that is no finite number at both ends changes at once."""
    if start == end or not (_is_finite(start) and _is_finite(end)):
        return end
    if name in GEOMETRIC and start > 0 and end > 0:
        return start * (end / start) ** share
    return start + share * (end - start)


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
