"""What nature says of bodies that are tied to each other. Boxes have sides of 0.2 m."""

import itertools

import numpy as np
import pytest

import phyxel as px
from tests.worlds import energy, sums, weightless, world_of

KINDS = ("rigid", "modal", "galerkin")
SIDE, MASS, G = 0.2, 8.0, 9.81


def box(model, at, young=1e6, damping=0.0, points=1000, **more):
    size = {} if model == "rigid" else {"nodes": 100 if model == "phyxel" else 64}
    stuff = px.Material(young=young, poisson=0.3, density=1000.0, damping=damping)
    return px.Body(
        px.load("box", points=points), model=model, material=stuff, size=SIDE, at=at, place="center", **size, **more
    )


def apart(one, other):
    """How far places of two bodies that were the same are from each other [m], at most."""
    X = SIDE / 2 * np.array([[x, 1.0, z] for x in (-1, 0, 1) for z in (-1, 0, 1)])
    return np.linalg.norm(one.displacement_at(X) - other.displacement_at(X), axis=1).max()


@pytest.mark.parametrize("pair", list(itertools.combinations_with_replacement(KINDS, 2)), ids="-".join)
def test_momenta_are_kept_and_no_energy_comes(pair):
    """One of two glued boxes is given a spin: they turn as one, with the momenta of before to rounding of what they
    exchange (1e-12), and no more energy than before (1e-4). Between ties, a spacing of 5 cm apart, the jerk may bend
    soft faces by some tenths of a millimetre."""
    one, other = box(pair[0], (0, 0, 0), spin=(0, 3, 2), name="a"), box(pair[1], (0, SIDE, 0), name="b")
    world = weightless(one, other)
    world.add(px.Attach(one, other))
    momentum, spin = sums(world, "momentum", "angular_momentum")
    before, most = energy(world), 0.0
    for _ in range(10):
        world.advance(0.01)
        most = max(most, energy(world))
    after, turned = sums(world, "momentum", "angular_momentum")
    exchanged = np.linalg.norm(one.diagnostics()["momentum"])
    assert exchanged > 0.1
    assert np.abs(after - momentum).max() < 1e-12 * exchanged
    assert np.abs(turned - spin).max() < 1e-12 * exchanged
    assert most < (1 + 1e-4) * before
    assert apart(one, other) < 5e-4


def test_rigid_boxes_turn_as_one_body():
    """E = Σ L²/2I of the two as one, I = m s²/6 along their line, 2 (m s²/6 + m s²/4) across: after the jerk with which
    one takes the other along, steps of 10 ms keep it to 1e-4."""
    one, other = box("rigid", (0, 0, 0), spin=(0, 3, 2), name="a"), box("rigid", (0, SIDE, 0), name="b")
    world = weightless(one, other)
    world.add(px.Attach(one, other))
    world.advance(0.5)
    own = MASS * SIDE**2 / 6
    expected = 0.5 * own**2 * (3**2 / (2 * own) + 2**2 / (2 * (own + MASS * SIDE**2 / 4)))
    assert energy(world) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("pair", [("rigid", "rigid"), ("rigid", "modal"), ("modal", "galerkin")], ids="-".join)
def test_what_hangs_stays(pair):
    """A box hung on one that is held: for two seconds nothing drifts; asked: 0.1 mm."""
    above, below = box(pair[0], (0, SIDE, 0), damping=5e-3, name="above"), box(pair[1], (0, 0, 0), damping=5e-3)
    world = world_of(above, below)
    above.fix(px.Box((-1, 0.29, -1), (1, 1, 1)))
    world.add(px.Attach(below, above))
    most = 0.0
    for _ in range(8):
        world.advance(0.25)
        most = max(most, apart(below, above))
    assert most < 1e-4


