"""Surfels go where the body goes, with their discs."""

import numpy as np
import pytest

import phyxel as px
from phyxel.movers.phyxel_bodies import phyxels_of
from phyxel.rotation import tangents
from phyxel.surface.discs import disc_radii
from tests.physics.matter import displace


@pytest.fixture
def torus():
    body = px.Body(px.load("torus", points=3000), nodes=400)
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(body)
    return world, body


def set_displacement(world, body, u):
    displace(phyxels_of(world).model, u / body.unit)
    world.revision += 1


def test_at_rest_surfels_are_the_cloud(torus):
    _, body = torus
    assert np.abs(body.surface.positions - body.cloud.positions).max() < 1e-6
    assert np.abs(body.surface.normals - body.cloud.normals).max() < 1e-5
    assert np.array_equal(body.surface.colors, body.cloud.colors)


def test_an_affine_motion_carries_positions_axes_and_normals(torus):
    """x = F X: positions exactly, axes with F, normals with F⁻ᵀ."""
    world, body = torus
    F = np.array([[1.2, 0.3, 0.0], [-0.2, 0.9, 0.1], [0.1, 0.0, 1.4]])
    before = body.surface.axis_a.numpy().copy()
    centre = body.origin
    set_displacement(world, body, (body.reference - centre) @ (F - np.eye(3)).T)
    surface = body.surface
    assert np.abs(surface.positions - (centre + (body.cloud.positions - centre) @ F.T)).max() < 1e-5
    assert np.abs(surface.axis_a.numpy() - before @ F.T).max() < 1e-5
    normals = body.cloud.normals @ np.linalg.inv(F)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    assert np.abs(surface.normals - normals).max() < 1e-4


def test_discs_of_neighbours_overlap():
    cloud = px.load("sphere", points=2000)
    radii = disc_radii(cloud.positions)
    spacing = np.sqrt(4 * np.pi * 0.25**2 / 2000)
    assert 1.0 * spacing < radii.mean() < 1.6 * spacing


def test_radii_follow_the_spacing_and_ignore_strays():
    grid = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0), [0.0]), axis=-1).reshape(-1, 3)
    radii = disc_radii(np.concatenate([0.1 * grid, [[50.0, 0, 0]]]))
    assert np.median(radii) == pytest.approx(1.2 * 0.1 * (4 + 2 * np.sqrt(2)) / 6, rel=1e-3)
    assert radii[-1] < 0.4


def test_tangents_are_right_handed():
    normals = np.random.default_rng(0).normal(size=(100, 3))
    normals = np.concatenate([normals / np.linalg.norm(normals, axis=1, keepdims=True), np.eye(3), -np.eye(3)])
    a, b = tangents(normals)
    assert np.allclose(np.cross(a, b), normals, atol=1e-12)
    assert np.allclose((a * b).sum(axis=1), 0, atol=1e-12)


@pytest.mark.slow
def test_a_scan_of_134345_points_follows(models):
    body = px.Body(px.load(models / "igea.ply"), nodes=300, size=1.0)
    world = px.World(device="cpu")
    world.add(body)
    start = body.surface.positions.copy()
    world.advance(0.1)
    fallen = body.surface.positions - start
    assert len(fallen) == 134_345
    assert np.abs(fallen - [0, -0.5 * 9.81 * 0.01, 0]).max() < 1e-4
