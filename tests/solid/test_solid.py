"""Inside, distance, volume and nodes of shapes and meshes."""

import numpy as np
import pytest

import phyxel as px
from phyxel import device as dev
from phyxel.errors import SolidError
from phyxel.mls.carry import Carriers
from phyxel.mls.moments import choose_supports
from phyxel.points.cloud import Mesh, PointCloud
from phyxel.rotation import euler
from tests.solid.meshes import box_mesh


def sphere_mesh(rings: int = 30) -> PointCloud:
    """A closed latitude-longitude sphere of radius 1."""
    theta, phi = np.linspace(0, np.pi, rings + 1)[1:-1], np.linspace(0, 2 * np.pi, 2 * rings, endpoint=False)
    T, P = np.meshgrid(theta, phi, indexing="ij")
    ring = np.stack([np.sin(T) * np.cos(P), np.cos(T), np.sin(T) * np.sin(P)], axis=-1).reshape(-1, 3)
    vertices = np.concatenate([ring, [[0, 1, 0], [0, -1, 0]]])
    around = 2 * rings
    faces = []
    for i in range(rings - 2):
        for j in range(around):
            a, b = i * around + j, i * around + (j + 1) % around
            faces += [(a, b, a + around), (b, b + around, a + around)]
    top, bottom, last = len(ring), len(ring) + 1, (rings - 2) * around
    for j in range(around):
        faces += [(top, (j + 1) % around, j), (bottom, last + j, last + (j + 1) % around)]
    F = np.array(faces, np.int32)
    return PointCloud(vertices, normals=vertices.astype(np.float32), faces=F, mesh=Mesh(vertices, F), name="ball")


def test_distance_and_sign_of_a_mesh():
    """Against |x| − 1; the facets lie at most 1 − cos(π/60) < 1.4e-3 inside the sphere."""
    solid = px.Solid(sphere_mesh())
    x = np.random.default_rng(0).uniform(-1.5, 1.5, (5000, 3))
    exact = np.linalg.norm(x, axis=1) - 1
    assert np.abs(solid.distance(x) - exact).max() < 3e-3
    clear = np.abs(exact) > 3e-3
    assert (solid.inside(x) == (exact < 0))[clear].all()


@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (1.0, 100.0), (1e6, 0.0)])
def test_volume_of_a_mesh_at_any_scale(scale, shift):
    ball = sphere_mesh()
    vertices = scale * (ball.positions + shift)
    cloud = PointCloud(vertices, normals=ball.normals, faces=ball.faces, mesh=Mesh(vertices, ball.faces), name="ball")
    assert px.Solid(cloud).volume == pytest.approx(4 / 3 * np.pi * scale**3, rel=5e-3)


def test_a_mesh_with_a_small_hole_is_still_a_solid():
    ball = sphere_mesh()
    cloud = PointCloud(ball.positions, faces=ball.faces[:-3], mesh=Mesh(ball.positions, ball.faces[:-3]), name="ball")
    assert px.Solid(cloud).volume == pytest.approx(4 / 3 * np.pi, rel=0.01)


@pytest.mark.slow
def test_a_mesh_with_too_large_an_opening_is_refused():
    ball = sphere_mesh()
    upper = ball.faces[(ball.positions[ball.faces][:, :, 1] > -0.05).all(axis=1)]
    half = PointCloud(ball.positions, faces=upper, name="ball")
    with pytest.raises(SolidError, match=r"ball: the surface is open.*closing = 0\.\d\d"):
        px.Solid(half, closing=0.1)
    # The skin over the opening is nearly flat: half a ball, 2.09 m³, and the rim's 5 cm.
    assert px.Solid(half, closing=0.5).volume == pytest.approx(2 / 3 * np.pi + 0.05 * np.pi, rel=0.1)


def test_a_cloud_that_encloses_nothing_is_refused():
    with pytest.raises(SolidError, match="dust"):
        px.Solid(PointCloud(np.random.default_rng(0).random((500, 3)), name="dust"))