@pytest.mark.parametrize("share", [0.93, 1.07])
@pytest.mark.parametrize("pair", [("rigid", "rigid"), ("rigid", "modal"), ("modal", "rigid")], ids="-".join)
def test_it_tears_at_its_strength(pair, share):
    """A force F that grows slowly on a box that hangs: F/s² is the pull. Of a face with some 700 points the area is
    known to 1 per cent and its middle to 1 mm, by which the pull at an edge is 6 mm/s = 3 per cent larger; what is soft
    swings by another as the force grows in steps."""
    above = box(pair[0], (0, SIDE, 0), damping=1e-2, points=4000, name="above")
    below = box(pair[1], (0, 0, 0), damping=1e-2, points=4000, name="below")
    world = weightless(above, below)
    above.fix(px.Box((-1, 0.29, -1), (1, 1, 1)))
    glue = px.Attach(above, below, strength=2e3)
    world.add(glue)
    for load in np.linspace(0, share * 2e3 * SIDE**2, 60):
        below.force = (0, -load, 0)
        world.advance(0.01)
    world.advance(0.05)
    assert (glue.torn is not None) == (share > 1)


def test_what_presses_does_not_tear():
    """Ten times the strength, from above."""
    below, above = box("rigid", (0, SIDE / 2, 0), name="below"), box("rigid", (0, 1.5 * SIDE, 0), name="above")
    world = world_of(px.Ground(), below, above)
    glue = px.Attach(above, below, strength=0.1 * MASS * G / SIDE**2)
    world.add(glue)
    world.advance(0.2)
    assert glue.holds.all()


@pytest.mark.parametrize("integrator", ["leapfrog", "implicit"])
@pytest.mark.parametrize("other", KINDS)
def test_phyxels_keep_momenta_too(other, integrator):
    """As above, to rounding of single precision (1e-6)."""
    one = box("phyxel", (0, 0, 0), young=1e5, spin=(0, 3, 2), integrator=integrator, name="a")
    two = box(other, (0, SIDE, 0), name="b")
    world = weightless(one, two)
    world.add(px.Attach(one, two))
    momentum, spin = sums(world, "momentum", "angular_momentum")
    before, most = energy(world), 0.0
    for _ in range(4):
        world.advance(0.015)
        most = max(most, energy(world))
    after, turned = sums(world, "momentum", "angular_momentum")
    exchanged = np.linalg.norm(one.diagnostics()["momentum"])
    assert exchanged > 0.1
    assert np.abs(after - momentum).max() < 1e-6 * exchanged
    assert np.abs(turned - spin).max() < 1e-6 * exchanged
    assert most < (1 + 1e-4) * before


@pytest.mark.parametrize("integrator", ["leapfrog", "implicit"])
def test_phyxels_hang_and_tear(integrator):
    """A phyxel box on a rigid one that is held: its weight m g over s² is the pull. Half of it is borne, with nothing
    drawn out but what the soft face bends between ties; glue that bears nine tenths tears."""
    above = box("rigid", (0, SIDE, 0), name="above")
    below = box("phyxel", (0, 0, 0), young=1e5, damping=1e-2, integrator=integrator, name="below")
    world = world_of(above, below, gravity=(0, -0.5 * G, 0))
    above.fix(px.Box((-1, 0.29, -1), (1, 1, 1)))
    glue = px.Attach(below, above, strength=0.9 * MASS * G / SIDE**2)
    world.add(glue)
    world.advance(0.3)
    assert glue.holds.all()
    assert apart(below, above) < 1e-3
    world.gravity = (0, -G, 0)
    world.advance(0.3)
    assert glue.torn is not None
    assert below.velocities[:, 1].mean() < -0.5


