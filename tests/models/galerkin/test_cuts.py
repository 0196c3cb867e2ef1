"""A Galerkin space that cracks cut, and fields that go over to it."""

from dataclasses import replace

import numpy as np
import pytest

from phyxel.cracks.crack import Crack
from phyxel.cracks.fracture import Fracture
from phyxel.material import Mixture
from phyxel.models.galerkin.assembly import stiffness_from
from phyxel.models.galerkin.model import GalerkinModel
from phyxel.models.galerkin.space import Space
from phyxel.models.law import LawRow
from tests.models.field_models import SOFT, at_rest, end_of_bar, even, model_of, space_of


def fracture_of(space: Space) -> Fracture:
    return Fracture(space.layout.skin.min(axis=0), space.layout.skin.max(axis=0))


def behind(fracture: Fracture, X: np.ndarray, owner: np.ndarray, space: Space, index: np.ndarray) -> int:
    """How many ways from places to nodes cross ψ1 = 0 where ψ2 < 0: a hundred places on each are looked at."""
    part = np.linspace(0, 1, 100)[:, None, None]
    ways = (1 - part) * X[owner] + part * space.nodes[index]
    count = np.zeros(len(owner), bool)
    for crack in fracture.cracks:
        psi1, psi2 = (psi.reshape(100, -1) for psi in crack.values(ways.reshape(-1, 3)))
        crosses = (psi1[1:] >= 0) != (psi1[:-1] >= 0)
        count |= (crosses & (np.maximum(psi2[1:], psi2[:-1]) < -0.05)).any(axis=0)
    return int(count.sum())


def test_nothing_is_felt_through_a_crack():
    """Across a slit and a disc: no function reaches a point behind them, neither at quadrature points nor at surfels;
    even and linear fields are themselves and have their own gradient on each side, to 1e-9; a field of two values jumps
    from one to the other within 1e-9 of a spacing."""
    whole, _, _ = space_of("bar", 251)
    fracture = fracture_of(whole)
    slit = Crack.slit(fracture.grid, (0.3, -0.4, 0.0), (1.0, 0.2, 0.1), (0.0, -1.0, 0.0))
    fracture.cut(slit)
    fracture.cut(Crack.disc(fracture.grid, (-4.0, 0.2, 0.1), (1.0, 0.0, -0.3), 1.3))
    space = whole.cut(fracture.cracks.sees)
    assert space.functions.cut_off.sum() > 100
    felt = np.flatnonzero((space.values.data != 0) & space.functions.cut_off[space.functions.lists.point])[::3]
    assert behind(fracture, space.points, space.functions.lists.point[felt], space, space.values.indices[felt]) == 0
    skin = space.at_skin
    reached = np.flatnonzero(skin.phi.numpy())[::29]
    assert behind(fracture, space.layout.skin, skin.owner[reached], space, skin.index.numpy()[reached]) == 0
    field = np.column_stack([np.ones(len(space)), space.nodes])
    np.testing.assert_allclose(
        space.values @ field, np.column_stack([np.ones(len(space.points)), space.points]), atol=1e-9
    )
    at = space.at(np.array([[0.31, 1.2, 0.4], [-4.1, 0.3, 0.2], [0.1, 1.5, -1.0]]))
    for axis, slope in enumerate(at.gradients):
        np.testing.assert_allclose(slope @ field, np.tile(np.eye(4)[axis + 1], (3, 1)), atol=1e-9)
    ahead = slit.values(space.nodes)
    two = np.where(ahead[0] >= 0, 3.0, -5.0)
    side = np.array([[0.0, 1.2, 0.4], [0.0, 1.6, -0.7]])
    side[:, 0] = 0.3 - (0.2 * (side[:, 1] + 0.4) + 0.1 * side[:, 2])
    for way, value in ((0.02, 3.0), (-0.02, -5.0)):
        np.testing.assert_allclose(space.at(side + np.array([way, 0, 0])).values @ two, value, atol=1e-9)


def test_stiffness_follows_cuts():
    """K of a space that was cut twice, from K before each cut, is the one found anew, to rounding: also where volume is
    kept in the mean of cells (ν = 0.45), some of which have lost points that stand alone now."""
    space, _, _ = space_of("bar", 251)
    rows, which = [LawRow.of(SOFT.but(poisson=0.45), np.eye(3))], np.zeros(len(space.points), int)
    fracture, K = fracture_of(space), space.stiffness(rows, which)
    for x in (0.3, -4.0):
        fracture.cut(Crack.slit(fracture.grid, (x, -0.4, 0.0), (1.0, 0.2, 0.1), (0.0, -1.0, 0.0)))
        cut = space.cut(fracture.cracks.sees)
        K = stiffness_from(space.functions, cut.functions, K, rows, which)
        space = cut
    whole = space.stiffness(rows, which).toarray()
    np.testing.assert_allclose(K.toarray(), whole, atol=1e-12 * np.abs(whole).max())


@pytest.mark.parametrize("fills", [False, True], ids=["nodes", "face"])
def test_state_brings_back_the_same_bits(fills):
    """What `state` keeps makes of a new model, with the same cracks, one that goes on bit by bit, also where it has a
    preconditioner from before the last cut; a piece likewise; and with a face held, nearly incompressible."""
    models = []
    for _ in range(2):
        model = model_of("bar", 64, SOFT.but(yield_strain=0.02, poisson=0.45 if fills else SOFT.poisson))
        root = end_of_bar(model, -1)
        model.set_holds([replace(at_rest(root)[0], fills=fills)])
        models.append(model)
    first, second = models
    fracture, goals, push = fracture_of(first.space), [at_rest(root)[1]], even(first, 3, -9.81, 1)
    for model in models:
        model.cracks = fracture.cracks.sees
    for k in range(3):
        first.step(5e-3, push, goals, None)
        fracture.cut(Crack.disc(fracture.grid, (2.0 * k - 2, 0.3, 0.0), (1.0, 0.1 * k, 0.2), 1.2))
        assert first.crack()
    second.restore(first.state())
    for _ in range(2):
        for model in models:
            model.step(5e-3, push, goals, None)
    for name, value in first.state().items():
        np.testing.assert_array_equal(value, second.state()[name], err_msg=name)


