"""What stays bent (physics 6.5): phyxels that flow more on one side than on the other."""

import numpy as np
import pytest

from phyxel.material import Material
from phyxel.models.phyxel.model import PhyxelModel
from tests.physics.matter import energy_at, forces_at, model_of, rotation, shaken_block, tangent_along

FLOWING = Material(young=1.0e6, poisson=0.3, density=1000.0, damping=0.0, yield_strain=0.02)
PAIRS = [(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)]
"""Order of the parts of symmetric tensors."""


def bent_block(seed: int = 3, bend: float = 0.03) -> PhyxelModel:
    """A block whose phyxels have flowed at random."""
    model = model_of(shaken_block(4), FLOWING)
    random = np.random.default_rng(seed)
    plastic = random.uniform(-0.05, 0.05, (len(model), 3, 3))
    model.now.plastic.assign(plastic + plastic.transpose(0, 2, 1))
    model.now.bend.assign(random.uniform(-bend, bend, (len(model), 3, 6)))
    return model


def strain_of(J: np.ndarray) -> np.ndarray:
    return 0.5 * (np.swapaxes(J, -1, -2) @ J - np.eye(3))


@pytest.mark.parametrize("bend", [0.03, 0.4])
def test_forces_are_the_slope_of_the_energy_and_the_tangent_theirs(bend):
    """Also of bends that are sharper than their phyxel. Differences over 1e-4 in double miss some 1e-8."""
    model = bent_block(bend=bend)
    u, way = 0.1 * np.random.default_rng(4).standard_normal((2, len(model), 3))
    slope = (energy_at(model, u + 1e-4 * way) - energy_at(model, u - 1e-4 * way)) / 2e-4
    change = (forces_at(model, u + 1e-4 * way) - forces_at(model, u - 1e-4 * way)) / 2e-4
    assert -(forces_at(model, u) * way).sum() == pytest.approx(slope, rel=1e-6)
    assert tangent_along(model, way) == pytest.approx(change, rel=1e-5, abs=1e-6 * np.abs(change).max())


def test_what_is_bent_keeps_its_momenta():
    """Inner forces push nothing and turn nothing, and a turned body has the same energy."""
    model = bent_block()
    u = 0.1 * np.random.default_rng(4).standard_normal((len(model), 3))
    X = model.matter.X.numpy()
    force = forces_at(model, u)
    size = np.abs(force).sum()
    assert force.sum(axis=0) == pytest.approx(0.0, abs=1e-12 * size)
    assert np.cross(X + u, force).sum(axis=0) == pytest.approx(0.0, abs=1e-11 * size)
    turned = (X + u) @ rotation(70).T - X
    assert energy_at(model, turned) == pytest.approx(energy_at(model, u), rel=1e-12)


def test_a_bend_that_has_flowed_costs_nothing():
    """y = X + ½ H X X, of whose strain all has flowed, E and ∂E where phyxels measure them: no phyxel has any energy.
    Unless it does not know how it is bent."""
    random = np.random.default_rng(6)
    H = random.uniform(-0.02, 0.02, (3, 3, 3))
    H += H.transpose(0, 2, 1)

    def energy(known: bool) -> float:
        model = model_of(shaken_block(4), FLOWING.but(poisson=0.0))  # free to swell
        X = model.matter.X.numpy()
        u = 0.5 * np.einsum("lab,na,nb->nl", H, X, X)
        forces_at(model, u)
        J = np.eye(3) + model.now.gradient.numpy()
        slopes = np.einsum("lab,nlc->nabc", H, J)  # ∂_b of JᵀJ is this and its transpose
        slopes = 0.5 * (slopes + slopes.transpose(0, 3, 2, 1))
        arm = np.cbrt(model.matter.volume.numpy()) / np.sqrt(12)
        parts = np.stack([np.stack([slopes[:, a, d, c] for a, c in PAIRS], axis=1) for d in range(3)], axis=1)
        model.now.plastic.assign(strain_of(J))
        if known:
            model.now.bend.assign(arm[:, None, None] * parts)
        return energy_at(model, u)

    assert energy(known=False) > 1.0
    assert energy(known=True) == pytest.approx(0.0, abs=1e-12 * energy(known=False))


def test_what_has_flowed_is_tied_by_its_secant_stiffness():
    """The hourglass energy H of phyxels that have flowed by εᵖ is Y/(Y + |εᵖ|) of the elastic one, 0.1 at least: of
    bodies alike but for Y it lacks H|εᵖ|/(Y + |εᵖ|). Forces are the slope of the energy there, too."""
    X = shaken_block(4)
    plastic = np.zeros((len(X), 3, 3))
    plastic[:, 0, 1] = plastic[:, 1, 0] = 0.02 / np.sqrt(2)
    u, way = 0.1 * np.random.default_rng(4).standard_normal((2, len(X), 3))
    energies = {}
    for strain in (None, 0.02, 0.06, 1e-5):
        model = model_of(X, FLOWING.but(yield_strain=strain))
        model.now.plastic.assign(plastic)
        energies[strain] = energy_at(model, u)
        slope = (energy_at(model, u + 1e-4 * way) - energy_at(model, u - 1e-4 * way)) / 2e-4
        assert -(forces_at(model, u) * way).sum() == pytest.approx(slope, rel=1e-6)
    lacks = {strain: energies[None] - energy for strain, energy in energies.items()}
    assert lacks[0.06] / lacks[0.02] == pytest.approx((0.02 / 0.08) / (0.02 / 0.04), rel=1e-6)
    assert lacks[1e-5] / lacks[0.02] == pytest.approx(0.9 / 0.5, rel=1e-6)
