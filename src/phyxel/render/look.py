"""How things look: the light of the studio and the stuff the object seems to be made of."""

from __future__ import annotations

from dataclasses import dataclass

Color = tuple[float, float, float]


@dataclass(frozen=True)
class Light:
    """A key light from one side and soft light from above and below. Colors are linear, 1 is white."""

    direction: Color = (-0.55, 1.0, 0.6)
    """toward the light; any length, must point upward"""
    key: Color = (1.0, 0.97, 0.92)
    sky: Color = (0.50, 0.53, 0.58)
    bounce: Color = (0.30, 0.28, 0.26)


@dataclass(frozen=True)
class Look:
    """Optical properties of the surface, the same for all surfels of a picture; colors come with the surfels."""

    wrap: float = 0.2
    """how far light creeps past the terminator, 0..1"""
    specular: float = 0.15
    """strength of highlights"""
    gloss: float = 30.0
    """exponent of the highlight: greater is smaller and sharper"""
    rim: float = 0.25
    """strength of the reflection of the studio at grazing angles"""
    translucency: float = 0.0
    """0: opaque; 1: light shines through thin parts, as in wine gum"""
    depth: float = 0.15
    """how deep light gets, as a part of the object's size"""

    @classmethod
    def matte(cls) -> Look:
        """Plaster or clay."""
        return cls()

    @classmethod
    def gummy(cls) -> Look:
        """Wine gum: glossy, lit from within."""
        return cls(wrap=0.45, specular=0.9, gloss=90.0, rim=0.9, translucency=0.75, depth=0.22)
