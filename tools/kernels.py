"""What worlds launch: plays a small scene for each kind of world and writes src/phyxel/kernels.json.

Run `python tools/kernels.py` when kernels have other arguments, or worlds launch other ones; it takes some minutes. See
`phyxel.kernels` for what it is good for.
"""

import gc
import itertools
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import warp as wp
from warp._src import context
from warp._src.codegen import Struct
from warp._src.types import get_type_code, type_is_generic

import phyxel as px
from phyxel import device as dev
from phyxel import kernels
from phyxel.body.inside import MODES
from phyxel.errors import PhyxelError
from phyxel.models.kind import public_kinds
from phyxel.run import Run
from phyxel.scene import Scene
from phyxel.scene.scene_file import validated
from phyxel.surface.tessellate import tessellated
from phyxel.view.live_world import Play

FILE = Path(__file__).resolve().parents[1] / "src" / "phyxel" / "kernels.json"

SOLID = {"shape": "bar", "points": 3000, "nodes": 150, "size": 0.5}
SHEET = {"shape": "cloth", "points": 400, "size": 0.5}
BODIES = [{"name": "b0", "at": [0.0, 0.2, 0.0]}, {"name": "b1", "at": [0.1, 0.35, 0.0], "velocity": [0.0, -3.0, 0.0]}]
GROUND = {"collider": [{"kind": "ground"}]}
BALL = {"collider": [{"kind": "sphere", "radius": 0.1, "path": [{"at": 0.2, "to": [0.0, 0.1, 0.0]}]}]}
BRITTLE = {"body": {"velocity": [0.0, -5.0, 0.0], "material": {"strength": 3.0e4}}} | GROUND
CRACK = {"at": [0.1, 0.2, 0.0], "normal": [1.0, 0.3, 0.0]}
CRUMB = {"at": [0.24, 0.2, 0.0], "normal": [1.0, 0.3, 0.0]}
MELT = {"at": 0.02, "body": "b0", "melt": {"viscosity": 20.0}}
SET = {"at": 0.15, "body": "b0", "solidify": {}}

TURNS: list[dict[str, Any]] = [
    {},
    GROUND,
    BALL,
    {"bodies": 2},
    {"body": {"integrator": "implicit"}},
    {"body": {"integrator": "implicit"}} | BALL,
    {"body": {"integrator": "implicit"}, "bodies": 2},
    {"field": [{"kind": "wind", "velocity": [1.0, 0.0, 0.0]}]},
    {"field": [{"kind": "filling", "bulk": 1.0e4}], "body": {"shape": "balloon"}},
    {"field": [{"kind": "wrap", "collider": "sphere", "pressure": 10.0}]} | BALL,
    BRITTLE,
    {"body": {"cut": [CRACK]}},
    {"body": {"cut": [CRACK]}} | GROUND,
    {"body": {"cut": [CRUMB], "nodes": 90}},
    {"body": {"material": {"young": 2.0e4}}, "event": [{"at": 0.25, "material": {"young": 2.0e5}}]} | GROUND,
    {"event": [MELT]},
    {"event": [MELT]} | GROUND,
    {"event": [MELT]} | BALL,
    {"event": [MELT, SET]} | GROUND,
    {"event": [MELT], "bodies": 2},
    {"output": {"video": True}},
    {"output": {"video": True}} | BALL,
    {"output": {"points": "splat"}},
    {"output": {"mesh": "obj"}},
    *({"output": {"video": True, "field": "stress", "mode": mode}} for mode in MODES),
]
"""What there may be in a world; not every model takes all."""


def scenes() -> Iterator[Scene]:
    """A small scene for each kind of world."""
    for kind, turn in itertools.product(public_kinds(), TURNS):
        body = (SOLID if kind.has_inside else SHEET) | {"model": kind.name} | turn.get("body", {})
        bodies = [body | one for one in BODIES[: turn.get("bodies", 1)]]
        output = {"width": 64, "height": 48, "video": False} | turn.get("output", {})
        rest = {key: turn[key] for key in ("collider", "field", "event") if key in turn}
        content = {"seconds": 0.3, "fps": 10, "body": bodies, "output": output} | rest
        yield Scene(validated(content, "scene"), "scene", Path(), "", "scene")


def tin_sheets() -> Iterator[px.World]:
    """Surfaces that keep dents, linked or not."""
    tin = px.Membrane.tin().but(plasticity=0.5, elastic_limit=1e-6)
    for links in (None, "none"):
        world = px.World(device="cpu")
        world.add(px.Body(px.load("cloth", points=400), model="particles", material=tin, links=links))
        yield world


