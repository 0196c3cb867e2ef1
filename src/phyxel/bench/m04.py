"""M04 Table 1: physics, explicit (20 force evaluations a frame) and implicit (a step of 0.01 s), then surface and
rendering at 640 × 480."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

import numpy as np

from phyxel.bench.registry import BenchSetting, Result, advance_seconds, median_seconds
from phyxel.body import Body
from phyxel.contact.colliders import Ground
from phyxel.material import Material
from phyxel.movers.phyxel_bodies import phyxels_of
from phyxel.points.load import load
from phyxel.world import World

EVALUATIONS, FRAMES = 20, 60
"""Force evaluations a frame, as in the paper, and frames of a median."""
STEP = 0.01
"""[s], the paper's implicit step"""
ROWS = ((200, 10_000, 0.015, 0.022, 0.022), (400, 20_000, 0.035, 0.060, 0.050))
"""phyxels, surfels, the paper's seconds for physics, explicit and implicit, and for surface + rendering"""


def m04(setting: BenchSetting) -> Iterator[Result]:
    """Max Planck (where the scan is) and the bear."""
    subjects: dict[str, str] = {"bear": "bear"}
    scan = setting.model("max-planck.obj")
    if scan is not None:
        subjects = {"max": str(scan), **subjects}
    for subject, source in subjects.items():
        for phyxels, surfels, paper_physics, paper_implicit, paper_pictures in ROWS:
            world = _falling(source, phyxels, surfels, setting, "leapfrog")
            label = f"m04-{subject}-{phyxels}-{surfels // 1000}k"
            nodes = {"phyxels": len(phyxels_of(world).model), "surfels": len(world.bodies[0].surface)}
            yield Result(f"{label}-physics", _physics(world), "s/frame", paper=paper_physics, details=nodes)
            stiff = _falling(source, phyxels, surfels, setting, "implicit")
            seconds = median_seconds(partial(stiff.advance, STEP), FRAMES)
            yield Result(f"{label}-implicit", seconds, "s/frame", paper=paper_implicit, details=nodes)
            yield Result(f"{label}-pictures", _pictures(world), "s/frame", paper=paper_pictures, details=nodes)


def surface(setting: BenchSetting) -> Iterator[Result]:
    """The surface update alone, of a small body and of a scan: hardly deformed, and all in pieces."""
    scan = setting.model("igea.ply")
    for label, source, phyxels, surfels, aim in (
        ("10k", "bear", 200, 10_000, 1.2e-3),
        ("134k", "bear" if scan is None else str(scan), 800, 134_345, 15e-3),
    ):
        world = _falling(source, phyxels, surfels, setting, "leapfrog")
        seconds = median_seconds(partial(_moved_surface, world), FRAMES)
        yield Result(f"surface-{label}", seconds, "s/frame", peer=aim, peer_name="aim", details=_shown(world))
        body = world.bodies[0]
        phyxels_of(world).model.u.assign((2.0 * (body.reference - body.centre) / body.unit).astype(np.float32))
        phyxels_of(world).model.shape_changed()
        seconds = median_seconds(partial(_moved_surface, world), FRAMES)
        yield Result(f"surface-{label}-split", seconds, "s/frame", details=_shown(world))


def _shown(world: World) -> dict[str, int]:
    return {"surfels": len(world.bodies[0].surface)}


def _falling(source: str, phyxels: int, surfels: int, setting: BenchSetting, integrator: str) -> World:
    """A soft body on the ground, moving."""
    material = Material(young=1e5, poisson=0.35)
    body = Body(
        load(source, points=surfels), material=material, nodes=phyxels, size=0.6, integrator=integrator, scheme="m04"
    )
    lowest = float(body.positions[:, 1].min())
    world = World(device=setting.device)
    world.add(body)
    world.add(Ground(height=lowest - 0.05))
    world.advance(0.1)
    return world


def _physics(world: World) -> float:
    """Median seconds for a frame of 20 force evaluations, everything the world does for it included."""
    seconds = []
    for _ in range(FRAMES):
        frame = EVALUATIONS * (1 - 1e-9) * phyxels_of(world).model.stable_step()
        before = world.steps
        took = advance_seconds(world, frame)
        # The world keeps the size of its steps, so a frame may take one more or fewer.
        seconds.append(took * EVALUATIONS / (world.steps - before))
    return statistics.median(seconds)


def _pictures(world: World) -> float:
    """Median seconds for following the surface and drawing it at 640 × 480, ground and shadow included."""
    from phyxel.render.stage import stage

    drawn = stage(world, width=640, height=480)

    def draw() -> None:
        _moved_surface(world)
        drawn.draw(world)

    return median_seconds(draw, FRAMES)


def _moved_surface(world: World) -> None:
    world.revision += 1
    _ = world.bodies[0].surface
    world.synchronize()
