"""Whether what a body is asked to be can be, said before anything is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import PhyxelError, did_you_mean, tell
from phyxel.material import Material, Membrane
from phyxel.material.variation import Recipe
from phyxel.models.kind import KINDS, ModelKind, Scheme, named, public_kinds
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
    "surface": (None, "carried", "blended"),
    "basis": ("linear", "quadratic"),
}
DEFAULTS: dict[str, Any] = {
    "surface": None, "scheme": None, "refine": (), "basis": "linear", "modes": MODES, "links": None, "warp": WARP,
    "meets_itself": False,
}  # fmt: skip
"""Options that not every model takes, as they are unless they are told."""
EXPECTED: dict[str, tuple[type, str]] = {
    "refine": (Sequence, "[(px.Box(...), levels)]"),
    "parts": (Sequence, "[(px.Box(...), material)]"),
    "vary": (Mapping, '{"young": px.Channel("x", 1e5, 1e6)}'),
}


def name_for(cloud: PointCloud, material: Material | None, name: str | None) -> str:
    """The name of a body of a cloud and a material, if they are that."""
    if material is not None:
        check_material(cloud.name, material)
    if name is not None and not isinstance(name, str):
        raise PhyxelError(f"{cloud.name}: name = {name!r}: give a word")
    return name or cloud.name


def tell_of_file(name: str, cloud: PointCloud, looked_at: bool) -> None:
    """Tell what looks odd of a file as it was read, unless somebody has `looked_at` it and gave its size or turn."""
    missing = [] if cloud.reading is None else cloud.reading.missing
    for text in [*missing, *([] if looked_at else cloud.oddities())]:
        tell(f"{name}: {text}")


def check_material(name: str, material: Material) -> None:
    """Refuse anything but a material."""
    if not isinstance(material, Material):
        raise PhyxelError(f"{name}: material = {material!r}: give a Material, for example Material.rubber()")


def check_kinds(name: str, **given: Any) -> None:
    """Refuse values of another type than the option takes."""
    for key, value in given.items():
        kind, example = EXPECTED[key]
        if not isinstance(value, kind) or isinstance(value, str):
            raise PhyxelError(f"{name}: {key} = {value!r}: give {example}")


def kind_named(name: str, model: str) -> ModelKind:
    """The model that a body is asked to have, if there is one."""
    kind = KINDS.get(model)
    if kind is None:
        meant = did_you_mean(str(model), [kind.name for kind in public_kinds()])
        raise PhyxelError(f'{name}: model = "{model}": not known{meant}')
    return kind


def check_options(name: str, kind: ModelKind, integrator: str | None, given: Mapping[str, Any]) -> None:
    """Refuse options with wrong values, and those that a model knows nothing of."""
    for key, choices in CHOICES.items():
        if given[key] not in choices:
            meant = did_you_mean(str(given[key]), [word for word in choices if word])
            raise PhyxelError(f'{name}: {key} = "{given[key]}": not known{meant}')
    _check_integrator(name, kind, integrator)
    _check_values(name, given)
    for key, value in given.items():
        is_default = value == "carried" if key == "surface" and value else np.array_equal(value, DEFAULTS[key])
        if key not in kind.options and not is_default:
            takers = " or ".join(named(one for one in public_kinds() if key in one.options))
            raise PhyxelError(f'{name}: {key} = {value!r}: not for model = "{kind.name}"; needs model = {takers}')


def _check_integrator(name: str, kind: ModelKind, integrator: str | None) -> None:
    known = list(dict.fromkeys(word for one in public_kinds() for word in one.integrators if word != "exact"))
    if integrator is not None and integrator not in known:
        raise PhyxelError(f'{name}: integrator = "{integrator}": not known{did_you_mean(str(integrator), known)}')
    if integrator is not None and integrator not in kind.integrators:
        steps = " or ".join(kind.integrators)
        raise PhyxelError(
            f'{name}: integrator = "{integrator}": model = "{kind.name}" takes {steps} steps only; leave it out'
        )


def _check_values(name: str, given: Mapping[str, Any]) -> None:
    modes, links, warp = given["modes"], given["links"], given["warp"]
    if not (_is_whole(modes) and 1 <= modes <= MOST_MODES):
        raise PhyxelError(f"{name}: modes = {modes}: give a whole number from 1 to {MOST_MODES}")
    if not (links is None or links in LINKS or (_is_whole(links) and 1 <= int(links) <= MOST_LINKS)):
        raise PhyxelError(
            f'{name}: links = {links!r}: give "edges", "weave", "none" or a number of nearest points up to {MOST_LINKS}'
        )
    if not as_vector(f"{name}: warp", warp).any():
        raise PhyxelError(f"{name}: warp = {warp}: give the direction of the warp threads; it has no length")
    if not isinstance(given["meets_itself"], bool):
        raise PhyxelError(f"{name}: meets_itself = {given['meets_itself']!r}: give True or False")


def check_moves(name: str, kind: ModelKind, recipe: Recipe, material: Material) -> None:
    """Refuse a basic material with which the model of a body of this name cannot move it."""
    materials = recipe.mixed(material).materials
    if not kind.has_inside and not all(isinstance(one, kind.material) for one in materials):
        raise PhyxelError(
            f'{name}: model = "{kind.name}" is a thin surface: give a Membrane, which has a thickness, for example '
            'px.Membrane.cotton(), in a scene preset = "cotton"'
        )
    if kind.has_inside and any(isinstance(one, Membrane) for one in materials):
        thin = " or ".join(named(one for one in public_kinds() if not one.has_inside))
        raise PhyxelError(
            f'{name}: a Membrane is for model = {thin}; model = "{kind.name}" is a solid: give a Material, for '
            'example px.Material.rubber(), in a scene preset = "rubber"'
        )
    try:
        for one in materials if kind.has_inside else ():
            _check_deeds(kind, one)
    except PhyxelError as error:
        raise PhyxelError(f"{name}: {error}") from None


def _check_deeds(kind: ModelKind, material: Material) -> None:
    if material.viscosity is not None:
        kind.refuse("melt", "material.viscosity")
    if not kind.bends:  # of what it is made is its density: a stone may be rigid, and never breaks
        return
    if np.isfinite(material.flow_strain):
        kind.refuse("yield")
    if material.strength is not None:
        kind.refuse("crack", "material.strength")


def checked_support(name: str, support: float) -> float:
    """A support, if it has neither too few nor too many neighbours."""
    if not (isinstance(support, int | float | np.number) and 1.2 <= support <= 5):
        raise PhyxelError(f"{name}: support = {support}: give 1.2 to 5, or leave it out")
    return float(support)


def checked_scheme(name: str, kind: ModelKind, scheme: str | None) -> tuple[str, Scheme]:
    """The name of the scheme that is meant, "" if its model has but one, and what it is."""
    known = list(kind.schemes)
    if scheme is not None and scheme not in known:
        raise PhyxelError(f"{name}: scheme = {scheme!r}: not known{did_you_mean(str(scheme), known)}")
    return scheme or next(iter(known), ""), kind.scheme(scheme)


def start_velocities(name: str, arm: Floats, velocity: Vector, spin: Vector) -> Floats:
    """v + ω × arm [m/s], shape (n, 3), of places with arms (n, 3) [m] from the middle."""
    spun = np.cross(as_vector(f"{name}: spin", spin, "rad/s"), arm)
    velocities: Floats = as_vector(f"{name}: velocity", velocity, "m/s") + spun
    if np.abs(velocities).max() > LIGHT:
        raise PhyxelError(f"{name}: velocity = {velocity}, spin = {spin}: faster than light; give less")
    return velocities


def check_count(name: str, nodes: Any) -> None:
    """Refuse what is no number of nodes."""
    if not (nodes == "auto" or (_is_whole(nodes) and nodes >= 1)):
        raise PhyxelError(
            f'{name}: nodes = {nodes!r}: give a whole number of at least 1 (800 look right), or "auto" for as many as '
            "it needs to bend as it should"
        )


def checked_seed(name: str, seed: int) -> int:
    """A seed, if it is one."""
    if not _is_whole(seed) or seed < 0:
        raise PhyxelError(f"{name}: seed = {seed!r}: give a whole number of 0 or more")
    return int(seed)


def _is_whole(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)
