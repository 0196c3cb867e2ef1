"""Meshes for tests: vertices (V, 3) and faces (M, 3), outward, whole or in need of mending."""

from collections.abc import Callable

import numpy as np

MeshArrays = tuple[np.ndarray, np.ndarray]
Triple = tuple[float, float, float]


def box_mesh(center: Triple = (0.0, 0.0, 0.0), half: Triple = (1.0, 1.0, 1.0), cells: int = 1) -> MeshArrays:
    """Vertices and faces of a closed box, outward, `cells` to an edge."""
    vertices: list[np.ndarray] = []
    faces = []
    ticks = np.linspace(-1, 1, cells + 1)
    for axis in range(3):
        for side in (-1, 1):
            first = sum(len(v) for v in vertices)
            u, v = (g.ravel() for g in np.meshgrid(ticks, ticks, indexing="ij"))
            corner = np.empty((len(u), 3))
            corner[:, axis], corner[:, (axis + 1) % 3], corner[:, (axis + 2) % 3] = side, u, v
            vertices.append(corner)
            i, j = (g.ravel() for g in np.meshgrid(np.arange(cells), np.arange(cells), indexing="ij"))
            a = first + i * (cells + 1) + j
            b, c, d = a + cells + 1, a + cells + 2, a + 1
            quads = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
            faces.append(quads if side > 0 else quads[:, ::-1])
    x = np.concatenate(vertices)
    unique, index = np.unique(x.round(12), axis=0, return_inverse=True)
    return unique * np.array(half) + np.array(center), index.ravel()[np.concatenate(faces)].astype(np.int32)


def together(*meshes: MeshArrays) -> MeshArrays:
    """All of them as one, without common vertices."""
    firsts = np.cumsum([0] + [len(v) for v, _ in meshes])
    return (
        np.concatenate([v for v, _ in meshes]),
        np.concatenate([f + first for (_, f), first in zip(meshes, firsts, strict=False)]).astype(np.int32),
    )


def turned(mesh: MeshArrays) -> MeshArrays:
    """Inside out."""
    return mesh[0], np.ascontiguousarray(mesh[1][:, ::-1])


def ball_mesh(radius: float = 1.0, center: Triple = (0.0, 0.0, 0.0), rings: int = 24) -> MeshArrays:
    """Vertices and faces of a closed ball."""
    theta, phi = np.linspace(0, np.pi, rings + 1), np.linspace(0, 2 * np.pi, 2 * rings, endpoint=False)
    T, P = np.meshgrid(theta, phi, indexing="ij")
    x = np.stack([np.sin(T) * np.cos(P), np.cos(T), np.sin(T) * np.sin(P)], axis=-1).reshape(-1, 3)
    i, j = (part.ravel() for part in np.meshgrid(np.arange(rings), np.arange(2 * rings), indexing="ij"))
    a, b = i * 2 * rings + j, i * 2 * rings + (j + 1) % (2 * rings)
    c, d = a + 2 * rings, b + 2 * rings
    faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([b, d, c], axis=1)])
    unique, index = np.unique(x.round(12), axis=0, return_inverse=True)
    faces = index.ravel()[faces]
    whole = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    return radius * unique + np.array(center), faces[whole].astype(np.int32)


def opened(mesh: MeshArrays, where: Callable[[np.ndarray], np.ndarray]) -> MeshArrays:
    """Without the faces whose middle lies where `where` says."""
    vertices, faces = mesh
    return vertices, faces[~where(vertices[faces].mean(axis=1))]


def pricked(mesh: MeshArrays, holes: int, seed: int = 0) -> MeshArrays:
    """Without some faces, here and there."""
    gone = np.random.default_rng(seed).permutation(len(mesh[1]))[:holes]
    return mesh[0], np.delete(mesh[1], gone, axis=0)


def square(side: float, center: Triple = (0.0, 0.0, 0.0), cells: int = 8) -> MeshArrays:
    """A sheet across y."""
    ticks = side * (np.arange(cells + 1) / cells - 0.5)
    x, z = (part.ravel() for part in np.meshgrid(ticks, ticks, indexing="ij"))
    first = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).reshape(-1, 1)
    quads = first + np.array([0, 1, cells + 2, cells + 1])
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    return np.stack([x, 0 * x, z], axis=1) + np.array(center), faces.astype(np.int32)


def winding_numbers(mesh: MeshArrays, x: np.ndarray) -> np.ndarray:
    """How often a mesh winds round places (n, 3): the solid angles of its faces (van Oosterom and Strackee 1983) over
    that of a sphere."""
    total = np.zeros(len(x))
    for start in range(0, len(mesh[1]), 512):
        corners = mesh[0][mesh[1][start : start + 512]]
        a, b, c = (corners[None, :, k] - x[:, None] for k in range(3))
        la, lb, lc = (np.linalg.norm(side, axis=2) for side in (a, b, c))
        volume = np.einsum("nfd,nfd->nf", a, np.cross(b, c))
        dots = la * lb * lc + (a * b).sum(2) * lc + (b * c).sum(2) * la + (c * a).sum(2) * lb
        total += 2 * np.arctan2(volume, dots).sum(axis=1)
    return total / (4 * np.pi)
