"""Scene files: what is right is built, what is wrong is named: file, key, value, remedy, near miss."""

from pathlib import Path

import numpy as np
import pytest

import phyxel as px
from phyxel.errors import SceneError
from phyxel.scene import find_scene, gallery_names

BOX = """
[[body]]
name = "box"
shape = "box"
nodes = 64
points = 300
material = { young = 1.0e5, poisson = 0.3, density = 1000.0 }
"""
EMPTY_SPACE = "gravity = [0, 0, 0]\n"
REMOVE_BALL = '[[event]]\nat = 0.1\nremove = "ball"\n'
SPHERE = '[[collider]]\nkind = "sphere"\nname = "ball"\nradius = 1.0\nat = [0.0, -1.5, 0.0]\n'
MASS = 125.0
"""of the box [kg]"""


@pytest.fixture
def scene_of(tmp_path):
    """Writes a scene file and reads it."""

    def read(text: str) -> px.Scene:
        path = tmp_path / "jelly.toml"
        path.write_text(text)
        return px.Scene.read(path)

    return read


@pytest.fixture
def refusal(scene_of):
    """The message with which a scene is refused, before or while its world is built, but not later."""

    def message(text: str) -> str:
        with pytest.raises(px.PhyxelError) as caught:
            scene_of(text).world()
        return str(caught.value)

    return message


def box_with(line: str) -> str:
    """The box scene with a line of its body replaced or added."""
    key = line.split(" = ")[0]
    return "\n".join([row for row in BOX.splitlines() if row.split(" = ")[0] != key] + [line]) + "\n"


# What is right


def test_everything_said_arrives(scene_of):
    scene = scene_of(
        """
        seconds = 2.5
        fps = 25
        gravity = [0, -1.62, 0]
        [[body]]
        name = "tom"
        shape = "box"
        nodes = 64
        points = 300
        at = [1, 2, 3]
        place = "center"
        rotate = [0, 0, 90]
        size = 2.0
        velocity = [1, 0, 0]
        spin = [0, 0, 0.5]
        color = [1.0, 0.5, 0.0]
        force = [1, 2, 3]
        material = { preset = "gelatin", young = 5.0e5 }
        [[collider]]
        kind = "ground"
        height = -1.5
        friction = 0.25
        restitution = 0.125
        """
    )
    assert (scene.name, scene.seconds, scene.fps) == ("jelly", 2.5, 25)
    world = scene.world()
    (body,) = world.bodies
    assert world.gravity.tolist() == [0, -1.62, 0]
    assert body.name == "tom"
    assert body.material == px.Material.gelatin().but(young=5e5)
    assert np.ptp(body.surface.positions, axis=0) == pytest.approx([2, 2, 2], rel=0.01)
    assert body.positions.mean(axis=0) == pytest.approx([1, 2, 3], abs=1e-3)
    assert body.velocities.mean(axis=0) == pytest.approx([1, 0, 0], abs=1e-5)
    assert body.diagnostics()["angular_momentum"][2] != pytest.approx(0, abs=1)
    assert np.abs(body.surface.colors - [1.0, 0.5, 0.0]).max() < 1e-6
    assert body.force.tolist() == [1, 2, 3]
    assert world.colliders == [px.Ground(-1.5, 0.25, 0.125)]


def test_paint_is_given_in_metres_of_the_world(scene_of):
    """A box of 2 m about (0, 3, 0) that stands on its side: its upper half is red, what lies beyond x = 0.9 blue."""
    scene = scene_of(
        """
        [[body]]
        shape = "box"
        nodes = 64
        points = 300
        at = [0, 3, 0]
        place = "center"
        rotate = [0, 0, 90]
        size = 2.0
        color = [1, 1, 1]
        paint = [{ lower = [-inf, 3, -inf], color = [1, 0, 0] }, { lower = [0.9, -inf, -inf], color = [0, 0, 1] }]
        """
    )
    (body,) = scene.world().bodies
    x = body.surface.positions
    wanted = np.where(x[:, 1:2] > 3, [1, 0, 0], [1, 1, 1])
    wanted = np.where(x[:, :1] > 0.9, [0, 0, 1], wanted)
    clear = (np.abs(x[:, 1] - 3) > 1e-4) & (np.abs(x[:, 0] - 0.9) > 1e-4)
    assert np.array_equal(body.surface.colors[clear], wanted[clear])
    with pytest.raises(px.PhyxelError, match="shown already"):
        body.paint(px.Box((0, 0, 0), (1, 1, 1)), (0, 0, 0))


