"""What a row of the page on accuracy is: one model in one test, with three numbers of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from phyxel.bench.registry import Result
from phyxel.errors import PhyxelError
from phyxel.mls.shape_functions import Basis
from phyxel.models.kind import ModelKind, public_kinds

Told = TypeVar("Told")
Counts = tuple[int, int, int]
Asked = tuple[float | None, float | None, float | None]
"""largest error [%] with each number of nodes, where one is asked for"""
NOTHING: Asked = (None, None, None)


class Finding(NamedTuple):
    """How far a body is off."""

    error: float
    """over what is right; above 0: too much"""
    nodes: int
    """that it has, which may be some less or more than were asked for"""


def furthest(errors: NDArray[np.float64]) -> float:
    """That which is furthest off."""
    return float(errors.flat[np.abs(errors).argmax()])


@dataclass(frozen=True)
class Way:
    """A model as bodies are made with it."""

    kind: ModelKind
    options: dict[str, Any] = field(default_factory=dict)
    """of `Body`"""

    @property
    def label(self) -> str:
        return ", ".join([self.kind.name, *self.options.values()])

    @property
    def shares_a_model(self) -> bool:
        """Whether it is phyxels, which one model moves for all bodies; others are fields, with a model for each."""
        return self.kind.make is None

    def either(self, phyxels: Told, fields: Told) -> Told:
        """The one or the other, by which of the two it is."""
        return phyxels if self.shares_a_model else fields


def ways(stiff: bool = False) -> Iterator[Way]:
    """All models of solids that bend, each scheme and each basis by itself, in the order of the table of models; with
    `stiff` those too that do not."""
    for kind in public_kinds():
        if not kind.has_inside or not (kind.across or stiff):
            continue
        if kind.schemes:
            yield from (Way(kind, {"scheme": scheme}) for scheme in kind.schemes)
        elif "basis" in kind.options and "modes" not in kind.options:  # modes are those of such a basis
            yield from (Way(kind, {"basis": basis}) for basis in get_args(Basis))
        else:
            yield Way(kind)


@dataclass(frozen=True)
class Row:
    """One model in one test."""

    test: str
    reference: str
    """what is right, and who says so"""
    model: str
    counts: Counts
    """nodes that are asked for"""
    measure: Callable[[int], Finding]
    asked: Asked = NOTHING

    @property
    def name(self) -> str:
        return f"{self.test}: {self.model}"

    def matches(self, words: str) -> bool:
        """Whether all of some words are in its name."""
        return all(word in self.name.lower() for word in words.lower().split())

    def findings(self) -> list[Finding | None]:
        """What is measured; None where a body is refused, or does not come to rest."""
        return [self._tried(count) for count in self.counts]

    def _tried(self, count: int) -> Finding | None:
        try:
            return self.measure(count)
        except PhyxelError:
            return None

    def misses(self, findings: list[Finding | None]) -> list[bool]:
        """Which of them are further off than is asked, or are nothing at all."""
        return [
            found is None or (asked is not None and not 100 * abs(found.error) <= asked)
            for found, asked in zip(findings, self.asked, strict=True)
        ]

    def result(self, findings: list[Finding | None]) -> Result:
        """The row among other benchmarks: its largest error where most is asked of it."""
        pairs = list(zip(findings, self.asked, strict=True))
        found, asked = pairs[-1]
        return Result(
            f"accuracy {self.name}",
            float("nan") if found is None else 100 * abs(found.error),
            "%",
            peer=asked,
            peer_name="asked",
            details={
                "errors [%]": [None if one is None else round(100 * one.error, 3) for one in findings],
                "nodes": [None if one is None else one.nodes for one in findings],
                "missed": self.misses(findings),
            },
        )
