"""Materials that vary over a body."""

from __future__ import annotations

import numpy as np
import pytest

import phyxel as px


def pulled(body: px.Body, by: float = 0.002) -> np.ndarray:
    """Displacement along x of the nodes of a bar of 1 m, pulled long at its ends and come to rest."""
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(body)
    body.fix(lambda X: X[:, 0] < 0.06)
    body.drag(lambda X: X[:, 0] > 0.94, (by, 0, 0))
    px.settle(world, 1e-4)
    return (body.positions - body.birth)[:, 0]


def strain_between(body: px.Body, u: np.ndarray, low: float, high: float) -> float:
    inside = (body.birth[:, 0] > low) & (body.birth[:, 0] < high)
    return float(np.polyfit(body.birth[inside, 0], u[inside], 1)[0])


MATERIAL = px.Material(young=1e5, poisson=0.0, density=1000.0)
STIFF_END = px.Box((0.5, -1, -1), (1, 1, 1))


def test_two_bars_in_a_row_strain_as_their_moduli():
    """One stress through both: E₁ε₁ = E₂ε₂, ν = 0, at strains of 0.3 %, as Green's law stiffens by 1.5 ε. Away from the
    joint by three spacings; it is smeared over one support, and what is left of it in the fit is below 5 %."""
    bar = px.Body(
        px.load("bar", points=600), material=MATERIAL, nodes=400, parts=[(STIFF_END, MATERIAL.but(young=4e5))]
    )
    u = pulled(bar)
    soft, stiff = strain_between(bar, u, 0.1, 0.32), strain_between(bar, u, 0.68, 0.9)
    assert soft / stiff == pytest.approx(4.0, rel=0.05)


def test_a_function_and_a_region_say_the_same():
    end = px.Box((0.47, -1, -1), (2, 1, 1))  # no node lies in its face
    by_region = px.Body(
        px.load("bar", points=600), material=MATERIAL, nodes=300, parts=[(end, MATERIAL.but(young=4e5))]
    )
    by_function = px.Body(
        px.load("bar", points=600),
        material=MATERIAL,
        nodes=300,
        vary={"young": lambda X: np.where(X[:, 0] >= 0.47, 4e5, 1e5)},
    )
    assert np.array_equal(by_region.mixture.number("young"), by_function.mixture.number("young"))
    assert np.allclose(pulled(by_region), pulled(by_function), atol=1e-7)


def test_density_that_grows_along_a_bar_moves_its_middle():
    """ρ = 500 + 1000 x: mass ρ̄V = 1000 V, middle of mass ∫ρx/∫ρ = 0.5833 m; nodes sample it to second order."""
    bar = px.Body(
        px.load("bar", points=600), material=MATERIAL, nodes=400, vary={"density": lambda X: 500 + 1000 * X[:, 0]}
    )
    world = px.World(device="cpu")
    world.add(bar)
    mass = bar.masses
    assert mass.sum() == pytest.approx(1000 * bar.volumes.sum(), rel=0.002)
    assert mass @ bar.positions[:, 0] / mass.sum() == pytest.approx(0.5 + 1 / 12, rel=0.005)
    world.advance(0.1)
    fallen = bar.diagnostics()
    assert fallen["momentum"][1] == pytest.approx(-9.81 * 0.1 * fallen["mass"], rel=1e-4)


def test_only_the_weak_half_yields():
    """The same stress everywhere, a yield stress that is low on the left: permanent strain there alone, and all over
    it: if it were lowest at the end, all would flow there."""
    weak = {"yield_stress": lambda X: np.where(X[:, 0] < 0.5, 2e3, 2e4)}
    bar = px.Body(px.load("bar", points=600), material=MATERIAL, nodes=300, vary=weak)
    pulled(bar, by=0.06)
    flowed = np.linalg.norm(bar.plastic_strain, axis=(1, 2))
    x = bar.birth[:, 0]
    assert flowed[(x > 0.1) & (x < 0.25)].min() > 0.005
    assert flowed[x > 0.6].max() < 1e-6


def test_a_colour_channel_is_read_at_the_nodes():
    """Red grows along x in the cloud: so does Young's modulus, within the cloud's spacing; what lies deeper than the
    nearest end is as red as that."""
    cloud = px.load("bar", points=4000)
    red = cloud.positions[:, 0]
    cloud = cloud.with_colors(np.stack([red, 0 * red, 0 * red], axis=1).astype(np.float32))
    bar = px.Body(cloud, material=MATERIAL, nodes=300, vary={"young": px.Channel("red", 1e5, 1e6)})
    expected = 1e5 + 9e5 * bar.birth[:, 0]
    off = np.abs(bar.mixture.number("young") - expected)
    assert (off < (0.05 + bar.nodes.reach) * 9e5).all()


