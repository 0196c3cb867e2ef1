"""Points are found again in other frames by their numbers. Every point of these bodies has a colour of its own, which
tells whether a number still means the same point."""

import itertools

import numpy as np
import pytest

import phyxel as px
from phyxel.points.ply import read_ply

SOFT = px.Material(young=2e4, poisson=0.3)


def colourful(shape: str, points: int) -> px.PointCloud:
    """Point k has the colour (k mod 256, k / 256, 128) / 255."""
    number = np.arange(points)
    cloud = px.load(shape, points=points)
    return cloud.with_colors(np.stack([number % 256, number // 256, np.full(points, 128)], axis=1) / 255)


def written(thing, path) -> dict[str, np.ndarray]:
    """The columns of a PLY file of points."""
    px.export.ply(thing, path)
    return read_ply(path)["vertex"]


def by_colour(columns) -> np.ndarray:
    return columns["red"].astype(int) + 256 * columns["green"].astype(int)


def test_rows_of_an_elastic_drop_are_the_points_it_came_with(tmp_path):
    """Also while surfels are shown in pieces, or two as one."""
    ball = px.Body(colourful("sphere", 2000), nodes=100, material=SOFT.but(young=3e3), size=0.4, at=(0, 0.3, 0))
    world = px.World(device="cpu")
    world.add(ball)
    world.add(px.Ground())
    counts = set()
    for frame in world.play(seconds=0.4, fps=25):
        counts.add(len(ball.surface))
        columns = written(frame, tmp_path / "ball.ply")
        assert np.array_equal(columns["id"], np.arange(2000))
        assert np.array_equal(by_colour(columns), np.arange(2000))
        assert np.array_equal(columns["y"], ball.surface.carried.positions[:, 1].astype(np.float32))
    assert len(counts) > 1, "they were shown otherwise"


def test_what_breaks_keeps_its_numbers(tmp_path):
    bar = px.Body(colourful("bar", 3000), nodes=200)
    bar.cut(bar.born.centre, (1, 0.2, 0))
    bar.cut(bar.born.centre + np.array((0.1, 0, 0)), (0.5, 1, 0))
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(bar)
    whole = written(bar, tmp_path / "bar.ply")
    world.advance(1e-6)
    assert len(world.bodies) == 4
    parts = written(px.world.Frame(1, world.time, world.bodies), tmp_path / "bar.ply")
    assert len(np.unique(whole["id"])) == len(whole["id"])
    assert sorted(parts["id"]) == sorted(whole["id"])
    own = parts["id"] < 3000
    assert own.sum() == 3000 and (~own).sum() > 500
    assert np.array_equal(by_colour(parts)[own], parts["id"][own])
    before, after = np.argsort(whole["id"]), np.argsort(parts["id"])
    for axis in "xyz":
        assert np.abs(whole[axis][before] - parts[axis][after]).max() < 1e-5
    assert sorted(np.unique(parts["body"])) == [0, 1, 2, 3]


def melting() -> tuple[px.World, px.Body]:
    world = px.World(device="cpu")
    bear = px.Body(colourful("bear", 2500), nodes=200, at=(0, 0.05, 0), material=px.Material.gelatin())
    world.add(bear)
    world.add(px.Ground())
    world.at(0.02, lambda _: bear.melt(viscosity=20.0))
    world.at(0.5, lambda _: bear.solidify())
    world.at(0.6, lambda _: bear.melt())
    return world, bear


def given_to(body: px.Body) -> int:
    """How many numbers its surfels have been given so far, hidden ones too."""
    state = body.surfels.state()
    return int(state["given" if "given" in state else "blend.given"])


@pytest.fixture(scope="module")
def melted(tmp_path_factory):
    """The frames of what melts, freezes and melts again, with how fast it went, and a checkpoint of the middle."""
    folder = tmp_path_factory.mktemp("melt")
    world, bear = melting()
    frames = []
    for frame in world.play(seconds=0.8, fps=25):
        frames.append(written(frame, folder / "bear.ply"))
        frames[-1]["speed"] = np.linalg.norm(bear.velocities, axis=1).max()
        frames[-1]["given"] = given_to(bear)
        if frame.index == 9:
            world.save(folder / "middle.npz")
    return frames, folder / "middle.npz", bear.unit


def test_a_melt_keeps_old_numbers_and_gives_new_ones_once(melted):
    """A number goes no farther in a frame than flow does, and a spacing of nodes at most from its place onto the skin.
    No number is given again: one that no frame has shown yet is that of a surfel that lay hidden since it was made, or
    larger than all that were given before. Nearly all that were there go on: one in a hundred a frame at most is taken
    out in the mean, and not one in ten where it lands, and skin is squeezed together."""
    frames, _, spacing = melted
    seen = set(frames[0]["id"].tolist())
    stay = []
    for before, after in itertools.pairwise(frames):
        assert len(np.unique(after["id"])) == len(after["id"])
        new = np.setdiff1d(after["id"], before["id"])
        made = new[new >= before["given"]]
        hidden = np.setdiff1d(new, made)
        assert not seen.intersection(made.tolist()) and (made < after["given"]).all()
        assert len(hidden) < 0.05 * len(after["id"])
        seen.update(new.tolist())
        _, one, other = np.intersect1d(before["id"], after["id"], return_indices=True)
        stay.append(len(one) / len(before["id"]))
        way = np.stack([after[axis][other] - before[axis][one] for axis in "xyz"], axis=1)
        fastest = max(before["speed"], after["speed"])
        assert np.linalg.norm(way, axis=1).max() < fastest / 25 + spacing
    assert min(stay) > 0.9 and np.mean(stay) > 0.99
    assert len(seen) > 1.25 * 2500, "many were added"


def test_numbers_go_on_after_a_checkpoint(melted, tmp_path):
    frames, middle, _ = melted
    world, bear = melting()
    world.restore(middle)
    assert np.array_equal(written(bear, tmp_path / "bear.ply")["id"], frames[9]["id"])
    for index in range(10, len(frames)):
        world.advance(index / 25 - world.time)
        assert np.array_equal(written(bear, tmp_path / "bear.ply")["id"], frames[index]["id"])
