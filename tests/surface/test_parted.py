"""What is seen of a cracked body: both faces of its cracks, nothing that bridges them, and nothing else changed."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial import cKDTree

import phyxel as px
from phyxel.cracks.crack import Crack, Cracks
from phyxel.cracks.grid import LevelGrid
from phyxel.movers.phyxel_bodies import phyxels_of
from phyxel.rotation import tangents
from phyxel.surface.discs import OVERLAP, DiscShape, Rest
from phyxel.surface.parted import Inner, Whole, parted

HALF, POINTS = 3.0, 24
"""Half the edge of a box in node spacings, and surfels along one."""
SPACING = 2 * HALF / POINTS
NORMAL = np.array([1.0, 2.0, 3.0]) / np.sqrt(14)
GRID = LevelGrid.around(-HALF * np.ones(3), HALF * np.ones(3))


def inside(x):
    return HALF - np.abs(x).max(axis=1)


def box_surfels():
    """A lattice on the six sides of a box."""
    side = (np.arange(POINTS) + 0.5) * SPACING - HALF
    u, v = (x.ravel() for x in np.meshgrid(side, side))
    positions, normals = [], []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            place, normal = np.zeros((2, len(u), 3))
            place[:, axis], place[:, axis - 2], place[:, axis - 1] = sign * HALF, u, v
            normal[:, axis] = sign
            positions.append(place)
            normals.append(normal)
    points = np.concatenate(positions)
    return Rest(points, np.concatenate(normals), np.full(points.shape, 0.5), 1.0)


def bent():
    """A slit whose front has run through the box, turning upward."""
    crack = Crack.slit(GRID, (0.1, -2.0, 0.05), (0, 0, 1), (0, 1, 0))
    for step in range(12):
        front = crack.front
        angle = 0.08 * step
        ahead = np.broadcast_to([0.0, np.cos(angle), np.sin(angle)], front.points.shape)
        crack.run(ahead, np.full(len(front.points), 0.3), 1.0)
    return crack


def made(*cracks):
    rest, all_of_them = box_surfels(), Cracks(GRID, list(cracks))
    found = parted(Whole(rest, inside), all_of_them, Inner(np.array([1.0, 0.0, 0.0])))
    return rest, all_of_them, found


@pytest.fixture(scope="module")
def crossed():
    """A box with a crack all through and a bent one that ends in it, and crosses the first."""
    return made(Crack.plane(GRID, (0.2, 0.1, 0.0), NORMAL), bent())


def held(shape, places, which=None):
    """Whether places lie on any of the discs, seen along the normals of these."""
    chosen = np.arange(len(shape.points)) if which is None else which
    p, a, b = (field[chosen] for field in shape[:3])
    normal = np.cross(a, b)
    frames = np.linalg.inv(np.stack([a, b, normal / np.linalg.norm(normal, axis=1)[:, None]], axis=2))
    near = cKDTree(p).query_ball_point(places, np.linalg.norm(a, axis=1).max() + np.linalg.norm(b, axis=1).max())
    on = np.zeros(len(places), bool)
    for k, discs in enumerate(near):
        s = np.einsum("dab,db->da", frames[discs], places[k] - p[discs])
        on[k] = ((s[:, :2] ** 2).sum(axis=1) <= 1).any() if discs else False
    return on


def rims(shape, within=1.0):
    angle = 2 * np.pi * np.arange(24) / 24
    circle = within * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return shape.points[:, None] + np.einsum("ks,smd->mkd", circle, np.stack([shape.axis_a, shape.axis_b]))


def test_faces_of_a_disc_have_its_area_twice():
    radius = 2.0
    _, cracks, found = made(Crack.disc(GRID, (0.1, 0.2, -0.1), NORMAL, radius))
    faces = np.flatnonzero(found.source < 0)
    points = found.shape.points[faces]
    height, ahead = cracks[0].values(points)
    assert np.abs(height).max() < 1e-2 * SPACING
    assert ahead.max() < 0
    assert inside(points).min() > 0
    outward = np.cross(found.shape.axis_a[faces], found.shape.axis_b[faces]) @ NORMAL
    np.testing.assert_array_equal(np.sign(outward), -np.sign(height))  # away from their own material
    e, f = (axis[0] for axis in tangents(NORMAL[None]))
    lattice = np.stack(np.meshgrid(*2 * [np.arange(-2.5, 2.5, 0.05)]), axis=-1).reshape(-1, 2)
    places = np.array([0.1, 0.2, -0.1]) + lattice @ [e, f]
    for side in (-1, 1):
        covered = 0.05**2 * held(found.shape, places, faces[np.sign(height) == side]).sum()
        assert covered == pytest.approx(np.pi * radius**2, rel=0.05)
    # As dense as the body's own: the lattice has one disc for each √¾ spacing².
    assert len(faces) == pytest.approx(2 * np.pi * radius**2 / (np.sqrt(0.75) * SPACING**2), rel=0.8)


def test_faces_reach_to_the_surface_and_not_out_of_it(crossed):
    _, cracks, found = crossed
    faces = np.flatnonzero(found.source < 0)
    # Rims are looked at in 16 places; at an edge of the box they may reach out between: 1 − cos(π/16) = 2 %.
    assert inside(rims(found.shape)[faces].reshape(-1, 3)).min() > -0.02 * OVERLAP * SPACING
    # On the plane: everywhere in the box but for a tenth of a spacing at its rim.
    e, f = (axis[0] for axis in tangents(NORMAL[None]))
    lattice = np.stack(np.meshgrid(*2 * [np.arange(-6, 6, 0.11)]), axis=-1).reshape(-1, 2)
    places = np.array([0.2, 0.1, 0.0]) + lattice @ [e, f]
    places = places[inside(places) > 0.1 * SPACING]
    own = faces[np.abs(cracks[0].values(found.shape.points[faces])[0]) < 2e-3 * SPACING]
    assert held(found.shape, places, own).mean() > 0.998


def test_nothing_bridges_a_crack(crossed):
    rest, cracks, found = crossed
    outer = np.flatnonzero(found.source >= 0)
    rim = rims(found.shape)[outer]
    centres = np.repeat(found.shape.points[outer], rim.shape[1], axis=0)
    across = ~cracks.sees(centres, rim.reshape(-1, 3))
    # A bent crack may come in between the 16 places of a rim that are looked at: by 1 − cos(π/16) = 2 % of its radius.
    depth = np.min([np.abs(crack.values(rim.reshape(-1, 3)[across])[0]) for crack in cracks], axis=0)
    assert depth.max() < 0.02 * rest.radii.max()
    before = rims(DiscShape.at_birth(rest)).reshape(-1, 3)
    assert (~cracks.sees(np.repeat(rest.positions, 24, axis=0), before)).sum() > 1000


def test_parts_cover_what_was_cut(crossed):
    rest, _, found = crossed
    cut = np.flatnonzero(found.was_cut)
    assert len(cut) > 4 * POINTS
    own = np.bincount(found.source[found.source >= 0], minlength=len(rest.positions))
    np.testing.assert_array_equal(own == 1, ~found.was_cut)
    shares = []
    for disc in cut[:: len(cut) // 40]:
        k = np.arange(400) + 0.5
        spiral = np.sqrt(k / 400)[:, None] * np.stack([np.cos(2.4 * k), np.sin(2.4 * k)], axis=1)
        a, b = (axis[0] for axis in tangents(rest.normals[disc][None]))
        places = rest.positions[disc] + rest.radii[disc] * spiral @ [a, b]
        shares.append(held(found.shape, places, np.flatnonzero(found.source == disc)).mean())
    # 95 % of one straight cut; two leave as much again.
    assert np.mean(shares) > 0.95
    assert np.min(shares) > 0.85


def test_what_is_there_stays_as_a_crack_grows():
    before = made(Crack.disc(GRID, (0, 0, 0), NORMAL, 1.5))[2]
    after = made(Crack.disc(GRID, (0, 0, 0), NORMAL, 4.0))[2]
    whole = np.linalg.norm(before.shape.points, axis=1) < 1.5 - 1.5 * OVERLAP * SPACING
    apart, there = cKDTree(after.shape.points).query(before.shape.points[whole])
    assert whole.sum() > 80
    assert apart.max() < 1e-9
    assert np.array_equal(after.ids[there], before.ids[whole])


def opened(slit_shift=(0.0, 0.0, 0.0)):
    """A bar that is slit half through; where its surfels go if all that is beyond the slit's plane is shifted."""
    body = px.Body(px.load("bar", points=4000), nodes=300)
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(body)
    whole = body.surface.positions[: len(body.cloud)].copy(), body.surface.normals.copy()
    X = (body.birth - body.born.centre) / body.born.unit
    cracks = Cracks(LevelGrid.around(X.min(axis=0) - 1, X.max(axis=0) + 1))
    cracks.add(Crack.slit(cracks.grid, (0.05, 0, 0), (1, 0, 0), (0, -1, 0)))
    body.fracture = SimpleNamespace(cracks=cracks)
    surfels = body.surfels
    model = phyxels_of(world).model
    model.ensure_forces()
    u = np.where(X[:, :1] > 0.05, slit_shift, 0.0) / body.born.unit
    model.u.assign(u.astype(np.float32))
    model.now.gradient.zero_()
    surfels.follow(phyxels_of(world).motion(body))
    return body, cracks, surfels, whole


