"""Bones that turn about their joints, and what is attached to them."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import phyxel as px

SOFT = px.Material(young=1e5, poisson=0.3, density=1000.0, damping=2e-3)
UPPER, LOWER = 0.3, 0.2
"""Lengths of the two bones of an arm along x [m]."""


def arm() -> px.Skeleton:
    """Shoulder at the origin, elbow at 0.3 m; they turn about z by 90° and 60° in 1 s."""
    return px.Skeleton(
        [
            px.Bone("hand", (UPPER, 0, 0), parent="shoulder", path=[(1.0, (0, 0, 60))]),
            px.Bone("shoulder", (0, 0, 0), path=[(1.0, (0, 0, 90))], to=[(1.0, (0, 0, 1.0))]),
        ]
    )


@pytest.mark.parametrize("time", [0.0, 0.25, 1.0, 3.0])
def test_a_two_bone_arm_reaches_where_its_angles_say(time):
    """x = l₁ cos a + l₂ cos(a + b), y = l₁ sin a + l₂ sin(a + b), and the root's way along z; to rounding."""
    share = min(time, 1.0)
    a, b = np.radians(90 * share), np.radians(60 * share)
    rotation, shift = arm().pose("hand", time)
    expected = [UPPER * np.cos(a) + LOWER * np.cos(a + b), UPPER * np.sin(a) + LOWER * np.sin(a + b), share]
    assert rotation @ (UPPER + LOWER, 0, 0) + shift == pytest.approx(expected, abs=1e-14)
    assert rotation == pytest.approx(Rotation.from_euler("z", a + b).as_matrix(), abs=1e-14)
    assert arm().joint("hand", time) == pytest.approx([UPPER * np.cos(a), UPPER * np.sin(a), share], abs=1e-14)


def test_a_function_of_time_moves_a_bone():
    skeleton = px.Skeleton(
        [px.Bone("top", (0, 1, 0), path=lambda time: (0, 0, 90 * time), to=lambda time: (time, 0, 0))]
    )
    rotation, shift = skeleton.pose("top", 2.0)
    assert rotation @ (0, 2, 0) + shift == pytest.approx((2, 0, 0), abs=1e-14), "upside down, 2 m along"


def bar(model: str) -> px.Body:
    return px.Body(px.load("bar", points=600), material=SOFT, nodes=120, model=model)


@pytest.mark.parametrize("model, precision", [("phyxel", 2e-6), ("galerkin", 1e-9), ("modal", 1e-6)])
def test_what_is_attached_goes_exactly_where_the_bone_takes_it(model, precision):
    """Single precision of displacements of 1 m (1e-7 of the way, and the sum of its steps) with phyxels, the linear
    solve of the held coefficients with Galerkin, the rounds of impulses with modes."""
    body, skeleton = bar(model), px.Skeleton(
        [
            px.Bone("tip", (0.6, 0, 0), parent="root", path=[(0.1, (40, 0, 0))]),
            px.Bone("root", (0, 0, 0), path=[(0.1, (0, 30, 0))], to=[(0.1, (0, 0.05, 0))]),
        ]
    )  # fmt: skip
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    for where, bone in ((px.Box((-1, -1, -1), (0.1, 1, 1)), "root"), (px.Spot((1.0, 0.0, 0.0)), "tip")):
        body.attach(where, skeleton, bone)
    for _ in range(8):
        world.advance(0.02)
    for handle, bone in zip(body.handles, ("root", "tip"), strict=True):
        rotation, shift = skeleton.pose(bone, world.time)
        there = handle.points @ rotation.T + shift
        now = body.positions[handle.nodes] if len(handle.nodes) else handle.points + body.displacement_at(handle.points)
        few = len(handle.points) <= 12  # of more points a modal body follows some, and the others nearly
        assert np.abs(now - there).max() < (precision if few or model != "modal" else 0.02)


def test_taken_late_it_goes_on_from_where_it_is():
    body, skeleton = bar("galerkin"), px.Skeleton([px.Bone("arm", (0, 0, 0), path=[(1.0, (0, 0, 90))])])
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    world.advance(0.5)
    handle = body.attach(px.Box((0.9, -1, -1), (2, 1, 1)), skeleton, "arm")
    assert handle.goals(0.5) == pytest.approx(handle.points, abs=1e-12), "it does not jump"
    half = Rotation.from_euler("z", 45, degrees=True)
    assert handle.goals(1.0) == pytest.approx(half.apply(handle.points), abs=1e-12)
    body.release(handle)
    assert not body.handles


