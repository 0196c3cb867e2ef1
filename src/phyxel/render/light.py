"""The light of the studio."""

from __future__ import annotations

from dataclasses import dataclass

Color = tuple[float, float, float]


@dataclass(frozen=True)
class Light:
    """A large soft box from one side, a strip light from the other side behind the object, and soft light from above
    and below. Colors are linear, 1 is white."""

    direction: Color = (-0.55, 1.0, 0.6)
    """toward the soft box; any length, must point upward"""
    key: Color = (1.0, 0.97, 0.92)
    sky: Color = (0.50, 0.53, 0.58)
    bounce: Color = (0.30, 0.28, 0.26)
