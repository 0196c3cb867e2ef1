"""References of bars that stay bent are what beam theory and finite elements say."""

import numpy as np
import pytest

from phyxel.bench.accuracy.yielding import LENGTH, SETS, first_yield, in_elements, led, theoretical_set

PUSHES = np.array([0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0, 2.1])


def test_the_end_is_led_as_beam_theory_says():
    """It gets to where it is pushed and comes back to what stays; first it goes as an elastic one does: nearer to the
    root by ⅗δ²/L, turned by 3δ/2L."""
    for ratio in SETS:
        there, back = led(ratio)
        assert there[0, -1] == pytest.approx(ratio * first_yield(), rel=1e-4)
        assert back[:, -1] == pytest.approx(there[:, -1], rel=1e-9)
        assert back[0, 0] == pytest.approx(theoretical_set(ratio), rel=1e-3)
        down, nearer, turned = there[:, 50]
        assert nearer == pytest.approx(0.6 * down**2 / LENGTH, rel=1e-4)
        assert turned == pytest.approx(1.5 * down / LENGTH, rel=1e-4)


@pytest.mark.slow
def test_sets_are_those_of_finite_elements():
    """To 1 %: of 10 × 2 × 2 cells. Below the yield nothing stays."""
    sets = in_elements((10, 2, 2)).sets(PUSHES * first_yield())
    assert abs(sets[0]) < 1e-9
    for ratio, left in SETS.items():
        assert sets[ratio == PUSHES] == pytest.approx(left, rel=0.01)
