"""Surfels that go where shape functions carry them: exactly, whichever way they are laid out."""

from typing import Any

import numpy as np
import pytest
import warp as wp

import phyxel as px
from phyxel import device as dev
from phyxel.mls.shape_functions import ShapeFunctions
from phyxel.surface.discs import DiscShape, Rest
from phyxel.surface.motion import Motion
from phyxel.surface.surfels import Surfels
from phyxel.surface.woven import WARP, Shown, Woven, look_for_colliders, loom_of, weave_apart
from tests.surface.motions import motion

FIELDS = ("position", "axis_a", "axis_b", "normal")
ROUNDING = 4e-6
"""In spacings: numbers up to 5 in single precision, 5 · 6e-8 each, in sums of some forty terms."""


class Ball:
    """A ball of 2,001 points and some 150 nodes: one more than full blocks have."""

    def __init__(self) -> None:
        self.device = dev.pick("cpu")
        cloud = px.load("sphere", points=2001)
        solid = px.Solid(cloud, device=self.device)
        sampled = solid.sample(150)
        self.unit = sampled.spacing
        self.nodes = sampled.positions / self.unit
        covers = solid.shape_functions(sampled).covers / self.unit
        self.shapes = ShapeFunctions(self.nodes, covers, device=self.device)
        self.points = cloud.positions / self.unit
        self.normals = cloud.normals

    def rest(self, some: np.ndarray) -> Rest:
        return Rest(self.points[some], self.normals[some], np.ones((len(some), 3)), self.unit)

    def woven(self, some: np.ndarray | None = None) -> Woven:
        some = np.arange(len(self.points)) if some is None else some
        return Woven(DiscShape.at_birth(self.rest(some)), self.nodes, self.shapes.at(self.points[some]), self.device)

    def moved(self, u: np.ndarray, *colliders: px.Ground | px.Sphere, **options: Any) -> Motion:
        return motion(u, self.unit, self.device, *colliders, **options)


@pytest.fixture(scope="module")
def ball():
    return Ball()


def uneven(ball):
    """Nodal coefficients of a wavy motion [spacings]."""
    return 0.3 * np.sin(ball.nodes @ np.array([[1.0, 0.4, -0.3], [0.2, -0.9, 0.6], [0.7, 0.1, 0.8]]))


def read(discs):
    return [getattr(discs, name).numpy().copy() for name in FIELDS]


def test_an_affine_motion_carries_positions_axes_and_normals(ball):
    """x = F X, turned by 2 rad and stretched: φ reproduces linear fields, so positions and axes go with F, normals with
    F⁻ᵀ, to rounding; an axis is short, its normal's error longer by as much."""
    angle = 2.0
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    F = turn @ np.array([[1.3, 0.2, 0.0], [0.2, 0.8, 0.1], [0.0, 0.1, 1.1]])
    woven = ball.woven()
    shape = DiscShape.at_birth(ball.rest(np.arange(len(woven))))
    woven.follow(ball.moved(ball.nodes @ (F - np.eye(3)).T, origin=(1.0, 2.0, 3.0)))
    x, a, b, n = read(woven)
    assert np.abs(x / ball.unit - shape.points @ F.T).max() < ROUNDING
    assert np.abs(a / ball.unit - shape.axis_a @ F.T).max() < ROUNDING
    assert np.abs(b / ball.unit - shape.axis_b @ F.T).max() < ROUNDING
    normals = ball.normals @ np.linalg.inv(F)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    assert np.abs(n - normals).max() < 2 * ROUNDING / np.linalg.norm(b / ball.unit, axis=1).min()
    assert np.abs(woven.positions - [1.0, 2.0, 3.0] - x).max() < 1e-12


def test_surfels_go_by_phi_and_axes_by_its_gradient(ball):
    """x = X + Σ φ_I u_I and F a = a + Σ (a·∇φ_I) u_I, against the same sums in double."""
    woven, u = ball.woven(), uneven(ball)
    values, shape = ball.shapes.at(ball.points), DiscShape.at_birth(ball.rest(np.arange(len(ball.points))))
    woven.follow(motion(u, 1.0, ball.device))
    x, a, b, _ = read(woven)
    assert np.abs(x - (shape.points + values.values @ u)).max() < 1e-6
    slopes = [slope @ u for slope in values.gradients]
    for axis, there in ((shape.axis_a, a), (shape.axis_b, b)):
        change = sum(axis[:, k, None] * slope for k, slope in enumerate(slopes))
        assert np.abs(there - (axis + change)).max() < 1e-6


