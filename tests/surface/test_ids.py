"""Numbers of surfels: each once, the same whenever and by whomever they are asked for."""

import numpy as np
import pytest

from phyxel.surface.ids import MADE_BY_CRACKS, Ids, ids_of_parts


def test_new_ones_are_counted_on_and_numbers_of_the_gone_stay_theirs():
    ids = Ids.counted(np.array([3, 5, 8]))
    ids = ids.after(np.array([2, -1, 0, -1]))
    assert ids.numbers.tolist() == [8, 9, 3, 10]
    assert ids.some(np.array([True, False, False, False])).after(np.array([-1, 0])).numbers.tolist() == [11, 8]
    assert ids.some(np.zeros(4, bool)).after(np.array([-1])).numbers.tolist() == [11], "also when all were gone"


@pytest.mark.parametrize("most", [10_000, 2**52])
def test_parts_have_the_same_numbers_in_any_company(most):
    rng = np.random.default_rng(most)
    owner = rng.integers(-most, most, 20_000)
    ids = ids_of_parts(owner)
    assert len(np.unique(ids)) == len(ids)
    assert ids.min() >= MADE_BY_CRACKS and ids.max() <= np.iinfo(np.int32).max
    some = np.isin(owner, rng.permutation(owner)[:3000])
    assert (ids_of_parts(owner[some]) != ids[some]).mean() < 1e-3, "but for a few whose number another has"


def test_parts_of_one_thing_have_numbers_of_their_own_in_their_order():
    assert len(np.unique(ids_of_parts(np.full(5, -7)))) == 5
    assert np.array_equal(ids_of_parts(np.array([3, 8, 3]))[[0, 2]], ids_of_parts(np.array([3, 3])))