@pytest.mark.parametrize("options", [{"tolerance": 0.0}, {"depth": 1}, {"depth": 99}, {"closing": 1.5}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(px.PhyxelError, match=next(iter(options))):
        px.Solid(px.load("sphere", points=100), **options)


@pytest.mark.parametrize("name", ["bear", "sphere", "bar", "bust"])
@pytest.mark.parametrize("count", [100, 800])
def test_nodes_lie_in_the_solid_and_share_the_volume(name, count):
    """Nodes on the surface are projected there: the shape's distance is then zero to the error of Newton's steps."""
    solid = px.Solid(px.load(name, points=100))
    nodes = solid.sample(count)
    assert (solid.distance(nodes.positions) < 1e-3 * nodes.spacing).all()
    assert nodes.volumes.sum() == pytest.approx(solid.volume, rel=1e-9)
    assert (nodes.volumes > 0).all()
    assert len(nodes) == pytest.approx(count, rel=0.1)
    assert np.allclose(nodes.reach, np.maximum(-solid.distance(nodes.positions), 0), atol=1e-3 * nodes.spacing)


def test_the_legs_of_a_bear_do_not_feel_each_other():
    """The bear's feet (z > 0.105 m, y < 0.08 m) have 5 cm of air between them, less than a support of 9 cm."""
    bear = px.Body(px.load("bear", points=100), nodes=800)
    feet = (bear.reference[:, 2] > 0.105) & (bear.reference[:, 1] < 0.08)

    def across(sees):
        _, pairs = choose_supports(bear.shape.in_units(bear.birth), bear.support, dev.pick("cpu"), sees)
        owner = np.repeat(np.arange(len(feet)), pairs.count)
        other = np.sign(bear.reference[owner, 0]) != np.sign(bear.reference[pairs.index, 0])
        return int((other & feet[owner] & feet[pairs.index]).sum())

    assert across(None) > 0
    assert across(bear.sees) == 0


def test_surfels_of_one_leg_are_carried_by_that_leg():
    """A point of the left foot's inner side has the right foot's nodes among its nearest, and no share in them. On the
    surface there are so many nodes that it need not look so far."""
    bear = px.Body(px.load("bear", points=3000), nodes=800, scheme="m04")
    points = (bear.cloud.positions - bear.centre) / bear.unit
    x, y, z = bear.cloud.positions.T
    inner = (z > 0.115) & (y < 0.06) & (np.abs(x) < 0.05)
    for sees, shared in ((None, True), (bear.sees, False)):
        carriers = Carriers.found(points[inner], bear.shape.in_units(bear.birth), sees)
        foreign = np.sign(bear.reference[carriers.nodes, 0]) != np.sign(points[inner, :1])
        foreign &= ((bear.reference[:, 2] > 0.105) & (bear.reference[:, 1] < 0.08))[carriers.nodes]
        assert (carriers.shares[foreign] > 1e-6).any() == shared


def test_nodes_of_a_bar_are_the_boxes_that_fill_it():
    nodes = px.Solid(px.load("bar", points=100)).sample(864)
    assert len(nodes) == 864
    assert np.allclose(nodes.volumes, 0.0625 / 864, rtol=1e-6)
    assert nodes.spacing == pytest.approx(1 / 24)


@pytest.mark.parametrize("file", ["max-planck.obj", "spot.obj"])
def test_closed_meshes_become_solids(models, file):
    """Volume against the divergence theorem on the mesh, right to the error of a grid of 32."""
    cloud = px.load(models / file)
    exact = np.linalg.det(cloud.mesh.vertices[cloud.mesh.faces]).sum() / 6
    assert px.Solid(cloud).volume == pytest.approx(exact, rel=3e-3)


@pytest.mark.slow
def test_a_scan_falls_with_nothing_set_but_its_name(models):
    """Spot's origin lies in her middle, so she starts half in the ground: she is set down on it, not shot out of it."""
    spot = px.Body(px.load(models / "spot.obj"))
    world = px.World(device="cpu")
    world.add(spot)
    world.add(px.Ground())
    world.advance(1.0)
    skin = spot.surface.positions
    assert -0.25 * spot.unit < skin[:, 1].min() < 0.05, "she stands on the ground"
    assert skin[:, 1].max() < 1.05 * np.ptp(spot.cloud.positions[:, 1]), "and has not been thrown up"
    assert spot.diagnostics()["volume"] == pytest.approx(spot.volumes.sum(), rel=0.05)


@pytest.mark.parametrize("half", [(0.2, 0.3, 0.02), (0.5, 0.004, 0.5), (3e-3, 1e-3, 5e-5)])
def test_volume_of_a_plate(half):
    """A plate along the axes, however thin: the surface is flat in every cell, so only rounding is left."""
    solid = px.Solid(box_mesh((1.0, 2.0, 3.0), half, 3))
    assert solid.volume == pytest.approx(8 * np.prod(half), rel=1e-5)


@pytest.mark.parametrize("turn", [(10.0, 20.0, 30.0), (45.0, 0.0, 0.0), (0.0, 30.0, 60.0)])
def test_volume_of_a_turned_plate(turn):
    """A fifteenth as thick as long: where edges cut cells the surface is not flat, which makes half a per cent."""
    vertices, faces = box_mesh(half=(0.2, 0.3, 0.02), cells=3)
    solid = px.Solid((vertices @ euler(np.array(turn)).T, faces))
    assert solid.volume == pytest.approx(8 * 0.2 * 0.3 * 0.02, rel=5e-3)
