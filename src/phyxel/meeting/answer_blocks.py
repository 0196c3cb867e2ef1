# mypy: disable-error-code="valid-type,no-untyped-def,index,attr-defined"
"""What bodies that touch answer, by blocks of six ways (physics 15.13): the system 1 + Gᵀ D G of an island, in which
bodies that touch have a block in common, by Cholesky's method. Blocks with the fewest neighbours go first.
"""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.device import int32s, mat33ds

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

WAYS = 6
"""Columns of a block: what a rigid body has."""
mat36d = wp.types.matrix(shape=(3, WAYS), dtype=wp.float64)
mat66d = wp.types.matrix(shape=(WAYS, WAYS), dtype=wp.float64)
vec6d = wp.types.vector(length=WAYS, dtype=wp.float64)
mat36ds, mat66ds, vec6ds = (wp.array(dtype=kind) for kind in (mat36d, mat66d, vec6d))


@wp.struct
class Islands:
    """k contacts and n blocks of answers, island by island."""

    first_contact: int32s
    """of each island, and their count, shape (i + 1,)"""
    first_block: int32s
    """shape (i + 1,)"""
    begin: int32s
    """the first entry of each contact, and their count, shape (k + 1,)"""
    block: int32s
    """whose block of answers an entry is, shape (m,)"""
    G: mat36ds
    """how that moves the contact along its axes, shape (m,)"""


@wp.struct
class System:
    """1 + Gᵀ D G of each island, and its factor L in the same room."""

    first: int32s
    """where the table of each island begins, shape (i,)"""
    table: int32s
    """2 + the slot of the block that two blocks of answers have in common; 0: none; shape (Σ n²,)"""
    first_slot: int32s
    """of each island, shape (i,)"""
    degree: int32s
    """neighbours that are left, shape (n,)"""
    place: int32s
    """when a block's turn is, in its island, shape (n,)"""
    order: int32s
    """whose turn it is, shape (n,)"""
    slot: mat66ds
    """rows are those of the block whose turn is later; shape (s,)"""
    first_row: int32s
    """of the block whose turn it is, among `row`, shape (n + i,)"""
    row: int32s
    """neighbours whose turn is later, in that order, shape (s,)"""


@wp.kernel
def find_order(first: int, islands: Islands, system: System, slots: int32s):
    """When each block's turn is, and the slots that an island needs (physics 15.13)."""
    island = first + wp.tid()
    block = islands.first_block[island]
    count = islands.first_block[island + 1] - block
    table = system.first[island]
    for i in range(count):
        system.place[block + i] = -1
        system.degree[block + i] = 0
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        for e in range(islands.begin[c], islands.begin[c + 1]):
            for f in range(islands.begin[c], e):
                _join(system, table, block, count, islands.block[e] - block, islands.block[f] - block)
    used = count
    for turn in range(count):
        least = count
        next = int(-1)
        for i in range(count):
            if system.place[block + i] < 0 and system.degree[block + i] < least:
                least = system.degree[block + i]
                next = i
        system.place[block + next] = turn
        system.order[block + turn] = next
        for i in range(count):
            if i != next and system.place[block + i] < 0 and system.table[table + next * count + i] > 0:
                system.degree[block + i] -= 1
                for j in range(i):
                    if system.place[block + j] < 0 and system.table[table + next * count + j] > 0:
                        _join(system, table, block, count, i, j)
                system.table[table + next * count + i] = used + 2
                system.table[table + i * count + next] = used + 2
                used += 1
        system.table[table + next * count + next] = turn + 2
    slots[island] = used


@wp.func
def _join(system: System, table: int, block: int, count: int, i: int, j: int):
    """Two different blocks of an island have something in common."""
    if i != j and system.table[table + i * count + j] == 0:
        system.table[table + i * count + j] = 1
        system.table[table + j * count + i] = 1
        system.degree[block + i] += 1
        system.degree[block + j] += 1


