"""What a body seems to be made of, to the eye. How it moves is another matter (`material.py`)."""

from __future__ import annotations

from dataclasses import dataclass

from phyxel.errors import PhyxelError, did_you_mean


@dataclass(frozen=True)
class Look:
    """Optical properties of a surface; colors come with the surfels, if they have some."""

    wrap: float = 0.2
    """how far light creeps past the terminator, 0..1"""
    powder: float = 0.0
    """roughness of what scatters light at the skin (Oren and Nayar's σ) [rad]: 0 is Lambert's, 0.6 is clay, which is
    nearly as bright at its outline as in the middle"""
    shine: float = 0.5
    """part of the studio's mirror image that is seen, over that of smooth plastic"""
    blur: float = 0.5
    """of that mirror image: 0 is sharp, 1 is hardly an image"""
    translucency: float = 0.0
    """0: opaque; 1: light shines through thin parts, as in wine gum"""
    depth: float = 0.15
    """how deep light gets, as a part of the size of what is drawn"""
    grain: float = 0.0
    """how much surfels differ in brightness"""
    color: tuple[float, float, float] = (0.76, 0.74, 0.70)
    """of what comes without colours: red, green, blue in 0..1"""


LOOKS: dict[str, Look] = {
    "gummy": Look(wrap=0.45, shine=1.0, blur=0.06, translucency=0.75, depth=0.22, color=(0.84, 0.20, 0.22)),
    "wax": Look(wrap=0.6, shine=1.0, blur=0.3, translucency=0.6, depth=0.3, color=(0.90, 0.78, 0.55)),
    "clay": Look(wrap=0.0, powder=0.7, shine=0.12, blur=0.8, color=(0.72, 0.46, 0.34)),
    "stone": Look(wrap=0.0, powder=0.35, shine=0.3, blur=0.55, grain=0.14, color=(0.68, 0.64, 0.57)),
    "matte": Look(),
}
NAMES = tuple(LOOKS)


def look_named(owner: str, name: str) -> str:
    """`name` if there is such a look, else a `PhyxelError`."""
    if name not in LOOKS:
        hint = did_you_mean(str(name), LOOKS)
        raise PhyxelError(f'{owner}: look = "{name}": not known{hint}')
    return name
