"""Level sets of cracks against the planes, discs and half planes they stand for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from phyxel.cracks.crack import Crack, Cracks
from phyxel.cracks.grid import LevelGrid
from phyxel.errors import PhyxelError

LOWER, UPPER = np.array([-4.0, -2.0, -2.0]), np.array([4.0, 2.0, 2.0])
GRID = LevelGrid.around(LOWER, UPPER)
EVERYWHERE = 100.0


def unit(v):
    return np.asarray(v, float) / np.linalg.norm(v)


def areas(triangles):
    """Area vectors of triangles (k, 3, 3), shape (k, 3)."""
    return 0.5 * np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])


def crossing(one, other, at, normal):
    """Whether ways cross a plane, and where."""
    a, b = (one - at) @ normal, (other - at) @ normal
    apart = (a >= 0) != (b >= 0)
    return apart, one + (a / np.where(apart, a - b, 1.0))[:, None] * (other - one)


def straight_run(crack, steps, way, direction=None):
    for _ in range(steps):
        front = crack.front
        ahead = front.forwards if direction is None else np.broadcast_to(direction, front.points.shape)
        crack.run(ahead, np.ones(len(front)), way)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["plane", "disc", "slit"]),
    grown=st.booleans(),
)
def test_what_a_crack_hides(seed, kind, grown):
    """Ways are hidden that cross the plane within the disc, behind the slit's front, or anywhere, and no others.

    Trilinear interpolation is exact for the plane, and at a round front of radius ρ off by at most d²/4ρ over a cell's
    diagonal d = √3 h, plus the chords between points of the front, h²/8ρ. What has run hides as if born so."""
    rng = np.random.default_rng(seed)
    at, normal, ahead = rng.uniform(-1, 1, 3), unit(rng.normal(size=3)), rng.normal(size=3)
    ahead = unit(ahead - (ahead @ normal) * normal)
    way = 0.75 if grown else 0.0
    radius = rng.uniform(0.8, 1.8)
    one = rng.uniform(LOWER, UPPER, (400, 3))
    other = np.clip(one + rng.uniform(-2.5, 2.5, (400, 3)), LOWER, UPPER)
    apart, X = crossing(one, other, at, normal)
    if kind == "plane":
        crack, past, near = Crack.plane(GRID, at, normal), -EVERYWHERE * np.ones(len(X)), 1e-9
    elif kind == "disc":
        crack, past = Crack.disc(GRID, at, normal, radius), np.linalg.norm(X - at, axis=1) - radius - way
        near = GRID.spacing**2 * (0.75 + 0.125) / radius
    else:
        crack, past, near = Crack.slit(GRID, at, normal, ahead), (X - at) @ ahead - way, 1e-3
    straight_run(crack, 3 if grown else 0, 0.25)
    seen = Cracks(GRID, [crack]).sees(one, other)
    clear = ~apart | (np.abs(past) > near)
    assert np.array_equal(seen[clear], ~(apart & (past < 0))[clear])
    assert np.array_equal(seen, crack.sees(other, one))


def test_a_place_on_a_crack_is_above_it():
    crack = Crack.plane(GRID, (0, 0, 0), (1, 0, 0))
    there, above, below = np.zeros((1, 3)), np.array([[0.4, 0.1, 0]]), np.array([[-0.4, 0.1, 0]])
    assert crack.sees(there, above)[0] and not crack.sees(there, below)[0]
    assert crack.sees(there, there)[0]
    assert len(crack.sees(np.zeros((0, 3)), np.zeros((0, 3)))) == 0


def test_a_disc_grows_as_a_disc():
    """From radius 1 to 1.9 in 12 steps: flat to 1e-9 (r·n of points in a plane is 0), the front's points run exactly,
    and the surface has the area of the disc to twice the relative error d²/4ρ² of its radius, h²/3ρ² = 1 %."""
    at, normal = np.array([0.13, -0.04, 0.02]), unit([1, 0.4, -0.7])
    crack = Crack.disc(GRID, at, normal, 1.0)
    straight_run(crack, 12, 0.075)
    assert np.abs((crack.front.points - at) @ normal).max() < 1e-9
    assert np.linalg.norm(crack.front.points - at, axis=1) == pytest.approx(1.9, rel=1e-3)
    sheet = crack.sheet()
    assert np.abs((sheet - at) @ normal).max() < 1e-9
    assert (areas(sheet) @ normal).min() > -1e-12
    assert np.linalg.norm(areas(sheet), axis=1).sum() == pytest.approx(np.pi * 1.9**2, rel=0.02)


def test_a_straight_front_stays_straight():
    """A slit askew to the grid that runs 3 spacings in 30 steps: the whole surface lies in its plane, its front on a
    line, both to 1e-3 spacings, and its front goes on past the body at both ends."""
    at, normal, ahead = np.array([-2.0, 0.1, 0.0]), unit([0.2, 1, 0.3]), unit([1, -0.2, 0.0])
    ahead = unit(ahead - (ahead @ normal) * normal)
    crack = Crack.slit(GRID, at, normal, ahead)
    straight_run(crack, 30, 0.1)
    sheet = crack.sheet().reshape(-1, 3)
    assert np.abs((sheet - at) @ normal).max() < 1e-3
    assert ((sheet - at) @ ahead).max() == pytest.approx(3.0, abs=1e-3)
    assert np.abs((crack.front.points - at) @ ahead - 3.0).max() < 1e-3
    ends = crack.front.points[[0, -1]]
    assert ((ends < LOWER) | (ends > UPPER)).any(axis=1).all()


@pytest.mark.parametrize("angle", [30, -60])
def test_a_turned_front_leaves_a_kink(angle):
    """Turned once and then straight for 1.8 spacings: the new part stands at that angle to 1°, and all of the surface
    is within a quarter of a cell of the two half planes. Both level sets are distances to a few per cent there."""
    at, turn = np.array([-1.03, 0.11, 0.0]), np.radians(angle)
    way, up = np.array([np.cos(turn), np.sin(turn), 0]), np.array([-np.sin(turn), np.cos(turn), 0])
    crack = Crack.slit(GRID, at, (0, 1, 0), (1, 0, 0))
    straight_run(crack, 12, 0.15, way)
    sheet = crack.sheet()
    X = sheet.reshape(-1, 3) - at
    old = np.hypot(np.maximum(X[:, 0], 0), X[:, 1])
    new = np.hypot(np.maximum(np.maximum(-X @ way, X @ way - 1.8), 0), X @ up)
    assert np.minimum(old, new).max() < 0.25 * GRID.spacing
    middle = sheet.mean(axis=1)
    ahead = (middle - at) @ way
    far = (ahead > 0.7) & (ahead < 1.7) & (np.abs(middle) < UPPER).all(axis=1)
    assert unit(areas(sheet[far]).sum(axis=0)) @ up > np.cos(np.radians(1))
    near = middle[far] + np.random.default_rng(0).uniform(-0.4, 0.4, (far.sum(), 1)) * up
    for which in (1, 2):
        slope = np.linalg.norm(crack.sight.slopes(near, which), axis=1)
        assert np.abs(slope - 1).max() < 0.05
    # No step turns farther than 70°: asked to go straight back it goes on.
    crack.run(np.broadcast_to(-way, crack.front.points.shape), np.ones(len(crack.front)), 0.1)
    assert (crack.front.forwards @ way).min() > np.cos(np.radians(70)) - 1e-9


def pieces_of(crack):
    """Sizes of what the body falls into: places at every 0.4 that see their neighbours hold together."""
    axes = [np.arange(a + 0.17, b, 0.4) for a, b in zip(LOWER, UPPER, strict=True)]
    X = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    i, j = cKDTree(X).query_pairs(0.75, output_type="ndarray").T
    seen = crack.sees(X[i], X[j])
    graph = coo_matrix((np.ones(seen.sum()), (i[seen], j[seen])), (len(X), len(X)))
    return np.bincount(connected_components(graph, directed=False)[1])


@pytest.mark.parametrize("seed", range(3))
def test_a_wavy_crack_cuts_clean(seed):
    """A disc whose front turns and runs unevenly until it is out of the body: two pieces, no gaps and no crumbs. What
    was looked at again only where it changed is the same as all looked at at once."""
    rng = np.random.default_rng(seed)
    phase, pace = rng.uniform(0, 6, 4), rng.uniform(0.3, 1.2, 2)
    crack = Crack.disc(GRID, rng.uniform(-0.7, 0.7, 3), (1, *rng.uniform(-0.3, 0.3, 2)), 1.0)
    for step in range(60):
        _, f, n = crack.front.frames()
        X = crack.front.points
        if not ((X > LOWER - 0.2) & (X < UPPER + 0.2)).all(axis=1).any():
            break
        waves = (
            np.sin(pace[0] * X[:, 1] + phase[0]) * np.sin(pace[1] * X[:, 2] + phase[1]) * np.sin(0.5 * step + phase[2])
        )
        turn = 0.2 * waves - 0.3 * f[:, 0] * np.sign(n[:, 0])
        speed = 1 + 0.8 * np.sin(X[:, 2] + phase[3])
        crack.run(np.cos(turn)[:, None] * f + np.sin(turn)[:, None] * n, speed, 0.25)
    assert step < 59
    pieces = pieces_of(crack)
    assert len(pieces) == 2 and pieces.min() > 0.15 * pieces.sum()
    afresh = Crack.restored(GRID, crack.state())
    assert np.array_equal(afresh.sight.cut, crack.sight.cut)
    one, other = rng.uniform(LOWER, UPPER, (2, 5000, 3))
    assert np.array_equal(afresh.sees(one, other), crack.sees(one, other))


def test_a_front_that_parts_meets_itself():
    """Held up by a round obstacle it runs on at both sides, closes behind it, and leaves a straight front and an uncut
    round spot. Points of the front do not pile up; where it is bent, new ones lie a little before it, by less than a
    tenth of a cell."""
    crack = Crack.slit(GRID, (-2.5, 0.03, 0), (0, 1, 0), (1, 0, 0))
    for _ in range(45):
        X = crack.front.points
        free = np.hypot(X[:, 0], X[:, 2]) > 0.8
        crack.run(crack.front.forwards, free.astype(float), 0.11)
    X = crack.front.points
    ahead = X[:, 0] > 1.2
    assert len(X) < 80
    assert X[ahead, 0].max() == pytest.approx(-2.5 + 45 * 0.11, abs=0.1 * GRID.spacing)
    assert np.diff(np.sort(X[ahead, 2])).max() < 2 * GRID.spacing
    rim = np.linspace(0, 2 * np.pi, 24)
    for radius, seen in ((0.45, True), (1.3, False)):
        places = np.stack([radius * np.cos(rim), 0 * rim, radius * np.sin(rim)], axis=1)
        up = np.array([0, 0.4, 0])
        assert (crack.sees(places + up, places - up) == seen).all()


def test_the_same_bits_from_a_checkpoint():
    cracks = Cracks(GRID, [Crack.disc(GRID, (0, 0, 0), (1, 1, 0), 1.0)])
    cracks.add(Crack.plane(GRID, (2, 0, 0), (1, 0, 0)))
    speeds = np.linspace(0.2, 1, len(cracks[0].front))
    cracks.run(0, cracks[0].front.forwards, speeds, 0.2)
    again = Cracks.restored(GRID, cracks.state())
    for one in (cracks, again):
        one.run(0, one[0].front.forwards, speeds[: len(one[0].front)], 0.3)
    assert again.revision == cracks.revision and len(again) == 2
    for name, value in cracks.state().items():
        assert np.array_equal(value, again.state()[name]), name


@pytest.mark.parametrize(
    "make",
    [
        lambda: Crack.disc(GRID, (0, 0, 0), (1, 0, 0), 0.0),
        lambda: Crack.disc(GRID, (0, 0), (1, 0, 0), 1.0),
        lambda: Crack.plane(GRID, (0, 0, 0), (0, 0, 0)),
        lambda: Crack.plane(GRID, (0, np.nan, 0), (0, 0, 1)),
        lambda: Crack.slit(GRID, (0, 0, 0), (1, 0, 0), (2, 0, 0)),
        lambda: LevelGrid.around(UPPER, LOWER),
        lambda: LevelGrid.around(LOWER, UPPER, 0.0),
    ],
)
def test_what_is_no_crack_is_refused(make):
    with pytest.raises(PhyxelError, match=r"crack|cracks"):
        make()