def play(scene: Scene, folder: Path) -> None:
    """Play it to its end."""
    Run(scene, folder / "run", "cpu").play()


def show(scene: Scene) -> None:
    """Pack it for the page of a browser, before it moves and after."""
    playing = Play.of(scene, "cpu")
    playing.sight.snapshot(1)
    playing.performance.world.advance(0.1)
    playing.sight.snapshot(2)


def clouds() -> Iterator[tuple[str, px.PointCloud]]:
    """A cloud of each kind that solids are made of, and what `kernels.ready` calls it."""
    whole = px.load("bear", points=4000)
    yield "from points", px.PointCloud(whole.positions, normals=whole.normals)
    yield "from mesh", replace(tessellated(whole), shape=None)


class Watch:
    """Which modules are asked for."""

    def __init__(self) -> None:
        self.asked: set[str] = set()
        load = context.Module.load

        def watched(module: Any, *arguments: Any, **named: Any) -> Any:
            self.asked.add(module.name)
            return load(module, *arguments, **named)

        context.Module.load = watched

    def during(self, work: Callable[[Path], Any]) -> list[str]:
        """The modules that some work asks for."""
        gc.collect()
        with tempfile.TemporaryDirectory() as folder:
            os.environ["PHYXEL_CACHE"] = folder  # nothing is remembered
            self.asked = set()
            work(Path(folder))
        return sorted(name for name in self.asked if name.startswith("phyxel."))


def signatures(modules: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The types with which generic kernels were launched, and the structs among them."""
    overloads: dict[str, Any] = {}
    structs: dict[str, Any] = {}

    def code_of(kind: Any) -> str:
        if isinstance(kind, Struct):
            structs[kind.native_name] = {name: code_of(field.type) for name, field in kind.vars.items()}
        return get_type_code(kind)

    for name in modules:
        for key, kernel in sorted(wp.get_module(name).kernels.items()):
            open_ones = [argument.label for argument in kernel.adj.args if type_is_generic(argument.type)]
            known = [
                {label: code_of(overload.adj.arg_types[label]) for label in open_ones}
                for overload in kernel.overloads.values()
            ]
            if known:
                overloads.setdefault(name, {})[key] = sorted(known, key=json.dumps)
    return overloads, dict(sorted(structs.items()))


def seconds_of(modules: list[str]) -> dict[str, float]:
    """How long each takes to compile on one core that has nothing else to do."""
    device, spent = dev.pick("cpu"), {}
    with tempfile.TemporaryDirectory() as folder:
        wp.config.kernel_cache_dir = folder
        for name in ["phyxel.device", *modules]:  # the first also prepares Warp's headers
            wp.get_module(name).unload()
            start = time.process_time()
            wp.force_load(device, [wp.get_module(name)])
            spent[name] = round(time.process_time() - start, 1)
    return {name: spent[name] for name in modules}


def needed(worlds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each world the modules that no world needed of which less was said; those with none are left out."""
    sets = [(frozenset(one["words"]), set(one["modules"])) for one in worlds]
    for one, (words, modules) in zip(worlds, sets, strict=True):
        one["modules"] = sorted(modules.difference(*(others for less, others in sets if less < words)))
    return [one for one in worlds if one["modules"]]


def main() -> None:
    kernels.ready = lambda words, device: None  # what is asked for now, not what was on record
    watch, worlds = Watch(), {}

    def note(words: set[str], work: Callable[[Path], Any]) -> None:
        try:
            worlds.setdefault(tuple(sorted(words)), set()).update(watch.during(work))
            print(*sorted(words), flush=True)
        except PhyxelError as error:  # not every model takes everything
            print(*sorted(words), error, sep=": ")

    for word, cloud in clouds():
        note({word}, lambda folder, cloud=cloud: px.Solid(cloud).volume)
    note({"picture"}, lambda folder: px.render(px.load("bear", points=4000), width=64, height=48))
    for scene in scenes():
        said = scene.content.words() | scene.content.output.words()
        note(said, lambda folder, scene=scene: play(scene, folder))
        if said == {scene.content.body[0].model}:
            note(said | {"view"}, lambda folder, scene=scene: show(scene))
    for world in tin_sheets():
        note({"particles", "plasticity"}, lambda folder, world=world: world.advance(0.1))
    modules = sorted({name for names in worlds.values() for name in names})
    overloads, structs = signatures(modules)
    found = [{"words": said, "modules": names} for said, names in sorted(worlds.items())]
    whole = {"seconds": seconds_of(modules), "worlds": needed(found), "overloads": overloads, "structs": structs}
    FILE.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
