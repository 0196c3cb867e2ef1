# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""Which discs touch which 16 x 16 tile of a picture: lists that let every pixel gather what covers it."""

from __future__ import annotations

from typing import Any

import warp as wp
from numpy.typing import NDArray

from phyxel.device import KERNEL_OPTIONS, launch, thread_count

wp.set_module_options(KERNEL_OPTIONS)

TILE = 16
"""Edge of a tile [pixels]."""
SPLIT_FROM = 32768
"""Light kernels over fewer items than this finish sooner on one core than a second core wakes."""


@wp.struct
class TileGrid:
    """A picture kept tile after tile, 256 pixels each row by row, so that a tile's memory is in one place (row by row
    over the whole picture it would be on some hundred pages, and looking these up takes longer than drawing)."""

    width: int
    height: int
    tiles_x: int
    tiles: int
    span: int
    """pixels per kernel thread: a tile on the CPU, one on CUDA"""
    lanes: int
    """CPU threads; they take tiles in turn, which makes equal slices equal work"""
    rounds: int


def make_grid(width: int, height: int, device: wp.Device) -> Any:
    grid = TileGrid()
    grid.width, grid.height = width, height
    grid.tiles_x = -(-width // TILE)
    grid.tiles = grid.tiles_x * -(-height // TILE)
    grid.span = 1 if device.is_cuda else TILE * TILE
    grid.lanes = 1 if device.is_cuda else thread_count()
    grid.rounds = -(-pixel_count(grid) // (grid.span * grid.lanes))
    return grid


def pixel_count(grid: Any) -> int:
    """Pixels kept for a picture, those beyond its edges included."""
    return int(grid.tiles * TILE * TILE)


def untiled(grid: Any, tiled: NDArray[Any]) -> NDArray[Any]:
    """What is kept for the pixels, (pixel_count, ...), as the picture's rows, (height, width, ...)."""
    tiles = tiled.reshape(-1, grid.tiles_x, TILE, TILE, *tiled.shape[1:])
    rows = tiles.swapaxes(1, 2).reshape(-1, TILE * grid.tiles_x, *tiled.shape[1:])
    return rows[: grid.height, : grid.width]


def grown(array: wp.array, count: int) -> wp.array:
    """An array that has room for `count`: this one, or a new one with room to spare. What was in it is lost."""
    return array if array.size >= count else wp.empty(count + count // 4, dtype=array.dtype, device=array.device)


def launch_over(kernel: wp.Kernel, grid: Any, inputs: list[Any], device: wp.Device, split: bool = True) -> None:
    """Run a kernel whose thread i does the pixels from `first_pixel(grid, i)` on."""
    launch(kernel, grid.rounds * grid.lanes, inputs, device, split)


@wp.func
def first_pixel(grid: TileGrid, i: int) -> int:
    """First of the grid.span pixels of thread i; may lie beyond the last tile."""
    return ((i % grid.rounds) * grid.lanes + i // grid.rounds) * grid.span


@wp.func
def past_pixel(grid: TileGrid, i: int) -> int:
    """One after the last pixel of thread i."""
    return wp.min(first_pixel(grid, i) + grid.span, grid.tiles * 256)


@wp.func
def place_of(grid: TileGrid, p: int) -> wp.vec2i:
    """Column and row of the p-th pixel kept."""
    tile = p >> 8
    row = tile // grid.tiles_x
    return wp.vec2i(((tile - row * grid.tiles_x) << 4) + (p & 15), (row << 4) + ((p >> 4) & 15))


@wp.func
def pixel_of(grid: TileGrid, x: int, y: int) -> int:
    """Where the pixel in column x, row y is kept."""
    return (((y >> 4) * grid.tiles_x + (x >> 4)) << 8) + ((y & 15) << 4) + (x & 15)


@wp.func
def pixel_rect(grid: TileGrid, left: float, top: float, right: float, bottom: float) -> wp.vec4i:
    """Pixels (left, top, right, bottom, the last two excluded) of a picture from one place to another, both in pixels
    from the middle of the first; clamped, so that numbers beyond those of pixels are no harm."""
    from_x = wp.max(int(wp.ceil(wp.clamp(left, -1.0, 1.0e6))), 0)
    from_y = wp.max(int(wp.ceil(wp.clamp(top, -1.0, 1.0e6))), 0)
    to_x = wp.min(int(wp.floor(wp.clamp(right, -1.0, 1.0e6))) + 1, grid.width)
    to_y = wp.min(int(wp.floor(wp.clamp(bottom, -1.0, 1.0e6))) + 1, grid.height)
    return wp.vec4i(from_x, from_y, to_x, to_y)


@wp.func
def _tile_rect(rect: wp.vec4i) -> wp.vec4i:
    """Tiles touched by pixels left, top .. right, bottom (the last two excluded)."""
    if rect[2] <= rect[0] or rect[3] <= rect[1]:
        return wp.vec4i(0, 0, 0, 0)
    return wp.vec4i(rect[0] >> 4, rect[1] >> 4, (rect[2] + 15) >> 4, (rect[3] + 15) >> 4)


@wp.func
def tiles_touched(rect: wp.vec4i) -> int:
    """How many tiles a rectangle of pixels touches."""
    tiles = _tile_rect(rect)
    return (tiles[2] - tiles[0]) * (tiles[3] - tiles[1])


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
    """starts[t] = first pair of tile t in the sorted list. Pair i writes for all tiles since that of pair i - 1."""
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

    def counts_for(self, count: int) -> wp.array:
        """Where to put `tiles_touched` of each of `count` rectangles, before `fill`."""
        self._counts, self._ends = grown(self._counts, count), grown(self._ends, count)
        return self._counts

    def fill(self, rects: wp.array, count: int) -> None:
        """List the first `count` rectangles (left, top, right, bottom in pixels, the last two excluded)."""
        pairs = 0
        if count:
            wp.utils.array_scan(self._counts[:count], self._ends[:count], inclusive=True)
            pairs = int(self._ends[count - 1 : count].numpy()[0])
            # Room for the pairs and as much again, which the sort needs as scratch.
            self._tiles, self.items = grown(self._tiles, 2 * pairs), grown(self.items, 2 * pairs)
            inputs = [rects, self._ends, self.tiles_x, self._tiles, self.items]
            launch(list_tiles, count, inputs, self.device, count > SPLIT_FROM)
        if pairs:
            wp.utils.radix_sort_pairs(self._tiles, self.items, pairs, end_bit=self.tile_count.bit_length())
        inputs = [self._tiles, pairs, self.tile_count, self.starts]
        launch(find_starts, pairs + 1, inputs, self.device, pairs > SPLIT_FROM)
