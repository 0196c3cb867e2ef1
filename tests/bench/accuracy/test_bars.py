"""References of clamped bars are what finite elements say."""

import pytest

from phyxel.bench.accuracy.bars import SAGS, SQUARE, TWIST


@pytest.mark.slow
@pytest.mark.parametrize(("bar", "right"), SAGS.items(), ids=["fat", "nearly incompressible", "slender"])
def test_sags_are_those_of_finite_elements(bar, right):
    """To 1 %: of 8 × 4 × 4 cells, which are 0.1 to 0.7 % too stiff."""
    assert bar.sag_in(bar.elements((8, 4, 4))) == pytest.approx(right, rel=0.01)


def test_the_twist_is_that_of_saint_venant():
    """m L²/(2 G J), m = ρ a I_p, J = 0.1406 h⁴, less what the clamped root hinders it to warp: 1 % of four thicknesses;
    and that of 5 × 3 × 3 cells of finite elements, which are 0.5 % too stiff."""
    length, side, _ = SQUARE.sides
    couple = SQUARE.density * 9.81 / (side / 2) * side**4 / 6
    shear = SQUARE.young / (2 * (1 + SQUARE.poisson))
    assert pytest.approx(couple * length**2 / (2 * shear * 0.1406 * side**4), rel=0.012) == TWIST
    assert SQUARE.twist_in(SQUARE.elements((5, 3, 3))) == pytest.approx(TWIST, rel=0.01)
