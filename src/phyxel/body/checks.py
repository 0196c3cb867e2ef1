"""Whether what a body is asked to be can be, said before anything is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import PhyxelError
from phyxel.material import Material
from phyxel.points.cloud import PointCloud
from phyxel.region import Vector, as_vector

Floats = NDArray[np.float64]

MODES, MOST_MODES = 64, 256
"""Modes of a modal body, unless it is told, and at most."""
LINKS = ("edges", "weave", "none")
MOST_LINKS = 32
"""What links a particle surface, and the most nearest points that a particle can be linked to."""
WARP = (1.0, 0.0, 0.0)
"""Direction of warp threads, unless it is told."""
LIGHT = 3.0e8
"""[m/s]"""
CHOICES: dict[str, tuple[Any, ...]] = {
    "model": ("phyxel", "galerkin", "modal", "particles"),
    "integrator": (None, "leapfrog", "implicit"),
    "surface": (None, "carried", "blended"),
    "basis": ("linear", "quadratic"),
}
KINDS: dict[str, tuple[type, str]] = {
    "refine": (Sequence, "[(px.Box(...), levels)]"),
    "parts": (Sequence, "[(px.Box(...), material)]"),
    "vary": (Mapping, '{"young": px.Channel("x", 1e5, 1e6)}'),
}


def name_for(cloud: PointCloud, material: Material | None, name: str | None) -> str:
    """The name of a body of a cloud and a material, if they are that."""
    if not isinstance(cloud, PointCloud):
        raise PhyxelError(f"Body({cloud!r}): give a point cloud, for example px.load({str(cloud)!r})")
    if material is not None:
        check_material(cloud.name, material)
    if name is not None and not isinstance(name, str):
        raise PhyxelError(f"{cloud.name}: name = {name!r}: give a word")
    return name or cloud.name


def check_material(name: str, material: Material) -> None:
    """Refuse what is none."""
    if not isinstance(material, Material):
        raise PhyxelError(f"{name}: material = {material!r}: give a Material, for example Material.rubber()")


def check_kinds(name: str, **given: Any) -> None:
    """Refuse what is not of the kind that it has to be."""
    for key, value in given.items():
        kind, example = KINDS[key]
        if not isinstance(value, kind):
            raise PhyxelError(f"{name}: {key} = {value!r}: give {example}")


def check_choices(name: str, **given: Any) -> None:
    """Refuse words that are not known."""
    for key, value in given.items():
        if value not in CHOICES[key]:
            names = ", ".join(f'"{k}"' for k in CHOICES[key] if k)
            raise PhyxelError(f'{name}: {key} = "{value}": not known; there is {names}')


def check_model(name: str, model: str, integrator: str | None, basis: str, modes: int) -> None:
    """Refuse what a model knows nothing of."""
    if model == "particles" and integrator is not None:
        raise PhyxelError(f'{name}: integrator = "{integrator}": model = "particles" takes exact steps; leave it out')
    if model != "phyxel" and integrator == "leapfrog":
        raise PhyxelError(f'{name}: integrator = "leapfrog": model = "{model}" takes implicit steps only')
    if model in ("phyxel", "particles") and basis != "linear":
        raise PhyxelError(f'{name}: basis = "{basis}": needs model = "galerkin" or "modal"')
    if not (_is_whole(modes) and 1 <= modes <= MOST_MODES):
        raise PhyxelError(f"{name}: modes = {modes}: give a whole number from 1 to {MOST_MODES}")
    if model != "modal" and modes != MODES:
        raise PhyxelError(f'{name}: modes = {modes}: needs model = "modal"')


def check_sheet(name: str, model: str, links: str | int | None, warp: Vector, surface: str | None, refine: Any) -> None:
    """Refuse what only a particle surface has in what is none, and what it cannot have."""
    direction = as_vector(f"{name}: warp", warp)
    if model != "particles":
        if links is not None or tuple(direction) != WARP:
            raise PhyxelError(f'{name}: links and warp are of a particle surface: they need model = "particles"')
        return
    if surface == "blended":
        raise PhyxelError(f'{name}: surface = "blended": model = "particles" never flows; leave it out')
    if len(refine):
        raise PhyxelError(f'{name}: refine: the nodes of model = "particles" are the points; load more of them')
    if not (links is None or links in LINKS or (_is_whole(links) and 1 <= int(links) <= MOST_LINKS)):
        raise PhyxelError(
            f'{name}: links = {links!r}: give "edges", "weave", "none" or a number of nearest points up to {MOST_LINKS}'
        )
    if not direction.any():
        raise PhyxelError(f"{name}: warp = {warp}: give the direction of the warp threads; it has no length")


def check_support(name: str, support: float) -> None:
    """Refuse a support with too few or too many neighbours."""
    if not 1.2 <= support <= 5:
        raise PhyxelError(f"{name}: support = {support}: give 1.2 to 5 (2 is right for most)")


def start_velocities(name: str, arm: Floats, velocity: Vector, spin: Vector) -> Floats:
    """v + ω × arm [m/s], shape (n, 3), of places with arms (n, 3) [m] from the middle."""
    spun = np.cross(as_vector(f"{name}: spin", spin), arm)
    velocities: Floats = as_vector(f"{name}: velocity", velocity) + spun
    if np.abs(velocities).max() > LIGHT:
        raise PhyxelError(f"{name}: velocity = {velocity}, spin = {spin}: faster than light; give less")
    return velocities


def checked_seed(name: str, seed: int) -> int:
    """A seed, if it is one."""
    if not _is_whole(seed) or seed < 0:
        raise PhyxelError(f"{name}: seed = {seed!r}: give a whole number of 0 or more")
    return int(seed)


def _is_whole(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)