def test_glued_bars_swing_as_one():
    """Two modal bars of 1 m glued end to end, held at one end and let go: as a beam of L = 2 m, h = 0.25 m they sag by
    y = 3 ρ g L⁴/2Eh² in the mean and swing with f = 3.516/2πL² √(Eh²/12ρ). Shear makes that 3 % slower, 100 nodes 5 %
    stiffer or softer."""
    bars = [
        px.Body(px.load("bar", points=1500), model="modal", nodes=100, at=(x, 0, 0), place="center", name=f"bar {x}",
                material=px.Material(young=1e8, poisson=0.3, density=1000.0))
        for x in (0.5, 1.5)
    ]  # fmt: skip
    world = world_of(*bars)
    bars[0].fix(px.Box((-1, -1, -1), (0.001, 1, 1)))
    world.add(px.Attach(*bars))
    tip = []
    for _ in range(40):
        world.advance(0.01)
        tip.append(bars[1].displacement_at(np.array([[2.0, 0.0, 0.0]]))[0, 1])
    sag, period = 1.5 * 1000 * G * 2**4 / (1e8 * 0.25**2), 2 * np.pi * 2**2 / 3.516 / np.sqrt(1e8 * 0.25**2 / 12e3)
    lowest = int(np.argmin(tip[: round(period / 0.01)]))
    assert 0.01 * (lowest + 1) == pytest.approx(period / 2, abs=0.015)
    assert -min(tip) == pytest.approx(2 * sag, rel=0.08)


# Phyxel bodies and each other


FLOCKS = [("leapfrog", "leapfrog"), ("implicit", "implicit"), ("leapfrog", "implicit")]


@pytest.mark.parametrize("steps", FLOCKS, ids="-".join)
def test_glued_phyxels_keep_momenta(steps):
    """As above, of two phyxel bodies in one flock or in two: to rounding of single precision (1e-6)."""
    one = box("phyxel", (0, 0, 0), young=1e5, spin=(0, 3, 2), integrator=steps[0], name="a")
    two = box("phyxel", (0, SIDE, 0), young=1e5, integrator=steps[1], name="b")
    world = weightless(one, two)
    world.add(px.Attach(one, two))
    momentum, spin = sums(world, "momentum", "angular_momentum")
    before, most = energy(world), 0.0
    for _ in range(4):
        world.advance(0.02)
        most = max(most, energy(world))
    after, turned = sums(world, "momentum", "angular_momentum")
    exchanged = np.linalg.norm(one.diagnostics()["momentum"])
    assert exchanged > 0.1
    assert np.abs(after - momentum).max() < 1e-6 * exchanged
    assert np.abs(turned - spin).max() < 1e-6 * exchanged
    assert most < (1 + 1e-4) * before
    assert apart(one, two) < 2e-3


@pytest.mark.parametrize("steps", FLOCKS, ids="-".join)
def test_glue_between_phyxels_bears_and_tears(steps):
    """A phyxel box hangs on another that is held: glue bears 0.7 m g to 1 per cent, is drawn out by what soft faces
    bend between ties, and tears where it is to bear 1.8 m g and can 1.6."""
    above = box("phyxel", (0, SIDE, 0), young=3e5, damping=1e-2, integrator=steps[0], name="above")
    below = box("phyxel", (0, 0, 0), young=3e5, damping=1e-2, integrator=steps[1], name="below")
    world = world_of(above, below, gravity=(0, -0.7 * G, 0))
    above.fix(px.Box((-1, 0.29, -1), (1, 1, 1)))
    glue = px.Attach(below, above, strength=1.6 * MASS * G / SIDE**2)
    world.add(glue)
    world.advance(0.35)
    assert glue.holds.all()
    assert glue.force[1] == pytest.approx(0.7 * MASS * G, rel=0.01)
    assert apart(below, above) < 5e-4
    world.gravity = (0, -1.8 * G, 0)
    world.advance(0.2)
    assert glue.torn is not None


# Surfaces

WIDE, LONG = 0.1, 0.2
STRAP = px.Membrane(density=300, thickness=2e-3, young=5e6, bending=1e-4, damping=2e-2)


