"""Phyxel bodies bend, twist, ring and dent as solids do, whichever way they are turned (physics 1.4, 2.9, 9.7)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.spatial.transform import Rotation

import phyxel as px
from phyxel.bench.accuracy.boxes import AS_IT_IS, TURNED, box_mesh
from phyxel.bench.accuracy.ringing import BAR_RINGS, stiffness_of
from phyxel.bench.accuracy.yielding import SETS, set_of
from phyxel.movers.phyxel_bodies import phyxels_of
from tests.physics.matter import forces_at

G = 9.81
SLANTED = Rotation.from_euler("z", 15, degrees=True).as_matrix()
"""by 15° about z: an edge across the end comes between the corners of octants"""
ROLLED = Rotation.from_euler("x", 20, degrees=True).as_matrix()
"""by 20° about its axis: edges along it do"""


def body_of(
    sides: tuple[float, float, float], turn: np.ndarray, nodes: int, material: px.Material, **options: object
) -> tuple[px.World, px.Body]:
    """In a world without gravity."""
    body = px.Body(box_mesh(sides, turn), nodes=nodes, material=material, **options)
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(body)
    return world, body


def test_uniform_stress_leaves_inner_phyxels_alone():
    """Stretched evenly, forces are the tractions of the surface, E ε a² ≈ 1 here; those of inner phyxels are what is
    left of b, 1e-3 of it. The scheme of the paper leaves a fifth and more."""
    left = {}
    for scheme in ("consistent", "m04"):
        _, body = body_of((2, 0.5, 0.4), TURNED, 500, px.Material(young=1e6, poisson=0.0), scheme=scheme)
        model = phyxels_of(body.world).model
        push = np.linalg.norm(forces_at(model, 1e-3 * model.matter.X.numpy()), axis=1) / 1e3
        deep = body.nodes.reach > (0 if scheme == "consistent" else 1.2 * body.unit)
        left[scheme] = push[deep].max() / push.max()
    assert left["consistent"] < 3e-3
    assert left["m04"] > 0.05


@pytest.mark.parametrize("turn", [TURNED, SLANTED], ids=["turned", "slanted"])
def test_a_turned_bar_under_tension_has_free_sides(turn):
    """u = ε (x, −νy, −νz): σ = E ε along x alone, so that nothing acts on phyxels between the ends, also not along the
    sides. Over E ε a², of which an end has about 1, 0.01 in the mean (0.2 where only inner phyxels are left alone, and
    the bar is 1 to 3 % too soft)."""
    _, bar = body_of((2, 0.5, 0.4), turn, 500, px.Material(young=1e6, poisson=0.3))
    model = phyxels_of(bar.world).model
    X = model.matter.X.numpy().astype(np.float64) @ turn
    push = forces_at(model, 1e-3 * (X * [1, -0.3, -0.3]) @ turn.T) / 1e3
    between = np.abs(X[:, 0] - X[:, 0].mean()) < 0.5 * np.ptp(X[:, 0]) - 0.25
    left = np.sqrt((push[between] ** 2).sum(axis=1).mean())
    print(f"left {left:.4f}")
    assert left < 0.01
    assert np.abs(push[~between]).max() > 0.5


@pytest.mark.parametrize("turn", [AS_IT_IS, TURNED], ids=["as it is", "turned"])
def test_mass_middle_and_inertia_are_those_of_the_box(turn):
    """Mass to rounding; of the others 0.5 %, since that good are the integrals over octants that the surface cuts. Bare
    volumes on the surface would be off by 20 %."""
    sides = (1.0, 0.3, 0.2)
    body = px.Body(box_mesh(sides, turn), nodes=200, material=px.Material(density=500.0))
    X, m = body.positions @ turn, body.masses
    assert m.sum() == pytest.approx(500 * np.prod(sides), rel=1e-6)
    arm = X - m @ X / m.sum()
    assert m @ X / m.sum() == pytest.approx(np.array(sides) / 2, abs=0.001)
    squares = (m[:, None, None] * arm[:, :, None] * arm[:, None, :]).sum(axis=0) / m.sum()
    assert squares == pytest.approx(np.diag(sides) ** 2 / 12, rel=0.005, abs=3e-5)


FAT_TIP = {0.25: -0.03949, 0.45: -0.0386}
"""[m], 2 × 0.5 × 0.4 m, E = 30 MPa, 1,200 kg/m³, clamped: quadratic hexahedra, converged"""
SLENDER_TIP = -0.0023485
"""[m], 1 × 0.05 × 0.05 m, E = 3 GPa, ν = 0.3, 1,200 kg/m³: beam theory with shear, and finite elements"""


def tip_of(sides: tuple[float, float, float], turn: np.ndarray, nodes: int, young: float, poisson: float) -> np.ndarray:
    """How far the end goes under its weight [m], in axes of the bar, held at the other's face."""
    material = px.Material(young=young, poisson=poisson, density=1200.0, drag=100.0 if young > 1e9 else 0.0)
    world, bar = body_of(sides, turn, nodes, material)
    world.gravity = turn @ np.array([0, -G, 0])
    bar.fix(lambda X: (X @ turn)[:, 0] < 0.25 * bar.unit)
    if young > 1e9:
        world.advance(0.4)
    else:
        px.settle(world, 1e-5)
    end = np.array([[sides[0], sides[1] / 2, sides[2] / 2]])
    return (bar.displacement_at(end @ turn.T) @ turn)[0]


