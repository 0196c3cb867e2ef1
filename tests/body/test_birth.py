"""What bodies have at birth is shared by those that are born alike, and whatever happens to one, others do not feel."""

import gc
from weakref import ref

import numpy as np
import pytest
from scipy.sparse import csr_array

import phyxel as px
from phyxel import device as dev
from phyxel.bench.accuracy.boxes import AS_IT_IS, TURNED, box_mesh
from phyxel.body.birth import field_space
from phyxel.cache import Kept
from phyxel.scene.body_tables import CutPart, HoldPart, MaterialPart
from phyxel.scene.event_tables import EventPart, MeltPart, SolidifyPart

BODY = """
rate = 60
[[body]]
name = "it"
{source}
model = "{model}"
nodes = {nodes}
at = [0, 0.02, 0]
place = "file"
velocity = [0.1, 0, 0]
{more}
[[collider]]
kind = "ground"
"""
SOFT = "material = { young = 3.0e4, damping = 2.0e-3 }"
HARD = "material = { young = 3.0e5, strength = 1.0e6 }"
BEAR = 'shape = "bear"\npoints = 1500'
BAR = 'shape = "bar"\npoints = 400'


@pytest.fixture
def ball():
    return px.load("sphere", points=600)


def melted(performance):
    performance.happen(EventPart(at=0, body="it", melt=MeltPart()))
    performance.world.advance(0.1)
    performance.happen(EventPart(at=0, body="it", solidify=SolidifyPart()))
    performance.world.advance(0.05)


def dented(performance):
    performance.happen(EventPart(at=0, body="it", material=MaterialPart(young=1e4, yield_strain=0.005)))
    grab = HoldPart(lower=(-np.inf, 0.5, -np.inf), to=(0.0, -0.05, 0.0))
    performance.happen(EventPart(at=0, body="it", hold=grab))
    performance.world.advance(0.1)


def broken(performance):
    at = performance.world.bodies[0].birth.mean(axis=0).tolist()
    performance.happen(EventPart(at=0, body="it", cut=CutPart(at=at, normal=(1.0, 0.0, 0.0))))
    performance.world.advance(1 / 30)
    assert len(performance.world.bodies) > 1


def drawn_out(performance):
    performance.happen(EventPart(at=0, gravity=(3.0, 5.0, 0.0)))
    performance.world.advance(0.2)


def bits(performance, tmp_path):
    """All that a checkpoint keeps of its world a little later, and the surfels."""
    world = performance.world
    world.advance(1 / 30)
    world.save(tmp_path / "state.npz")
    with np.load(tmp_path / "state.npz") as file:
        state = {name: file[name].tobytes() for name in file.files}
    seen = world.bodies[0].surface
    return state, seen.positions.tobytes(), seen.normals.tobytes(), seen.colors.tobytes()


@pytest.mark.parametrize(
    ("model", "source", "nodes", "more", "spoil"),
    [
        ("phyxel", BEAR, 120, SOFT, melted),
        ("phyxel", BEAR, 120, SOFT, dented),
        ("phyxel", BAR, 120, SOFT, broken),
        ("galerkin", BAR, 40, HARD, broken),
        ("modal", BEAR, 120, SOFT, drawn_out),
        ("particles", BEAR, 120, "", drawn_out),
    ],
)
def test_whatever_happened_to_a_world_one_built_like_it_is_as_new(model, source, nodes, more, spoil, tmp_path):
    scene = px.Scene.parse(BODY.format(source=source, model=model, more=more, nodes=nodes), "scene")
    first = scene.performance("cpu")
    made = ref(first.world.bodies[0].made)
    fresh = bits(first, tmp_path)
    del first
    gc.collect()
    assert made() is None  # what nobody has is not kept

    spoilt = scene.performance("cpu")
    _ = spoilt.world.bodies[0].surface
    own = spoilt.world.bodies[0].made
    spoil(spoilt)
    again = scene.performance("cpu")
    assert again.world.bodies[0].made is own  # shared, and not made anew
    assert bits(again, tmp_path) == fresh


