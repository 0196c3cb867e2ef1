"""Bodies that are written, and files that they are read from."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import phyxel as px
from phyxel.movers.phyxel_bodies import phyxels_of

SOFT = px.Material(young=1e5, poisson=0.3, damping=2e-3)
SIDES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
"""of a cube whose corners are counted in x, y, z order; counter-clockwise from outside"""
ROWS, COLUMNS = 5, 7
"""Of the vertices of a mat."""
STRETCH = Rotation.from_rotvec([0.4, -1.1, 0.7]).as_matrix() @ np.array(
    [[1.5, 0.3, 0.0], [0.3, 0.8, -0.1], [0.0, -0.1, 0.6]]
)
"""a rotation after a symmetric stretch"""
SHIFT = np.array([0.3, -0.2, 0.5])
PLACED = {"at": (1.0, 2.0, 3.0), "rotate": (20, 50, -70), "size": 0.5}
"""the ball is 2 m across: a quarter of it"""


def write_cube(path: Path, welded: bool = True) -> Path:
    """A unit cube with a texture on every side: 8 vertices (or 24), 12 triangles, 24 texture coordinates."""
    corners = list(product((0.0, 1.0), repeat=3))
    vertices = corners if welded else [corners[k] for side in SIDES for k in side]
    lines = ["v {} {} {}".format(*x) for x in vertices]
    for number in range(6):
        lines += [f"vt {(number + s) / 6:.6f} {t}" for s, t in ((0, 0), (1, 0), (1, 1), (0, 1))]
    for number, side in enumerate(SIDES):
        v = [k + 1 for k in side] if welded else [4 * number + k + 1 for k in range(4)]
        t = [4 * number + k + 1 for k in range(4)]
        for a, b, c in ((0, 1, 2), (0, 2, 3)):
            lines.append(f"f {v[a]}/{t[a]} {v[b]}/{t[b]} {v[c]}/{t[c]}")
    path.write_text("\n".join(lines) + "\n")
    return path


def bent(cloud: px.PointCloud, **options: Any) -> px.Body:
    """A body of this cloud that sags from its left end."""
    body = px.Body(cloud, nodes=64, material=SOFT, **options)
    world = px.World()
    world.add(body)
    body.fix(lambda X: X[:, 0] < X[:, 0].min() + 0.05)
    world.advance(0.15)
    return body


def write_mat(path: Path) -> Path:
    """A wavy mat of quads with a texture seam: more texture coordinates than vertices."""
    lines = []
    for i in range(ROWS):
        lines += [f"v {0.1 * j:.6f} {0.02 * np.sin(i + 2.0 * j):.6f} {0.1 * i:.6f}" for j in range(COLUMNS)]
    quads = [(i * COLUMNS + j, COLUMNS, 1) for i in range(ROWS - 1) for j in range(COLUMNS - 1)]
    for number in range(len(quads)):
        lines += [f"vt {(number + s) / len(quads):.6f} {t}.5" for s, t in ((0, 0), (0, 1), (1, 1), (1, 0))]
    for number, (first, down, right) in enumerate(quads):
        corners = (first, first + down, first + down + right, first + right)
        lines.append("f " + " ".join(f"{v + 1}/{4 * number + k + 1}" for k, v in enumerate(corners)))
    path.write_text("\n".join(lines) + "\n")
    return path


def deform(body: px.Body, J: np.ndarray, shift: np.ndarray) -> None:
    """Put a body into a world and give it the displacement of x = centre + J (X − centre) + shift: moving least squares
    have a linear field's gradient to rounding."""
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    X = (body.birth - body.centre) / body.unit
    phyxels_of(world).model.u.assign((X @ (J - np.eye(3)).T + shift / body.unit).astype(np.float32))
    phyxels_of(world).model.shape_changed()
    world.revision += 1
