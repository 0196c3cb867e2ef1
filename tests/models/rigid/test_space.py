"""Fields of a rigid body, and the places that feel for others."""

import numpy as np
import pytest

import phyxel as px


def test_values_are_those_of_linear_fields() -> None:
    """Σ φ_I (a + B X_I) = a + B X, for any a and B."""
    body = px.Body(px.load("torus", points=500), model="rigid")
    px.World(device="cpu").add(body)
    space, rng = body.space, np.random.default_rng(0)
    a, B, X = rng.normal(size=3), rng.normal(size=(3, 3)), rng.normal(size=(20, 3))
    values = space.at(X)
    np.testing.assert_allclose(values.values @ (a + space.nodes @ B.T), a + X @ B.T, atol=1e-13)
    slopes = np.stack([part @ (a + space.nodes @ B.T) for part in values.gradients], axis=2)
    np.testing.assert_allclose(slopes, np.broadcast_to(B, (20, 3, 3)), atol=1e-13)


@pytest.mark.parametrize("turn", [(0, 0, 0), (10, 40, 70)])
def test_a_box_feels_with_its_corners_first(turn) -> None:
    """All eight, exactly, though no point of the cloud lies on an edge; others keep their distance from them."""
    body = px.Body(px.load("box", points=700), model="rigid", rotate=turn, size=0.2)
    px.World(device="cpu").add(body)
    places = body.centre + body.unit * np.asarray(body.space.felt.values @ body.space.nodes)
    own = (places - body.centre) @ body.shape.rotation
    np.testing.assert_allclose(np.abs(own[:8]), 0.1, atol=1e-12)
    assert len(np.unique(own[:8].round(6), axis=0)) == 8 < len(own)
    away = np.linalg.norm(own[8:, None] - own[:8], axis=2)
    assert away.min() > body.unit