@wp.func
def list_rows(island: int, islands: Islands, system: System):
    """Whose turn is later than that of each block, among its neighbours."""
    block = islands.first_block[island]
    count = islands.first_block[island + 1] - block
    table = system.first[island]
    at = system.first_slot[island]
    for turn in range(count):
        system.first_row[block + island + turn] = at
        own = system.order[block + turn]
        for later in range(turn + 1, count):
            other = system.order[block + later]
            if system.table[table + own * count + other] > 0:
                system.row[at] = other
                at += 1
    system.first_row[block + island + count] = at


@wp.func
def slot_of(island: int, islands: Islands, system: System, i: int, j: int):
    """The slot of two blocks of an island."""
    count = islands.first_block[island + 1] - islands.first_block[island]
    return system.first_slot[island] + system.table[system.first[island] + i * count + j] - 2


@wp.func
def assemble(island: int, islands: Islands, system: System, bend: mat33ds):
    """1 + Gᵀ D G, where the impulses of contacts decrease with velocities by D."""
    block = islands.first_block[island]
    count = islands.first_block[island + 1] - block
    for i in range(count):
        own = slot_of(island, islands, system, i, i)
        system.slot[own] = wp.identity(n=WAYS, dtype=wp.float64)
        turn = block + island + system.place[block + i]
        for at in range(system.first_row[turn], system.first_row[turn + 1]):
            system.slot[slot_of(island, islands, system, i, system.row[at])] = mat66d()
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        D = bend[c]
        if wp.ddot(D, D) > wp.float64(0.0):
            for e in range(islands.begin[c], islands.begin[c + 1]):
                i = islands.block[e] - block
                DG = D * islands.G[e]
                for f in range(islands.begin[c], islands.begin[c + 1]):
                    j = islands.block[f] - block
                    if system.place[block + j] >= system.place[block + i]:
                        own = slot_of(island, islands, system, i, j)
                        add_product(system.slot, own, islands.G, f, DG)


@wp.func_native("""
    double* a = (double*)(slot.data + at);
    const double* g = (const double*)(G.data + entry);
    const double* d = (const double*)&DG;
    for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 6; ++j)
            a[6 * i + j] += g[i] * d[j] + g[6 + i] * d[6 + j] + g[12 + i] * d[12 + j];
""")
def add_product(slot: mat66ds, at: int, G: mat36ds, entry: int, DG: mat36d):
    """slot += Gᵀ (D G)."""


@wp.func_native("""
    double* a = (double*)(slot.data + at);
    for (int j = 0; j < 6; ++j) {
        for (int k = 0; k < j; ++k) a[7 * j] -= a[6 * j + k] * a[6 * j + k];
        a[7 * j] = sqrt(a[7 * j]);
        const double inverse = 1.0 / a[7 * j];
        for (int i = j + 1; i < 6; ++i) {
            for (int k = 0; k < j; ++k) a[6 * i + j] -= a[6 * i + k] * a[6 * j + k];
            a[6 * i + j] *= inverse;
        }
    }
""")
def factor_block(slot: mat66ds, at: int):
    """A = L Lᵀ of one block."""


@wp.func_native("""
    double* a = (double*)(slot.data + at);
    const double* l = (const double*)(slot.data + by);
    for (int j = 0; j < 6; ++j) {
        const double inverse = 1.0 / l[7 * j];
        for (int i = 0; i < 6; ++i) {
            double value = a[6 * i + j];
            for (int k = 0; k < j; ++k) value -= a[6 * i + k] * l[6 * j + k];
            a[6 * i + j] = value * inverse;
        }
    }
""")
def divide_block(slot: mat66ds, at: int, by: int):
    """A L⁻ᵀ of one block."""


@wp.func_native("""
    double* c = (double*)(slot.data + at);
    const double* a = (const double*)(slot.data + one);
    const double* b = (const double*)(slot.data + other);
    double turned[36];
    for (int j = 0; j < 6; ++j)
        for (int k = 0; k < 6; ++k) turned[6 * k + j] = b[6 * j + k];
    for (int i = 0; i < 6; ++i) {
        double row[6];
        for (int j = 0; j < 6; ++j) row[j] = c[6 * i + j];
        for (int k = 0; k < 6; ++k)
            for (int j = 0; j < 6; ++j) row[j] -= a[6 * i + k] * turned[6 * k + j];
        for (int j = 0; j < 6; ++j) c[6 * i + j] = row[j];
    }
""")
def subtract_product(slot: mat66ds, at: int, one: int, other: int):
    """C − A Bᵀ of blocks."""


