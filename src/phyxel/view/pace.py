"""How fast the world goes by the wall clock: in step with it if the machine can, else slower, never in jumps."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

from phyxel.world import World

PERIOD = 1 / 60
"""Wall time of an update [s]."""
LONGEST_DEBT = 3.0
"""Updates' worth of time that may be caught up with after a hiccup; time missed beyond that is not lived."""
WINDOW = 1.0
"""Wall time over which pace and updates are counted [s]."""
FINEST = 10
"""Ticks in a sixtieth of a second at most, at full speed."""
FOR_TICKS = 0.5
"""Share of the period that ticks may take even where surface and encoding leave less of it: there are fewer updates
then, but the world does not stand still between them."""
OVERSLEPT = 0.1 * PERIOD
"""By which the machine wakes up too late at most [s]; more is a machine that cannot keep up."""
SMOOTHING = 0.1
"""Share of the newest in what ticks and the rest of an update are taken to last."""


class Pace:
    """Says how many ticks are due and when the next update is; `clock` is wall time [s]."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self._owed = 0.0
        """world time that should have passed and has not [s]"""
        self._last: float | None = None
        """when it was last asked"""
        self._began = self._due = clock()
        """when the update that goes on did, and when it should be done"""
        self._ticked = self._began
        """when the last tick was done"""
        self._tick = self._rest = 0.0
        """what a tick, and all that comes after the ticks of an update, took of late [s]"""
        self._step = PERIOD
        """world time of a tick [s]"""
        self._history: deque[tuple[float, float, float]] = deque()
        """of each update of late: its wall time, world time lived and world time asked for [s]"""

    def rest(self) -> None:
        """The world stands still: no time is owed when it goes on."""
        self._last, self._owed = None, 0.0
        self._history.clear()

    def ticks(self, rate: float, speed: float) -> int:
        """Begin an update: ticks of 1/rate [s] that are due at a `speed` in world seconds per second."""
        self._began = self._ticked = now = self.clock()
        # What one update leaves of its time the next may use: so many ticks as fit into a whole number of periods. What
        # a sleep was too long is made up for.
        self._due = max(self._due, now - OVERSLEPT) + PERIOD
        self._step = 1 / rate
        since = PERIOD if self._last is None else now - self._last
        self._last = now
        self._owed = min(self._owed + speed * since, LONGEST_DEBT * speed * PERIOD + 1 / rate)
        self._history.append((now, 0.0, speed * since))
        while self._history[0][0] < now - WINDOW:
            self._history.popleft()
        return int(self._owed * rate + 1e-6)

    def ticked(self) -> bool:
        """A tick is done; whether there is time for another in this update."""
        now = self.clock()
        self._tick += SMOOTHING * (now - self._ticked - self._tick)
        self._ticked = now
        return now + self._tick <= max(self._due - self._rest, self._began + FOR_TICKS * PERIOD)

    def lived(self, seconds: float) -> None:
        """So much world time has passed in this update."""
        self._owed = max(self._owed - seconds, 0.0)
        wall, before, asked = self._history[-1]
        self._history[-1] = wall, before + seconds, asked

    def pause(self) -> float:
        """An update is done; wall time until the next is due [s]: none where the world is behind."""
        now = self.clock()
        self._rest += SMOOTHING * (now - self._ticked - self._rest)
        return 0.0 if self._owed > (1 - 1e-6) * self._step else max(self._due - now, 0.0)

    @property
    def pace(self) -> float:
        """World time lived over the time asked for, of late: 1 if the machine keeps up."""
        asked = sum(entry[2] for entry in self._history)
        return min(sum(entry[1] for entry in self._history) / asked, 1.0) if asked > 0 else 1.0

    @property
    def updates(self) -> float:
        """Updates a second of late."""
        if len(self._history) < 2:
            return 0.0
        return (len(self._history) - 1) / max(self._history[-1][0] - self._history[0][0], 1e-9)


def rate_for(world: World, speed: float) -> int:
    """Ticks in a second of world time: sixty; more where a tick would have too many substeps, and in slow motion, so
    that every update has one. Always a multiple of sixty: runs at sixty frames a second take the same steps."""
    finer = math.ceil(1 / speed - 1e-9)
    for mover in world.movers:
        finer = max(finer, min(math.ceil(1 / 60 / mover.longest_tick()), FINEST))
    return 60 * finer
