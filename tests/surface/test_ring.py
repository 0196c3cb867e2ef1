"""What is seen of a sheet of particles goes with it, exactly for any affine motion."""

import numpy as np
import pytest

import phyxel as px
from phyxel import device as dev
from phyxel.surface.discs import DiscShape, Rest
from phyxel.surface.ring import Ring
from phyxel.surface.woven import Woven
from tests.surface.motions import motion
from tests.surface.test_woven import ROUNDING, read

CPU = dev.pick("cpu")
AFFINE = np.array([[0.2, -1.3, 0.4], [0.9, 0.3, 0.2], [0.1, 0.3, 1.2]])
"""Turned by about a right angle, stretched and sheared."""


def grid(count: int, height) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An uneven grid of count² particles at y = height(x, z), their normals and quads."""
    rng = np.random.default_rng(3)
    x, z = np.meshgrid(np.arange(count), np.arange(count), indexing="ij")
    plane = np.stack([x, z], axis=2).reshape(-1, 2) + 0.15 * rng.normal(size=(count**2, 2))
    y, step = height(*plane.T), 1e-5
    slope = [(height(*(plane + step * e).T) - height(*(plane - step * e).T)) / (2 * step) for e in np.eye(2)]
    normals = np.stack([-slope[0], np.ones(len(y)), -slope[1]], axis=1)
    corner = np.arange(count**2).reshape(count, count)
    quads = np.stack([corner[:-1, :-1], corner[:-1, 1:], corner[1:, 1:], corner[1:, :-1]], axis=2).reshape(-1, 4)
    positions = np.stack([plane[:, 0], y, plane[:, 1]], axis=1)
    return positions, normals / np.linalg.norm(normals, axis=1, keepdims=True), quads


def flat(x, z):
    return np.zeros(x.shape)


def wavy(x, z):
    return 0.5 * np.sin(0.6 * x) * np.cos(0.4 * z)


@pytest.mark.parametrize("height", [flat, wavy])
@pytest.mark.parametrize("faces", ["quads", "triangles", "none"])
def test_discs_go_exactly_with_any_affine_motion(height, faces):
    """x = A X: half axes go with A and normals with A⁻ᵀ, to rounding, also at rims and of a curved sheet."""
    X, normals, quads = grid(9, height)
    given = {"quads": quads, "triangles": np.concatenate([quads[:, :3], quads[:, [0, 2, 3]]]), "none": None}[faces]
    ring = Ring.around(X, normals, given, CPU)
    shape = DiscShape.at_birth(Rest(X, ring.normals, np.ones(X.shape), 1.0))
    woven = Woven(shape, X, ring.values, CPU)
    u = X @ (AFFINE - np.eye(3)).T
    woven.follow(motion(u, 1.0, CPU))
    x, a, b, n = read(woven)
    turned = ring.normals @ np.linalg.inv(AFFINE)
    assert np.abs(x - X @ AFFINE.T).max() < ROUNDING
    assert max(np.abs(a - shape.axis_a @ AFFINE.T).max(), np.abs(b - shape.axis_b @ AFFINE.T).max()) < 4 * ROUNDING
    assert np.abs(n - turned / np.linalg.norm(turned, axis=1, keepdims=True)).max() < 4 * ROUNDING


def test_the_gradient_of_a_rigid_turn_is_the_turn():
    """u = (R − 1) X: ∇u = R − 1, across the sheet too, whose normal stays a normal."""
    X, normals, quads = grid(9, wavy)
    turn = np.linalg.svd(AFFINE)[0]
    turn *= np.sign(np.linalg.det(turn))
    gradient = Ring.around(X, normals, quads, CPU).gradient(X @ (turn - np.eye(3)).T)
    assert np.abs(gradient - (turn - np.eye(3))).max() < 1e-12


def test_discs_keep_the_normals_of_a_smooth_sheet():
    """On a fine even grid the plane of a ring is the tangent plane: to second order in the spacing inside, to first
    order (half the angle from ring to ring) at the rim."""
    errors = []
    for fine in (1, 2):
        count = 12 * fine + 1
        x, z = (axis.reshape(-1) / fine for axis in np.meshgrid(np.arange(count), np.arange(count), indexing="ij"))
        slope = np.stack([0.3 * np.cos(0.6 * x) * np.cos(0.4 * z), -0.2 * np.sin(0.6 * x) * np.sin(0.4 * z)], axis=1)
        normals = np.stack([-slope[:, 0], np.ones(len(x)), -slope[:, 1]], axis=1)
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        quads = grid(count, flat)[2]
        ring = Ring.around(np.stack([x, wavy(x, z), z], axis=1), normals, quads, CPU)
        off = np.arccos(np.minimum(np.einsum("ni,ni->n", ring.normals, normals), 1)).reshape(count, count)
        errors.append((off[1:-1, 1:-1].max(), off.max()))
    (inside, rim), (fine_inside, fine_rim) = errors
    assert inside < 0.05 and fine_inside < inside / 3
    assert rim < 0.15 and fine_rim < rim / 1.7


def test_particles_without_a_ring_of_their_own_look_at_the_nearest():
    """One that no face has, one whose faces are a line, and one that lies on another."""
    X, normals, quads = grid(5, flat)
    X = np.concatenate([X, [[1.5, 0.0, 1.6], X[7]]])
    normals = np.concatenate([normals, [[0.0, 1.0, 0.0]] * 2])
    line = np.array([[25, 25, 25, 3]])
    ring = Ring.around(X, normals, np.concatenate([quads, line]), CPU)
    gradient = ring.gradient(X @ (AFFINE - np.eye(3)).T)
    along = np.array([[1.0, 0, 0], [0, 0, 1]])
    assert np.abs((gradient - (AFFINE - np.eye(3))) @ along.T).max() < 1e-10


@pytest.mark.parametrize("faces", ["quads", "triangles"])
def test_discs_cover_the_sheet_and_hardly_stick_out_of_it(faces):
    """Every place of an even square of 9 × 9 is in some disc, with a tenth to spare; none is more than half a spacing
    beyond the rim, and three quarters at corners, where round ones would be by more than a whole one."""
    x, z = (axis.reshape(-1).astype(float) for axis in np.meshgrid(np.arange(9), np.arange(9), indexing="ij"))
    X, quads = np.stack([x, 0 * x, z], axis=1), grid(9, flat)[2]
    given = quads if faces == "quads" else np.concatenate([quads[:, :3], quads[:, [0, 2, 3]]])
    ring = Ring.around(X, np.tile([0.0, 1.0, 0.0], (81, 1)), given, CPU)
    shape = DiscShape.at_birth(Rest(X, ring.normals, np.ones(X.shape), 1.0, ring.radii, ring.axes))
    assert np.abs(np.cross(*ring.axes) @ [0, 1, 0] / np.linalg.norm(np.cross(*ring.axes), axis=1) - 1).max() < 1e-12
    places = np.random.default_rng(2).uniform(0, 8, size=(4000, 2))
    axes = np.linalg.inv(np.stack([shape.axis_a[:, [0, 2]], shape.axis_b[:, [0, 2]]], axis=2))
    within = np.einsum("nij,pnj->pni", axes, places[:, None] - X[None][..., [0, 2]])
    assert np.linalg.norm(within, axis=2).min(axis=1).max() < 0.9
    reach = np.hypot(shape.axis_a, shape.axis_b)
    out = np.maximum(X + reach - 8, -X + reach)[:, [0, 2]].max(axis=1)
    corner = (x % 8 == 0) & (z % 8 == 0)
    assert out[~corner].max() < 0.5 and out.max() < 0.75


def test_what_is_closed_has_no_rim():
    tetrahedron = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], float)
    faces = np.array([[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]])
    ring = Ring.around(tetrahedron, tetrahedron / np.sqrt(3), faces, CPU)
    assert not ring.is_open
    assert Ring.around(tetrahedron, tetrahedron / np.sqrt(3), faces[:3], CPU).is_open
    assert np.abs(ring.normals - tetrahedron / np.sqrt(3)).max() < 1e-12


# Particle bodies in a world

SPIN, TIME = np.array([0.3, 1.0, -0.4]), 0.5
"""[rad/s], [s]"""
TURNING = TIME * np.array([[0, -SPIN[2], SPIN[1]], [SPIN[2], 0, -SPIN[0]], [-SPIN[1], SPIN[0], 0]])
"""∇u of particles that nothing holds together and that started to turn: each goes straight on, u = t ω × X."""
AT = np.array([1.0, 2.0, 3.0])


def flying(name: str = "cloth", points: int = 121) -> tuple[px.World, px.Body]:
    free = px.Membrane.latex().but(drag=0.0, foundation=0.0)
    placed = {"at": tuple(AT), "rotate": (40, 0, 0), "spin": tuple(SPIN)}
    body = px.Body(px.load(name, points=points), model="particles", links="none", material=free, **placed)
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    world.advance(TIME)
    return world, body


def test_surfels_are_the_particles_and_go_with_them():
    _, body = flying()
    surface = body.surface
    assert np.abs(surface.positions - body.positions).max() < 1e-6
    assert np.abs(surface.colors - body.cloud.colors).max() < 1e-6
    turned = np.linalg.inv(np.eye(3) + TURNING).T @ body.shape.rotation @ [0, 1, 0]
    assert np.abs(surface.normals - turned / np.linalg.norm(turned)).max() < 1e-5


@pytest.mark.parametrize("name", ["cloth", "sphere"])
def test_probes_are_exact_in_an_affine_motion(name):
    """Between particles, too; the gradient along the surface is that of the motion, and the normal stays upright."""
    _, body = flying(name)
    normals = body.ring.normals
    rng = np.random.default_rng(4)
    along = np.cross(normals, rng.normal(size=normals.shape))
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    X = body.birth + 0.2 * body.unit * along
    probe = body.probe(X)
    middle = np.average(body.birth, axis=0, weights=body.masses)
    assert np.abs(probe.velocity() - np.cross(SPIN, X - middle)).max() < 1e-9
    assert np.abs(probe.displacement() - (X - middle) @ TURNING.T).max() < 1e-9
    assert np.abs(body.displacement_at(body.birth) - (body.positions - body.birth)).max() < 1e-9
    gradient = body.probe(body.birth).gradient()
    assert np.abs(np.einsum("nab,nb->na", gradient - TURNING, along)).max() < 1e-9
    strain = body.strain_at(body.birth)
    assert np.abs(np.einsum("nab,nb->na", strain, normals)).max() < 1e-9
    with pytest.raises(px.PhyxelError, match="thin surface"):
        probe.stress()


def test_a_sheet_is_drawn_from_below_and_a_closed_surface_from_outside():
    """The whole square is seen from either side; a ball without its upper half of discs would show its inside."""
    for (world, body), two_sided in ((flying(points=900), True), (flying("sphere", 900), False)):
        assert body.appearance.is_sheet == two_sided
        covers = [
            px.stage(world, width=160, height=160, direction=(0.02, way, 0.02), background=(1.0, 1.0, 1.0)).draw(world)
            for way in (1.0, -1.0)
        ]
        seen = [(np.abs(picture[..., :3].astype(float) - 255).max(axis=2) > 8).mean() for picture in covers]
        assert seen[0] > 0.15 and seen[1] == pytest.approx(seen[0], rel=0.1)


def test_what_is_inside_is_refused_in_words():
    world, _ = flying()
    with pytest.raises(px.PhyxelError, match=r"to be seen inside: .*thin surface"):
        px.stage(world, px.Inside("speed")).draw(world)


def test_what_lies_on_a_collider_hides_it():
    """A red skin of particles as thin as latex on a grey ball: the picture is that of the skin alone, though discs of
    both are flat and cut through each other; the outline may be a bit farther out."""
    pictures = []
    for bare in (True, False):
        body = px.Body(px.load("sphere", points=600), model="particles", links="none", look="matte")
        body.paint(lambda X: np.ones(len(X), bool), (0.8, 0.05, 0.05))
        world = px.World(gravity=(0, 0, 0))
        world.add(body)
        if not bare:
            world.add(px.Sphere(0.25 - 0.5 * body.material.thickness))
        world.advance(1 / 60)
        stage = px.stage(world, width=200, height=200, background=(1.0, 1.0, 1.0))
        pictures.append(stage.draw(world)[..., :3].astype(float))
    alone, dressed = pictures
    seen = alone.min(axis=2) < 200
    grey = seen & (np.abs(alone - dressed).max(axis=2) > 30)
    assert seen.sum() > 4000 and grey.sum() < 0.01 * seen.sum()


def test_wind_presses_on_whichever_side_it_blows_against():
    """½ ρ c A U² along the normal on a square of 1 m², from above and from below; on a ball half of that on πR², as on
    a solid one: its inside is not blown at."""
    U, rho = 5.0, 1.2
    for name, area, tolerance in (("cloth", 1.0, 1e-6), ("balloon", 0.5 * np.pi * 0.5**2, 0.02)):
        body = px.Body(px.load(name, points=642), model="particles", links="none")
        world = px.World(gravity=(0, 0, 0))
        world.add(body)
        still = np.zeros_like(body.birth)
        for way in (1.0, -1.0):
            wind = px.Wind(velocity=(0, way * U, 0), density=rho)
            force = body.masses @ wind.acceleration(body, body.positions, still, 0.0)
            assert force == pytest.approx([0, way * 0.5 * rho * area * U**2, 0], rel=tolerance, abs=1e-3 * area)
