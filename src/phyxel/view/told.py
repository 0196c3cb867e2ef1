"""What pages are told of a live world in words and numbers."""

from __future__ import annotations

from typing import Any

from phyxel.models.kind import public_kinds
from phyxel.view.panels import UNITS, about_bodies
from phyxel.view.play import Play


def about_scene(play: Play, shown: dict[str, Any]) -> dict[str, Any]:
    """All that panels show; `shown` is what is seen of bodies, in the words of `Snapshots.show`."""
    scene, world, plane = play.scene, play.performance.world, shown["plane"]
    return {
        "kind": "scene",
        "mode": "live",
        "name": scene.name,
        "title": scene.content.title,
        "bodies": about_bodies(world),
        "gravity": world.gravity.tolist(),
        "shown": {**shown, "plane": plane and {"normal": plane[0], "place": plane[1]}},
        "recording": False,
        "camera": play.camera,
        "models": [kind.name for kind in public_kinds()],
        "fields": play.sight.fields(),
        "units": {name: list(entry) for name, entry in UNITS.items()},
    }


def numbers(play: Play) -> dict[str, Any]:
    """Energies [J], the volume over that at first, and how many surfels there are."""
    world = play.performance.world
    parts = [body.diagnostics() for body in world.bodies]
    sums = {name: sum(part[name] for part in parts) for name in ("kinetic", "elastic", "potential", "volume")}
    sums["volume"] = sums["volume"] / play.volume if play.volume else 1.0
    surfels = sum(len(body.surfels) for body in world.bodies)
    return {"kind": "numbers", "time": world.time, "surfels": surfels, **sums}