COLLIDERS = """
[[collider]]
kind = "sphere"
radius = 0.5
at = [1, 2, 3]
path = [{ at = 0.5, to = [0, 1, 0] }, { at = 1, to = [1, 1, 0], rotate = [0, 90, 0] }]
[[collider]]
kind = "box"
lower = [-1, -2, -1]
upper = [1, -1, 1]
rotate = [0, 30, 0]
friction = 0.25
[[collider]]
kind = "capsule"
start = [-1, -3, 0]
end = [1, -3, 0]
radius = 0.1
[[collider]]
kind = "spike"
height = 0.5
radius = 0.25
restitution = 0.5
[[collider]]
kind = "funnel"
upper_radius = 0.5
lower_radius = 0.1
height = 0.4
thickness = 0.05
"""


def test_every_collider_arrives(scene_of):
    world = scene_of(BOX + COLLIDERS).world()
    assert world.colliders == [
        px.Sphere(0.5, at=(1, 2, 3), path=[(0.5, (0, 1, 0)), (1, (1, 1, 0), (0, 90, 0))]),
        px.Box((-1, -2, -1), (1, -1, 1), rotate=(0, 30, 0), friction=0.25),
        px.Capsule((-1, -3, 0), (1, -3, 0), 0.1),
        px.Spike(0.5, 0.25, restitution=0.5),
        px.Funnel(0.5, 0.1, 0.4, 0.05),
    ]


@pytest.mark.slow
def test_a_mold_comes_from_a_shape_or_a_file(scene_of, tmp_path):
    ball = px.load("sphere", points=2000)
    np.savetxt(tmp_path / "cup.xyz", np.hstack([ball.positions, ball.normals]))
    made = '[[collider]]\nkind = "mold"\nshape = "box"\nsize = 2.0\ninside_out = true\nopen_above = 0.5\n'
    read = '[[collider]]\nkind = "mold"\nfile = "cup.xyz"\nat = [0, -3, 0]\n'
    cavity, cup = scene_of(BOX + made + read).world().colliders
    assert cavity.inside_out and cavity.size == 2.0 and cavity.open_above == 0.5
    assert cup.at == (0, -3, 0)
    assert cup.distance(np.array([[0.2, 0.0, 0.0]])) == pytest.approx(-0.05, abs=2e-3), "a ball of 0.25 m"


def test_an_event_takes_a_collider_away(scene_of):
    """What rested on it falls: by g t²/2, half a millimetre less since it had been pressed."""
    table = '[[collider]]\nkind = "box"\nlower = [-1, -1.25, -1]\nupper = [1, -0.25, 1]\n'
    world = scene_of(BOX + SPHERE + table + '[[event]]\nat = 0.1\nremove = "box"\n' + REMOVE_BALL).world()
    world.advance(0.1)
    assert [type(one) for one in world.colliders] == []
    height = world.bodies[0].positions[:, 1].mean()
    world.advance(0.2)
    assert height - world.bodies[0].positions[:, 1].mean() == pytest.approx(0.5 * 9.81 * 0.2**2, rel=0.1)


def test_one_body_is_enough(scene_of):
    scene = scene_of('[[body]]\nshape = "box"\nnodes = 64\n')
    assert scene.seconds > 0 and scene.fps > 0
    (body,) = scene.world().bodies
    assert body.name == "box"
    assert body.material == px.Material.rubber()


def test_bodies_without_names_get_different_ones(scene_of):
    unnamed = BOX.replace('name = "box"\n', "")
    world = scene_of(unnamed + unnamed + unnamed.replace("[[body]]", '[[body]]\nname = "tom"')).world()
    names = [body.name for body in world.bodies]
    assert len(set(names)) == 3 and names[0] == "box" and names[2] == "tom"


