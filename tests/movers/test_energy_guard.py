"""Blow-ups end a run with a word; work from outside does not."""

import numpy as np
import pytest

import phyxel as px
from phyxel.errors import BlowUpError
from phyxel.movers.energy_guard import STEPS_BETWEEN_CHECKS, EnergyGuard
from phyxel.movers.phyxel_bodies import phyxels_of
from tests.world.boxes import DAMPED, NOWHERE, box
from tests.worlds import left_end, weightless, world_of


def unstable(world: px.World, factor: float = 50.0) -> None:
    """From now on the world steps far beyond what is stable."""
    stable = phyxels_of(world).model.stable_step
    phyxels_of(world).model.stable_step = lambda: factor * stable()


def test_a_blow_up_names_the_body_and_the_time():
    calm, wild = box(name="calm"), box(name="wild", at=(2, 0, 0))
    world = world_of(calm, wild)
    handle = wild.drag(left_end, (0.05, 0, 0))
    world.advance(0.02)
    wild.release(handle)
    unstable(world)
    with pytest.raises(BlowUpError, match=r"wild.*t = 0\.\d") as caught:
        for _ in range(100):
            world.advance(0.05)
    assert "calm" not in str(caught.value)


@pytest.mark.parametrize("dt", [1e-4, 0.5], ids=["short", "long"])
def test_one_velocity_that_is_no_number_is_a_blow_up(dt):
    first, second = box(), box(name="sick", at=(2, 0, 0))
    world = world_of(first, second)
    world.advance(0.01)
    low, _ = phyxels_of(world).model.ranges[1]
    v = phyxels_of(world).model.v.numpy()
    v[low + 5] = np.nan
    phyxels_of(world).model.v.assign(v)
    with pytest.raises(BlowUpError, match="sick"):
        world.advance(dt)


def test_the_fastest_node_is_no_number_if_any_is_none():
    world = world_of(box())
    v = phyxels_of(world).model.v.numpy()
    v[5] = np.nan
    phyxels_of(world).model.v.assign(v)
    assert np.isnan(phyxels_of(world).model.fastest())


def test_energy_from_nowhere_is_a_blow_up():
    body = box(name="eve", velocity=(1, 0, 0))
    world = weightless(body)
    world.advance(2.0)
    phyxels_of(world).model.v.assign(10 * phyxels_of(world).model.v.numpy())
    with pytest.raises(BlowUpError, match="eve"):
        for _ in range(50):
            world.advance(0.05)


@pytest.mark.parametrize("integrator", ["leapfrog", "implicit"])
def test_what_is_flung_beside_a_collider_ends_the_run(integrator):
    """At 1e7 m/s steps of half a spacing would be 6 ns: a run that goes on never ends."""
    body = box(name="wild", velocity=(1e7, 0, 0), integrator=integrator)
    world = world_of(body, px.Sphere(0.2, at=(0, 5, 0)))
    with pytest.raises(BlowUpError, match="wild"):
        world.advance(0.01)


def test_work_from_outside_is_no_blow_up():
    """Drags, forces, harder materials and rest in empty space add or keep energy rightly."""
    body = box(material=DAMPED)
    world = weightless(body)
    handle = body.drag(left_end, lambda t: (t, 0, 0))
    for _ in range(20):
        world.advance(0.02)
    body.material = DAMPED.but(young=1e6)
    world.advance(0.2)
    body.release(handle)
    body.force = (500, 0, 0)
    world.advance(0.5)
    body.force = NOWHERE
    world.advance(0.5)
    assert body.diagnostics()["momentum"][0] > 0


def gained_at_each_look(*readings: tuple[float, float]) -> list[float | None]:
    """What a body of 1 kg has gained from nowhere, with such kinetic and potential energies [J]."""
    body = box()
    world, guard = world_of(body), EnergyGuard([body])
    found = []
    for kinetic, potential in readings:
        guard.steps = STEPS_BETWEEN_CHECKS
        reading = {"kinetic": kinetic, "elastic": 0.0, "potential": potential, "mass": 1.0}
        gained = guard.gained(lambda: [[0]], lambda _bodies, now=reading: [now], world)
        found.append(None if gained is None else gained[1])
    return found


def test_a_pendulum_that_turns_is_no_blow_up():
    """It has swung with 300 J, and is looked at where it all but stands: what a stiff one is off by then is more than
    half of what moves."""
    assert gained_at_each_look((300.0, -300.0), (0.1, -0.04)) == [None, None]


def test_more_than_it_ever_had_is_a_blow_up():
    assert gained_at_each_look((1.0, 0.0), (30.0, 0.0)) == [None, 29.0]
    assert gained_at_each_look((0.0, 0.0), (100.0, 0.0)) == [None, 100.0]