def test_order_and_number_of_surfels_change_no_bit(ball):
    """Shuffled, they are woven along a curve; five do not fill two blocks. Zeros of the others in a block add nothing.
    Of a few only positions stay: they are larger discs."""
    moved = ball.moved(uneven(ball))
    whole = ball.woven()
    whole.follow(moved)
    shuffled = np.random.default_rng(0).permutation(len(ball.points))
    for some, fields in ((shuffled, 4), (shuffled[:5], 1), (shuffled[:2], 1)):
        woven = ball.woven(some)
        woven.follow(moved)
        for one, other in zip(read(whole)[:fields], read(woven)[:fields], strict=True):
            assert np.array_equal(one[some], other)


def test_surfels_in_any_order_are_woven_with_neighbours(ball):
    """Four at random would have nearly four times the nodes of one."""
    shuffled = np.random.default_rng(0).permutation(len(ball.points))
    shape, values = DiscShape.at_birth(ball.rest(shuffled)), ball.shapes.at(ball.points[shuffled])
    loom = loom_of(shape, ball.nodes, values, 4, ball.device)
    assert 4 * len(loom.node) < 1.3 * len(values.index)
    assert np.array_equal(np.sort(loom.surfel.numpy()[: len(shuffled)]), np.arange(len(shuffled)))


def test_blocks_of_a_warp_are_woven_alike(ball):
    """As on CUDA, thread by thread."""
    woven, moved = ball.woven(), ball.moved(uneven(ball), px.Ground(height=-0.2))
    woven.follow(moved)
    shape = DiscShape.at_birth(ball.rest(np.arange(len(woven))))
    loom = loom_of(shape, ball.nodes, ball.shapes.at(ball.points), WARP, ball.device)
    shown = Shown()
    for name in FIELDS:
        setattr(shown, name, wp.zeros(len(woven), dtype=wp.vec3, device=ball.device))
    X = wp.array(ball.nodes.astype(np.float32), dtype=wp.vec3, device=ball.device)
    clear = wp.zeros(len(X), dtype=wp.vec4, device=ball.device)
    dev.launch(look_for_colliders, len(X), [X, moved.u, moved.walls.table, 0, clear], ball.device)
    inputs = [WARP, loom, moved.u, clear, moved.walls.table, 0, ball.unit, shown]
    dev.launch(weave_apart, len(loom.surfel), inputs, ball.device)
    for one, other in zip(read(woven), read(shown), strict=True):
        assert np.abs(one - other).max() < 1e-6 * np.abs(one).max()


@pytest.mark.parametrize("depth", [0.02, 0.3])
def test_colliders_keep_surfels_out_and_touch_no_other(ball, depth):
    """Sunk into the ground, or a small sphere pressed in at a surfel, between the nodes; less than a spacing deep."""
    radius = 0.2 * ball.unit
    pressed = ball.unit * (ball.points[1000] + (0.2 - depth) * ball.normals[1000])
    colliders = [px.Ground(height=-0.25 + depth * ball.unit), px.Sphere(at=pressed, radius=radius)]
    woven, u = ball.woven(), np.zeros_like(ball.nodes)
    woven.follow(ball.moved(u))
    free = read(woven)[0]
    for collider in colliders:
        woven.follow(ball.moved(u, collider))
        kept = read(woven)[0]
        outside = [
            x[:, 1] - collider.height
            if isinstance(collider, px.Ground)
            else np.linalg.norm(x - collider.pose(0.0)[0], axis=1) - radius
            for x in (free, kept)
        ]
        assert (outside[0] < 0).any() and outside[1].min() > -1e-6
        assert np.array_equal(free[outside[0] > 0], kept[outside[0] > 0])


def test_what_is_stretched_is_shown_in_pieces_and_what_is_not_as_it_is(ball):
    """A surfel is cut where it is more than twice as long as at birth: n = ⌈λ − 1⌉ pieces."""
    everyone = np.arange(len(ball.points))
    surfels = Surfels(ball.rest(everyone), ball.nodes, ball.device, values=ball.shapes.at(ball.points))
    for longer, count in ((1.0, 1), (1.9, 1), (2.9, 4)):
        surfels.follow(ball.moved((longer - 1) * ball.nodes))
        assert len(surfels) == count * len(everyone)
        assert (surfels.shown is surfels.carried) == (count == 1)
    surfels.follow(ball.moved(-0.6 * ball.nodes))
    assert len(surfels) < 0.7 * len(everyone), "squeezed to 0.4, pairs are one"
