"""What is shown of carried surfels: no gap under stretch, fewer under squeeze, the same again when let go."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import binary_erosion
from scipy.spatial import cKDTree

import phyxel as px
from phyxel.points.cloud import PointCloud
from phyxel.surface.pieces import LONGEST, MOST, SLIMMEST, pairs
from tests.surface.test_surfels import set_displacement

RADIUS, POINTS = 0.25, 2000
SLOPE = np.array([0.9, -0.7, 0.5])
"""of the colour over the place [1/m]"""
OBLIQUE = np.linalg.qr(np.array([[1.0, 0.3, 0.2], [0.7, 1.0, -0.4], [0.4, -0.8, 1.0]]))[0]


def stretch(*factors):
    """F that stretches along three oblique axes."""
    return OBLIQUE @ np.diag(factors) @ OBLIQUE.T


def painted(places):
    """A colour that grows linearly."""
    return 0.5 + 0.5 * np.outer(places @ SLOPE, [1.0, -1.0, 0.5])


def make_sphere():
    cloud = px.load("sphere", points=POINTS)
    cloud = PointCloud(cloud.positions, normals=cloud.normals, colors=painted(cloud.positions).astype(np.float32))
    body = px.Body(cloud, nodes=150)
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(body)
    return world, body


@pytest.fixture(scope="module")
def sphere():
    return make_sphere()


def deformed(sphere, F):
    world, body = sphere
    set_displacement(world, body, (body.reference - body.origin) @ (F - np.eye(3)).T)
    return body.surface


def samples(count=10_000):
    """Places all over the sphere, evenly."""
    k = np.arange(count) + 0.5
    height, angle = 1 - 2 * k / count, np.pi * (1 + np.sqrt(5)) * k
    ring = np.sqrt(1 - height**2)
    return RADIUS * np.stack([ring * np.cos(angle), height, ring * np.sin(angle)], axis=1)


def covering(surface, places, near=48):
    """For each place: which of the discs nearest to it hold it, seen along their normals. Both (m, near)."""
    position, a, b, normal = (getattr(surface, name).numpy() for name in ("position", "axis_a", "axis_b", "normal"))
    _, disc = cKDTree(position).query(places - surface.origin, near)
    way = (places - surface.origin)[:, None] - position[disc]
    frames = np.stack([a, b, normal], axis=2)[disc]
    u, v, off = np.moveaxis(np.linalg.solve(frames, way[..., None])[..., 0], -1, 0)
    return disc, (u**2 + v**2 <= 1) & (np.abs(off) < 0.2 * RADIUS)


def half_axes(surface):
    """Principal half axes, (m, 2), the longer first."""
    matrices = np.stack([surface.axis_a.numpy(), surface.axis_b.numpy()], axis=2)
    return np.linalg.svd(matrices, compute_uv=False)


STRETCHES = [(1, 1, 1), (2, 1, 1), (3, 1, 1), (3, 3, 1), (3, 0.58, 0.58), (0.34, 1, 1), (0.34, 0.34, 1), (4.5, 0.4, 1)]


@pytest.mark.parametrize("factors", STRETCHES)
def test_every_place_of_the_stretched_surface_lies_in_a_disc_and_has_its_colour(sphere, factors):
    """x = F X maps the sphere's surface; what was within a disc's radius at birth has at most its colour ± |slope| r.
    Pieces reach 1.14 radii (the corners of 2 × 2), a merged disc farther by the way to the partner and its growth."""
    F = stretch(*factors)
    surface = deformed(sphere, F)
    places = samples()
    disc, inside = covering(surface, places @ F.T)
    assert inside.any(axis=1).all()
    blended = np.einsum("mk,mka->ma", inside / inside.sum(axis=1, keepdims=True), surface.colors[disc])
    radius = sphere[1].surface.carried.axis_a.numpy() @ np.linalg.inv(F).T
    reach = np.linalg.norm(radius, axis=1).max()
    assert np.abs(blended - painted(places)).max() < 0.5 * np.linalg.norm(SLOPE) * 2 * reach
    assert np.abs(blended - painted(places)).mean() < 0.1 * 0.5 * np.linalg.norm(SLOPE) * reach


def test_what_is_hardly_deformed_is_shown_as_it_is_carried(sphere):
    for factors in ((1, 1, 1), (1.9, 1.9, 1.9), (0.6, 0.7, 1.2)):
        surface = deformed(sphere, stretch(*factors))
        assert surface.shown is surface.carried


def test_no_disc_is_longer_than_twice_its_radius_at_birth(sphere):
    longest = LONGEST * half_axes(deformed(sphere, np.eye(3))).max()
    for factors in ((3, 1, 1), (3, 3, 1), (8.9, 1, 1), (4.9, 4.9, 1)):
        assert half_axes(deformed(sphere, stretch(*factors))).max() < longest * (1 + 1e-5)


def test_what_is_neither_stretched_nor_squeezed_stays_bit_by_bit(sphere):
    """Stretched along y, discs near the poles keep their shape; others are split."""
    F = np.diag([1.0, 3.0, 1.0])
    surface = deformed(sphere, F)
    names = ("position", "axis_a", "axis_b", "normal", "color")
    shown, carried = (
        np.concatenate([getattr(discs, name).numpy() for name in names], axis=1)
        for discs in (surface.shown, surface.carried)
    )
    birth = np.linalg.norm(surface.carried.axis_a.numpy() @ np.linalg.inv(F), axis=1)
    whole = half_axes(surface.carried)[:, 0] < 1.99 * birth
    known = {row.tobytes(): place for place, row in enumerate(shown)}
    places = [known[row.tobytes()] for row in carried[whole]]
    assert 20 < whole.sum() < POINTS and len(shown) > POINTS
    assert (np.diff(places) > 0).all(), "and they keep their order"


def test_splitting_changes_no_colour(sphere):
    surface = deformed(sphere, stretch(3, 1, 1))
    assert len(surface) > 1.3 * POINTS
    assert np.array_equal(np.unique(surface.colors, axis=0), np.unique(surface.carried.colors, axis=0))


def test_the_count_comes_back_after_twenty_cycles_of_stretch_and_squeeze(sphere):
    first = deformed(sphere, np.eye(3))
    rest = first.positions.copy()
    counts = set()
    for cycle in range(20):
        counts.add((len(deformed(sphere, stretch(3, 1, 1))), len(deformed(sphere, stretch(0.3, 0.3, 1)))))
        surface = deformed(sphere, np.eye(3))
        assert len(surface) == POINTS, cycle
    assert np.array_equal(surface.positions, rest)
    assert len(counts) == 1, "each cycle shows as many as the one before"


def test_squeezed_to_a_third_pairs_are_shown_as_one(sphere):
    """All round: every pair is at a third of its distance, so that half as many are left, and those without partner."""
    partner, _ = pairs(sphere[1].cloud.positions, sphere[1].cloud.normals)
    paired = int((partner != np.arange(POINTS)).sum())
    surface = deformed(sphere, stretch(1 / 3, 1 / 3, 1 / 3))
    assert len(surface) == POINTS - paired // 2 < 0.6 * POINTS
    a, b = surface.axis_a.numpy(), surface.axis_b.numpy()
    assert (np.einsum("ma,ma->m", np.cross(a, b), surface.normals) > 0).all(), "they face outward"


def test_what_a_collider_pushes_together_is_not_merged():
    """A body let down into the ground undeformed: skin that dips in is laid onto it, so that pairs one above the other
    get close; still all are shown."""
    world, body = make_sphere()
    world.add(px.Ground(height=-1.2 * RADIUS))
    world.advance(1e-6)  # from now on the ground is known
    set_displacement(world, body, np.broadcast_to([0.0, -RADIUS, 0.0], body.reference.shape))
    surface = body.surface
    partner, apart = pairs(body.cloud.positions, body.cloud.normals)
    close = np.linalg.norm(surface.carried.positions[partner] - surface.carried.positions, axis=1) < 0.5 * apart
    assert close.any()
    assert surface.shown is surface.carried


def test_pieces_keep_out_of_the_ground():
    """As surfels do that dip in less than a node spacing: they lie on it."""
    sphere = make_sphere()
    world, body = sphere
    world.add(px.Ground(height=-RADIUS))
    world.advance(1e-6)
    surface = deformed(sphere, stretch(3.5, 1, 1))
    depth = -RADIUS - surface.positions[:, 1]
    assert len(surface) > 2 * POINTS
    assert not ((depth > 1e-6) & (depth < 0.99 * body.unit)).any()
    assert (np.abs(depth) < 1e-6).sum() > (np.abs(-RADIUS - surface.carried.positions[:, 1]) < 1e-6).sum() > 0


def test_merged_discs_hold_both(sphere):
    """Each half axis end of the carried surfels lies within a disc that is shown, up to the spread of neighbours'
    radii (some 5 %), of which the pair's mean is taken."""
    surface = deformed(sphere, stretch(1 / 3, 1 / 3, 1 / 3))
    carried = surface.carried
    rims = [s * getattr(carried, name).numpy() for name in ("axis_a", "axis_b") for s in (0.9, -0.9)]
    for rim in rims:
        _, inside = covering(surface, carried.positions + rim, near=32)
        assert inside.any(axis=1).all()


