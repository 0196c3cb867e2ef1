"""What pages see is what the world has: places, fields, slices, splats, meshes."""

from __future__ import annotations

import numpy as np
import pytest

import phyxel as px
from phyxel.body.quantities import von_mises
from phyxel.export.meshes import mesh_of
from phyxel.export.splats import _table, splat_columns
from phyxel.points.splats import CENTRE, QUATERNION, SIZES, rotation_matrices
from phyxel.view.messages import DrawnThing
from phyxel.view.slices import at_rest
from phyxel.view.snapshots import Snapshots
from tests.export.bodies import PLACED, SHIFT, STRETCH, deform, write_cube
from tests.points.test_splats import ply
from tests.points.test_splats import splat_columns as written
from tests.view.records import RECORD, decoded

SOFT = px.Material(young=1e5, poisson=0.3, density=1000)


def seen(part: DrawnThing):
    return decoded(part.blobs["records"].data, part.about)


def quantum(part: DrawnThing) -> float:
    return float(np.subtract(part.about["upper"], part.about["lower"]).max()) / 65535


@pytest.fixture(scope="module", params=["phyxel", "galerkin"])
def squeezed(request) -> tuple[px.World, px.Body]:
    """A cube that is pulled at its top, half a second later."""
    body = px.Body(px.load("box", points=900), nodes=64, material=SOFT, model=request.param, name="cube")
    world = px.World()
    world.add(body)
    body.fix(lambda X: X[:, 1] < -0.15)
    body.drag(lambda X: X[:, 1] > 0.15, (0.03, 0.06, 0))
    world.advance(0.1)
    return world, body


def test_surfels_are_where_they_are(squeezed):
    world, body = squeezed
    snapshot = Snapshots(world).snapshot(7, pins=[(1, 2, 3)])
    assert snapshot.about["frame"] == 7 and snapshot.about["time"] == world.time and snapshot.about["legend"] is None
    assert snapshot.about["pins"] == [[1, 2, 3]] and snapshot.about["ground"] is None
    (part,) = snapshot.parts
    assert (part.name, part.kind, part.about["valued"], part.about["look"]) == ("cube", "surfels", False, body.look)
    found = seen(part)
    assert np.abs(found.positions - body.surface.positions).max() < 0.51 * quantum(part)
    colors = np.frombuffer(part.blobs["colors"].data, np.uint8).reshape(-1, 4)
    assert np.abs(colors[:, :3] / 255 - body.surface.colors).max() < 0.51 / 255 and np.all(colors[:, 3] == 255)


def test_fields_are_those_of_the_body(squeezed):
    world, body = squeezed
    X = at_rest(body, body.surface.carried)[body.surface.owners]
    strain = body.strain_at(X)
    apart = strain - np.trace(strain, axis1=1, axis2=2)[:, None, None] / 3 * np.eye(3)
    expected = {
        "stress": von_mises(body.stress_at(X)),
        "principal": np.linalg.eigvalsh(body.stress_at(X))[:, 2],
        "strain": np.sqrt(2 / 3 * np.einsum("mab,mab->m", apart, apart)),
        "speed": np.linalg.norm(body.probe(X).velocity(), axis=1),
    }
    sight = Snapshots(world)
    for field, values in expected.items():
        sight.show(field)
        snapshot = sight.snapshot(0)
        legend, (part,) = snapshot.about["legend"], snapshot.parts
        low, high = legend["low"], legend["high"]
        assert part.about["valued"] and len(legend["colors"]) == 64 and legend["ticks"][0][0] >= low
        found = low + seen(part).values * (high - low)
        # Half a step of the scale, and single precision; what is beyond its ends is at them.
        assert np.abs(found - np.clip(values, low, high)).max() < (0.51 / 65535 + 1e-6) * (high - low)
        assert np.ptp(found) > 0.2 * (high - low)
    sight.show("stress", surface="nodes")
    (dots,) = sight.snapshot(0).parts
    assert dots.kind == "dots" and dots.about["count"] == len(body.birth)


