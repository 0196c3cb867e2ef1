# mypy: disable-error-code="valid-type,no-untyped-def,index,attr-defined"
"""Impulses between bodies that touch, all at once (physics 15.13): Coulomb's problem as a minimum.

Contact velocities v (k, 3), along a normal and two tangents each, go with the answers a (r,) of the bodies as
v = v₀ + G a, where unit answers cost the same energy, so that W = G Gᵀ is what impulses p do to velocities. Then

    min ½ |a|² + Σ ½ max(−v_n − b, 0)²/R + Σ μ p̄ f₀(|v_t + s|),     p = −∂(sums)/∂v,   a = Gᵀ p

- R = SOFT tr W/3 of a contact: four legs of a table share its weight in one way only;
- b [m/s] is what a contact has room for;
- f₀ is IPC's mollified length (Li et al. 2020): friction grows to its limit over the speed ε and is twice continuous;
- p̄ is the normal impulse of the pass before, and s [m/s] pulls back what has slipped since it stuck.

A tie is a contact that pulls as well and never slips: ½ |v + (b, s)|²/R is all of it (physics 15.15). Of many, each
bears what it stands for: its R is TIES_SOFT of the ties' mean W over its share.

Newton's method ends where it would gain next to nothing, whatever the impulses: a face that lies on another leaves open
which of its points carry it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from phyxel import device as dev
from phyxel.meeting.answer_blocks import (
    WAYS,
    Islands,
    System,
    answer,
    assemble,
    factor,
    find_order,
    list_rows,
    mat36d,
    mat66d,
    solve,
    vec6d,
    vec6ds,
)  # fmt: skip
from phyxel.meeting.interior import Slacks, go_inside
from phyxel.meeting.newton import SOFT, Found, Touching, bend_of, passes, see_velocities

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

TIES_SOFT = 1e-3
"""What a tie does: stiffer ones would pull each other about where they are more than bodies have ways to bend."""
SOON, MOST_NEWTON = wp.constant(8), wp.constant(60)
"""Steps of Newton's method within which impulses like those of the step before are found; others begin within."""


@wp.func
def begin_with_impulses(island: int, islands: Islands, found: Found):
    """a = Gᵀ p."""
    for b in range(islands.first_block[island], islands.first_block[island + 1]):
        found.a[b] = vec6d()
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        answer(islands, c, found.p[c], found.a)


@wp.kernel
def solve_islands(first: int, islands: Islands, contacts: Touching, system: System, found: Found, inside: Slacks):
    """Impulses of each island, from those that are found on, and the velocities after them (physics 15.13)."""
    island = first + wp.tid()
    list_rows(island, islands, system)
    begin_with_impulses(island, islands, found)
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        found.pressure[c] = wp.max(found.p[c][0], wp.float64(0.0))
    if not passes(island, islands, contacts, system, found, SOON):
        go_inside(island, islands, contacts, system, found, inside)
        passes(island, islands, contacts, system, found, MOST_NEWTON)
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        found.p[c] = found.kept[c]
    begin_with_impulses(island, islands, found)
    see_velocities(island, islands, contacts, found)


@wp.kernel
def leave_answers(
    first: int,
    islands: Islands,
    contacts: Touching,
    system: System,
    found: Found,
    blocks: int,
    columns: int,
    x: vec6ds,
):
    """(1 + Gᵀ D G)⁻¹ of columns of answers, where contacts with such impulses hold against them (physics 15.13)."""
    island = first + wp.tid()
    list_rows(island, islands, system)
    begin_with_impulses(island, islands, found)
    see_velocities(island, islands, contacts, found)
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        found.bend[c] = bend_of(contacts, c, found.v[c], found.p[c][0])
    assemble(island, islands, system, found.bend)
    factor(island, islands, system)
    for column in range(columns):
        solve(island, islands, system, x, column * blocks)