def test_flow_gives_neither_needles_nor_plates(sphere):
    """What is stretched beyond all measure is cut off, what is squeezed so is shown a little wider."""
    birth = np.linalg.norm(deformed(sphere, np.eye(3)).carried.axis_a.numpy(), axis=1)
    for factors in ((40, 1, 1), (40, 30, 1e-3), (60, 1e-3, 1e-3)):
        surface = deformed(sphere, stretch(*factors))
        axes = half_axes(surface)
        assert axes.max() < LONGEST * birth.max() * 1.0001
        assert axes.min() > SLIMMEST * birth.min() * 0.9999
        assert len(surface) <= MOST * POINTS


def test_the_same_bits_every_time():
    surfaces = [deformed(make_sphere(), stretch(3.3, 0.35, 1)) for _ in range(2)]
    for name in ("position", "axis_a", "axis_b", "normal", "color"):
        assert np.array_equal(*(getattr(surface, name).numpy() for surface in surfaces)), name


def test_a_shape_that_is_absorbed_is_still_judged_by_its_birth():
    """Absorbed in other units, with no displacement left: the same surfels are shown."""
    world, body = sphere = make_sphere()
    before = deformed(sphere, stretch(3, 1, 1))
    count, positions = len(before), before.positions.copy()
    before.absorb(2 * body.unit, body.origin)
    set_displacement(world, body, np.zeros_like(body.reference))
    before.follow(replace(body.motion, unit=2 * body.unit))
    assert len(before) == count
    assert np.abs(before.positions - positions).max() < 1e-6