def test_slices_leave_what_lies_behind_them():
    """A cube of 0.5 m at rest, cut across (1, 0, 0) at x = 0.1: the cut is a square of 0.25 m², and what is left of the
    surface ends there."""
    body = px.Body(px.load("box", points=3000), nodes=125, material=SOFT, name="cube")
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    sight = Snapshots(world)
    sight.show("distance", "slice", ((2, 0, 0), (0.1, 0.3, 0)))
    snapshot = sight.snapshot(0)
    rest, cut = snapshot.parts
    half = seen(rest)
    edge = 0.1 + quantum(rest)
    # Discs too end at the plane, but for what rounding their half axes up adds; the angle has half a code.
    assert 0.08 < half.positions[:, 0].max() < edge
    assert np.sum(half.positions[:, 0] < 0) == np.sum(body.surface.positions[:, 0] < 0)
    reach = np.abs(half.first[:, 0]) * half.axes[:, 0]
    assert np.all(half.positions[:, 0] + reach < edge + 0.06 * half.axes[:, 0])

    surface = seen(cut)
    faces = np.frombuffer(cut.blobs["faces"].data, "<u4").reshape(-1, 3)
    sides = surface.positions[faces]
    areas = 0.5 * np.cross(sides[:, 1] - sides[:, 0], sides[:, 2] - sides[:, 0])
    assert cut.kind == "mesh" and np.abs(surface.positions[:, 0] - 0.1).max() < 2 * quantum(cut)
    # A corner of the square is cut off in four cells of 1/72 of its side at most.
    assert np.linalg.norm(areas, axis=1).sum() == pytest.approx(0.25, rel=1e-3)
    assert np.abs(surface.normals - [1, 0, 0]).max() < 1e-3
    # Distances on the cut are those of the square's sides: inside x = 0.1 these are nearer than 0.15, or that is.
    legend = snapshot.about["legend"]
    values = legend["low"] + surface.values * (legend["high"] - legend["low"])
    depth = np.minimum(0.25 - np.abs(surface.positions[:, 1:]).max(axis=1), 0.15)
    assert np.abs(values + depth)[depth > 0.03].max() < 0.01

    plane = snapshot.about["plane"]
    assert np.allclose(plane["centre"], [0.1, 0, 0], atol=1e-3) and np.allclose(plane["normal"], [1, 0, 0])
    assert np.allclose(np.linalg.norm(plane["axes"], axis=1), 0.25, rtol=0.01)
    assert plane["facing"] == [1, 0, 0] and plane["at"] == 0.1
    assert np.allclose([plane["low"], plane["high"]], [[-0.25] * 3, [0.25] * 3])
    sight.show("distance", "slice", ((1, 0, 0), (-0.3, 0, 0)))
    rest, cut = sight.snapshot(1).parts
    assert rest.about["count"] == cut.about["count"] == 0


def test_a_cut_bends_with_its_body(squeezed):
    world, body = squeezed
    sight = Snapshots(world)
    sight.show("stress", "slice", ((0, 0, 1), (0, 0, 0)))
    rest, cut = sight.snapshot(0).parts
    X = np.random.default_rng(0).uniform((-0.2, -0.2, 0), (0.2, 0.2, 0), (40, 3))
    places, surface = X + body.displacement_at(X), seen(cut)
    faces = np.frombuffer(cut.blobs["faces"].data, "<u4").reshape(-1, 3)
    middles = surface.positions[faces].mean(axis=1)
    away = np.linalg.norm(middles[None] - places[:, None], axis=2)
    # A triangle has half a square of 0.5 m / 72 and a bit: its middle is nearer than that.
    assert away.min(axis=1).max() < 0.5 * 1.15 / 72
    found = surface.values[faces].mean(axis=1)[away.argmin(axis=1)]
    assert np.all(np.isfinite(found)) and rest.about["count"] > 0


def test_splats_are_those_that_files_have(tmp_path):
    path = tmp_path / "ball.ply"
    path.write_bytes(ply(written()))
    body = px.Body(px.load(path, up="z"), nodes=200, material=SOFT, **PLACED)
    deform(body, STRETCH, SHIFT)
    (part,) = Snapshots(body.world).snapshot(0).parts
    assert part.kind == "splats"
    rows = np.frombuffer(part.blobs["records"].data, [("x", "<f4", 3), ("c", "<f2", 6), ("rgba", "u1", 4)])
    columns = splat_columns(body)
    assert np.abs(np.array(part.about["lower"]) + rows["x"] - _table(columns, CENTRE)).max() < 1e-6
    assert np.allclose(rows["x"].min(axis=0), 0) and len(rows) == part.about["count"] == len(columns["x"])
    axes = rotation_matrices(_table(columns, QUATERNION)) * np.exp(_table(columns, SIZES))[:, None, :]
    covariance = axes @ axes.transpose(0, 2, 1)
    found = rows["c"].astype(float) * part.about["unit"] ** 2
    upper = np.triu_indices(3)
    # Numbers of 16 bits have 11 of them.
    assert np.abs(found - covariance[:, *upper]).max() < 2**-11 * np.abs(covariance).max() * 1.1
    assert np.array_equal(rows["rgba"][:, 3], np.rint(255 * body.cloud.splats.opacities))
    assert np.abs(rows["rgba"][:, :3] / 255 - body.cloud.splats.colors).max() < 0.51 / 255