def test_a_made_up_name_gives_way_to_a_given_one(scene_of):
    unnamed = BOX.replace('name = "box"\n', "")
    world = scene_of(unnamed.replace("[[body]]", '[[body]]\nname = "box-2"') + unnamed + unnamed).world()
    assert len({body.name for body in world.bodies}) == 3


def test_files_are_looked_for_beside_the_scene(tmp_path, monkeypatch):
    corners = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    quads = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]
    lines = ["v {} {} {}".format(*x) for x in corners] + ["f {} {} {} {}".format(*q) for q in quads]
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    for folder in (home / "scans", elsewhere):
        folder.mkdir(parents=True)
    (home / "scans" / "cube.obj").write_text("\n".join(lines) + "\n")
    (home / "jelly.toml").write_text('[[body]]\nfile = "scans/cube.obj"\nnodes = 64\nunits = "cm"\n')
    monkeypatch.chdir(elsewhere)
    for path in (home / "jelly.toml", Path("../home/jelly.toml")):
        (body,) = px.Scene.read(path).world().bodies
        assert body.name == "cube"
        assert body.volumes.sum() == pytest.approx(1e-6, rel=0.01)
        assert len(body.surface) > 1000, "a sparse mesh gets points on its faces"


def test_a_scene_can_be_changed(scene_of):
    scene = scene_of(BOX).changed(nodes=125, points=500, seconds=0.5, video=False)
    (body,) = scene.world().bodies
    assert len(body.reference) == 125 and len(body.surface) == 500
    assert scene.seconds == 0.5 and scene.content.output.video is False


def test_a_change_that_no_scene_knows_is_refused(scene_of):
    with pytest.raises((px.PhyxelError, TypeError), match="nods"):
        scene_of(BOX).changed(nods=100)


@pytest.mark.parametrize("change", [{"seconds": -1.0}, {"seconds": float("nan")}, {"nodes": 2}, {"points": 1}])
def test_an_absurd_change_is_refused_like_an_absurd_file(scene_of, change):
    with pytest.raises(px.PhyxelError, match=next(iter(change))):
        scene_of(BOX).changed(**change).world()


def test_the_fingerprint_tells_motion_from_length_and_output(scene_of):
    plain = scene_of(BOX).fingerprint()
    assert scene_of(BOX).fingerprint() == plain
    assert scene_of("seconds = 1\n" + BOX + "[output]\nvideo = false\n").fingerprint() == plain
    for other in (EMPTY_SPACE + BOX, box_with("nodes = 125"), BOX + '[[collider]]\nkind = "ground"\n'):
        assert scene_of(other).fingerprint() != plain


# Holds and events, at their time


def fallen(world: px.World) -> float:
    """How far the middle of the first body has moved in y [m]."""
    (body,) = world.bodies
    return float(body.positions[:, 1].mean() - body.reference[:, 1].mean())


def test_a_force_begins_and_ends_with_its_event(scene_of):
    force = "[[event]]\nat = {}\nforce = [{}, 0, 0]\n"
    world = scene_of(EMPTY_SPACE + BOX + force.format(0.05, 100) + force.format(0.15, 0)).world()
    world.advance(0.05)
    assert world.bodies[0].diagnostics()["momentum"][0] == pytest.approx(0, abs=1e-6)
    world.advance(0.05)
    assert world.bodies[0].diagnostics()["momentum"][0] == pytest.approx(5, rel=1e-5)
    world.advance(0.2)
    assert world.bodies[0].diagnostics()["momentum"][0] == pytest.approx(10, rel=1e-5)


def test_an_event_at_zero_is_there_from_the_first_frame(scene_of):
    world = scene_of(EMPTY_SPACE + BOX + '[[event]]\nat = 0\nbody = "box"\nforce = [100, 0, 0]\n').world()
    world.advance(0)
    world.advance(0.1)
    assert world.bodies[0].diagnostics()["momentum"][0] == pytest.approx(10, rel=1e-5)


