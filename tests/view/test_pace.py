"""The world keeps to the wall clock, and slows down evenly where it cannot."""

import pytest

from phyxel.view.pace import LONGEST_DEBT, PERIOD, Pace


class Wall:
    """A clock that goes only when it is told to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def lived(cost, updates=300, rate=240, speed=1.0, other=0.0):
    """Pace, updates a second and world time over wall time, with ticks and the rest of an update that cost so much."""
    wall, world = Wall(), 0.0
    pace = Pace(wall)
    start = wall.now
    for _ in range(updates):
        for _ in range(pace.ticks(rate, speed)):
            wall.now += cost
            world += 1 / rate
            pace.lived(1 / rate)
            if not pace.ticked():
                break
        wall.now += other
        wall.now += pace.pause()
    return pace.pace, pace.updates, world / (wall.now - start)


@pytest.mark.parametrize("speed", [1.0, 0.25, 0.1])
def test_a_quick_machine_keeps_up_at_every_speed(speed):
    pace, updates, ratio = lived(cost=1e-4, speed=speed, rate=max(240, round(60 / speed)))
    assert pace == pytest.approx(1.0, abs=0.02)
    assert updates == pytest.approx(60, rel=0.02)
    assert ratio == pytest.approx(speed, rel=0.01)


def test_what_is_shown_may_take_its_time_as_long_as_the_world_keeps_up():
    pace, updates, ratio = lived(cost=1e-3, other=0.025)  # 4 ticks of 1 ms, then 25 ms: more than a period
    assert ratio == pytest.approx(1.0, rel=0.02) and pace == pytest.approx(1.0, abs=0.03)
    assert updates == pytest.approx(1 / (0.025 + 1e-3 * 240 * 0.025 / (1 - 0.24)), rel=0.05)


def test_a_slow_machine_slows_the_world_not_the_updates():
    pace, updates, ratio = lived(cost=0.01)  # 240 ticks would take 2.4 s a second
    assert ratio == pytest.approx(1 / 2.4, rel=0.02)  # busy all the time
    assert pace == pytest.approx(ratio, rel=0.05)
    assert updates == pytest.approx(60, rel=0.02)  # one tick or two, as they fit


@pytest.mark.parametrize(("cost", "other"), [(0.01, 0.003), (0.004, 0.006), (0.0125, 0.004), (0.001, 0.008)])
def test_updates_come_in_time_if_a_tick_and_the_rest_fit(cost, other):
    pace, updates, ratio = lived(cost, other=other, rate=600)
    assert updates == pytest.approx(60, rel=0.02)
    # In a second 60 updates of which each takes the rest; all the other time is for ticks.
    assert ratio == pytest.approx(min((1 - 60 * other) / cost / 600, 1.0), rel=0.03)
    assert pace == pytest.approx(ratio, rel=0.05)


def test_where_a_tick_takes_longer_than_a_period_every_update_has_one():
    _, updates, ratio = lived(cost=0.02, other=0.003)
    assert updates == pytest.approx(1 / 0.023, rel=0.02) and ratio == pytest.approx(updates / 240, rel=0.02)


def test_a_hiccup_is_caught_up_with_a_long_stop_is_not():
    wall = Wall()
    pace = Pace(wall)
    assert pace.ticks(60, 1.0) == 1
    pace.lived(1 / 60)
    wall.now += 2 * PERIOD
    assert pace.ticks(60, 1.0) == 2
    pace.lived(2 / 60)
    wall.now += 100.0
    assert pace.ticks(60, 1.0) <= LONGEST_DEBT + 1
    pace.rest()
    wall.now += 100.0
    assert pace.ticks(60, 1.0) == 1
