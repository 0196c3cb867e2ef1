"""What nature says of bodies that are tied to each other. Boxes have sides of 0.2 m."""

import itertools

import numpy as np
import pytest

import phyxel as px

KINDS = ("rigid", "modal", "galerkin")
SIDE, MASS, G = 0.2, 8.0, 9.81


def box(model, at, young=1e6, damping=0.0, points=1000, **more):
    size = {} if model == "rigid" else {"nodes": 100 if model == "phyxel" else 64}
    stuff = px.Material(young=young, poisson=0.3, density=1000.0, damping=damping)
    return px.Body(
        px.load("box", points=points), model=model, material=stuff, size=SIDE, at=at, place="center", **size, **more
    )


def world_of(*things, gravity=(0.0, -G, 0.0)):
    world = px.World(gravity=gravity)
    for thing in things:
        world.add(thing)
    return world


def sums(world, *names):
    return [np.sum([np.asarray(body.diagnostics()[name]) for body in world.bodies], axis=0) for name in names]


def energy(world):
    return sum(sums(world, "kinetic", "elastic", "potential"))


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
    world = world_of(one, other, gravity=(0, 0, 0))
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
    world = world_of(one, other, gravity=(0, 0, 0))
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
    world = world_of(above, below, gravity=(0, 0, 0))
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
    world = world_of(one, two, gravity=(0, 0, 0))
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
