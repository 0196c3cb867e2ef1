"""Bodies whose nodes lie a little beside where they would: what holds of them holds on every CPU.

Another CPU rounds otherwise, and what depends on last bits goes another way there. A shift of 1e-7 of a spacing, about
what single precision rounds by, does the same to this one. It depends on the seed and the number of nodes alone, so
that bodies that are made alike stay alike to the bit.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phyxel.body import birth
from phyxel.mls.neighbours import nearest
from phyxel.points.cloud import PointCloud
from phyxel.solid.nodes import Nodes
from phyxel.solid.solid import Solid

SHIFT = 1e-7
"""of a spacing"""


def move_bodies(seed: int) -> None:
    """From now on nodes of solids and particles of surfaces are born beside their places."""

    def beside(positions: NDArray[np.floating], spacing: float) -> NDArray[np.float64]:
        luck = np.random.default_rng([seed, len(positions)])
        return positions + SHIFT * spacing * luck.uniform(-1, 1, positions.shape)

    class MovedSolid(Solid):
        def sample(self, *asked: Any, **options: Any) -> Nodes:
            nodes = super().sample(*asked, **options)
            positions, within = beside(nodes.positions, nodes.spacing), nodes.quadrature
            owner = nearest(within.points, positions, 1)[1][:, 0]  # of points between two nodes it may be the other now
            volumes = np.bincount(owner, within.weights, len(positions)).astype(np.float64)
            return replace(nodes, positions=positions, volumes=volumes)

    finished = birth.with_unit_normals

    def moved_surface(cloud: PointCloud) -> PointCloud:
        across = float(np.ptp(cloud.positions, axis=0).max())
        return finished(replace(cloud, positions=beside(cloud.positions, across / np.sqrt(len(cloud)))))

    # set by name: type checkers hold that names of a module stay what they are
    vars(birth).update(Solid=MovedSolid, with_unit_normals=moved_surface)