def strip(at, length=LONG, width=WIDE, along=9, across=5, material=STRAP, **more):
    """A strip of cloth in a plane z = constant, its length along y."""
    y, x = np.meshgrid(np.linspace(0, -length, along), np.linspace(-width / 2, width / 2, across), indexing="ij")
    number = np.arange(along * across).reshape(along, across)
    quads = np.stack([number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]], axis=-1).reshape(-1, 4)
    cloud = px.PointCloud(np.stack([x.ravel(), y.ravel(), 0 * x.ravel()], axis=1), quads=quads)
    return px.Body(cloud, model="particles", material=material, at=at, place="center", **more)


def weight(model, at, young=1e6, damping=2e-3, **more):
    """A box of 0.1 m and 1 kg."""
    size = {} if model == "rigid" else {"nodes": 100 if model == "phyxel" else 64}
    stuff = px.Material(young=young, poisson=0.3, density=1000.0, damping=damping)
    return px.Body(
        px.load("box", points=1500), model=model, material=stuff, size=WIDE, at=at, place="center", **size, **more
    )


TIED_TO = [
    ("rigid", {}, 1e-12),
    ("modal", {}, 1e-12),
    ("galerkin", {}, 1e-12),
    ("phyxel", {"integrator": "leapfrog"}, 1e-6),
    ("phyxel", {"integrator": "implicit"}, 1e-6),
]
NAMES = ["rigid", "modal", "galerkin", "leapfrog", "implicit"]


@pytest.mark.parametrize(("model", "options", "rounding"), TIED_TO, ids=NAMES)
def test_a_strap_bears_what_hangs_on_it(model, options, rounding):
    """A strap held at one end, a box sewn to the other: its pull is m g to 1 per cent once it hangs still, it is drawn
    out by m g L/E h w (5 per cent: the box keeps its last row from growing narrower), and stitches by less than 20 µm,
    a hundredth of that."""
    strap, box_ = strip((0, 0, 0), name="strap"), weight(model, (0, -0.15, 0), name="box", **options)
    world = world_of(strap, box_)
    strap.fix(lambda X: X[:, 1] > LONG / 2 - 1e-6)
    seam = px.Attach(strap, box_)
    world.add(seam)
    last = strap.positions[-5:]
    world.advance(0.5)
    assert seam.force[1] == pytest.approx(-G, rel=0.01)
    stretch = -strap.positions[-5:, 1].mean() - LONG / 2
    assert stretch == pytest.approx(G * LONG / (STRAP.young * STRAP.thickness * WIDE), rel=0.05)
    assert np.linalg.norm(strap.positions[-5:] - last - box_.displacement_at(last), axis=1).max() < 2e-5


@pytest.mark.parametrize(("model", "options", "rounding"), TIED_TO, ids=NAMES)
def test_what_is_sewn_on_keeps_momenta(model, options, rounding):
    """A strip that flies is sewn to a box that spins, without gravity: ΣP and ΣL stay to rounding of the impulses that
    they exchange, and no energy comes (1e-4)."""
    limp = STRAP.but(density=3000, young=5e5, damping=0.0)
    cloth = strip((0.02, 0, 0.01), material=limp, velocity=(0, 0, 4.0), name="cloth")
    box_ = weight(model, (0.02, -0.15, 0.01), young=1e5, damping=0.0, spin=(1, 3, 2), name="box", **options)
    _keeps_momenta(weightless(cloth, box_), px.Attach(cloth, box_), rounding)


@pytest.mark.parametrize("y, z", [(-0.1525, 0.01), (-0.12, 0.014)], ids=["edge", "face"])
def test_sewn_strips_keep_momenta(y, z):
    """As above, of two strips sewn edge to edge with a slit of 2.5 mm between, and face to face, 4 mm apart."""
    limp = STRAP.but(young=5e5, damping=0.0)
    one = strip((0.02, 0, 0.01), material=limp, velocity=(0, 0, 1.0), name="one")
    other = strip((0.02, y, z), 0.1, 0.12, 5, 6, limp, spin=(1, 3, 2), name="other")
    seam = px.Attach(other, one)
    _keeps_momenta(weightless(one, other), seam, 1e-12)
    assert seam.holds.all()


