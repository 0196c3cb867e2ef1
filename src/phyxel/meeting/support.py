"""How bodies that lie on each other, and on colliders, answer what others ask of them (physics 15.8, 15.10)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phyxel.meeting.answer_blocks import WAYS
from phyxel.meeting.coulomb import AnswerBlocks, CoulombProblem

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Answers:
    """How bodies that touch answer: in no more ways than their contacts ask for."""

    G: AnswerBlocks
    """how answers move the contacts along their axes"""
    columns: dict[int, slice]
    """of each body, among all answers"""
    ways: dict[int, Floats]
    """of each body, what its answers are of those that its model gives, orthonormal or 0, shape (r', own)"""


@dataclass(frozen=True)
class Support:
    """How bodies that lie on each other, and on colliders, answer together."""

    answers: Answers
    problem: CoulombProblem
    impulses: Floats
    """that hold them, shape (k, 3)"""
    push: Callable[[Floats], None]
    """lets bodies take impulses (k, 3) at contacts, along their axes"""

    def bear(self, asked: Floats) -> None:
        """Let contacts push as much more as it takes where bodies are asked to answer so (6n,)."""
        moved = self.answers.G.moved_by(asked)
        impulses, _ = replace(self.problem, free=self.problem.free + moved).solved(self.impulses)
        self.push(impulses - self.impulses)

    def left(self, body: int, asked: Floats) -> dict[int, Floats]:
        """What each body answers, (r', m), where one is asked to by (m, r')."""
        columns, ways = self.answers.columns, self.answers.ways
        every = np.zeros((WAYS * self.answers.G.count, len(asked)))
        every[columns[body]] = ways[body].T @ asked.T
        found = self.problem.left_of(every, self.impulses)
        left = {one: ways[one] @ found[columns[one]] for one in columns}
        left[body] += asked.T - ways[body] @ every[columns[body]]  # in what nothing holds it
        return left
