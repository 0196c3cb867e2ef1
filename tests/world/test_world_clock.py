"""The clock of a world: any dt, frames, events, rest."""

from itertools import pairwise

import numpy as np
import pytest

import phyxel as px
from tests.world.boxes import DAMPED, SOFT, G, box
from tests.worlds import bits, left_end, world_of


def test_no_time_changes_nothing():
    body = box(velocity=(1, 0, 0))
    world = world_of(body)
    before = bits(world)
    world.advance(0)
    assert world.time == 0
    assert bits(world) == before


@pytest.mark.parametrize("dt", [-1e-9, np.nan, np.inf])
def test_time_does_not_run_backward(dt):
    world = world_of(box())
    with pytest.raises(px.PhyxelError, match="advance"):
        world.advance(dt)
    assert world.time == 0


@pytest.mark.parametrize("steps", [[1e-7] * 20, [0.5], [0.1, 1e-6, 0.3]])
def test_free_fall_is_exact_for_any_dt(steps):
    body = box(at=(0, 7, 0), velocity=(2, 1, 0))
    world = world_of(body)
    for dt in steps:
        world.advance(dt)
    t = sum(steps)
    expected = body.reference + np.array([2 * t, t - 0.5 * G * t * t, 0])
    assert world.time == pytest.approx(t, rel=1e-12)
    assert np.abs(body.positions - expected).max() < 1e-5 * max(t, 1e-6)
    assert np.abs(body.velocities - [2, 1 - G * t, 0]).max() < 1e-5


def test_one_great_advance_is_many_small_ones():
    ends = []
    for steps in (1, 25):
        body = box(material=DAMPED)
        world = world_of(body)
        body.fix(left_end)
        for _ in range(steps):
            world.advance(0.25 / steps)
        ends.append(body.positions - body.reference)
    assert np.abs(ends[0] - ends[1]).max() < 0.02 * np.abs(ends[0]).max()


def test_an_empty_world_has_a_clock_too():
    world = px.World()
    world.advance(0.5)
    assert world.time == 0.5


def test_play_gives_both_ends():
    world = world_of(box())
    frames = list(world.play(seconds=0.1, fps=50))
    assert [frame.index for frame in frames] == [0, 1, 2, 3, 4, 5]
    assert np.allclose([frame.time for frame in frames], np.arange(6) / 50, rtol=0, atol=1e-12)
    assert all(list(frame.bodies) == world.bodies for frame in frames)
    again = list(world.play(seconds=0.04, fps=50))
    assert np.allclose([frame.time for frame in again], [0.1, 0.12, 0.14], rtol=0, atol=1e-12)


@pytest.mark.parametrize("seconds, fps", [(0, 60), (-1, 60), (1, 0), (np.nan, 60), (1, np.inf)])
def test_play_needs_numbers_above_zero(seconds, fps):
    with pytest.raises(px.PhyxelError, match="play"):
        next(world_of(box()).play(seconds, fps))


# Events


def test_events_happen_at_their_time_and_in_order():
    body = box()
    world = world_of(body)
    seen = []

    def look(name):
        return lambda w: seen.append((name, w.time, float(body.positions[:, 1].mean() - body.reference[:, 1].mean())))

    for time, name in ((0.07, "c"), (0.0, "a"), (0.031, "b"), (0.07, "d")):
        world.at(time, look(name))
    world.advance(0.0)
    assert [name for name, *_ in seen] == ["a"]
    world.advance(1.0)
    assert [name for name, *_ in seen] == ["a", "b", "c", "d"]
    for (_, time, fallen), asked in zip(seen, (0.0, 0.031, 0.07, 0.07), strict=True):
        assert time == pytest.approx(asked, abs=1e-12)
        assert fallen == pytest.approx(-0.5 * G * asked**2, abs=1e-6)
    assert world.time == 1.0


def test_an_event_can_ask_for_another_within_the_same_advance():
    world = world_of(box())
    times = []
    world.at(0.01, lambda w: w.at(0.02, lambda again: times.append(again.time)))
    world.advance(0.05)
    assert times == [pytest.approx(0.02, abs=1e-12)]


@pytest.mark.parametrize("time", [0.05, np.nan, np.inf])
def test_events_lie_ahead(time):
    world = world_of(box())
    world.advance(0.1)
    with pytest.raises(px.PhyxelError, match="at"):
        world.at(time, lambda w: None)


# Rest


def test_energy_only_falls_under_damping():
    body = box(material=DAMPED)
    world = world_of(body)
    body.fix(left_end)
    energies = []
    for _ in world.play(seconds=0.5, fps=40):
        sums = body.diagnostics()
        energies.append(sums["kinetic"] + sums["elastic"] + sums["potential"])
    assert all(after <= before + 1e-3 * abs(before) + 0.01 for before, after in pairwise(energies))
    assert energies[-1] < energies[0] - 1


def test_settle_finds_the_rest_that_time_finds():
    ends = []
    for waits in (False, True):
        body = box(material=SOFT.but(damping=2e-2))
        world = world_of(body)
        body.fix(left_end)
        if waits:
            world.advance(2.5)
        else:
            px.settle(world)
            assert np.abs(body.velocities).max() < 1e-6
            assert world.time == 0
        ends.append(body.positions - body.reference)
    assert np.abs(ends[0] - ends[1]).max() < 0.01 * np.abs(ends[0]).max()
