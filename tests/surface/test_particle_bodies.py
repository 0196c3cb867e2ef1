"""What is seen and asked of a particle surface in a world."""

import numpy as np
import pytest

import phyxel as px

SPIN, TIME = np.array([0.3, 1.0, -0.4]), 0.5
"""[rad/s], [s]"""
AFFINE = TIME * np.array([[0, -SPIN[2], SPIN[1]], [SPIN[2], 0, -SPIN[0]], [-SPIN[1], SPIN[0], 0]])
"""∇u of particles that nothing holds together and that started to turn: each goes straight on, u = t ω × X."""
AT = np.array([1.0, 2.0, 3.0])


def flying(name: str = "cloth", points: int = 121) -> px.Body:
    free = px.Membrane.latex().but(drag=0.0, foundation=0.0)
    placed = {"at": tuple(AT), "rotate": (40, 0, 0), "spin": tuple(SPIN)}
    body = px.Body(px.load(name, points=points), model="particles", links="none", material=free, **placed)
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    world.advance(TIME)
    return body


def test_surfels_are_the_particles_and_go_with_them():
    body = flying()
    surface = body.surface
    assert np.abs(surface.positions - body.positions).max() < 1e-6
    assert np.abs(surface.colors - body.cloud.colors).max() < 1e-6
    turned = np.linalg.inv(np.eye(3) + AFFINE).T @ body.shape.rotation @ [0, 1, 0]
    assert np.abs(surface.normals - turned / np.linalg.norm(turned)).max() < 1e-5


@pytest.mark.parametrize("name", ["cloth", "sphere"])
def test_probes_are_exact_in_an_affine_motion(name):
    """Between particles, too; the gradient along the surface is that of the motion, and the normal stays upright."""
    body = flying(name)
    normals = body.ring.normals
    rng = np.random.default_rng(4)
    along = np.cross(normals, rng.normal(size=normals.shape))
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    X = body.birth + 0.2 * body.unit * along
    probe = body.probe(X)
    middle = np.average(body.birth, axis=0, weights=body.masses)
    assert np.abs(probe.velocity() - np.cross(SPIN, X - middle)).max() < 1e-9
    assert np.abs(probe.displacement() - (X - middle) @ AFFINE.T).max() < 1e-9
    assert np.abs(body.displacement_at(body.birth) - (body.positions - body.birth)).max() < 1e-9
    gradient = body.probe(body.birth).gradient()
    assert np.abs(np.einsum("nab,nb->na", gradient - AFFINE, along)).max() < 1e-9
    strain = body.strain_at(body.birth)
    assert np.abs(np.einsum("nab,nb->na", strain, normals)).max() < 1e-9
    with pytest.raises(px.PhyxelError, match="thin surface"):
        probe.stress()


def test_a_sheet_is_drawn_from_below_and_a_closed_surface_from_outside():
    """The whole square is seen from either side; a ball without its upper half of discs would show its inside."""
    for body, two_sided in ((flying(points=900), True), (flying("sphere", 900), False)):
        assert body.appearance.is_sheet == two_sided
        world = body._world
        covers = [
            px.stage(world, width=160, height=160, direction=(0.02, way, 0.02), background=(1.0, 1.0, 1.0)).draw(world)
            for way in (1.0, -1.0)
        ]
        seen = [(np.abs(picture[..., :3].astype(float) - 255).max(axis=2) > 8).mean() for picture in covers]
        assert seen[0] > 0.15 and seen[1] == pytest.approx(seen[0], rel=0.1)


def test_what_is_inside_is_refused_in_words():
    body = flying()
    with pytest.raises(px.PhyxelError, match=r"to be seen inside: .*thin surface"):
        px.stage(body._world, px.Inside("speed")).draw(body._world)


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
