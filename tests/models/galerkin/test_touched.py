"""Galerkin bodies under impulses of others."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from phyxel.models.galerkin.rigid_motion import momenta_of
from tests.models.field_models import even, model_of

DT = 5e-4


def struck(speed: float):
    """A box of 1 MPa that an impulse hits at one corner, as large as gives the whole body a speed [m/s]: the model,
    what hit it and where, (1, 3) each, and φ there."""
    model = model_of("box", 60)
    model.step(DT, even(model, 0, 0, 0), [], None)
    corner = int(np.argmax(model.space.nodes @ np.array([1.0, 0.9, 1.1])))
    rows = csr_array(model.space.at_nodes.values[[corner]])
    mass = model._inertia.weight.sum()
    impulse = mass * speed / model.unit * np.array([[-0.6, -0.5, -0.4]]) / np.sqrt(0.77)
    place = rows @ model.space.nodes
    model.push(rows, place, impulse, np.zeros_like(model.u), DT)
    return model, impulse, place, rows


@pytest.mark.parametrize("speed", [0.01, 0.5])
def test_a_blow_gives_its_momenta_and_no_more_energy_than_its_work(speed: float):
    """Whether the linear answer holds (0.01 m/s: a strain of 1e-2) or not, when the step is taken anew: P = Σp and
    L = Σ x × p to rounding, and no more energy than the force p/Δt does work on the corner."""
    model, impulse, place, rows = struck(speed)
    given = momenta_of(place, impulse)
    carried = model._inertia.mass @ model.v
    got = momenta_of(model.space.nodes + model.u, carried)
    np.testing.assert_allclose(got, given, atol=1e-9 * np.abs(given).max())
    work = float(np.vdot(impulse, rows @ model.u)) / DT * model.unit**3
    assert 0 < sum(model.energies()) <= work
