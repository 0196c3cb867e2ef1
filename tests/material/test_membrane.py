"""Particle surfaces as they are used: what presses on them, and what is said of wrong scenes."""

from pathlib import Path

import numpy as np
import pytest

import phyxel as px
from phyxel.errors import PhyxelError
from phyxel.scene import Scene


def in_world(*things: object, **options: object) -> px.World:
    world = px.World(**options)
    for thing in things:
        world.add(thing)
    return world


def flag(folder: Path, across: int = 18, up: int = 12) -> px.PointCloud:
    """1.5 m × 1 m of quads, upright along x."""
    lines = [f"v {1.5 * i / across} {j / up} 0" for j in range(up + 1) for i in range(across + 1)]
    row = across + 1
    corners = [j * row + i + 1 for j in range(up) for i in range(across)]
    lines += [f"f {a} {a + 1} {a + row + 1} {a + row}" for a in corners]
    (folder / "flag.obj").write_text("\n".join(lines))
    return px.load(folder / "flag.obj")


@pytest.mark.parametrize(("side", "off"), [(10, 0.02), (40, 0.04)])
def test_a_sheet_of_bare_points_weighs_as_much_as_cloth(side: int, off: float, tmp_path: Path) -> None:
    """1 m² of 150 g/m², with its rim; a disc that meets a row of the lattice at once is a few percent off, whatever the
    number of points."""
    x, z = np.meshgrid(np.linspace(0, 1, side), np.linspace(0, 1, side))
    np.savetxt(tmp_path / "bare.xyz", np.stack([x.ravel(), 0 * x.ravel(), z.ravel()], axis=1))
    cloth = px.Body(px.load(tmp_path / "bare.xyz"), model="particles", material=px.Membrane.cotton())
    assert cloth.masses.sum() == pytest.approx(0.1505, rel=off)


@pytest.mark.parametrize("bulk", [1e3, 1e5])
def test_what_is_blown_up_only_loses_energy(bulk: float) -> None:
    """Nothing from outside acts: of the work ½ B V₀ (amount − 1)² that is in the filling, elastic and kinetic energy
    only get less, by drag, inner friction and steps, however uneven the mesh is and stiff the filling."""
    jack = px.Body(px.load("jack", points=400), model="particles", material=px.Membrane.latex(), size=0.5)
    world = in_world(jack, px.Filling(bulk, amount=1.3), gravity=(0, 0, 0))
    volume, energy = jack.diagnostics()["volume"], [jack.diagnostics()["volume"] * bulk * 0.3**2 / 2]
    for _ in range(4):
        world.advance(0.025)
        now = jack.diagnostics()
        energy.append(now["elastic"] + now["kinetic"])
    assert np.diff(energy).max() < 0
    assert jack.diagnostics()["volume"] > 1.05 * volume


def test_a_blown_up_surface_settles_where_it_comes_to_rest() -> None:
    """Equilibria do not depend on how they are reached; 1 % is what the slowest swing has left after 0.3 s."""
    settled, swung = (
        px.Body(px.load("jack", points=200), model="particles", material=px.Membrane.latex().but(drag=50.0), size=0.5)
        for _ in range(2)
    )
    px.settle(in_world(settled, px.Filling(1e4, amount=1.2), gravity=(0, 0, 0)))
    in_world(swung, px.Filling(1e4, amount=1.2), gravity=(0, 0, 0)).advance(0.3)
    assert swung.diagnostics()["volume"] == pytest.approx(settled.diagnostics()["volume"], rel=1e-2)
    assert swung.diagnostics()["elastic"] == pytest.approx(settled.diagnostics()["elastic"], rel=1e-2)


def test_threads_do_not_shrink_in_a_gale(tmp_path: Path) -> None:
    """Cloth folds rather than be pressed together along its threads: Euler's load of a thread between two knots is
    10⁻⁴ of what would shorten it by a tenth."""
    cloth = px.Body(flag(tmp_path), model="particles", material=px.Membrane.silk())
    pairs = cloth.cloud.quads[:, [0, 1]]
    cloth.fix(px.Box((-1, -1, -1), (0.01, 2, 1)))
    world = in_world(cloth, px.Wind((40.0, 0.0, 10.0)))
    before = np.linalg.norm(np.diff(cloth.birth[pairs], axis=1), axis=2)
    for _ in range(3):
        world.advance(0.05)
        now = np.linalg.norm(np.diff(cloth.positions[pairs], axis=1), axis=2)
        assert (now / before).min() > 0.9


def test_a_fast_cloth_is_caught_by_a_ball() -> None:
    """Where it hits the ball it stays above its middle, however hard the rest, far heavier, pulls it on."""
    cloth = px.Body(
        px.load("cloth", points=900),
        model="particles",
        material=px.Membrane.silk(),
        velocity=(0, -50, 0),
        at=(0, 0.2, 0),
    )
    in_world(cloth, px.Sphere(0.05)).advance(0.02)
    assert cloth.positions[:, 1].max() > 0
    assert cloth.positions[:, 1].min() < -0.5


def test_a_world_with_a_filling_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    def blown() -> tuple[px.World, px.Body]:
        body = px.Body(px.load("jack", points=200), model="particles", size=0.5)
        return in_world(body, px.Filling(1e4, amount=1.3), gravity=(0, 0, 0)), body

    world, body = blown()
    world.advance(0.02)
    world.save(tmp_path / "kept.npz")
    world.advance(0.02)
    again, same = blown()
    again.restore(tmp_path / "kept.npz")
    again.advance(0.02)
    assert np.array_equal(body.positions, same.positions)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('model = "particles"\nlinks = 40', 'links = 40: give "edges", "weave", "none" or a number of nearest points'),
        ('model = "particles"\nlinks = true', "links = true: input should be 'edges', 'weave' or 'none'"),
        ('model = "particles"\nmaterial = { preset = "gelatin" }', 'in a scene preset = "cotton"'),
        ('material = { preset = "cotton" }', 'in a scene preset = "rubber"'),
        ("material = { thickness = 0.001 }", 'material.thickness: only a thin surface has it: model = "particles"'),
    ],
)
def test_wrong_scenes_are_told_what_to_write(keys: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(f'[[body]]\nshape = "sphere"\npoints = 200\nnodes = 20\n{keys}\n')
    with pytest.raises(PhyxelError) as error:
        Scene.read(tmp_path / "a.toml").world("cpu")
    assert said in str(error.value)
