"""Particle surfaces in a world: what they are made of, verbs, events, checkpoints, and what is refused."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import phyxel as px
from phyxel.body import Body
from phyxel.errors import PhyxelError, SceneError
from phyxel.material.ramp import Ramp

G = 9.81
FELT = px.Membrane(density=1000.0, thickness=1e-3, foundation=2000.0, drag=5.0)
"""m/A = 1 kg/m², K/A = 2000 N/m³: sags by g/2000 under its weight."""


def cloth(material: px.Membrane | None = None, points: int = 49, **options: object) -> Body:
    """A square of 1 m, with nothing between its points unless `links` says so."""
    known = {"links": "none", **options}
    return px.Body(px.load("cloth", points=points), model="particles", material=material or FELT, **known)


def in_world(*things: object, **options: object) -> px.World:
    world = px.World(**options)
    for thing in things:
        world.add(thing)
    return world


def ringing(t: float, m: float, c: float, K: float, F: float) -> float:
    """x(t) of m ẍ + c ẋ + K x = F from rest at 0, underdamped."""
    s, w = c / (2 * m), np.sqrt(K / m - (c / (2 * m)) ** 2)
    return F / K * (1 - np.exp(-s * t) * (np.cos(w * t) + s / w * np.sin(w * t)))


# What it is made of


@pytest.mark.exact(reason="asks for the very area of a square")
def test_a_cloth_weighs_what_its_data_sheet_says() -> None:
    body = cloth(px.Membrane.cotton(), links=None)
    assert body.masses.sum() == pytest.approx(0.15, rel=5e-3)  # 150 g/m²
    assert body.volumes.sum() == pytest.approx(3.5e-4, rel=1e-9)
    rim, middle = (np.linalg.norm(body.birth - place, axis=1).argmin() for place in ((0.5, 0, 0), (0, 0, 0)))
    assert body.masses[middle] == pytest.approx(2 * body.masses[rim], rel=1e-9)


@pytest.mark.parametrize("name", ["skin", "latex", "cotton", "silk", "felt", "tin", "paper"])
def test_presets_are_thin_and_found_by_name(name: str) -> None:
    found = px.Membrane.preset(name)
    assert found == getattr(px.Membrane, name)()
    plate = found.young * found.thickness**3 / (12 * (1 - found.poisson**2))
    assert found.thickness < 5e-3
    assert found.bending is None or found.bending < 1.1 * plate  # threads slide: cloth bends easier than a plate


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: px.Membrane(viscosity=3.0), "cannot melt"),
        (lambda: px.Membrane(strength=3e6), "cannot crack"),
        (lambda: px.Membrane(yield_strain=0.1), "plasticity and elastic_limit"),
        (lambda: px.Membrane(stiffness=np.eye(6).tolist()), "weft"),
        (lambda: px.Membrane(thickness=0.0), "thickness = 0: .* above 0 m"),
        (lambda: px.Membrane(plasticity=1.5), "plasticity = 1.5: .* 0 and 1"),
        (lambda: px.Membrane(foundation=-1.0), "0 N/m³ or more"),
        (lambda: px.Membrane(weft=0.0), "weft = 0: "),
        (lambda: px.Membrane(bending=float("nan")), "bending = nan: give a finite"),
        (lambda: px.Membrane.preset("velvet"), 'velvet": not known; did you mean "felt"'),
        (lambda: cloth(px.Material.rubber()), "cloth: .*px.Membrane.cotton"),
        (lambda: px.Body(px.load("sphere", points=200), material=FELT), 'Membrane is for model = "particles"'),
        (lambda: cloth(parts=[(px.Box((0, -1, -1), (1, 1, 1)), px.Material.clay())]), "px.Membrane"),
        (lambda: cloth(vary={"viscosity": px.Channel("x", 1, 2)}), "cannot melt"),
        (lambda: px.Body(px.load("sphere", points=200), vary={"thickness": px.Channel("x", 1, 2)}), "only a Membrane"),
        (lambda: cloth(links="threads"), "links = 'threads': give"),
        (lambda: cloth(links=0), "links = 0"),
        (lambda: cloth(warp=(0, 0, 0)), "warp"),
        (lambda: px.Body(px.load("sphere", points=200), links=8), 'needs model = "particles"'),
        (lambda: cloth(integrator="implicit"), "exact steps"),
        (lambda: cloth(basis="quadratic"), "basis"),
        (lambda: cloth(modes=12), "modes"),
        (lambda: cloth(refine=[(px.Box((0, 0, 0), (1, 1, 1)), 1)]), "refine = .* not for"),
        (lambda: cloth(surface="blended"), "surface = 'blended': not for"),
        (lambda: cloth().cut((0, 0, 0), (1, 0, 0)), "cut: .*neither cracks"),
        (lambda: cloth().solid, "no inside"),
    ],
)
def test_what_a_surface_cannot_be_is_said(make: Callable[[], object], said: str) -> None:
    with pytest.raises(PhyxelError, match=said):
        make()


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda body: body.melt(), "melt: "),
        (lambda body: body.stress, "stress: "),
        (lambda body: body.plastic_strain, "plastic strain: "),
        (lambda body: body.probe(body.reference).stress(), "stress: "),
        (lambda body: px.modes(body), "modes: "),
        (lambda body: body.change(viscosity=1.0), "cannot melt"),
        (lambda body: setattr(body, "material", px.Material.clay()), "px.Membrane"),
        (lambda body: body.solidify(), "nothing here has melted"),
    ],
)
def test_what_a_surface_cannot_do_is_said_and_nothing_changes(ask: Callable[[Body], object], said: str) -> None:
    body = cloth()
    in_world(body)
    with pytest.raises(PhyxelError, match=said):
        ask(body)
    assert body.material == FELT


# Moving


def test_without_links_ten_seconds_are_one_exact_step() -> None:
    thin, thick = FELT, FELT.but(thickness=2e-3)
    body = cloth(parts=[(px.Box((0.01, -1, -1), (1, 1, 1)), thick)])
    world = in_world(body)
    right = body.birth[:, 0] > 0.01
    for t in (0.013, 10.0):
        world.advance(t - world.time)
        m = np.where(right, 2.0, 1.0)
        expected = np.array([ringing(t, mass, 5 * mass, 2000.0, -mass * G) for mass in m])
        np.testing.assert_allclose((body.positions - body.birth)[:, 1], expected, rtol=0, atol=1e-12)
    assert world.steps == 2
    assert world.integrator == "exact"
    assert thin.thickness != thick.thickness


def test_numbers_vary_over_a_surface_and_over_the_run() -> None:
    """At rest K u = m (g + F/M), with what each particle has, before and after a change."""
    body = cloth(
        FELT.but(drag=60.0),
        vary={"foundation": px.Channel("x", 1000.0, 3000.0), "thickness": lambda X: 1e-3 + 1e-3 * X[:, 2] ** 2},
    )
    world = in_world(body)
    X = body.birth
    foundation, weight = (
        1000.0 + 2000.0 * (X[:, 0] - X[:, 0].min()) / np.ptp(X[:, 0]),
        1000.0 * (1e-3 + 1e-3 * X[:, 2] ** 2),
    )
    world.advance(10.0)
    np.testing.assert_allclose((body.positions - X)[:, 1], -weight * G / foundation, rtol=1e-9)
    body.change(foundation=body.material.foundation * 4, density=500.0, over=0.5)
    ramp = body.substance.ramp
    assert isinstance(ramp, Ramp)
    middle = ramp.at(world.time + 0.25)
    assert isinstance(middle, px.Membrane)
    assert middle.foundation == pytest.approx(2 * ramp.start.foundation)  # by a factor
    assert middle.density == pytest.approx(750.0)  # by a step
    world.advance(10.0)
    np.testing.assert_allclose((body.positions - X)[:, 1], -0.5 * weight * G / (4 * foundation), rtol=1e-9)
    np.testing.assert_allclose(body.masses, 0.5 * weight * body.volumes / body.mixture.number("thickness"), rtol=1e-9)
    body.force = (0.0, 0.0, 3.0)
    world.advance(10.0)
    pushed = 3.0 * body.masses / body.masses.sum() / (4 * foundation * body.unit**2 * body.sheet.areas)
    np.testing.assert_allclose(body.positions[:, 2] - X[:, 2], pushed, rtol=1e-8)


def test_bodies_go_as_if_they_were_alone() -> None:
    def bodies() -> list[Body]:
        linked = cloth(px.Membrane.silk(), links=None, name="linked", at=(0, 0.5, 0))
        linked.fix(lambda X: X[:, 0] < -0.49)
        return [
            linked,
            cloth(px.Membrane.felt(), links=8, name="free", at=(2, 0.3, 0)),
            cloth(name="loose", at=(-2, 0, 0)),
        ]

    together, apart = bodies(), bodies()
    in_world(*together, px.Ground()).advance(0.3)
    for one, other in zip(together, apart, strict=True):
        in_world(other, px.Ground()).advance(0.3)
        assert np.array_equal(one.positions, other.positions)
        assert np.array_equal(one.velocities, other.velocities)
    assert together[1].positions[:, 1].min() >= 0.5 * 3e-3 * (1 - 1e-9)  # half its thickness above the ground


def test_holds_are_where_they_should_be_and_let_go() -> None:
    body = cloth(px.Membrane.cotton(), links=None, points=100)
    world = in_world(body, gravity=(0, 0, 0))
    left, right = (np.flatnonzero(side) for side in (body.birth[:, 0] < -0.49, body.birth[:, 0] > 0.49))
    body.fix(left)
    hand = body.drag(right, lambda t: (0.0, 0.2 * t, 0.0), lambda t: (90.0 * t, 0.0, 0.0))
    world.advance(0.5)
    np.testing.assert_allclose(body.positions[left], body.birth[left], atol=1e-14)
    turned = body.birth[right].copy()
    turned[:, 1:] = turned[:, 1:] @ np.array([[1, 1], [-1, 1]]) / np.sqrt(2)
    np.testing.assert_allclose(body.positions[right], turned + np.array((0, 0.1, 0)), atol=1e-12)
    over = body.drag([right[0]], (0.0, 0.0, 0.05))  # the later hold has it
    place = body.positions[right[0]].copy()
    world.advance(0.1)
    np.testing.assert_allclose(body.positions[right[0]], place + np.array((0, 0, 0.05)), atol=1e-12)
    body.release(over)
    body.release(hand)
    speed = np.linalg.norm(body.velocities[right], axis=1)
    assert speed[1:].min() > 0.1  # it keeps the velocity it was moved with
    bone = px.Skeleton([px.Bone("arm", (0.5, 0.0, 0.0), path=[(1.6, (0, 0, 90))])])
    taken, start = body.positions[right], world.time
    body.attach(right, bone, "arm")
    world.advance(0.5)
    (R, t), (onto, there) = bone.pose("arm", start), bone.pose("arm", world.time)
    np.testing.assert_allclose(body.positions[right], (taken - t) @ R @ onto.T + there, atol=1e-12)


def test_it_is_picked_painted_and_carried() -> None:
    body = cloth(px.Membrane.cotton(), links=None)
    body.paint(px.Box((0.4, -1, -1), (1, 1, 1)), (1, 0, 0))
    world = in_world(body, px.Ground(height=-5))
    assert body.pick((0.5, 0.0, 0.5), radius=1e-3).tolist() == [int(np.argmax(body.birth @ (1, 0, 1)))]
    hold = body.fix(px.Spot((0.5, 0.0, 0.5)))
    assert 1 < len(hold.nodes) < 6
    world.advance(0.2)
    np.testing.assert_allclose(body.surface.positions, body.positions, atol=1e-6)
    assert body.surface.colors[body.birth[:, 0] > 0.41].min(axis=0) == pytest.approx((1, 0, 0))
    np.testing.assert_allclose(body.displacement_at(body.birth), body.positions - body.birth, atol=1e-12)


def test_at_rest_it_stays() -> None:
    """A hammock over a ball: settled, it hangs from its ends and lies on the ball, and nothing moves any more."""
    body = cloth(px.Membrane.felt().but(young=2e4), links=None)
    body.fix(lambda X: np.abs(X[:, 2]) > 0.49)
    ball = np.array((0.0, -0.3, 0.0))
    world = in_world(body, px.Sphere(radius=0.2, at=tuple(ball)))
    px.settle(world)
    rest = body.positions.copy()
    assert rest[:, 1].min() < -0.11  # beside the ball it sags further
    away = np.linalg.norm(rest - ball, axis=1).min()
    assert away == pytest.approx(0.2 + 1.5e-3, abs=1e-9)  # half its thickness off
    assert body.diagnostics()["kinetic"] == 0
    world.advance(0.2)
    assert np.abs(body.positions - rest).max() < 1e-4 * body.unit


@pytest.mark.parametrize("links", [None, "none"])
def test_a_blow_leaves_a_dent_and_no_energy_comes_of_it(links: str | None) -> None:
    """Struck and let go, a shell of tin never gains energy, and keeps a share of how far it went, or
    nothing if it is elastic; linked to what is around it, it keeps less than each point by itself would."""
    dents = {}
    for plasticity in (0.0, 0.8):
        tin = px.Membrane.tin().but(young=1e8, plasticity=plasticity)
        body = px.Body(px.load("scallop", points=150), model="particles", material=tin, links=links)
        blow = px.Push((0.0, -2000.0, 0.0), px.Ball((0.0, 0.1, 0.3), 0.1), during=(0.0, 0.04))
        world = in_world(body, blow, gravity=(0, 0, 0))
        world.advance(0.04)
        deepest, energies = np.linalg.norm(body.positions - body.birth, axis=1).max(), []
        for _ in range(30):
            world.advance(1 / 60)
            known = body.diagnostics()
            energies.append(known["kinetic"] + known["elastic"])
        # Links stiffer than a step can resolve give a little; without them nothing does.
        assert np.diff(energies).max() <= (1e-12 if links else 1e-4) * energies[0]
        dents[plasticity] = np.linalg.norm(body.positions - body.birth, axis=1).max() / deepest
    assert dents[0.0] < 1e-3
    assert 0.3 < dents[0.8] < 1.0


def test_wind_blows_on_both_sides_of_an_open_sheet() -> None:
    """½ρ c A w² on a flat square across the wind, from either side."""
    for way in (3.0, -3.0):
        body = cloth(FELT.but(foundation=0.0, drag=0.0))
        world = in_world(body, px.Wind((0.0, way, 0.0)), gravity=(0, 0, 0))
        world.advance(1e-4)
        force = body.diagnostics()["momentum"][1] / 1e-4
        assert force == pytest.approx(0.5 * 1.2 * 9.0 * np.sign(way), rel=1e-3)


# Scenes and checkpoints

SCENE = """
seconds = 1
[[body]]
shape = "cloth"
points = 64
at = [0.0, 0.6, 0.0]
model = "particles"
links = "weave"
warp = [0, 0, 1]
material = { preset = "cotton", bending = 2.0e-5 }
vary = { density = { channel = "x", low = 300.0, high = 600.0 } }
hold = [{ upper = [-0.49, inf, inf], name = "pole" }]
[[collider]]
kind = "sphere"
radius = 0.3
[[event]]
at = 0.1
material = { young = 1.0e7, thickness = 5.0e-4 }
over = 0.15
[[event]]
at = 0.2
release = "pole"
[[event]]
at = 0.3
hold = { near = [0.5, 0.6, 0.5], to = [0.0, 0.1, 0.0], over = 0.1 }
"""


def test_a_run_goes_on_from_a_checkpoint_with_the_same_bits(tmp_path: Path) -> None:
    world = px.Scene.parse(SCENE).world()
    for step in range(24):
        world.advance(1 / 60)
        if step == 11:
            world.save(tmp_path / "half.npz")
    body = world.bodies[0]
    assert isinstance(body.material, px.Membrane)
    assert body.material.thickness == 5e-4
    assert body.material.bending == 2e-5
    assert np.linalg.norm(body.positions, axis=1).min() >= 0.3 * (1 - 1e-9)
    resumed = px.Scene.parse(SCENE).world()
    resumed.restore(tmp_path / "half.npz")
    for _ in range(12):
        resumed.advance(1 / 60)
    assert np.array_equal(resumed.bodies[0].positions, body.positions)
    assert np.array_equal(resumed.bodies[0].velocities, body.velocities)
    with pytest.raises(PhyxelError, match="another scene"):
        px.Scene.parse(SCENE.replace('"weave"', '"edges"')).world().restore(tmp_path / "half.npz")


def test_a_checkpoint_in_the_midst_of_everything_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    """A dented, filled, linked, wrapped balloon that is held, pushed and struck while its material changes."""

    def made() -> px.World:
        film = px.Membrane.latex().but(foundation=1e3, plasticity=0.5, elastic_limit=0.01, damping=1e-3)
        body = px.Body(px.load("balloon", points=150), model="particles", material=film)
        ball = px.Sphere(0.2, at=(0, 0, 0.9), path=lambda t: (0.0, 0.0, 0.9 - 2 * t))
        core = px.Sphere(0.2)
        world = in_world(body, ball, core, px.Wrap(core, 50.0), px.Filling(500.0, 0.8), px.Push((5.0, 0, 0)))
        body.drag(px.Ball((0, 0.5, 0), 0.1), [(0.2, (0.1, 0.1, 0))])
        world.at(0.07, lambda world: world.bodies[0].change(plasticity=0.8, young=3e6, over=0.1))
        return world

    straight, resumed = made(), made()
    for step in range(10):
        straight.advance(0.02)
        if step == 5:
            straight.save(tmp_path / "midst.npz")
    resumed.restore(tmp_path / "midst.npz")
    for _ in range(4):
        resumed.advance(0.02)
    one, other = straight.bodies[0], resumed.bodies[0]
    assert np.array_equal(one.positions, other.positions)
    assert np.array_equal(one.velocities, other.velocities)
    assert np.linalg.norm(one.positions - (0, 0, 0.5), axis=1).min() >= 0.2


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('preset = "cotton"', 'preset = "coton"', 'did you mean "cotton"'),
        ('preset = "cotton", bending = 2.0e-5', 'preset = "rubber"', "px.Membrane"),
        ('links = "weave"', 'links = "wave"', r"body\[0\].links"),
        ("young = 1.0e7, thickness", "viscosity = 3.0, thickness", r"event\[0\]: material.viscosity"),
        ('model = "particles"', 'model = "phyxel"', "particle"),
    ],
)
def test_scenes_say_what_is_wrong(right: str, wrong: str, said: str) -> None:
    assert SCENE.count(right) == 1
    with pytest.raises(SceneError, match=said):
        px.Scene.parse(SCENE.replace(right, wrong)).world()
