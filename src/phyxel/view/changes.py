"""Scenes with what panels have changed in them: what a restart plays."""

from __future__ import annotations

from typing import Any

from phyxel.errors import PhyxelError, did_you_mean
from phyxel.scene import Scene
from phyxel.scene.body_tables import MaterialPart

OWN = ("basis", "modes", "integrator", "links", "warp", "surface")
"""Keys of a body that only some models know."""


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
    before = scene.content.body[index].model
    other: dict[str, Any] = {"model": model} | ({} if nodes is None else {"nodes": nodes})
    if model != before:
        other |= dict.fromkeys(OWN)
    if model != before and "particles" in (model, before):
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