def test_a_material_changes_at_its_time_and_keeps_what_is_not_said(scene_of):
    world = scene_of(BOX + "[[event]]\nat = 0.02\nmaterial = { young = 2.0e6 }\n").world()
    before = world.bodies[0].material
    world.advance(0.0199)
    assert world.bodies[0].material == before
    world.advance(0.0002)
    assert world.bodies[0].material == before.but(young=2e6)


def test_a_preset_replaces_the_whole_material(scene_of):
    world = scene_of(BOX + '[[event]]\nat = 0\nmaterial = { preset = "wax", damping = 0.5 }\n').world()
    world.advance(0)
    assert world.bodies[0].material == px.Material.wax().but(damping=0.5)


def test_held_until_released(scene_of):
    hold = 'hold = [{ name = "all", lower = [-inf, -inf, -inf] }]\n'
    world = scene_of(BOX + hold + '[[event]]\nat = 0.1\nrelease = "all"\n').world()
    world.advance(0.1)
    assert not world.field(world.bodies[0], "u").any()
    world.advance(0.1)
    assert fallen(world) == pytest.approx(-0.5 * 9.81 * 0.1**2, rel=1e-4)


def test_taken_hold_of_at_its_time(scene_of):
    event = "[[event]]\nat = {}\n{}\n"
    hold = event.format(0.1, 'hold = { name = "all" }') + event.format(0.2, 'release = "all"')
    world = scene_of(BOX + hold).world()
    world.advance(0.1)
    at_hold = fallen(world)
    assert at_hold == pytest.approx(-0.5 * 9.81 * 0.1**2, rel=1e-4)
    world.advance(0.1)
    assert fallen(world) == pytest.approx(at_hold, abs=1e-6)
    world.advance(0.1)
    assert fallen(world) == pytest.approx(at_hold - 0.5 * 9.81 * 0.1**2, rel=1e-3)


def test_a_hold_moves_to_its_goal_in_the_time_given(scene_of):
    hold = "hold = { lower = [0.1, -inf, -inf], to = [0.1, 0, 0], over = 0.2 }"
    world = scene_of(EMPTY_SPACE + BOX + f"[[event]]\nat = 0.1\n{hold}\n").world()
    (body,) = world.bodies
    right = body.reference[:, 0] > 0.1
    for time, expected in ((0.1, 0), (0.2, 0.05), (0.3, 0.1), (0.4, 0.1)):
        world.advance(time - world.time)
        moved = (body.positions - body.reference)[right, 0]
        assert moved == pytest.approx(expected, abs=1e-5), time


def test_an_event_finds_its_body_among_several(scene_of):
    two = BOX + BOX.replace('name = "box"', 'name = "tom"\nat = [3, 0, 0]')
    world = scene_of(EMPTY_SPACE + two + '[[event]]\nat = 0.1\nbody = "tom"\nforce = [0, 125, 0]\n').world()
    world.advance(0.2)
    speeds = [body.diagnostics()["momentum"][1] / MASS for body in world.bodies]
    assert speeds == pytest.approx([0, 0.1], abs=1e-5)


# What is wrong

UNKNOWN_KEYS = [
    ("secnds = 3\n" + BOX, "secnds", "seconds"),
    (BOX.replace("[[body]]", "[[bodies]]"), "bodies", "body"),
    (BOX + "nods = 3\n", "body[0].nods", "nodes"),
    (BOX + BOX.replace('"box"', '"tom"', 1) + "velocty = [0, 0, 0]\n", "body[1].velocty", "velocity"),
    (box_with("material = { yong = 1e5 }"), "body[0].material.yong", "young"),
    (BOX + "hold = [{ lowr = [0, 0, 0] }]\n", "body[0].hold[0].lowr", "lower"),
    (BOX + '[[collider]]\nkind = "ground"\nfrction = 1\n', "collider[0].frction", "friction"),
    (BOX + '[[collider]]\nkind = "funnel"\nhieght = 1\n', "collider[0].hieght", "height"),
    (BOX + "[[event]]\nat = 1\nforc = [0, 0, 0]\n", "event[0].forc", "force"),
    (BOX + "[[event]]\nat = 1\nmaterial = { densty = 3 }\n", "event[0].material.densty", "density"),
    (BOX + "[[event]]\nat = 1\nhold = { uper = [0, 0, 0] }\n", "event[0].hold.uper", "upper"),
    (BOX + "[camera]\nfovv = 30\n", "camera.fovv", "fov"),
    (BOX + "[output]\nwidht = 64\n", "output.widht", "width"),
]