def test_bodies_that_differ_in_anything_share_nothing(ball):
    asked = {"nodes": 60, "at": (0.0, 0.0, 0.0)}
    plain = px.Body(ball, **asked)
    assert px.Body(ball, **asked, name="other", material=px.Material.wax()).made is plain.made
    colored = ball.with_colors(np.full((len(ball), 3), 0.5))
    others = [
        px.Body(colored, **asked),
        px.Body(ball, **asked | {"nodes": 80}),
        px.Body(ball, **asked | {"at": (0.0, 1.0, 0.0)}),
        px.Body(ball, **asked, size=0.3),
        px.Body(ball, **asked, rotate=(0.0, 10.0, 0.0)),
        px.Body(ball, **asked, refine=[(px.Box(lower=(-1.0, -1.0, -1.0), upper=(0.0, 1.0, 1.0)), 1)]),
        px.Body(ball, **asked, model="galerkin"),
    ]
    assert len({id(body.made) for body in [plain, *others]}) == 1 + len(others)


def test_bodies_of_one_cloud_share_its_solid_wherever_they_are(ball):
    first, other = px.Body(ball, nodes=60), px.Body(ball, nodes=60, at=(1.0, 0.0, 0.0), rotate=(0.0, 0.0, 30.0))
    assert other.solid is first.solid
    assert px.Body(ball.with_colors(np.full((len(ball), 3), 0.5)), nodes=60).solid is not first.solid


def test_who_writes_to_his_cloud_changes_no_body(ball):
    own = px.PointCloud(ball.positions.copy(), ball.normals.copy())
    before = px.Body(own, nodes=60)
    own.positions[:] *= 2.0
    after = px.Body(own, nodes=60)
    assert np.ptp(after.cloud.positions[:, 0]) == pytest.approx(2 * np.ptp(before.cloud.positions[:, 0]))
    with pytest.raises(ValueError, match="read-only"):
        before.cloud.positions[0] = 0.0


def test_what_was_asked_for_last_is_kept_and_made_once():
    once, made = Kept(2), []

    def make(name):
        made.append(name)
        return name.upper()

    for name in "abacab":
        assert once(name, lambda name=name: make(name)) == name.upper()
    assert made == ["a", "b", "c", "b"]  # c came in place of b, b in that of c


@pytest.mark.parametrize("turn", [AS_IT_IS, TURNED], ids=["as it is", "turned"])
def test_a_plate_with_nodes_on_its_faces_alone_has_a_quadratic_basis(turn):
    """Such nodes do not span it (physics 2.4), and no cover helps: terms of second order are tied. It weighs what it
    does, and of a linear field its functions make that field, to rounding."""
    plate = px.Body(box_mesh((1.0, 1.0, 0.05), turn), nodes=500, model="galerkin", basis="quadratic")
    assert plate.masses.sum() == pytest.approx(0.05 * plate.material.density, rel=1e-3)
    space = field_space(plate, dev.pick("cpu"))
    np.testing.assert_allclose(space.values @ space.nodes, space.points, atol=1e-9)
    for k, slope in enumerate(space.functions.dphi.T):
        gradient = csr_array((slope, space.values.indices, space.values.indptr), space.values.shape)
        np.testing.assert_allclose(gradient @ space.nodes, np.tile(np.eye(3)[k], (len(space.points), 1)), atol=1e-9)


PLATE = [[x, y, z] for x in (0.0, 1.0) for y in (0.0, 0.1) for z in (0.0, 1.0)]
SIDES = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]


@pytest.mark.parametrize(
    ("cloud", "nodes", "basis"),
    [(px.load("sphere", points=500), 10, "quadratic"), *((px.load((PLATE, SIDES)), n, "linear") for n in (8, 30))],
    ids=["ball", "plate 8", "plate 30"],
)
def test_too_few_nodes_for_shape_functions_are_told_with_enough(cloud, nodes, basis):
    """Doing what the message says helps: a plate has one layer of nodes at first, then two."""
    with pytest.raises(px.PhyxelError, match=rf"^{cloud.name}: \d+ nodes: .*nodes in one plane; give more") as caught:
        px.Body(cloud, nodes=nodes, model="galerkin", basis=basis)
    enough, _, other = str(caught.value).partition("(nodes = ")[2].partition(")")
    assert other == ("" if basis == "linear" else ', or basis = "linear"')
    assert len(px.Body(cloud, nodes=int(enough), model="galerkin", basis=basis).positions) > nodes
