# mypy: disable-error-code="valid-type,no-untyped-def"
"""Surfels that go where shape functions carry them: x = X + Σ φ_I(X) u_I, exactly (physics 8.1).

A half axis a goes with F = I + Σ u_I ⊗ ∇φ_I, so F a = a + Σ (a·∇φ_I) u_I: with φ_I, a·∇φ_I and b·∇φ_I as its three
weights a pair needs neither F nor ∇φ. Surfels are taken in blocks of neighbours, who share most of their nodes: a
block has one list of nodes, and the weights of all its surfels for each of them, zero where a node does not reach. One
CPU thread moves a block of four at once, as wide as its registers; on CUDA a warp moves a block of 32, each thread one
surfel. Weights are read once and nothing else is of their size: memory is what it waits for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel import device as dev
from phyxel.cache import Once, anew
from phyxel.contact.table import table_type
from phyxel.device import as_vectors
from phyxel.mls.neighbours import curve_order, nearest
from phyxel.mls.shape_values import ShapeValues
from phyxel.surface.discs import Discs, DiscShape, Floats
from phyxel.surface.motion import Motion
from phyxel.surface.walls import FAR, Walls, clearance_at, kept_out

wp.set_module_options(dev.KERNEL_OPTIONS)

ABREAST = wp.constant(4)
"""Surfels that a CPU thread moves at once."""
WARP = 32
"""Surfels in a block on CUDA."""
SCATTERED = 1.3
"""Nodes of a block over those of one surfel above which surfels are better taken along a curve: written here and there,
but with fewer weights."""
LOOKING, WEAVING = 0.2, 1.3
"""What it takes to look for colliders from a node, and to weave a block, in phyxels of a force pass."""

Colliders = table_type(wp.float32)
mat94 = wp.types.matrix((9, 4), wp.float32)


@wp.struct
class Loom:
    """Surfels in the order of their blocks, in spacings, and what is known of each block."""

    surfel: wp.array(dtype=wp.int32)
    """which one it is outside, the last again where a block is not full"""
    point: wp.array(dtype=wp.vec3)
    axis_a: wp.array(dtype=wp.vec3)
    axis_b: wp.array(dtype=wp.vec3)
    start: wp.array(dtype=wp.int32)
    """first entry of each block in `node`, and the end of the last"""
    node: wp.array(dtype=wp.int32)
    home: wp.array(dtype=wp.int32)
    """node near the block"""
    weights: wp.array(dtype=float)
    """φ, a·∇φ and b·∇φ of all its surfels, for each node"""


@wp.struct
class Shown:
    """Where surfels are: see `Discs`."""

    position: wp.array(dtype=wp.vec3)
    axis_a: wp.array(dtype=wp.vec3)
    axis_b: wp.array(dtype=wp.vec3)
    normal: wp.array(dtype=wp.vec3)


@wp.kernel
def look_for_colliders(
    first: int,
    X: wp.array(dtype=wp.vec3),
    u: wp.array(dtype=wp.vec3),
    colliders: Colliders,
    body: int,
    clear: wp.array(dtype=wp.vec4),
):
    """X + u of each node and how far that is from the nearest collider. The node need not be there: the distance of any
    place speaks for those around it."""
    i = first + wp.tid()
    x = X[i] + u[i]
    clear[i] = wp.vec4(x[0], x[1], x[2], clearance_at(x, colliders, body))


@wp.func
def put(
    loom: Loom, entry: int, shift: wp.vec3, change_a: wp.vec3, change_b: wp.vec3, near: wp.vec4, colliders: Colliders,
    body: int, unit: float, shown: Shown,
):  # fmt: skip
    """Write one surfel that has moved, out of colliders."""
    x = loom.point[entry] + shift
    a = loom.axis_a[entry] + change_a
    b = loom.axis_b[entry] + change_b
    # Distance changes by no more than the way: a place far enough away speaks for the points around it.
    if near[3] < FAR * wp.length(x - wp.vec3(near[0], near[1], near[2])):
        x = kept_out(x, colliders, body)
    s = loom.surfel[entry]
    shown.position[s] = unit * x
    shown.axis_a[s] = unit * a
    shown.axis_b[s] = unit * b
    shown.normal[s] = wp.normalize(wp.cross(a, b))


@wp.func_native("""
    wp::mat_t<9, 4, float> total;