@pytest.mark.parametrize("text, key, meant", UNKNOWN_KEYS, ids=[key for _, key, _ in UNKNOWN_KEYS])
def test_an_unknown_key_is_named_with_the_near_miss(refusal, text, key, meant):
    message = refusal(text)
    assert "jelly.toml" in message
    assert key in message
    assert f'"{meant}"' in message


def test_a_key_like_no_other_gets_the_list(refusal):
    message = refusal(BOX + "xyzzy = 1\n")
    assert "xyzzy" in message and "nodes" in message and "material" in message


WRONG_VALUES = [
    ("seconds = -1\n" + BOX, "seconds", "-1", "greater than 0"),
    ("seconds = nan\n" + BOX, "seconds", "nan", ""),
    ('seconds = "long"\n' + BOX, "seconds", "long", "number"),
    ("fps = 0\n" + BOX, "fps", "0", "greater than 0"),
    ("fps = inf\n" + BOX, "fps", "inf", "1000"),
    ("gravity = -9.81\n" + BOX, "gravity", "-9.81", ""),
    ("gravity = [0, nan, 0]\n" + BOX, "gravity", "nan", "finite"),
    (box_with("nodes = 0"), "body[0].nodes", "0", "8"),
    (box_with('nodes = "many"'), "body[0].nodes", "many", 'whole number of at least 8, or "auto"'),
    (box_with("points = 3"), "body[0].points", "3", "4"),
    (box_with("size = -2"), "body[0].size", "-2", "greater than 0"),
    (box_with("size = inf"), "size", "inf", ""),
    (box_with("at = [1, 2]"), "body[0].at", "", ""),
    (box_with("at = [nan, 0, 0]"), "at", "nan", "finite"),
    (box_with("velocity = [inf, 0, 0]"), "velocity", "inf", "finite"),
    (box_with("force = [nan, 0, 0]"), "force", "nan", "finite"),
    (box_with('model = "galerkni"'), "body[0].model", "galerkni", '"galerkin"'),
    (box_with('material = { preset = "ruber" }'), "body[0].material.preset", "ruber", '"rubber"'),
    (box_with('material = "rubber"'), "body[0].material", "rubber", ""),
    (box_with("material = { young = 0 }"), "young", "0", "above 0"),
    (box_with("material = { young = -5.0 }"), "young", "-5", "above 0"),
    (box_with("material = { young = nan }"), "young", "nan", "finite"),
    (box_with("material = { young = inf }"), "young", "inf", "finite"),
    (box_with("material = { poisson = 0.5 }"), "poisson", "0.5", "between -1 and 0.5"),
    (box_with("material = { poisson = 0.7 }"), "poisson", "0.7", "between -1 and 0.5"),
    (box_with("material = { poisson = -1.0 }"), "poisson", "-1", "between -1 and 0.5"),
    (box_with("material = { density = 0 }"), "density", "0", "above 0"),
    (box_with("material = { density = -1000 }"), "density", "-1000", "above 0"),
    (box_with("material = { damping = -1 }"), "damping", "-1", "0"),
    (box_with("material = { stiffness = [[1.0]] }"), "stiffness", "", "6"),
    (box_with('shape = "baer"'), "shape", "baer", '"bear"'),
    (BOX + "hold = [{ lower = [9, 9, 9] }]\n", "hold", "", "no node"),
    (BOX + "hold = [{ lower = [1, 1, 1], upper = [0, 0, 0] }]\n", "lower", "1", "upper"),
    (BOX + "hold = [{ over = -1 }]\n", "body[0].hold[0].over", "-1", ""),
    (BOX + '[[collider]]\nkind = "grond"\n', "collider[0].kind", "grond", '"ground"'),
    (BOX + "[[collider]]\nheight = 0\n", "collider[0].kind", "", "missing"),
    (BOX + '[[collider]]\nkind = "ground"\nfriction = -1\n', "friction", "-1", "0 or more"),
    (BOX + '[[collider]]\nkind = "ground"\nrestitution = 2\n', "restitution", "2", "0 to 1"),
    (BOX + '[[collider]]\nkind = "spere"\nradius = 1\n', "collider[0].kind", "spere", '"sphere"'),
    (BOX + '[[collider]]\nkind = "sphere"\n', "collider[0].radius", "", "missing"),
    (BOX + '[[collider]]\nkind = "sphere"\nradius = -1\n', "collider[0]", "-1", "above 0"),
    (BOX + '[[collider]]\nkind = "capsule"\nstart = [0, 0]\n', "collider[0].start", "", "missing"),
    (BOX + '[[collider]]\nkind = "mold"\nshape = "baer"\n', "collider[0]", "baer", '"bear"'),
    (BOX + '[[collider]]\nkind = "mold"\nfile = "no.ply"\n', "collider[0]", "no.ply", "no such file"),
    (BOX + '[[collider]]\nkind = "mold"\n', "collider[0]", "", "either shape"),
    (BOX + SPHERE + "path = [{ at = 0, too = [0, 0, 0] }]\n", "collider[0].path[0].too", "", '"to"'),
    (BOX + SPHERE + "path = []\n", "collider[0]", "", "empty"),
    (BOX + SPHERE + SPHERE, "colliders", "ball", "a name of its own"),
    (BOX + SPHERE + '[[event]]\nat = 1\nremove = "bal"\n', "event[0].remove", "bal", '"ball"'),
    (BOX + SPHERE + 2 * '[[event]]\nat = 1\nremove = "ball"\n', "event[1]", "ball", "gone at 1 s already"),
    (BOX + "[[event]]\nat = -1\nforce = [0, 0, 0]\n", "event[0].at", "-1", "0"),
    (BOX + "[[event]]\nat = inf\nforce = [0, 0, 0]\n", "event[0].at", "inf", "finite"),
    (BOX + "[[event]]\nforce = [0, 0, 0]\n", "event[0].at", "", "missing"),
    (BOX + "[[event]]\nat = 1\n", "event[0]", "", "material, melt, solidify, force, hold, release"),
    (BOX + '[[event]]\nat = 1\nbody = "bxo"\nforce = [0, 0, 0]\n', "event[0].body", "bxo", '"box"'),
    (BOX + '[[event]]\nat = 1\nrelease = "root"\n', "event[0].release", "root", ""),
    (BOX + "[[event]]\nat = 1\nmaterial = { poisson = 0.5 }\n", "poisson", "0.5", "between -1 and 0.5"),
    (BOX + "[[event]]\nat = 1\nmaterial = { young = -1 }\n", "young", "-1", "above 0"),
    (BOX + "[[event]]\nat = 1\nforce = [nan, 0, 0]\n", "force", "nan", "finite"),
    (BOX + "[[event]]\nat = 1\nhold = { lower = [9, 9, 9] }\n", "hold", "", "no node"),
    (BOX + "[camera]\nfov = 300\n", "camera.fov", "300", "120"),
    (BOX + "[output]\nwidth = 1\n", "output.width", "1", "16"),
    (BOX + '[output]\npoints = "pyl"\n', "output.points", "pyl", '"ply"'),
    (BOX + '[output]\nmesh = "fbx"\n', "output.mesh", "fbx", "obj"),
    (BOX + '[output]\nbackground = "stduio"\n', "output.background", "stduio", '"studio"'),
    (BOX + "[output]\ncheckpoint_every = 0\n", "output.checkpoint_every", "0", "1"),
]