def test_meshes_are_those_that_came_in_until_they_melt(tmp_path):
    cloud = px.load(write_cube(tmp_path / "cube.obj"))
    body = px.Body(cloud, nodes=64, material=SOFT, name="cube")
    sparse = px.Body(
        px.load(tmp_path / "cube.obj", points=300), nodes=64, material=SOFT, at=(3, 0, 0), place="file", name="sparse"
    )
    world = px.World()
    for one in (body, sparse):
        world.add(one)
    world.advance(0.02)
    sight = Snapshots(world)
    sight.show("speed")
    for one, part in zip((body, sparse), sight.snapshot(0).parts, strict=True):
        mesh = mesh_of(one)
        assert part.kind == "mesh" and part.about["valued"]
        assert np.array_equal(np.frombuffer(part.blobs["faces"].data, "<u4").reshape(-1, 3), mesh.faces)
        found = seen(part)
        assert np.abs(found.positions - mesh.vertices).max() < 0.51 * quantum(part) + 1e-6
        assert np.abs(found.normals - mesh.normals).max() < 1e-3
    # Both fall: v = g t.
    legend = sight.snapshot(0).about["legend"]
    assert legend["unit"] in ("m/s", "mm/s") and legend["low"] <= 9.81 * 0.02 <= legend["high"]

    world.add(px.Ground(height=-0.6))
    body.melt(viscosity=5.0)
    counts = set()
    for _ in range(6):
        world.advance(0.1)
        snapshot = sight.snapshot(0)
        part = snapshot.parts[0]
        assert part.kind == "surfels" and part.about["count"] == len(body.surface) == len(seen(part).values)
        assert len(part.blobs["colors"].data) == 4 * part.about["count"]
        counts.add(part.about["count"])
    assert len(counts) > 1 and snapshot.parts[1].kind == "mesh" and snapshot.about["ground"] == -0.6
    sight.show("stress", "slice")
    assert [part.kind for part in sight.snapshot(0).parts] == ["surfels", "mesh"] * 2


def test_what_never_changes_is_sent_once():
    body = px.Body(px.load("sphere", points=1500), nodes=100, material=SOFT)
    world = px.World()
    world.add(body)
    ball = px.Sphere(radius=0.2, path=[(0.0, (0.0, -1.0, 0.0)), (1.0, (1.0, -1.0, 0.0), (0.0, 90.0, 0.0))])
    world.add(ball)
    known: set[str] = set()
    lengths, poses = [], []
    for frame in range(3):
        snapshot = Snapshots(world).snapshot(frame)  # also by another Sight, as after a restart
        lengths.append(len(snapshot.message(known, {})))
        poses.append(np.reshape(snapshot.parts[1].about["pose"], (4, 4), order="F"))
        world.advance(0.25)
    assert lengths[0] > 16 * 3000 and max(lengths[1:]) < 16 * len(body.surface) + 2000
    place, axes = ball.pose(0.5)
    assert np.allclose(poses[2][:3, 3], place) and np.allclose(poses[2][:3, :3], axes)
    skin = snapshot.parts[1]
    assert np.abs(np.linalg.norm(seen(skin).positions, axis=1) - 0.2).max() < 2e-3
    assert not np.frombuffer(skin.blobs["records"].data, RECORD)["value"].any()
    world.remove(ball)
    assert len(Snapshots(world).snapshot(3).parts) == 1


def test_wrong_wishes_are_refused_in_words_and_change_nothing():
    cloth = px.Body(px.load("cloth", points=100), model="particles", name="cloth")
    world = px.World()
    world.add(cloth)
    world.advance(0.01)
    sight = Snapshots(world)
    sight.show("speed", surface="mesh")
    assert [one["name"] for one in sight.fields()] == ["speed"]
    for wish, words in [
        ({"field": "stress"}, "particle surfaces have only a speed"),
        ({"field": "sterss"}, "stress"),
        ({"mode": "slcie"}, "slice"),
        ({"mode": "slice"}, "choose one"),
        ({"surface": "surfel"}, "surfels"),
        ({"field": "speed", "plane": ((0, 0, 0), (0, 0, 0))}, "normal"),
    ]:
        with pytest.raises(px.PhyxelError, match=words):
            sight.show(**wish)
    assert (sight.field, sight.mode, sight.surface) == ("speed", "surface", "mesh")
    (part,) = sight.snapshot(0).parts
    assert part.kind == "mesh" and part.about["sheet"]


def test_the_first_camera_sees_the_body_or_is_the_scene_s():
    text = 'seconds = 1\n[[body]]\nshape = "sphere"\npoints = 500\nnodes = 60\nat = [5, 1, 0]\n'
    scene = px.Scene.parse(text + "[camera]\neye = [5, 9, 0.5]\nfov = 20\n")
    world = scene.world()
    told = Snapshots(world, scene.content).camera()
    assert told["eye"] == [5, 9, 0.5] and told["fov"] == 20
    camera = Snapshots(world).camera()
    way = np.subtract([5, 1, 0], camera["eye"])
    ahead = np.subtract(camera["target"], camera["eye"])
    assert way @ ahead > 0.95 * np.linalg.norm(way) * np.linalg.norm(ahead) and camera["fov"] == 32


def test_the_scale_comes_back_after_a_blow():
    body = px.Body(px.load("sphere", points=500), nodes=60, material=SOFT, velocity=(8, 0, 0))
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    sight = Snapshots(world)
    sight.show("speed")
    high = sight.snapshot(0).about["legend"]["high"]
    body.fix(lambda X: X[:, 0] < 1)
    world.advance(1 / 60)
    ends = [sight.snapshot(frame).about["legend"]["high"] for frame in range(200)]
    # 0.995^200 = 0.37 of it is left; a round number above that, at most a step of a quarter of it.
    assert high >= 8 and ends[0] > 7 and 8 * 0.995**200 <= ends[-1] < 1.25 * 8 * 0.995**200
    assert np.all(np.diff(ends) <= 0)