#if !defined(__CUDA_ARCH__)
    typedef float Four __attribute__((ext_vector_type(4), aligned(4)));
    Four sums[9] = {};
    const Four* weight = (const Four*)weights.data + 3 * (size_t)begin;
    for (int entry = begin; entry < end; ++entry, weight += 3) {
        const float* moved = (const float*)(u.data + node.data[entry]);
        for (int row = 0; row < 9; ++row) sums[row] += moved[row % 3] * weight[row / 3];
    }
    __builtin_memcpy(&total, sums, sizeof(total));
#endif
    return total;
""")
def sums_abreast(
    begin: int, end: int, node: wp.array(dtype=wp.int32), weights: wp.array(dtype=float), u: wp.array(dtype=wp.vec3)
) -> mat94:
    """Σ φ_I u_I, Σ (a·∇φ_I) u_I and Σ (b·∇φ_I) u_I of four surfels (physics 8.1), one in each column. In C: what Warp's
    own matrices become depends on what is done with them afterwards, and is twice as slow here."""


@wp.kernel
def weave_abreast(
    first: int,
    loom: Loom,
    u: wp.array(dtype=wp.vec3),
    clear: wp.array(dtype=wp.vec4),
    colliders: Colliders,
    body: int,
    unit: float,
    shown: Shown,
):
    """Where the four surfels of a block go."""
    block = first + wp.tid()
    sums = sums_abreast(loom.start[block], loom.start[block + 1], loom.node, loom.weights, u)
    near = clear[loom.home[block]]
    for k in range(ABREAST):
        put(
            loom, ABREAST * block + k, wp.vec3(sums[0, k], sums[1, k], sums[2, k]),
            wp.vec3(sums[3, k], sums[4, k], sums[5, k]), wp.vec3(sums[6, k], sums[7, k], sums[8, k]),
            near, colliders, body, unit, shown,
        )  # fmt: skip


@wp.kernel
def weave_apart(
    first: int,
    width: int,
    loom: Loom,
    u: wp.array(dtype=wp.vec3),
    clear: wp.array(dtype=wp.vec4),
    colliders: Colliders,
    body: int,
    unit: float,
    shown: Shown,
):
    """Where one surfel of a block of `width` goes."""
    i = first + wp.tid()
    block = i // width
    shift = wp.vec3()
    change_a = wp.vec3()
    change_b = wp.vec3()
    for entry in range(loom.start[block], loom.start[block + 1]):
        moved = u[loom.node[entry]]
        row = 3 * entry * width + i % width
        shift += loom.weights[row] * moved
        change_a += loom.weights[row + width] * moved
        change_b += loom.weights[row + 2 * width] * moved
    put(loom, i, shift, change_a, change_b, clear[loom.home[block]], colliders, body, unit, shown)


class Woven(Discs):
    """Surfels that go where the shape functions of a body's nodes (n, 3) [spacings] carry them. `values` are φ and ∇φ
    at the surfels, ∇φ in the coordinates of `shape`: along its axes, per spacing."""

    def __init__(
        self, shape: DiscShape, nodes: Floats, values: ShapeValues, device: wp.Device, once: Once = anew
    ) -> None:
        m = len(shape.points)
        x, a, b, n = (wp.zeros(m, dtype=wp.vec3, device=device) for _ in range(4))
        super().__init__(x, a, b, n, as_vectors(shape.colors, device), np.zeros(3))
        self.shape = shape
        """as they are in the reference shape"""
        self._device = device
        self._width = WARP if device.is_cuda else int(ABREAST)
        self._loom = once(("loom", str(device)), lambda: loom_of(shape, nodes, values, self._width, device))
        self._X, self._u = as_vectors(nodes, device), wp.zeros(len(nodes), dtype=wp.vec3, device=device)
        self._clear = wp.zeros(len(nodes), dtype=wp.vec4, device=device)
        """a place near each node, and how far it is from the nearest collider"""
        self._shown = Shown()
        self._shown.position, self._shown.axis_a, self._shown.axis_b, self._shown.normal = x, a, b, n
        self._around: tuple[Any, int, float] = (None, 0, 0.0)
        """for which colliders, body and unit the program is"""

    def follow(self, motion: Motion) -> None:
        """Go where the shape functions carry the surfels."""
        self.origin = motion.origin.copy()
        walls = motion.walls
        if self._around[0] is not walls.table or self._around[1:] != (walls.body, motion.unit):
            self._around = walls.table, walls.body, motion.unit
            self._program = dev.Program(self._launches(walls, motion.unit), self._device)
        wp.copy(self._u, motion.u)
        self._program.run()

    def _launches(self, walls: Walls, unit: float) -> list[dev.Launch]:
        looked = [self._X, self._u, walls.table, walls.body, self._clear]
        look = dev.Launch(look_for_colliders, len(self._X), looked, LOOKING)
        inputs = [self._loom, self._u, self._clear, walls.table, walls.body, unit, self._shown]
        if self._device.is_cuda:
            return [look, dev.Launch(weave_apart, len(self._loom.surfel), [self._width, *inputs])]
        return [look, dev.Launch(weave_abreast, len(self._loom.home), inputs, WEAVING)]


def loom_of(shape: DiscShape, nodes: Floats, values: ShapeValues, width: int, device: wp.Device) -> Any:
    """A `Loom` with blocks of `width` surfels: as they follow each other, if that keeps neighbours together, else along
    a curve."""
    surfel, pairs, blocks = _in_blocks(np.arange(len(shape.points)), values, width)
    if width * blocks.nnz > SCATTERED * pairs.nnz:
        surfel, pairs, blocks = _in_blocks(curve_order(shape.points), values, width)
    point, axis_a, axis_b = (field[surfel] for field in shape[:3])
    _, home = nearest(point[::width], nodes, 1)
    numbers = {"surfel": surfel, "start": blocks.indptr, "node": blocks.indices, "home": home.reshape(-1)}
    loom = Loom()
    for name, array in numbers.items():
        setattr(loom, name, wp.array(array.astype(np.int32), dtype=wp.int32, device=device))
    loom.point, loom.axis_a, loom.axis_b = (as_vectors(field, device) for field in (point, axis_a, axis_b))
    weights = _weights(values, pairs, blocks, axis_a, axis_b)
    loom.weights = wp.array(weights.reshape(-1), dtype=float, device=device)
    return loom


def _in_blocks(
    order: NDArray[np.integer], values: ShapeValues, width: int
) -> tuple[NDArray[np.integer], csr_array, csr_array]:
    """Surfels in some order, the last one again until the last block is full; which pair of `values` is that of a
    surfel and a node; and which nodes a block has, its entries being of no meaning."""
    surfel = np.pad(order, (0, -len(order) % width), mode="edge")
    shape = len(values.condition), values.node_count
    pairs = csr_array((np.arange(len(values.index)), values.index.numpy(), values.start.numpy()), shape)[surfel]
    # Rows one after the other are one row, in which nodes come up several times.
    rows = pairs.data, pairs.indices, pairs.indptr[::width]
    blocks = csr_array(rows, (len(surfel) // width, values.node_count), copy=True)
    blocks.sum_duplicates()
    return surfel, pairs, blocks


def _weights(
    values: ShapeValues, pairs: csr_array, blocks: csr_array, axis_a: Floats, axis_b: Floats
) -> NDArray[np.float32]:
    """φ, a·∇φ and b·∇φ of all surfels of a block for each of its nodes, shape (entries, 3, width)."""
    width = pairs.shape[0] // max(blocks.shape[0], 1)
    place, block = (np.repeat(np.arange(lists.shape[0]), np.diff(lists.indptr)) for lists in (pairs, blocks))
    entry = np.searchsorted(
        block * values.node_count + blocks.indices, place // width * values.node_count + pairs.indices
    )
    slope = values.dphi.numpy()[pairs.data]
    weights = np.zeros((blocks.nnz, 3, width), np.float32)
    weights[entry, 0, place % width] = values.phi.numpy()[pairs.data]
    for row, axis in ((1, axis_a), (2, axis_b)):
        weights[entry, row, place % width] = np.einsum("pa,pa->p", axis[place], slope)
    return weights