@pytest.mark.parametrize(
    "text, key, value, remedy", WRONG_VALUES, ids=[f"{key}={value}" for _, key, value, _ in WRONG_VALUES]
)
def test_a_wrong_value_is_named_with_file_key_value_and_remedy(refusal, text, key, value, remedy):
    message = refusal(text)
    for part in ("jelly.toml", key, value, remedy):
        assert part in message


@pytest.mark.parametrize("text", [BOX + '[output]\nbackground = "stduio"\n', BOX + '[output]\npoints = "pyl"\n'])
def test_keys_in_messages_are_the_users_not_the_validators(refusal, text):
    message = refusal(text)
    assert len(message.splitlines()) == 1
    for word in ("literal[", "tuple[", "list["):
        assert word not in message


def test_no_body_says_how_to_add_one(refusal):
    for text in ("seconds = 1\n", "body = []\n"):
        message = refusal(text)
        assert "jelly.toml" in message and "[[body]]" in message


def test_one_pair_of_brackets_says_that_two_are_needed(refusal):
    message = refusal(BOX.replace("[[body]]", "[body]"))
    assert "jelly.toml" in message and "[[body]]" in message


@pytest.mark.parametrize("source", ['shape = "box"\nfile = "scan.ply"', "nodes = 100"], ids=["both", "neither"])
def test_a_body_comes_from_a_shape_or_a_file(refusal, source):
    message = refusal(f"[[body]]\n{source}\n")
    assert "jelly.toml" in message and "body[0]" in message and "shape" in message and "file" in message