def test_faces_go_with_their_own_side():
    shift = np.array([0.02, 0.01, -0.015])
    body, cracks, surfels, whole = opened(shift)
    m = len(body.cloud)
    rest = surfels.carried.shape.points.astype(np.float64)
    way = surfels.carried.positions - (body.origin + body.born.unit * rest)
    height, ahead = cracks[0].values(rest)
    # From a face no straight way leads to the other side, but for one a hair behind the front.
    faces = (np.abs(height) < 2e-3) & (ahead < -0.05) & (np.arange(len(rest)) >= m)
    assert (height[faces] > 0).sum() == (height[faces] < 0).sum() > 50
    np.testing.assert_allclose(way[faces], np.where(height[faces, None] > 0, shift, 0), atol=1e-7)
    # Far from the slit nothing has changed but where it is.
    far = (np.abs(height) > 3) | (ahead > 3)
    np.testing.assert_array_equal(
        surfels.carried.positions[:m][far[:m] & (height[:m] < 0)], whole[0][far[:m] & (height[:m] < 0)]
    )


def test_the_first_surfels_are_the_clouds():
    body, _, surfels, (places, normals) = opened()
    m = len(body.cloud)
    np.testing.assert_allclose(surfels.positions[:m], places, atol=1e-7)
    np.testing.assert_allclose(surfels.normals[:m], normals, atol=1e-5)


