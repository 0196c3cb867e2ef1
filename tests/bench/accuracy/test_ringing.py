"""References of free bodies that ring."""

import numpy as np
import pytest

from phyxel.bench.accuracy.ringing import BAR, BAR_RINGS, ball_rings
from phyxel.material import Material


def test_bar_rings_as_finite_elements_do():
    """525 nodes of quadratic hexahedra are 0.7 % too high, no more."""
    found = BAR.even_elements(500, "quadratic").frequencies(6)
    assert found == pytest.approx(np.array(BAR_RINGS), rel=0.01)


def test_ball_rings_as_lamb_says():
    """ω a/c_T = 2.501 for torsion, whatever ν is, and 2.640 for lengthening at ν = 0.25."""
    ball = ball_rings(0.5, Material(young=2.5, poisson=0.25, density=1.0))  # c_T = 1
    assert 2 * np.pi * 0.5 * ball == pytest.approx(np.array([2.501] * 5 + [2.640]), abs=1e-3)
