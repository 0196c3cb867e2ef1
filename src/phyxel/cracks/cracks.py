"""All cracks of one body."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phyxel.cracks.crack import Crack
from phyxel.cracks.grid import Floats, LevelGrid, vectors


class Cracks:
    """The cracks of a body, on one grid."""

    def __init__(self, grid: LevelGrid, cracks: list[Crack] | None = None) -> None:
        self.grid = grid
        self._cracks = list(cracks or [])
        self.revision = 0
        """how often they have changed"""

    def __len__(self) -> int:
        return len(self._cracks)

    def __iter__(self) -> Iterator[Crack]:
        return iter(self._cracks)

    def __getitem__(self, number: int) -> Crack:
        return self._cracks[number]

    def add(self, crack: Crack) -> None:
        """One more."""
        self._cracks.append(crack)
        self.revision += 1

    def run(self, number: int, directions: ArrayLike, speeds: ArrayLike, dt: float) -> None:
        """Let one of them run: see `Crack.run`."""
        self._cracks[number].run(directions, speeds, dt)
        self.revision += 1

    def sees(
        self,
        one: NDArray[np.floating],
        other: NDArray[np.floating],
        within: tuple[Floats, Floats] | None = None,
    ) -> NDArray[np.bool_]:
        """Whether the straight ways between places (n, 3) and (n, 3) cross no crack, (n,); or none in a box.

        A place on a crack belongs to the side where ψ1 > 0."""
        one, other = vectors(one), vectors(other)
        seen = np.ones(len(one), bool)
        for crack in self._cracks:
            crack.sight.look(one, other, seen, within)
        return seen

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps, as arrays by name: `0_psi1`, `0_psi2`, `0_front_points`, ... of each crack."""
        parts = {f"{i}_{name}": value for i, crack in enumerate(self) for name, value in crack.state().items()}
        return {"revision": np.array(self.revision), "count": np.array(len(self)), **parts}

    @staticmethod
    def restored(grid: LevelGrid, state: Mapping[str, Any]) -> Cracks:
        """From `state()`."""
        groups: list[dict[str, Any]] = [{} for _ in range(int(state["count"]))]
        for key, value in state.items():
            number, _, name = key.partition("_")
            if number.isdigit():
                groups[int(number)][name] = value
        cracks = Cracks(grid, [Crack.restored(grid, group) for group in groups])
        cracks.revision = int(state["revision"])
        return cracks
