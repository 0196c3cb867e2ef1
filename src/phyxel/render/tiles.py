# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""Which discs touch which 16 x 16 tile of a picture: lists that let every pixel gather what covers it."""

from __future__ import annotations

from math import gcd
from typing import Any

import warp as wp

from phyxel.device import KERNEL_OPTIONS, launch

wp.set_module_options(KERNEL_OPTIONS)

TILE = 16
"""Edge of a tile [pixels]."""
SPLIT_FROM = 8192
"""Light kernels over fewer items than this finish sooner on one core than a second core wakes."""

_TILE = wp.constant(TILE)


@wp.struct
class Grid:
    """A picture cut into square blocks, one per kernel thread. Pixel (x, y) is kept at y * pitch + x."""

    width: int
    height: int
    pitch: int
    tiles_x: int
    block: int
    blocks_x: int
    blocks: int
    stride: int


def make_grid(width: int, height: int, device: wp.Device) -> Any:
    """Blocks are whole tiles on the CPU and single pixels on CUDA."""
    grid = Grid()
    grid.width, grid.height = width, height
    grid.tiles_x = -(-width // TILE)
    grid.pitch = grid.tiles_x * TILE
    grid.block = 1 if device.is_cuda else TILE
    grid.blocks_x = -(-width // grid.block)
    grid.blocks = grid.blocks_x * -(-height // grid.block)
    grid.stride = 1 if device.is_cuda else _scattering_stride(grid.blocks)
    return grid


def _scattering_stride(blocks: int) -> int:
    """A step that visits all blocks in scattered order, so that equal slices of them are equal work."""
    stride = max(1, int(0.618 * blocks))
    while gcd(stride, blocks) != 1:
        stride += 1
    return stride


@wp.func
def block_corner(grid: Grid, i: int) -> wp.vec2i:
    """Pixel at the upper left corner of the i-th block to work on."""
    block = int(wp.int64(i) * wp.int64(grid.stride) % wp.int64(grid.blocks))
    return wp.vec2i(block % grid.blocks_x, block // grid.blocks_x) * grid.block


@wp.func
def tile_of(grid: Grid, corner: wp.vec2i) -> int:
    return (corner[1] // _TILE) * grid.tiles_x + corner[0] // _TILE


@wp.func
def _tile_rect(rect: wp.vec4i) -> wp.vec4i:
    """Tiles touched by pixels left, top .. right, bottom (the last two excluded)."""
    if rect[2] <= rect[0] or rect[3] <= rect[1]:
        return wp.vec4i(0, 0, 0, 0)
    return wp.vec4i(
        rect[0] // _TILE, rect[1] // _TILE, (rect[2] + _TILE - 1) // _TILE, (rect[3] + _TILE - 1) // _TILE
    )


@wp.kernel
def count_tiles(first: int, rects: wp.array(dtype=wp.vec4i), counts: wp.array(dtype=int)):
    """How many tiles each rectangle touches."""
    i = first + wp.tid()
    tiles = _tile_rect(rects[i])
    counts[i] = (tiles[2] - tiles[0]) * (tiles[3] - tiles[1])


@wp.kernel
def list_tiles(
    first: int,
    rects: wp.array(dtype=wp.vec4i),
    ends: wp.array(dtype=int),
    tiles_x: int,
    tiles: wp.array(dtype=int),
    items: wp.array(dtype=int),
):
    """Write one (tile, rectangle) pair for each tile a rectangle touches; `ends` is the running sum of the counts."""
    i = first + wp.tid()
    span = _tile_rect(rects[i])
    at = ends[i] - (span[2] - span[0]) * (span[3] - span[1])
    y = int(span[1])
    while y < span[3]:
        x = int(span[0])
        while x < span[2]:
            tiles[at] = y * tiles_x + x
            items[at] = i
            at += 1
            x += 1
        y += 1


@wp.kernel
def find_starts(first: int, tiles: wp.array(dtype=int), pairs: int, tile_count: int, starts: wp.array(dtype=int)):
    """starts[t] = first pair of tile t in the sorted list. Pair i writes the tiles after its forerunner up to its own."""
    i = first + wp.tid()
    tile = int(0)
    if i > 0:
        tile = tiles[i - 1] + 1
    last = tile_count
    if i < pairs:
        last = tiles[i]
    while tile <= last:
        starts[tile] = i
        tile += 1


class TileLists:
    """For each tile of a picture the rectangles that touch it: items[starts[t]:starts[t + 1]], in ascending order."""

    def __init__(self, width: int, height: int, device: wp.Device) -> None:
        self.device = device
        self.tiles_x = -(-width // TILE)
        self.tile_count = self.tiles_x * -(-height // TILE)
        self.starts = wp.zeros(self.tile_count + 1, dtype=int, device=device)
        self._counts = wp.empty(0, dtype=int, device=device)
        self._ends = wp.empty(0, dtype=int, device=device)
        self._tiles = wp.empty(2, dtype=int, device=device)
        self.items = wp.empty(2, dtype=int, device=device)

    def fill(self, rects: wp.array, count: int) -> None:
        """List the first `count` rectangles (left, top, right, bottom in pixels, the last two excluded)."""
        if self._counts.size != count:
            self._counts = wp.empty(count, dtype=int, device=self.device)
            self._ends = wp.empty(count, dtype=int, device=self.device)
        pairs = 0
        if count:
            split = count > SPLIT_FROM
            launch(count_tiles, count, [rects, self._counts], self.device, split)
            wp.utils.array_scan(self._counts, self._ends, inclusive=True)
            pairs = int(self._ends[count - 1 :].numpy()[0])
            self._reserve(pairs)
            launch(list_tiles, count, [rects, self._ends, self.tiles_x, self._tiles, self.items], self.device, split)
        if pairs:
            wp.utils.radix_sort_pairs(self._tiles, self.items, pairs, end_bit=self.tile_count.bit_length())
        inputs = [self._tiles, pairs, self.tile_count, self.starts]
        launch(find_starts, pairs + 1, inputs, self.device, pairs > SPLIT_FROM)

    def _reserve(self, pairs: int) -> None:
        """Room for the pairs and as much again, which the sort needs as scratch."""
        if self.items.size < 2 * pairs:
            self._tiles = wp.empty(3 * pairs, dtype=int, device=self.device)
            self.items = wp.empty(3 * pairs, dtype=int, device=self.device)