def _keeps_momenta(world, seam, rounding):
    world.add(seam)
    momentum, spin = sums(world, "momentum", "angular_momentum")
    first = np.asarray(world.bodies[0].diagnostics()["momentum"])
    before, most = energy(world), 0.0
    for _ in range(6):
        world.advance(0.01)
        most = max(most, energy(world))
    after, turned = sums(world, "momentum", "angular_momentum")
    exchanged = np.linalg.norm(np.asarray(world.bodies[0].diagnostics()["momentum"]) - first)
    assert exchanged > 1e-3
    assert np.abs(after - momentum).max() < rounding * exchanged
    assert np.abs(turned - spin).max() < rounding * exchanged
    assert most < (1 + 1e-4) * before


@pytest.mark.parametrize("share", [0.9, 1.07])
@pytest.mark.parametrize("model", ["rigid", pytest.param("phyxel", marks=pytest.mark.slow)])
def test_a_seam_tears_at_its_strength(model, share):
    """A force F that grows slowly on a box sewn to a strap: each particle of the strap's last row stands for its share
    of the area, w d/2 in all with rows d apart, and F over that is the pull. The ends of a row are pulled by up to 5
    per cent more than its middle, for the box keeps them from coming nearer to each other; what is soft swings by
    another."""
    strap, box_ = strip((0, 0, 0), name="strap"), weight(model, (0, -0.15, 0), name="box")
    world = weightless(strap, box_)
    strap.fix(lambda X: X[:, 1] > LONG / 2 - 1e-6)
    seam = px.Attach(strap, box_, strength=1e4)
    world.add(seam)
    area = WIDE * LONG / 8 / 2
    assert seam.area == pytest.approx(area)
    for load in np.linspace(0, share * 1e4 * area, 40):
        box_.force = (0, -load, 0)
        world.advance(0.0125)
    world.advance(0.05)
    assert (seam.torn is not None) == (share > 1)
    assert seam.holds.all() == (share < 1)


def test_sewn_strips_hang_on_each_other():
    """Two strips sewn edge to edge, the upper one held: the seam bears the weight of the lower one, to 1 per cent, and
    its edges stay together to 1 µm."""
    one, other = strip((0, 0, 0), name="one"), strip((0, -LONG, 0), name="other")
    world = world_of(one, other)
    one.fix(lambda X: X[:, 1] > LONG / 2 - 1e-6)
    seam = px.Attach(other, one)
    world.add(seam)
    world.advance(0.4)
    assert seam.force[1] == pytest.approx(G * other.masses.sum(), rel=0.01)
    assert np.linalg.norm(one.positions[-5:] - other.positions[:5], axis=1).max() < 1e-6


@pytest.mark.parametrize("pair", [("particles", "phyxel"), ("particles", "modal"), ("phyxel", "phyxel")], ids="-".join)
def test_a_checkpoint_keeps_what_is_tied(pair, tmp_path):
    """A world that goes on from a checkpoint has the same bits as one that was never stopped."""

    def world():
        first = strip((0, 0, 0), name="one") if pair[0] == "particles" else weight(pair[0], (0, -0.05, 0), name="one")
        other = weight(pair[1], (0, -0.15, 0), name="other", spin=(0, 1, 0))
        both = world_of(first, other)
        first.fix(lambda X: X[:, 1] > X[:, 1].max() - 1e-3)
        both.add(px.Attach(first, other, strength=1e6))
        return both

    whole = world()
    whole.advance(0.05)
    whole.save(tmp_path / "there")
    whole.advance(0.05)
    again = world()
    again.restore(tmp_path / "there")
    again.advance(0.05)
    for one, other in zip(whole.bodies, again.bodies, strict=True):
        assert np.array_equal(one.positions, other.positions)
        assert np.array_equal(one.velocities, other.velocities)
    assert np.array_equal(*(one.attachments.every[0].pulls for one in (whole, again)))
