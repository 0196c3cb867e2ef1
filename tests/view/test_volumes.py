"""The grid of a field all through a body: values and inside are where the body has them."""

import numpy as np
import pytest

import phyxel as px
from phyxel.body.quantities import quantity
from phyxel.errors import PhyxelError
from phyxel.view.snapshots import Snapshots
from phyxel.view.volumes import GRID, BodyVolume


def world_of(size, at):
    body = px.Body(px.load("sphere", points=800), nodes=200, size=size, at=at, place="center")
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(body)
    return world, body


@pytest.mark.parametrize(("size", "at"), [(0.5, (0, 0, 0)), (0.05, (3, 1, -2))])
def test_a_grid_holds_the_body_and_its_values(size, at):
    """The distance from the surface of a ball is r - R, and its volume 4/3 π R³."""
    _, body = world_of(size, at)
    volume, radius = BodyVolume(body), 0.5 * size
    volume.look(quantity("distance"))
    part = volume.part("ball", "fog", (-radius, 0.0))
    data = np.frombuffer(part.blobs["records"].data, np.uint8).reshape(GRID, GRID, GRID, 2) / 255.0
    lower, upper = np.array(part.about["lower"]), np.array(part.about["upper"])
    z, y, x = np.indices((GRID, GRID, GRID))
    places = lower + (np.stack([x, y, z], axis=-1) + 0.5) / GRID * (upper - lower)
    away = np.linalg.norm(places - np.array(at), axis=-1)
    well = away < 0.85 * radius
    assert data[well, 1].min() > 0.5 and data[away > 1.15 * radius, 1].max() < 0.5
    assert np.abs(data[well, 0] - away[well] / radius).max() < 0.12
    cell = np.prod((upper - lower) / GRID)
    assert (data[..., 1] > 0.5).sum() * cell == pytest.approx(4 / 3 * np.pi * radius**3, rel=0.12)


def test_a_snapshot_shows_a_volume_in_place_of_the_body():
    world, _ = world_of(0.4, (0, 0.5, 0))
    sight = Snapshots(world)
    with pytest.raises(PhyxelError, match="fog shows a field"):
        sight.show(mode="fog")
    for mode in ("fog", "iso"):
        sight.show(field="stress", mode=mode)
        (part,) = sight.snapshot(1).parts
        assert (part.kind, part.about["mode"]) == ("volume", mode)
        assert len(part.blobs["records"].data) == 2 * GRID**3
    sight.show(field="stress", mode="surface")
    assert sight.snapshot(2).parts[0].kind == "surfels"