@dataclass(frozen=True)
class AnswerBlocks:
    """G: how unit answers of bodies move k contacts along their axes, by n blocks of six answers."""

    begin: Indices
    """the first entry of each contact, and their count, shape (k + 1,)"""
    block: Indices
    """whose block of answers an entry is, shape (m,)"""
    G: Floats
    """shape (m, 3, 6)"""
    count: int
    """n"""

    @staticmethod
    def of(contact: Indices, block: Indices, G: Floats, contacts: int, count: int) -> AnswerBlocks:
        """Of entries of such contacts (m,), in any order. What is held answers nothing, and has no entry."""
        order = np.argsort(contact, kind="stable")
        order = order[G[order].any(axis=(1, 2))]
        begin = np.searchsorted(contact[order], np.arange(contacts + 1))
        return AnswerBlocks(begin, block[order], G[order], count)

    @cached_property
    def contact(self) -> Indices:
        """Of each entry, shape (m,)."""
        return np.repeat(np.arange(len(self.begin) - 1), np.diff(self.begin))

    @cached_property
    def gives(self) -> Floats:
        """tr W/3 of contacts [kg⁻¹], shape (k,)."""
        squares = np.square(self.G.reshape(-1, 3 * WAYS)).sum(axis=1)
        return np.bincount(self.contact, squares, len(self.begin) - 1) / 3

    def moved_by(self, answers: Floats) -> Floats:
        """What answers (6n,) do to the velocities of contacts [m/s], shape (k, 3)."""
        parts = (self.G @ answers.reshape(-1, WAYS)[self.block][:, :, None])[:, :, 0]
        return np.stack([np.bincount(self.contact, part, len(self.begin) - 1) for part in parts.T], axis=1)

    def islands(self) -> tuple[Indices, Indices]:
        """Numbers of the islands of contacts (k,), -1 of those that nothing answers, and of blocks (n,)."""
        ends = self.block[self.begin[self.contact]]
        graph = csr_array((np.ones(len(ends)), (ends, self.block)), (self.count, self.count))
        _, label = connected_components(graph, directed=False)
        answered = np.diff(self.begin) > 0
        own = np.full(len(answered), -1)
        own[answered] = label[self.block[self.begin[:-1][answered]]]
        number = np.full(self.count, -1)
        found = np.unique(own[answered])
        number[found] = np.arange(len(found))
        return np.where(answered, number[own], -1), number[label]


@dataclass(frozen=True)
class CoulombProblem:
    """k contacts of bodies that answer in n blocks of ways."""

    G: AnswerBlocks
    free: Floats
    """v₀ [m/s], shape (k, 3)"""
    room: Floats
    """b [m/s], shape (k,)"""
    friction: Floats
    """μ, shape (k,)"""
    slip: Floats
    """s [m/s], shape (k, 2)"""
    creep: Floats
    """ε [m/s], shape (k,)"""
    tied: Floats
    """what ties stand for, over their mean; 0 of contacts, whose friction ends somewhere; shape (k,)"""

    def solved(self, start: Floats) -> tuple[Floats, Floats]:
        """Impulses p [N s] along the axes of the contacts and velocities after them, shape (k, 3) each; `start` (k, 3)
        is about what the impulses are. Where nothing answers there are none."""
        known, p, v = self._known, np.zeros_like(self.free), self.free.copy()
        if known.count:
            found = known.found(start)
            known.launch(solve_islands, found, known.inside())
            p[known.order], v[known.order] = found.p.numpy(), found.v.numpy()
        return p, v

    def left_of(self, asked: Floats, impulses: Floats) -> Floats:
        """What is left of answers (6n, m) that others ask for, where contacts with these impulses (k, 3) hold against
        them: (1 + Gᵀ D G)⁻¹."""
        known, columns = self._known, asked.shape[1]
        left = np.ascontiguousarray(asked.T).reshape(columns, self.G.count, WAYS)
        if known.count:
            x = _of(left[:, known.blocks].reshape(-1, WAYS), vec6d)
            known.launch(leave_answers, known.found(impulses), len(known.blocks), columns, x)
            left[:, known.blocks] = x.numpy().reshape(columns, -1, WAYS)
        return left.reshape(columns, -1).T

    @cached_property
    def gives(self) -> Floats:
        """tr W/3 of contacts, and of ties what they are to be as soft as, over SOFT [kg⁻¹], shape (k,)."""
        gives, ties = np.maximum(self.G.gives, np.finfo(float).tiny), np.flatnonzero(self.tied > 0)
        island = self._island_of[0][ties] + 1
        mean = np.bincount(island, gives[ties]) / np.maximum(np.bincount(island), 1)
        gives[ties] = TIES_SOFT / float(SOFT) * mean[island] / self.tied[ties]
        return gives

    @cached_property
    def _island_of(self) -> tuple[Indices, Indices]:
        return self.G.islands()

    @cached_property
    def _known(self) -> KnownContacts:
        return KnownContacts(self, *self._island_of)