@pytest.mark.parametrize(
    ("turn", "nodes", "poisson", "good"),
    [
        (AS_IT_IS, 500, 0.25, 0.04),
        (TURNED, 500, 0.25, 0.04),
        (ROLLED, 500, 0.25, 0.04),
        (SLANTED, 1000, 0.25, 0.04),
        pytest.param(AS_IT_IS, 2000, 0.45, 0.03, marks=pytest.mark.slow),
        pytest.param(TURNED, 2000, 0.25, 0.03, marks=pytest.mark.slow),
        pytest.param(TURNED, 2000, 0.45, 0.03, marks=pytest.mark.slow),
    ],
    ids=[
        "as it is",
        "turned",
        "rolled",
        "slanted",
        "as it is, finer",
        "turned, finer",
        "turned, finer, nearly incompressible",
    ],
)
def test_a_cantilever_bends_as_finite_elements_do(turn, nodes, poisson, good):
    """2 × 0.4 × 0.5 m. At 400 to 1,000 phyxels, four to six layers, it is −2.7 to +1.3 % by how layers come out; turned
    in eight ways, 500 to 1,600, −3.5 to +2.6. Where edges between octants' corners had no phyxel of their own it hung
    7.9 % too low slanted, 10.6 rolled."""
    tip = tip_of((2, 0.5, 0.4), turn, nodes, 3e7, poisson)
    print(f"{tip[1] / FAT_TIP[poisson] - 1:+.2%}, sideways {tip[2] / tip[1]:+.2%}")
    assert tip[1] == pytest.approx(FAT_TIP[poisson], rel=good)
    assert abs(tip[2]) < 2 / 3 * good * abs(tip[1])


def test_a_slender_bar_of_three_layers_bends_as_a_beam():
    """Within 12 %; with 2,000 phyxels, five layers, 1.4 %."""
    assert tip_of((1, 0.05, 0.05), AS_IT_IS, 500, 3e9, 0.3)[1] == pytest.approx(SLENDER_TIP, rel=0.12)


@pytest.mark.parametrize(
    ("turn", "nodes"), [(AS_IT_IS, 300), pytest.param(TURNED, 500, marks=pytest.mark.slow)], ids=["as it is", "turned"]
)
def test_a_free_bar_rings_as_it_should(turn, nodes):
    """1 × 0.2 × 0.2 m, free: six modes without energy, then two of bending, then torsion, with f = √(G J/ρI)/2L,
    J = 0.1406 a⁴, I = a⁴/6. 5 % for four layers; six have 1 %. Turned, 300 have 5.1 %, 500 have 2.8 %."""
    young, poisson, density = 1e6, 0.3, 1000.0
    world, _ = body_of((1, 0.2, 0.2), turn, nodes, px.Material(young=young, poisson=poisson, density=density))
    K, m = stiffness_of(world)
    squares = eigh(K.toarray() / np.sqrt(np.outer(m, m)), eigvals_only=True, subset_by_index=(0, 11))
    assert np.abs(squares[:6]).max() < 1e-3 * squares[6]
    found = np.sqrt(squares[6:]) / (2 * np.pi)
    torsion = np.sqrt(young / (2 * (1 + poisson)) * 0.1406 / (density / 6)) / 2
    print(f"bending {found[:2]} Hz, torsion {found[2] / torsion:.3f}")
    assert found[2] == pytest.approx(torsion, rel=0.05)
    assert found[:2] == pytest.approx(BAR_RINGS[0], rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["phyxel", "galerkin"])
def test_a_bar_bent_beyond_its_yield_stays_bent(model):
    """A cantilever 1 × 0.1 × 0.1 m of four layers of phyxels, or three of a field, is pushed at its end to 1.6 times
    the deflection at which it begins to yield and led back until nothing pushes: what stays, against finite elements,
    to 20 %."""
    left, _ = set_of(1.6, {"phyxel": 496, "galerkin": 189}[model], model=model)
    print(f"left {left / SETS[1.6]:.3f} of what finite elements say")
    assert left == pytest.approx(SETS[1.6], rel=0.2)


def test_what_melts_is_evened_out_and_keeps_its_momenta():
    """Phyxels of an eighth to the whole of a cell become such of about one volume, in the same room: mass to rounding,
    momentum and angular momentum to that of single precision (physics 7.8)."""
    body = px.Body(
        px.load("bear", points=1000), nodes=300, size=0.3, velocity=(1, 2, 0.5), spin=(1, -3, 2), at=(1, 2, 3)
    )
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(body)
    world.advance(0.02)
    before, volumes, middle = body.diagnostics(), body.volumes.sum(), body.masses @ body.positions
    body.melt(viscosity=30.0)
    after = body.diagnostics()
    assert after["mass"] == pytest.approx(before["mass"], rel=1e-9)
    assert body.volumes.sum() == pytest.approx(volumes, rel=1e-9)
    assert after["momentum"] == pytest.approx(before["momentum"], rel=1e-4)
    size = np.linalg.norm(before["angular_momentum"])
    assert after["angular_momentum"] == pytest.approx(before["angular_momentum"], abs=1e-4 * size)
    assert body.masses @ body.positions == pytest.approx(middle, rel=1e-3)
    assert np.percentile(body.volumes, 5) > 0.5 * body.volumes.mean()
    assert body.masses == pytest.approx(body.mixture.number("density") * body.volumes)


def test_a_scheme_is_chosen_by_name():
    cloud = px.load("box", points=300)
    one, other = px.Body(cloud, nodes=64), px.Body(cloud, nodes=64, scheme="m04")
    assert (one.scheme, one.support) == ("consistent", 1.8)
    assert (other.scheme, other.support) == ("m04", 2.0)
    assert one.nodes.reach.min() == 0 < other.nodes.reach.min()
    with pytest.raises(px.PhyxelError, match="m04"):
        px.Body(cloud, nodes=64, scheme="mo4")
    with pytest.raises(px.PhyxelError, match="scheme"):
        px.Body(cloud, nodes=64, model="modal", scheme="m04")