def test_bones_that_never_move_hold_still():
    body = bar("galerkin")
    still = body.attach(px.Box((-1, -1, -1), (0.1, 1, 1)), px.Skeleton([px.Bone("foot", (0, 0, 0))]), "foot")
    assert still.still and not still.turns


@pytest.mark.parametrize(
    "bones, words",
    [
        ([px.Bone("a", (0, 0, 0), parent="shoulde"), px.Bone("shoulder", (0, 0, 0))], ["shoulde", "did you mean"]),
        ([px.Bone("a", (0, 0, 0), parent="b"), px.Bone("b", (0, 0, 0), parent="a")], ["a -> b -> a", "ancestor"]),
        ([px.Bone("a", (0, 0, 0), parent="a")], ["a -> a"]),
        ([px.Bone("a", (0, 0, 0)), px.Bone("a", (0, 0, 0))], ["two bones", '"a"']),
        ([px.Bone("a", (0, 0))], ["joint", "three finite numbers"]),
        ([px.Bone("a", (0, 0, 0), path=[(1.0, (0, 0, 9)), (0.5, (0, 0, 0))])], ["path", "times that grow"]),
        (
            [px.Bone("a", (0, 0, 0)), px.Bone("b", (0, 0, 0), parent="a", to=[(1.0, (1, 0, 0))])],
            ["b", "without a parent"],
        ),
    ],
)
def test_skeletons_that_are_none_are_refused(bones, words):
    with pytest.raises(px.PhyxelError) as caught:
        px.Skeleton(bones)
    for word in words:
        assert word in str(caught.value)


def test_an_unknown_bone_is_named():
    with pytest.raises(px.PhyxelError, match=r'"hnad".*did you mean "hand"'):
        bar("galerkin").attach([0], arm(), "hnad")


SCENE = """
gravity = [0, 0, 0]
seconds = 1
[[body]]
shape = "bar"
points = 600
nodes = 120
model = "galerkin"
[[body.bone]]
name = "root"
joint = [0, 0, 0]
[[body.bone]]
name = "tip"
parent = "root"
joint = [0.5, 0, 0]
path = [{ at = 0.1, turn = [0, 0, 40] }]
[[body.hold]]
bone = "root"
upper = [0.1, inf, inf]
[[body.hold]]
bone = "tip"
near = [1, 0, 0]
[[event]]
at = 0.05
hold = { bone = "tip", near = [0.9, 0.125, 0], name = "late" }
"""


def test_a_scene_has_bones_and_a_checkpoint_knows_them(tmp_path):
    scene = px.Scene.parse(SCENE)
    world = scene.world("cpu")
    world.advance(0.08)
    world.save(tmp_path / "half.npz")
    world.advance(0.04)
    again = scene.world("cpu")
    again.restore(tmp_path / "half.npz")
    again.advance(0.04)
    body, other = world.bodies[0], again.bodies[0]
    assert other.positions == pytest.approx(body.positions, abs=1e-7), "to what steps leave unsolved"
    tip = body.handles[1].points
    turn = Rotation.from_euler("z", 40, degrees=True)
    joint = np.array([0.5, 0, 0])
    assert tip + body.displacement_at(tip) == pytest.approx(joint + turn.apply(tip - joint), abs=1e-9)


@pytest.mark.parametrize(
    "old, new, words",
    [
        ('near = [1, 0, 0]', 'near = [1, 0, 0]\nto = [1, 0, 0]', ["hold[1]", "bone"]),
        ('bone = "tip"\nnear', 'bone = "tpi"\nnear', ["hold[1]", "tpi", "did you mean"]),
        ('{ bone = "tip"', '{ bone = "tpi"', ["event[0]", "tpi"]),
        ('parent = "root"', 'parent = "rot"', ["body[0]", "rot"]),
    ],
)  # fmt: skip
def test_what_a_scene_says_wrong_about_bones_is_named(old, new, words):
    with pytest.raises(px.PhyxelError) as caught:
        px.Scene.parse(SCENE.replace(old, new)).world("cpu")
    for word in words:
        assert word in str(caught.value)