class KnownContacts:
    """What kernels are told of a problem: contacts and blocks of answers island by island."""

    def __init__(self, problem: CoulombProblem, island: Indices, island_of_block: Indices) -> None:
        """Numbers of islands of contacts (k,) and blocks (n,), -1 of those that have no share in it."""
        self.count = int(island.max(initial=-1)) + 1
        """of islands"""
        self.order, first_contact = _sorted(island, self.count)
        """of contacts"""
        self.blocks, first_block = _sorted(island_of_block, self.count)
        """their order"""
        place = np.full(len(island_of_block), -1)
        place[self.blocks] = np.arange(len(self.blocks))
        islands, contacts, G = Islands(), Touching(), problem.G
        many = np.diff(G.begin)[self.order]
        begin = np.concatenate([[0], np.cumsum(many)])
        entry = np.arange(begin[-1]) + np.repeat(G.begin[self.order] - begin[:-1], many)
        for name, numbers in (
            ("first_contact", first_contact), ("first_block", first_block), ("begin", begin),
            ("block", place[G.block[entry]]),
        ):  # fmt: skip
            setattr(islands, name, _of(numbers, wp.int32))
        islands.G = _of(G.G[entry], mat36d)
        kinds = {"free": wp.vec3d, "slip": wp.vec2d}
        for name in ("free", "room", "friction", "slip", "creep", "tied", "gives"):
            setattr(contacts, name, _of(getattr(problem, name)[self.order], kinds.get(name, wp.float64)))
        self._islands, self._contacts = islands, contacts
        self._system = self._system_of(np.diff(first_block))

    def _system_of(self, sizes: Indices) -> Any:
        """Room for the systems of islands of so many blocks."""
        system, blocks = System(), int(sizes.sum())
        system.first = _of(np.cumsum(sizes**2) - sizes**2, wp.int32)
        system.table = _room(int((sizes**2).sum()), wp.int32)
        system.degree, system.place, system.order = (_room(blocks, wp.int32) for _ in range(3))
        slots = _room(len(sizes), wp.int32)
        wp.launch(find_order, self.count, inputs=[0, self._islands, system, slots], device="cpu")
        first = np.concatenate([[0], np.cumsum(slots.numpy())])
        system.first_slot = _of(first[:-1], wp.int32)
        system.slot, system.row = _room(int(first[-1]), mat66d), _room(int(first[-1]), wp.int32)
        system.first_row = _room(blocks + len(sizes), wp.int32)
        return system

    def found(self, impulses: Floats) -> Any:
        """Impulses (k, 3), and room for what goes with them."""
        found, count, blocks = Found(), len(self.order), len(self.blocks)
        found.p = _of(impulses[self.order], wp.vec3d)
        found.a, found.step = _room(blocks, vec6d), _room(blocks, vec6d)
        found.v, found.way, found.kept = (_room(count, wp.vec3d) for _ in range(3))
        found.pressure, found.bend = _room(count, wp.float64), _room(count, wp.mat33d)
        return found

    def inside(self) -> Any:
        """Room for interior points."""
        inside, count = Slacks(), len(self.order)
        inside.p, inside.s, inside.to_p, inside.to_s, inside.goal = (_room(count, wp.float64) for _ in range(5))
        inside.q = _room(count, wp.vec2d)
        return inside

    def launch(self, kernel: wp.Kernel, *more: Any) -> None:
        """Let a kernel see to each island."""
        wp.launch(kernel, self.count, [0, self._islands, self._contacts, self._system, *more], device="cpu")


def _sorted(island: Indices, count: int) -> tuple[Indices, Indices]:
    """Numbers of what is of some island, by islands, and where each of these begins, and their count."""
    order = np.argsort(island, kind="stable")[np.count_nonzero(island < 0) :]
    return order, np.searchsorted(island[order], np.arange(count + 1))


def _of(values: NDArray[Any], kind: Any) -> wp.array:
    return wp.array(np.ascontiguousarray(values), dtype=kind, device="cpu")


def _room(count: int, kind: Any) -> wp.array:
    return wp.zeros(count, dtype=kind, device="cpu")