def test_pieces_have_together_what_the_whole_had():
    body = px.Body(px.load("bar", points=3000), nodes=200, inside=(0.9, 0.1, 0.2))
    body.cut(body.born.centre, (1, 0.2, 0))
    body.cut(body.born.centre + np.array((0.1, 0, 0)), (0.5, 1, 0))
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(body)
    whole = body.surfels.carried.shape
    world.advance(1e-6)
    assert len(world.bodies) == 4
    shapes = [piece.surfels.carried.shape for piece in world.bodies]
    rows = [np.concatenate([s.points, s.axis_a, s.axis_b, s.colors], axis=1, dtype="f4") for s in (whole, *shapes)]
    before, after = rows[0], np.concatenate(rows[1:])
    for table in (before, after):
        table[:] = table[np.lexsort(table.T)]
    np.testing.assert_array_equal(before, after)
    for piece, shape in zip(world.bodies, shapes, strict=True):
        for crack in piece.fracture.cracks:
            nodes, surfels = (np.sign(crack.values(X)[0]) for X in (piece.birth_places, shape.points))
            assert (surfels == nodes[0]).all()  # none has gone with another
            assert (nodes == nodes[0]).all()
        assert (piece.surface.colors == np.float32([0.9, 0.1, 0.2])).all(axis=1).sum() > 100


def test_an_impossible_color_is_refused():
    with pytest.raises(px.PhyxelError, match="inside"):
        px.Body(px.load("bar", points=500), nodes=50, inside=(1.2, 0, 0))