def test_normals_do_not_flicker_while_a_body_bends(sphere):
    """x = (1/κ + Y)(sin λκX, cos λκX), Z as it was: bent by κ, growing evenly in time, and stretched λ times. What
    is shown faces as the bent surface does, and turns as evenly as it.

    In the body directions turn by λκ over a way in the reference shape; a surfel's nodes lie some half spacing inward
    of it, a piece takes the normal of a place up to a radius away: so far may normals be off."""
    world, body = sphere
    longer, sharpest, frames = 2.5, 1.2, 12  # sharpest κ [1/m]
    normals = []
    for curvature in sharpest * np.arange(1, frames + 1) / frames:

        def bent(X, k=curvature):
            angle, arm = longer * k * X[:, 0], 1 / k + X[:, 1]
            return np.stack([arm * np.sin(angle), arm * np.cos(angle) - 1 / k, X[:, 2]], axis=1)

        set_displacement(world, body, bent(body.reference) - body.reference)
        surface = body.surface
        places = samples()
        angle, arm = longer * curvature * places[:, 0], longer * (1 + curvature * places[:, 1])
        along = np.stack([np.cos(angle), -np.sin(angle)], axis=1)  # of x, when X grows; Y goes at right angles to it
        true = along * (places[:, :1] / arm[:, None]) + along[:, ::-1] * [-1, 1] * places[:, 1:2]
        true = np.column_stack([true, places[:, 2]])
        true /= np.linalg.norm(true, axis=1, keepdims=True)
        _, nearest = cKDTree(bent(places)).query(surface.positions)
        off = angle_between(true[nearest], surface.normals)
        reach = 0.5 * body.unit + 0.03
        assert len(surface) > POINTS
        assert off.max() < longer * sharpest * reach and off.mean() < 0.4 * longer * sharpest * reach
        normals.append(surface.carried.normals.copy())
    turns = np.array([angle_between(*pair) for pair in itertools.pairwise(normals)])
    assert turns.max() < 1.5 * longer * RADIUS * sharpest / frames
    assert np.abs(np.diff(turns, axis=0)).max() < 0.1 * turns.max()


