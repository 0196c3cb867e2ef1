"""Translucent things against closed forms."""

import numpy as np
import pytest
import warp as wp

from phyxel.device import pick
from phyxel.render.camera import Camera, make_view
from phyxel.render.inside.haze import HazeLayer, Puffs, laid_over
from phyxel.render.tiles import make_grid, pixel_count

DEVICE = pick("cpu")
CAMERA = Camera(eye=(0.0, 0.0, 6.0), target=(0.0, 0.0, 0.0), fov=16.0, width=64, height=64)
GRID = make_grid(CAMERA.width, CAMERA.height, DEVICE)


def drawn(puffs: Puffs, front: float = 0.0) -> np.ndarray:
    nothing = wp.full(pixel_count(GRID), front, dtype=float, device=DEVICE)
    return HazeLayer(GRID, DEVICE).draw(puffs, make_view(CAMERA), nothing)


def slab(extinction: float, thick: float, color: tuple[float, ...], z: float = 0.0, cells: int = 40) -> Puffs:
    """A slab around z that is wider than the picture."""
    h = 2.4 / cells
    wide, deep = (np.arange(cells) + 0.5) * h - 1.2, (np.arange(round(thick / h)) + 0.5) * h - thick / 2 + z
    x = np.stack(np.meshgrid(wide, wide, deep, indexing="ij"), axis=-1).reshape(-1, 3)
    axes = np.broadcast_to(0.8 * h * np.eye(3), (len(x), 3, 3))
    return Puffs(x, axes, np.full(len(x), extinction * h**3), np.broadcast_to(color, x.shape))


@pytest.mark.parametrize("extinction", [0.2, 3.0])
def test_light_fades_as_beer_says(extinction):
    """T = e^−κs over the way s through a slab, and its own light is c (1 − T). A ray at angle θ goes s/cos θ; puffs a
    spacing h apart with σ = 0.8 h sum up to an even fog to 0.8 % (the sum of k(q)/2πσ² over a square lattice)."""
    thick = 0.6
    haze = drawn(slab(extinction, thick, (1.0, 0.5, 0.25)))
    y, x = np.mgrid[: CAMERA.height, : CAMERA.width] + 0.5
    slant = np.sqrt(1 + ((x - 32) ** 2 + (y - 32) ** 2) / CAMERA.focal**2)
    depth = -np.log(haze[..., 3])
    assert np.allclose(depth, extinction * thick * slant, rtol=0.01)
    assert np.allclose(haze[..., :3], (1 - haze[..., 3:]) * np.array([1.0, 0.5, 0.25]), atol=1e-4)


def test_the_nearer_hides_the_farther():
    """A red slab before a green one lets e^−κs of its light through; beyond something solid there is nothing."""
    red, green = slab(2.0, 0.6, (1.0, 0.0, 0.0), z=0.5), slab(4.0, 0.6, (0.0, 1.0, 0.0), z=-0.5)
    both = drawn(Puffs.joined([green, red]))[32, 32]
    first, second = np.exp(-1.2), np.exp(-2.4)
    assert both == pytest.approx([1 - first, first * (1 - second), 0.0, first * second], abs=0.01)
    wall = drawn(Puffs.joined([green, red]), front=1 / 6.0)[32, 32]
    assert wall == pytest.approx([1 - first, 0.0, 0.0, first], abs=0.01)


def test_a_film_is_thicker_seen_aslant():
    """Discs of area A with optical depth τ cover a plane; turned by θ, light goes τ/cos θ through it."""
    h, depth = 0.04, 0.5
    across = (np.arange(60) + 0.5) * h - 1.2
    flat = np.stack(np.meshgrid(across, across, [0.0], indexing="ij"), axis=-1).reshape(-1, 3)
    for angle in (0.0, 1.0):
        turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
        axes = np.broadcast_to(turn @ np.diag([0.8 * h, 0.8 * h, 0.0]), (len(flat), 3, 3))
        haze = drawn(Puffs(flat @ turn.T, axes, np.full(len(flat), depth * h * h), np.ones(flat.shape)))
        assert -np.log(haze[32, 32, 3]) == pytest.approx(depth / np.cos(angle), rel=0.02)


def test_what_is_laid_over_a_picture_mixes_as_light():
    """Half of white's light and nothing of one's own is display byte 188 = 255 (1.055 · 0.5^(1/2.4) − 0.055)."""
    white, half = np.full((1, 1, 4), 255, np.uint8), np.array([[[0.0, 0.0, 0.0, 0.5]]], np.float32)
    assert laid_over(white, half)[0, 0].tolist() == [188, 188, 188, 255]
    clear = np.zeros((1, 1, 4), np.uint8)
    assert laid_over(clear, half)[0, 0].tolist() == [0, 0, 0, 128]