def test_two_bodies_of_one_name_are_refused(refusal):
    message = refusal(BOX + BOX)
    assert "jelly.toml" in message and '"box"' in message


def test_an_event_among_several_bodies_must_say_which(refusal):
    two = BOX + BOX.replace('"box"', '"tom"', 1)
    message = refusal(two + "[[event]]\nat = 1\nforce = [0, 0, 0]\n")
    assert "jelly.toml" in message and "event[0].body" in message and "tom" in message


def test_a_release_of_another_bodys_hold_is_refused_at_once(refusal):
    two = BOX + 'hold = [{ name = "root" }]\n' + BOX.replace('"box"', '"tom"', 1)
    message = refusal(two + '[[event]]\nat = 1\nbody = "tom"\nrelease = "root"\n')
    assert "jelly.toml" in message and "root" in message and "tom" in message


def test_a_missing_scan_says_where_it_was_looked_for(refusal, tmp_path):
    message = refusal('[[body]]\nfile = "scan.ply"\n')
    assert "jelly.toml" in message and str(tmp_path / "scan.ply") in message


def test_all_errors_come_at_once(refusal):
    message = refusal("secnds = 1\n" + BOX + "nods = 3\n[output]\nwidht = 2\n")
    assert len(message.splitlines()) == 3
    assert all(line.startswith("jelly.toml: ") for line in message.splitlines())


@pytest.mark.parametrize("text", ["seconds = \n", "[[body]\n", 'a = "unclosed\n', "x = 1\nx = 2\n"])
def test_invalid_toml_is_named_with_its_line(refusal, text):
    message = refusal(text)
    assert "jelly.toml" in message and "TOML" in message and "line" in message


@pytest.mark.parametrize("kind", ["missing", "folder", "binary"])
def test_a_scene_file_that_cannot_be_read(kind, tmp_path):
    path = tmp_path / "jelly.toml"
    if kind == "folder":
        path.mkdir()
    if kind == "binary":
        path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(SceneError, match=r"jelly\.toml"):
        px.Scene.read(path)


# The gallery


def test_the_gallery_has_the_demo():
    assert "demo" in gallery_names()
    assert px.gallery("demo").seconds == 4
    assert px.gallery("demo").fps == 60


@pytest.mark.gallery
@pytest.mark.parametrize("name", gallery_names())
def test_every_gallery_scene_builds_at_reduced_size(name):
    scene = px.gallery(name)
    assert scene.content.title
    world = scene.changed(nodes=150, points=400).world()
    before = [body.positions for body in world.bodies]
    world.advance(0.02)  # before anything breaks
    assert all(np.isfinite(body.positions).all() for body in world.bodies)
    assert any(np.abs(body.positions - was).max() > 1e-4 for body, was in zip(world.bodies, before, strict=True))


def test_a_gallery_scene_is_found_by_its_name():
    assert find_scene("demo").name == "demo"
    with pytest.raises(SceneError, match=r'"dmeo".*"demo"'):
        find_scene("dmeo")