def angle_between(one, other):
    """Of unit vectors (m, 3) [rad]."""
    return 2 * np.arcsin(np.clip(0.5 * np.linalg.norm(one - other, axis=1), 0, 1))


@pytest.mark.parametrize("factors", [(3, 1, 1), (3, 3, 1)])
def test_no_background_shows_through_a_picture_of_what_is_stretched(sphere, factors):
    """An ellipsoid is convex: from its first to its last pixel, a row of the picture is full."""
    from phyxel.render.camera import Camera
    from phyxel.render.splat import Renderer

    surface = deformed(sphere, stretch(*factors))
    positions = surface.positions
    camera = Camera.framing(positions.min(axis=0), positions.max(axis=0), (0.3, 0.4, 1.0), 160, 120, 35.0)
    drawn = (positions.astype(np.float32), surface.axis_a, surface.axis_b, surface.color)
    opacity = Renderer("cpu").render(*drawn, camera, background=None)[..., 3]
    assert (opacity > 0).sum() > 2000
    for row in opacity > 0:
        columns = np.flatnonzero(row)
        assert not len(columns) or row[columns[0] : columns[-1] + 1].all()
    assert (opacity[binary_erosion(opacity > 0, iterations=2)] == 255).all(), "only the rim is soft"


def test_pairs_are_mutual_near_and_face_the_same_way():
    lattice = np.stack(np.meshgrid(np.arange(20.0), np.arange(21.0), [0.0]), axis=-1).reshape(-1, 3)
    both = np.concatenate([lattice, lattice - [0, 0, 0.3]])  # the two sides of a leaf
    normals = np.repeat([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]], len(lattice), axis=0)
    partner, apart = pairs(both, normals)
    assert np.array_equal(partner[partner], np.arange(len(both)))
    matched = partner != np.arange(len(both))
    assert matched.mean() > 0.8
    assert (normals[partner] == normals).all()
    assert np.abs(apart[matched] - 1).max() < 1e-12 and (apart[~matched] == 0).all()


def test_few_points_have_pairs_too():
    normals = np.array([[0.0, 0, 1]] * 3)
    partner, apart = pairs(np.array([[0.0, 0, 0], [1, 0, 0], [5, 0, 0]]), normals)
    assert partner.tolist() == [1, 0, 2] and apart.tolist() == [1, 1, 0]


def frozen_drop():
    """A drop that freezes so soon, while it is squeezed, that it has as many surfels as before."""
    world = px.World(gravity=(0, 0, 0), device="cpu")
    drop = px.Body(px.load("sphere", points=600), nodes=80, material=px.Material(young=3e4))
    world.add(drop)
    drop.fix(px.Box((-9, -9, -9), (9, -0.15, 9)))
    drop.drag(px.Box((-9, 0.15, -9), (9, 9, 9)), lambda t: (0, -0.1 * min(t / 0.3, 1) + 3 * max(t - 0.3, 0), 0))
    world.at(0.3, lambda _: drop.melt(viscosity=1e3))
    world.at(0.301, lambda _: drop.solidify())
    return world, drop


def test_what_froze_is_cut_into_the_same_pieces_after_a_checkpoint(tmp_path):
    (world, drop), (restored, again) = frozen_drop(), frozen_drop()
    world.advance(0.32)
    assert len(drop.surface.carried) == 600, "or the test would not tell"
    world.save(tmp_path / "frozen.npz")
    restored.restore(tmp_path / "frozen.npz")
    for one in (world, restored):
        one.advance(0.3)
    assert len(drop.surface) > 700, "in pieces"
    for name in ("positions", "normals", "colors"):
        assert np.array_equal(getattr(drop.surface, name), getattr(again.surface, name)), name