def test_a_later_change_scales_what_varies():
    bar = px.Body(px.load("bar", points=600), material=MATERIAL, nodes=100, vary={"young": px.Channel("x", 1e5, 1e6)})
    before = bar.mixture.number("young")
    bar.change(young=2e5)
    assert np.allclose(bar.mixture.number("young"), 2 * before)


def test_what_was_mixed_comes_back_when_solid_again():
    bar = px.Body(
        px.load("bar", points=600), material=MATERIAL, nodes=100, parts=[(STIFF_END, MATERIAL.but(young=4e5))]
    )
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(bar)
    before = bar.mixture.number("young")
    bar.melt(viscosity=10.0)
    assert np.isfinite(bar.mixture.number("viscosity")).all()
    bar.solidify()
    assert np.array_equal(bar.mixture.number("young"), before)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"vary": {"yung": lambda X: X[:, 0]}}, 'did you mean "young"'),
        ({"vary": {"young": lambda X: X}}, "give a finite number for each"),
        ({"vary": {"young": px.Channel("red", 1, 2)}}, "no colours"),
        ({"vary": {"young": lambda X: -1 - X[:, 0]}}, "above 0"),
        ({"parts": [(px.Box((5, 5, 5), (6, 6, 6)), MATERIAL)]}, "holds no node"),
    ],
)
def test_what_is_wrong_is_said(options, word):
    cloud = px.load("bar", points=600)
    cloud = px.PointCloud(cloud.positions, cloud.normals, name="plain", shape=cloud.shape)
    with pytest.raises(px.PhyxelError, match=word):
        px.Body(cloud, material=MATERIAL, nodes=100, **options)


def test_an_unknown_channel_is_refused():
    with pytest.raises(px.PhyxelError, match='did you mean "green"'):
        px.Channel("gren", 0, 1)


def test_a_change_leaves_what_has_melted_molten():
    """`change` is for the solid: what has melted stays so, and is of the changed material when solid again."""
    bar = px.Body(px.load("bar", points=600), material=MATERIAL, nodes=100)
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(bar)
    bar.melt(px.Box((0.5, -1, -1), (1, 1, 1)), viscosity=10.0)
    molten = ~np.isnan(bar.mixture.number("viscosity"))
    assert 0 < molten.sum() < len(molten)
    bar.change(young=2e5, over=0.05)
    world.advance(0.1)
    assert np.array_equal(~np.isnan(bar.mixture.number("viscosity")), molten)
    assert (bar.mixture.number("young")[~molten] == 2e5).all()
    bar.solidify()
    assert (bar.mixture.number("young") == 2e5).all()


def test_what_was_molten_from_the_start_stays_solid_when_it_is():
    drop = px.Body(px.load("sphere", points=300), material=MATERIAL.but(viscosity=5.0), nodes=60)
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(drop)
    world.advance(0.01)
    drop.solidify()
    drop.change(young=3e5)
    assert drop.material.viscosity is None
    assert np.isnan(drop.mixture.number("viscosity")).all()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"parts": 5}, "parts = 5: give"),
        ({"vary": 5}, "vary = 5: give"),
        ({"refine": 5}, "refine = 5: give"),
        ({"size": "a"}, "size = 'a': give a length"),
        ({"name": 5}, "give a word"),
        ({"velocity": (1e30, 0, 0)}, "faster than light"),
        ({"parts": [(STIFF_END, 5)]}, "give a place and a Material"),
    ],
)
def test_a_body_says_what_is_wrong_with_its_options(options, word):
    with pytest.raises(px.PhyxelError, match=word):
        px.Body(px.load("bar", points=300), nodes=60, **options)


def test_other_things_that_are_wrong_are_said():
    with pytest.raises(px.PhyxelError, match="give a function"):
        px.Field(5)
    with pytest.raises(px.PhyxelError, match="two finite numbers"):
        px.Channel("x", float("nan"), 1.0)
    with pytest.raises(px.PhyxelError, match="True or False"):
        px.Mold(px.load("sphere", points=300), inside_out="no")
    body = px.Body(px.load("bar", points=300), nodes=60)
    with pytest.raises(px.PhyxelError, match="give a Material"):
        body.material = 5
