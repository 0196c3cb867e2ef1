"""Forces of touches kept from step to step (physics 15.16)."""

import numpy as np

from phyxel.meeting.kept import KeptForces, keys_of, numbers_of
from phyxel.meeting.layers import Places


def test_places_on_one_edge_are_told_apart() -> None:
    """What two places between the same two particles bore is recalled for each, in whatever order they are found."""
    index, weight = np.zeros((2, 4), np.int64), np.zeros((2, 4))
    index[:, 1], weight[:, 0], weight[:, 1] = 1, (0.7, 0.3), (0.3, 0.7)
    zero, forces = np.zeros(2), np.array([[1.0, 0, 0], [0, 2, 0]])
    places = Places(index, weight, np.eye(3)[:2], zero, np.zeros((2, 3)), zero, 0, None, np.array([1, 2]))
    kept, turned = KeptForces(), np.array([1, 0])
    kept.keep(keys_of(places, numbers_of("cloth", 2), "bear"), forces)
    found = kept.recalled(keys_of(places.some(turned), numbers_of("cloth", 2), "bear"))
    np.testing.assert_array_equal(found, forces[turned])