@wp.func
def factor(island: int, islands: Islands, system: System):
    """L of L Lᵀ = 1 + Gᵀ D G, in place."""
    block = islands.first_block[island]
    count = islands.first_block[island + 1] - block
    for turn in range(count):
        i = system.order[block + turn]
        diagonal = slot_of(island, islands, system, i, i)
        factor_block(system.slot, diagonal)
        begin = system.first_row[block + island + turn]
        end = system.first_row[block + island + turn + 1]
        for at in range(begin, end):
            own = slot_of(island, islands, system, i, system.row[at])
            divide_block(system.slot, own, diagonal)
            for before in range(begin, at + 1):
                other = slot_of(island, islands, system, i, system.row[before])
                goal = slot_of(island, islands, system, system.row[at], system.row[before])
                subtract_product(system.slot, goal, own, other)


@wp.func_native("""
    double* a = (double*)(x.data + at);
    const double* l = (const double*)(slot.data + by);
    for (int i = 0; i < 6; ++i) {
        for (int k = 0; k < i; ++k) a[i] -= l[6 * i + k] * a[k];
        a[i] /= l[7 * i];
    }
""")
def divide(x: vec6ds, at: int, slot: mat66ds, by: int):
    """L⁻¹ x."""


@wp.func_native("""
    double* a = (double*)(x.data + at);
    const double* l = (const double*)(slot.data + by);
    for (int i = 5; i >= 0; --i) {
        for (int k = i + 1; k < 6; ++k) a[i] -= l[6 * k + i] * a[k];
        a[i] /= l[7 * i];
    }
""")
def divide_turned(x: vec6ds, at: int, slot: mat66ds, by: int):
    """L⁻ᵀ x."""


@wp.func
def solve(island: int, islands: Islands, system: System, x: vec6ds, ahead: int):
    """(L Lᵀ)⁻¹ x, in place; the answers of the island begin `ahead` of where they do by themselves."""
    block = islands.first_block[island]
    count = islands.first_block[island + 1] - block
    for turn in range(count):
        i = system.order[block + turn]
        divide(x, ahead + block + i, system.slot, slot_of(island, islands, system, i, i))
        for at in range(system.first_row[block + island + turn], system.first_row[block + island + turn + 1]):
            j = system.row[at]
            x[ahead + block + j] -= system.slot[slot_of(island, islands, system, i, j)] * x[ahead + block + i]
    for back in range(count):
        turn = count - 1 - back
        i = system.order[block + turn]
        for at in range(system.first_row[block + island + turn], system.first_row[block + island + turn + 1]):
            j = system.row[at]
            x[ahead + block + i] -= (
                wp.transpose(system.slot[slot_of(island, islands, system, i, j)]) * x[ahead + block + j]
            )
        divide_turned(x, ahead + block + i, system.slot, slot_of(island, islands, system, i, i))


@wp.func
def moved(islands: Islands, c: int, x: vec6ds):
    """G x at a contact."""
    v = wp.vec3d()
    for e in range(islands.begin[c], islands.begin[c + 1]):
        v += islands.G[e] * x[islands.block[e]]
    return v


@wp.func
def answer(islands: Islands, c: int, p: wp.vec3d, x: vec6ds):
    """x + Gᵀ p of a contact."""
    for e in range(islands.begin[c], islands.begin[c + 1]):
        x[islands.block[e]] += wp.transpose(islands.G[e]) * p


@wp.func
def product(islands: Islands, island: int, x: vec6ds, y: vec6ds):
    """x · y over an island."""
    total = wp.float64(0.0)
    for b in range(islands.first_block[island], islands.first_block[island + 1]):
        total += wp.dot(x[b], y[b])
    return total