def momenta(model: GalerkinModel) -> np.ndarray:
    return np.concatenate(model.momenta())


@pytest.mark.slow
def test_cuts_keep_what_nature_keeps():
    """A strained, flying, spinning, vibrating bar is cut again and again, through and through in the end, and moves on
    in between: mass to 1e-12, both momenta to 1e-9, and no cut adds energy (rounding: 1e-12)."""
    space, _, unit = space_of("bar", 64)
    X = space.nodes
    spin, drift = np.array([2.0, 5.0, -3.0]), np.array([1.0, 0.5, 0.0])
    wave = np.stack([np.sin(0.9 * X[:, 1]), np.cos(0.5 * X[:, 0]), np.sin(0.7 * X[:, 2])], axis=1)
    model = model_of("bar", 64, SOFT, np.cross(spin, X) + drift / unit + 20 * wave)
    model.u = 0.2 * np.roll(wave, 1, axis=1)
    fracture = fracture_of(space)
    model.cracks = fracture.cracks.sees
    mass = model.state()["mass"].sum()
    random = np.random.default_rng(3)
    for k in range(12):
        at, normal = random.uniform(X.min(axis=0), X.max(axis=0)), random.normal(size=3)
        if k < 11:
            fracture.cut(Crack.disc(fracture.grid, at, normal, random.uniform(0.8, 2.0)))
        else:
            fracture.cut(Crack.plane(fracture.grid, 0.2 * at, (1.0, 0.3, -0.2)))
        before, energy = momenta(model), sum(model.energies())
        assert model.crack()
        scale = np.repeat([np.abs(part).max() for part in np.split(before, 2)], 3)
        assert model.state()["mass"].sum() == pytest.approx(mass, rel=1e-12)
        assert (np.abs(momenta(model) - before) < 1e-9 * scale).all()
        assert sum(model.energies()) <= energy * (1 + 1e-12)
        model.step(2e-3, even(model, 0, 0, 0), [], None)
    assert model.space.parts().max() >= 1
    assert sum(model.energies()) > 0.3 * energy


def test_cuts_beside_a_hold_do_no_work():
    """A bar that swings about its held end is cut nearer and nearer to it, and a step follows each cut. What is held
    does not move (1e-9 spacings), no cut moves the middle of mass (1e-9) or adds energy, and no step adds more than
    gravity does: an implicit step only takes energy away, so a hold that pulled something back would show. What steps
    leave unfound is below 1e-6 of their energy."""
    model = model_of("bar", 64, SOFT)
    hold, goal = at_rest(end_of_bar(model, -1))
    model.set_holds([hold])
    X, goals = model.space.nodes, [goal]
    push, fracture = even(model, 0, -9.81, 0), fracture_of(model.space)
    model.cracks = fracture.cracks.sees
    for _ in range(10):
        model.step(5e-3, push, goals, None)
    for away in (3.0, 2.0, 1.2, 0.7, 0.4):
        at = np.array([X[:, 0].min() + away, X[:, 1].max(), 0.0])
        fracture.cut(Crack.slit(fracture.grid, at - [0, 1.0, 0], (1.0, 0.2, 0.0), (0.0, -1.0, 0.0)))
        held, middle, energy = model.held.rows @ model.u, model.middle(), sum(model.energies())
        assert model.crack()
        assert np.abs(model.held.rows @ model.u - held).max() < 1e-9
        assert np.abs(model.middle() - middle).max() < 1e-9
        cut = sum(model.energies())
        assert cut <= energy * (1 + 1e-12)
        before = model.u
        model.step(5e-3, push, goals, None)
        assert sum(model.energies()) < cut + model.work(before) + 1e-6 * energy


def test_pieces_move_as_the_whole_did():
    """Cut through, a bar's two halves are spaces of their own: together they have its points and mass, and u, v and
    their energies are those they had in the whole."""
    space, _, _ = space_of("bar", 64)
    X = space.nodes
    model = model_of("bar", 64, SOFT, 30 * np.sin(X[:, ::-1]))
    model.u = 0.05 * np.cos(X)
    fracture = fracture_of(space)
    fracture.cut(Crack.plane(fracture.grid, (0.1, 0.0, 0.0), (1.0, 0.2, 0.0)))
    model.cracks = fracture.cracks.sees
    model.crack()
    label = model.space.parts()
    assert label.max() == 1
    homes = model.space.homes_of_skin()
    energies, points, total = np.zeros(2), 0, np.zeros(6)
    for part in range(2):
        nodes = np.flatnonzero(label == part)
        own = model.space.part(nodes, np.flatnonzero(label[homes] == part))
        piece = model.part(own, nodes, np.zeros(0, int), np.zeros((0, 3)))
        piece.set_material(Mixture.even(SOFT, len(nodes)), np.eye(3))
        points += len(own.points)
        energies += piece.energies()
        total += momenta(piece)
    assert points == len(space.points)
    np.testing.assert_allclose(energies, model.energies(), rtol=1e-9)
    np.testing.assert_allclose(total, momenta(model), rtol=1e-9, atol=1e-12)
