"""What panels show of bodies and their materials, by the names and units of scene files, and scenes with what panels
changed in them, which a restart plays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from phyxel.body import Body
from phyxel.errors import PhyxelError, did_you_mean
from phyxel.material.material import Material
from phyxel.material.membrane import SOLIDS_ONLY, Membrane
from phyxel.material.number import units_of
from phyxel.material.presets import MEMBRANES, PRESETS
from phyxel.models.kind import KINDS
from phyxel.scene import Scene
from phyxel.scene.body_tables import MaterialPart
from phyxel.view.figures import shows
from phyxel.world import World

LIMITS: dict[str, tuple[float, float, str]] = {
    "young": (1e2, 3e11, "Young's modulus: how hard it is to stretch. Jelly 1e4, rubber 1e6, steel 2e11"),
    "poisson": (0.0, 0.49, "Poisson's ratio: how much it narrows when stretched. Cork 0, rubber 0.48"),
    "density": (10.0, 2e4, "mass per volume. Foam 40, water 1000, steel 7850"),
    "damping": (1e-6, 0.1, "inner friction: how soon it stops to wobble"),
    "drag": (1e-2, 300.0, "resistance of the surroundings: slows falling, too"),
    "yield_strain": (1e-3, 1.0, "strain beyond which it stays bent"),
    "yield_stress": (1e1, 1e10, "stress beyond which it stays bent"),
    "creep": (0.1, 1e3, "how fast strain beyond the yield becomes permanent"),
    "max_strain": (0.01, 0.59, "largest permanent strain"),
    "viscosity": (0.1, 1e6, "of what has melted. Honey 10, bitumen 1e4"),
    "strength": (1e2, 1e10, "tensile stress at which it cracks. Concrete 3e6"),
    "strength_scatter": (0.0, 1.0, "how much the strength varies from place to place"),
    "thickness": (1e-5, 1e-2, "of the surface. Cotton 3.5e-4"),
    "foundation": (1e2, 1e8, "what pulls each point back to where it was"),
    "plasticity": (0.0, 1.0, "share of a dent that stays"),
    "elastic_limit": (1e-4, 0.1, "depth up to which no dent stays"),
    "weft": (1e2, 3e11, "Young's modulus across the warp"),
    "shear": (1e1, 1e11, "how hard it is to shear. Loose cloth 1e5"),
    "bending": (1e-9, 1e-1, "how hard it is to fold. Cotton 8e-6"),
}
"""Numbers of materials: where sliders begin and end, and what it is."""
UNITS = {name: (units_of(Membrane)[name], *limits) for name, limits in LIMITS.items()}
"""The same behind the unit of each."""
BEYOND = 100.0
"""By what factor a number may lie beyond its slider: with one from nowhere a world would take steps of no length."""
OFF = ("yield_strain", "yield_stress", "creep", "strength")
"""Numbers that can be without bound: it never yields, never cracks, or creeps at once."""


def about_bodies(world: World) -> list[dict[str, Any]]:
    """One entry for each body of the scene; its pieces count as one."""
    wholes: dict[str, list[Body]] = {}
    for body in world.bodies:
        wholes.setdefault(body.whole, []).append(body)
    return [_about_body(name, pieces) for name, pieces in wholes.items()]


def _about_body(name: str, pieces: list[Body]) -> dict[str, Any]:
    body = max(pieces, key=lambda piece: len(piece.birth))
    thin = isinstance(body.material, Membrane)
    colors = body.cloud.colors
    kind = next((piece.kind for piece in pieces if piece.thrown is None), body.kind)
    return {
        "name": name,
        "model": kind.name,
        "cannot": {deed: kind.refusal(deed) for deed in kind.cannot},
        "nodes": sum(len(piece.birth) for piece in pieces),
        "surfels": sum(len(piece.surface) for piece in pieces),
        "membrane": thin,
        "molten": any(bool(piece.substance.is_molten.any()) for piece in pieces),
        "brittle": any(piece.is_brittle for piece in pieces),
        "material": numbers_of(body.material),
        "preset_names": list(MEMBRANES if thin else PRESETS),
        "look": body.look,
        "color": None if colors is None else np.asarray(colors, float).mean(axis=0).tolist(),
        "shows": list(shows(body)),
    }


def numbers_of(material: Material) -> dict[str, float | None]:
    """The numbers of a material that a panel can change; none for those without bound."""
    left_out = {"stiffness", *(SOLIDS_ONLY if isinstance(material, Membrane) else ())}
    if material.viscosity is None:
        left_out.add("viscosity")
    values = {entry.name: getattr(material, entry.name) for entry in fields(material) if entry.name not in left_out}
    return {name: None if value is None or math.isinf(value) else float(value) for name, value in values.items()}


def part_of(numbers: Mapping[str, float | None]) -> MaterialPart:
    """The numbers that a panel gives, none for without bound, as a scene file has them."""
    for name, value in numbers.items():
        if name not in UNITS:
            raise PhyxelError(f"material.{name}: not known{did_you_mean(name, UNITS)}")
        unit, low, high, _ = UNITS[name]
        if value is None and name not in OFF:
            raise PhyxelError(f"material.{name}: cannot be switched off; give a number")
        if value and not low / BEYOND <= value <= high * BEYOND:
            raise PhyxelError(f"material.{name} = {value:g}: no such stuff; give {low:g} to {high:g} {unit}".rstrip())
    given: dict[str, Any] = {name: math.inf if value is None else value for name, value in numbers.items()}
    return MaterialPart(**given)


def with_content(scene: Scene, **other: Any) -> Scene:
    """The same scene with other keys."""
    state = scene.state()
    return Scene.restored({**state, "content": {**state["content"], **other}})


def with_material(scene: Scene, name: str, material: MaterialPart) -> Scene:
    """The same scene with a body whose material has these numbers, or is this preset."""
    given = material.model_dump(exclude_none=True)
    index = _index(scene, name)
    old = {} if "preset" in given else scene.content.body[index].material.model_dump(exclude_none=True)
    if "yield_strain" in given or "yield_stress" in given:
        old = {key: value for key, value in old.items() if key not in ("yield_strain", "yield_stress")}
    return _with_body(scene, index, material={**old, **given})


def with_model(scene: Scene, name: str, model: str, nodes: int | None) -> Scene:
    """The same scene with a body that another model moves, without what only the old one knew. Between solids and thin
    surfaces it also gets another material: none is both."""
    index = _index(scene, name)
    before, after = KINDS[scene.content.body[index].model], KINDS[model]
    other: dict[str, Any] = {"model": model} | ({} if nodes is None else {"nodes": nodes})
    if after is not before:
        other |= dict.fromkeys({"integrator", *before.options} - {"support", "refine"})
    if after.has_inside != before.has_inside:
        other["material"] = {}
    return _with_body(scene, index, **other)


def _with_body(scene: Scene, index: int, **other: Any) -> Scene:
    bodies = [part.model_dump(exclude_none=True) for part in scene.content.body]
    bodies[index] = {key: value for key, value in (bodies[index] | other).items() if value is not None}
    return with_content(scene, body=bodies)


def _index(scene: Scene, name: str) -> int:
    names = scene.body_names()
    if name not in names:
        raise PhyxelError(f'no body is named "{name}"{did_you_mean(name, names)}')
    return names.index(name)
