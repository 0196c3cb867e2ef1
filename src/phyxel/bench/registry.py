"""Named benchmarks, each a function that yields results."""

from __future__ import annotations

import importlib
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from phyxel.errors import PhyxelError, did_you_mean
from phyxel.world import World

MODULES = {
    "m04": "m04", "bar": "bar", "steps": "steps", "contact": "steps", "melt": "steps", "meeting": "meeting",
    "mold": "mold", "surface": "m04", "picture": "pictures", "volume": "pictures", "million": "steps",
    "g05": "galerkin", "g04": "galerkin", "levels": "galerkin", "modes": "galerkin", "w96": "w96", "view": "view",
    "soak": "view", "solid": "solids", "growth": "solids", "demo": "scenes", "gallery": "scenes",
    "accuracy": "accuracy",
}  # fmt: skip
"""The file of this folder that each benchmark is in, in the order in which they run."""
SLOW = ("growth", "gallery", "soak", "accuracy")
"""Run only when asked for by name."""


@dataclass(frozen=True)
class BenchSetting:
    """What a benchmark may use."""

    models: Path | None = None
    """folder with scans"""
    peers: bool = False
    """run other tools beside"""
    device: str | None = None
    only: str = ""
    """words that rows must have in their names, of benchmarks with many"""
    page: Path | None = None
    """where such a benchmark writes its page"""
    resume: bool = False
    """whether what the page has already is not measured again"""

    def model(self, name: str) -> Path | None:
        """A scan, if its folder is known and has it."""
        path = self.models / name if self.models else None
        return path if path is not None and path.is_file() else None


@dataclass(frozen=True)
class Result:
    """One number. `ratio` says how many times better it is than the paper's or the peer's."""

    name: str
    value: float
    unit: str
    paper: float | None = None
    peer: float | None = None
    peer_name: str = ""
    smaller_is_better: bool = True
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        other = self.paper if self.paper is not None else self.peer
        if other is None or not math.isfinite(other) or self.value == 0:
            return None
        return other / self.value if self.smaller_is_better else self.value / other

    def row(self) -> dict[str, Any]:
        """The result as one JSON object."""
        row: dict[str, Any] = {"name": self.name, "value": _finite(self.value), "unit": self.unit}
        if self.paper is not None:
            row["paper"] = self.paper
        if self.peer is not None:
            row |= {"peer": _finite(self.peer), "peer_name": self.peer_name}
        ratio = self.ratio
        return row | {"ratio": None if ratio is None else round(ratio, 3)} | self.details

    def cells(self) -> list[str]:
        """The result as cells of a table."""
        other = f"paper {self.paper:g}" if self.paper is not None else ""
        if self.peer is not None:
            other = f"{self.peer_name} {self.peer:.3g}"
        ratio = self.ratio
        return [self.name, f"{self.value:.4g}", self.unit, other, "" if ratio is None else f"{ratio:.2f}×"]

    def line(self) -> str:
        """The result in one line, with its details."""
        details = ", ".join(f"{key} {value}" for key, value in self.details.items())
        return "  ".join(cell for cell in [*self.cells(), details] if cell)


def _finite(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def measure(names: Sequence[str], setting: BenchSetting) -> Iterator[Result]:
    """Results of the named benchmarks, one after another as they come; of all but the slow ones if none is named."""
    unknown = [name for name in names if name not in MODULES]
    if unknown:
        raise PhyxelError(f'"{unknown[0]}": no such benchmark{did_you_mean(unknown[0], MODULES)}')
    if setting.models is not None and not setting.models.is_dir():
        raise PhyxelError(f"{setting.models}: no such folder; give --models DIR or set PHYXEL_MODELS")
    for name in names or [name for name in MODULES if name not in SLOW]:
        module = importlib.import_module(f"phyxel.bench.{MODULES[name]}")
        function: Callable[[BenchSetting], Iterator[Result]] = getattr(module, name)
        yield from function(setting)


def median_seconds(work: Callable[[], object], times: int) -> float:
    """Wall time that some work takes [s]: the median of so many times, after one that compiles and is not counted."""
    work()
    return statistics.median(_seconds(work) for _ in range(times))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def advance_seconds(world: World, dt: float) -> float:
    """Wall time that a world takes to go on by a time [s]."""
    start = time.perf_counter()
    world.advance(dt)
    world.synchronize()
    return time.perf_counter() - start


def resident_bytes() -> int:
    """Memory this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1]) if Path("/proc/self/statm").exists() else 0
    return pages * os.sysconf("SC_PAGE_SIZE")
