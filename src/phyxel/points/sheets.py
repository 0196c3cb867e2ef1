"""The built-in surfaces: sheets that enclose nothing, and a balloon; meshes in metres, y up."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, Delaunay, cKDTree

from phyxel.points.cloud import Floats, Indices, PointCloud
from phyxel.points.completion import completed
from phyxel.points.shapes import mix

CLOTH_SIDE = 1.0
"""[m]"""
THREADS = 48
"""Bands of threads that cross each other, along a side of the cloth."""
BALLOON_RADIUS = 0.5
"""[m]"""
BALLOON_DOTS = 72
BONE_RADIUS = 0.1
"""[m], of the ball about the origin that a forehead lies over: the frontal bone."""
SKIN_HALF_WIDTH, SKIN_BELOW, SKIN_ABOVE = 0.085, 0.032, 0.07
"""[m] of a forehead, measured on the bone."""
SKIN_STANDS_OFF = 0.003
"""[m] off the bone, where there is no wrinkle."""
FRONT_RADIUS = 0.25
"""[m] of the rounded front of a scallop; its straight sides meet at the hinge, which is the origin."""
FAN = np.radians(52)
"""Half the angle between the sides."""
FRONT_MIDDLE = FRONT_RADIUS / np.sin(FAN)
"""[m] from the hinge."""
DOME = 0.13
"""[m], height of a scallop without its ribs."""
EAR, EAR_BACK, EAR_FRONT = 0.125, -0.012, 0.125 / np.tan(FAN)
"""[m]: how far the two ears beside the hinge reach to the side, backward and forward."""
RIBS = 21
SNAPPED_WITHIN = 0.45
"""Share of a spacing within which a place moves onto the outline: more than half of what is between two rows."""


# --- cloth ---------------------------------------------------------------------------------------------------------


def cloth(points: int) -> PointCloud:
    """A woven square of 1 m in the plane y = 0, about the origin: warp along x, weft along z, quads along both."""
    side = max(2, round(points**0.5))
    along = np.linspace(-0.5, 0.5, side) * CLOTH_SIDE
    z, x = (part.ravel() for part in np.meshgrid(-along, along, indexing="ij"))
    return _made("cloth", np.stack([x, 0 * x, z], axis=1), quads=_grid(side, side), colors=cloth_color(x, z))


def cloth_color(x: Floats, z: Floats) -> Floats:
    """Tartan: each warp thread (along x) has a colour of its own by where it lies in z, each weft thread by x; in a
    twill, two over two, now the one and now the other is seen."""
    warp = _striped(z, np.array([[0.10, 0.20, 0.36], [0.93, 0.89, 0.80], [0.85, 0.62, 0.20]]))
    weft = _striped(x, np.array([[0.62, 0.11, 0.13], [0.93, 0.89, 0.80], [0.10, 0.20, 0.36]]))
    twill = np.sin(0.5 * np.pi * THREADS * (x + z) / CLOTH_SIDE)
    return mix(warp, weft, 0.5 + 0.2 * np.clip(2 * twill, -1, 1))


def _striped(place: Floats, palette: Floats) -> Floats:
    """Broad bands of the first two of three colours, four to a side, with a thin line of the third in the second."""
    phase = np.abs(np.modf(4 * (place / CLOTH_SIDE + 0.5))[0] - 0.5)
    bands = mix(palette[0], palette[1], (phase - 0.24) / 0.03)
    return mix(bands, palette[2], (0.05 - np.abs(phase - 0.39)) / 0.03)


# --- forehead ------------------------------------------------------------------------------------------------------


class Wrinkle(NamedTuple):
    """A furrow in skin; lengths in metres on the bone."""

    middle: float
    """from the middle of the bone: of a furrow across the forehead upward, of a frown line to the side"""
    rise: float
    """how much its ends lie beyond its middle: a furrow hangs at the temples, a frown line leans outward"""
    center: float
    """where along itself it is deepest"""
    reach: float
    """how far from there it has faded"""
    depth: float
    width: float


FURROWS = (
    Wrinkle(0.011, -0.003, 0.006, 0.056, 0.0015, 0.0028),
    Wrinkle(0.024, -0.005, -0.004, 0.074, 0.0024, 0.0034),
    Wrinkle(0.038, -0.007, 0.003, 0.076, 0.0023, 0.0036),
    Wrinkle(0.052, -0.006, -0.012, 0.058, 0.0014, 0.0034),
    Wrinkle(0.018, -0.001, -0.042, 0.022, 0.0009, 0.0022),
    Wrinkle(0.031, 0.001, 0.040, 0.024, 0.0010, 0.0022),
    Wrinkle(0.045, -0.001, -0.030, 0.020, 0.0007, 0.0022),
)
"""Across the forehead: four long ones, bottom to top, and three short ones between."""
FROWNS = (
    Wrinkle(0.0095, 0.005, -0.014, 0.026, 0.0022, 0.0026),
    Wrinkle(-0.0085, -0.005, -0.012, 0.022, 0.0018, 0.0026),
)
"""Upright between the brows."""


def forehead(points: int) -> PointCloud:
    """Skin over the frontal bone, a ball of 0.1 m about the origin: four furrows across it and a frown; it looks
    along z. Its rest shape has the wrinkles: what presses it onto the ball smooths them."""
    width, height = 2 * SKIN_HALF_WIDTH, SKIN_BELOW + SKIN_ABOVE
    columns = max(2, round((points * width / height) ** 0.5))
    rows = max(2, round(points / columns))
    up, aside = np.linspace(-SKIN_BELOW, SKIN_ABOVE, rows), np.linspace(-SKIN_HALF_WIDTH, SKIN_HALF_WIDTH, columns)
    t, s = (part.ravel() for part in np.meshgrid(up, aside, indexing="ij"))
    radius = BONE_RADIUS + skin_relief(s, t)
    around, up = s / BONE_RADIUS, t / BONE_RADIUS
    outward = np.stack([np.cos(up) * np.sin(around), np.sin(up), np.cos(up) * np.cos(around)], axis=1)
    return _made("forehead", radius[:, None] * outward, quads=_grid(columns, rows), colors=skin_color(s, t))


def skin_relief(s: Floats, t: Floats) -> Floats:
    """How far the skin stands off the bone [m], `s` across and `t` upward on it [m]."""
    brow = 0.0022 * np.exp(-(((t - brow_line(s)) / 0.009) ** 2)) * np.exp(-(((np.abs(s) - 0.035) / 0.028) ** 2))
    return SKIN_STANDS_OFF + brow - furrowed(s, t)


def furrowed(s: Floats, t: Floats) -> Floats:
    """Depth of the wrinkles [m], negative on the folds beside them."""
    # A furrow goes over both brows and sinks a little between them, and no hand is quite steady.
    wings = 0.0018 * np.exp(-(((s + 0.2 * (t - 0.03)) / 0.020) ** 2))
    tremble = 0.0008 * np.sin(140 * s + 390 * t) + 0.0004 * np.sin(330 * s - 260 * t)
    across = [_furrow(line, s, t + wings + tremble) for line in FURROWS]
    upright = [_furrow(line, t, s + 0.4 * tremble) for line in FROWNS]
    return np.sum([*across, *upright], axis=0)


def _furrow(wrinkle: Wrinkle, along: Floats, aside: Floats) -> Floats:
    """Depth of one wrinkle [m]: a narrow valley between two low folds, which fades towards both ends."""
    place = (along - wrinkle.center) / wrinkle.reach
    off = (aside - wrinkle.middle - wrinkle.rise * place**2) / wrinkle.width
    fading = np.clip(1 - place**2, 0, 1) ** 1.5
    return wrinkle.depth * fading * (1.45 * np.exp(-(off**2)) - 0.45 * np.exp(-((off / 2.4) ** 2)))


def brow_line(s: Floats) -> Floats:
    """Height of the eyebrows [m]: they rise outward and bend down at their ends."""
    return -0.0165 - 5.5 * (np.abs(s) - 0.046) ** 2


def skin_color(s: Floats, t: Floats) -> Floats:
    """Fair skin, rosy between the brows, redder where it is folded in; brown eyebrows of single hairs."""
    mottled = np.sin(230 * s + 3 * np.sin(170 * t)) * np.sin(260 * t + 2 * np.sin(210 * s))
    skin = mix((0.85, 0.63, 0.52), (0.90, 0.70, 0.59), 0.5 + 0.2 * mottled)
    skin = mix(skin, (0.86, 0.54, 0.46), 0.5 * np.exp(-((s / 0.03) ** 2) - ((t + 0.02) / 0.02) ** 2))
    skin = mix(skin, (0.66, 0.36, 0.30), np.clip(furrowed(s, t) / 0.003, 0, 0.75))
    x = np.abs(s)
    above = t - brow_line(s)
    ragged = 0.13 * np.sin(1900 * x - 1400 * above) + 0.11 * np.sin(1130 * x - 600 * above)
    wide = 0.0052 * np.clip((x - 0.011) / 0.010, 0, 1) ** 0.4 * np.clip((0.076 - x) / 0.045, 0, 1) ** 0.8
    return mix(skin, (0.29, 0.18, 0.12), 0.85 * np.clip((wide * (1 + ragged) - np.abs(above)) / 0.0022, 0, 1))


# --- scallop -------------------------------------------------------------------------------------------------------


def scallop(points: int) -> PointCloud:
    """Half of a sea shell, 0.5 m wide, its hinge at the origin: ribs run from there to the rim at the front (+z), which
    rests on y = 0; open below."""
    x, z = _filled(scallop_outline, points, (-0.27, -0.03), (0.27, FRONT_MIDDLE + 0.27))
    plan = np.stack([x, z], axis=1)
    faces = Delaunay(plan).simplices.astype(np.int32)
    spacing = np.median(np.linalg.norm(plan[faces[:, 0]] - plan[faces[:, 1]], axis=1))
    # Across bays of the outline there are triangles that do not belong to it.
    faces = faces[scallop_outline(*plan[faces].mean(axis=1).T) < -0.05 * spacing]
    u, v = (plan[faces[:, k]] - plan[faces[:, 0]] for k in (1, 2))
    downward = u[:, 0] * v[:, 1] > u[:, 1] * v[:, 0]
    faces[downward] = faces[downward, ::-1]
    return _made("scallop", np.stack([x, scallop_height(x, z), z], axis=1), faces=faces, colors=scallop_color(x, z))


def scallop_outline(x: Floats, z: Floats) -> Floats:
    """Distance [m] from the rim of a scallop seen from above, negative inside: a fan with a ribbed front, two ears."""
    side = np.abs(x)
    along = side * np.sin(FAN) + z * np.cos(FAN)
    to_side = side * np.cos(FAN) - z * np.sin(FAN)
    ribbed = 0.004 * (1 - rib(x, z)) * np.clip((z - FRONT_MIDDLE) / 0.1, 0, 1)
    to_front = np.hypot(x, z - FRONT_MIDDLE) - FRONT_RADIUS + ribbed
    fan = np.where(along < FRONT_MIDDLE * np.cos(FAN), to_side, to_front)
    waist = 0.014 * np.sin(np.pi * np.clip((z - EAR_BACK) / (EAR_FRONT - EAR_BACK), 0, 1))
    ears = np.maximum(np.maximum(EAR_BACK - z, z - EAR_FRONT), side - EAR + waist)
    return np.minimum(fan, ears)


def _fan(x: Floats, z: Floats) -> tuple[Floats, Floats]:
    """Where a point lies between hinge (0) and front (1), and between the sides (-1 to 1, which the ears have too)."""
    angle = np.clip(np.arctan2(x, z) / FAN, -1, 1)
    half_chord = FRONT_RADIUS**2 - (FRONT_MIDDLE * np.sin(FAN * angle)) ** 2
    rim = FRONT_MIDDLE * np.cos(FAN * angle) + np.sqrt(np.maximum(half_chord, 0))
    return np.clip(np.hypot(x, z) / rim, 0, 1), angle


def rib(x: Floats, z: Floats) -> Floats:
    """1 on the crests of the ribs, nearly 0 in the grooves between them and on the ears."""
    angle = _fan(x, z)[1]
    return np.sqrt(np.cos(0.5 * np.pi * RIBS * angle) ** 2 + 0.01) / np.sqrt(1.01)


def scallop_height(x: Floats, z: Floats) -> Floats:
    """[m]"""
    outward, angle = _fan(x, z)
    dome = DOME * np.sin(np.pi * outward**0.95) * (1 - angle**2)
    wide = 2 * FAN / RIBS * np.hypot(x, z)
    return dome + 0.24 * wide * rib(x, z) * (1 - angle**6)


def scallop_color(x: Floats, z: Floats) -> Floats:
    """Coral at the hinge, cream at the rim, with rosy rings of growth; the grooves are deeper in colour."""
    outward, angle = _fan(x, z)
    shell = mix((0.83, 0.33, 0.26), (0.96, 0.66, 0.47), outward / 0.45)
    shell = mix(shell, (0.99, 0.90, 0.79), (outward - 0.4) / 0.55)
    rings = 0.5 + 0.5 * np.sin(2 * np.pi * 7 * outward**1.4 + 0.5 * np.sin(9 * angle))
    shell = mix(shell, (0.82, 0.36, 0.33), 0.45 * rings**3)
    return mix(mix(shell, (0.70, 0.30, 0.24), np.full(len(x), 0.55)), shell, rib(x, z) ** 0.7)


# --- balloon -------------------------------------------------------------------------------------------------------


def balloon(points: int) -> PointCloud:
    """An even sphere of radius 0.5 m about the origin, closed: an icosahedron whose edges are divided alike."""
    parts = max(1, round(((points - 2) / 10) ** 0.5))
    directions, faces = _geodesic(parts)
    return _made("balloon", BALLOON_RADIUS * directions, faces=faces, colors=balloon_color(directions))


def balloon_color(directions: Floats) -> Floats:
    """Red rubber with ivory dots, deeper in colour towards the bottom, where it would be tied."""
    turn = np.arange(BALLOON_DOTS) * np.pi * (3 - 5**0.5)
    height = 1 - (2 * np.arange(BALLOON_DOTS) + 1) / BALLOON_DOTS
    dots = np.stack([np.cos(turn), 0 * turn, np.sin(turn)], axis=1) * np.sqrt(1 - height**2)[:, None]
    dots[:, 1] = height
    off = cKDTree(dots).query(directions)[0]
    rubber = mix((0.60, 0.05, 0.10), (0.90, 0.14, 0.16), 0.5 + 0.5 * directions[:, 1])
    return mix(rubber, (0.98, 0.94, 0.86), (0.105 - off) / 0.02)


def _geodesic(parts: int) -> tuple[Floats, Indices]:
    """Directions and triangles of a sphere: each face of an icosahedron in parts², about 10 parts² + 2 vertices."""
    golden = (1 + 5**0.5) / 2
    ring = np.array([[0, 1, golden], [0, 1, -golden], [0, -1, golden], [0, -1, -golden]])
    corners = np.concatenate([np.roll(ring, k, axis=1) for k in range(3)]) / np.hypot(1, golden)
    hull = ConvexHull(corners)
    # Weights of the corners of a face: whole numbers that add up to `parts`.
    i, j = (part.ravel() for part in np.meshgrid(np.arange(parts + 1), np.arange(parts + 1), indexing="ij"))
    i, j = i[i + j <= parts], j[i + j <= parts]
    number = {pair: k for k, pair in enumerate(zip(i.tolist(), j.tolist(), strict=True))}
    up = [[number[a, b], number[a + 1, b], number[a, b + 1]] for a, b in number if a + b < parts]
    down = [[number[a + 1, b], number[a + 1, b + 1], number[a, b + 1]] for a, b in number if a + b < parts - 1]
    small = np.array(up + down)
    # Along an edge, sines of equal steps are equal steps on the sphere, and they hardly differ inside a face.
    edge = np.arccos(corners[hull.simplices[0, 0]] @ corners[hull.simplices[0, 1]])
    weights = np.sin(edge * np.stack([parts - i - j, i, j], axis=1) / parts)
    x = np.concatenate([weights @ corners[face] for face in hull.simplices])
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    faces = np.concatenate([small + k * len(i) for k in range(len(hull.simplices))])
    # Faces meet in the same places to the last few digits: there vertices are one.
    _, first, index = np.unique(np.round(x, 9), axis=0, return_index=True, return_inverse=True)
    x, faces = x[first], index.reshape(-1)[faces].astype(np.int32)
    a, b, c = (x[faces[:, k]] for k in range(3))
    inward = np.einsum("ij,ij->i", a, np.cross(b, c)) < 0
    faces[inward] = faces[inward, ::-1]
    return x, faces


# --- shared --------------------------------------------------------------------------------------------------------


def _made(
    name: str, x: Floats, colors: Floats, faces: Indices | None = None, quads: Indices | None = None
) -> PointCloud:
    colors = np.clip(colors, 0, 1).astype(np.float32)
    return completed(PointCloud(x, colors=colors, faces=faces, quads=quads, name=name).checked())


def _grid(columns: int, rows: int) -> Indices:
    """Quads between vertices in rows, counter-clockwise where rows follow each other to the left of their direction."""
    first = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).reshape(-1, 1)
    return (first + np.array([0, 1, columns + 1, columns])).astype(np.int32)


def _filled(
    outline: Callable[[Floats, Floats], Floats], points: int, lower: tuple[float, float], upper: tuple[float, float]
) -> tuple[Floats, Floats]:
    """About so many places in even triangles inside an outline (negative inside, between two corners [m]), those
    nearest to it on it."""
    wanted = float(np.sqrt(np.subtract(upper, lower).prod() / points))
    for _ in range(7):
        spacing = wanted
        x, z = _lattice(spacing, lower, upper)
        near = outline(x, z) < SNAPPED_WITHIN * spacing
        wanted = spacing * float(near.sum() / points) ** 0.5
    x, z = x[near], z[near]
    on_rim = outline(x, z) > -SNAPPED_WITHIN * spacing
    for _ in range(4):
        off, step = outline(x, z), 1e-6
        slope = np.stack([outline(x + step, z) - off, outline(x, z + step) - off]) / step
        move = np.where(on_rim, off / np.maximum((slope**2).sum(axis=0), 0.25), 0) * slope
        x, z = x - move[0], z - move[1]
    return x, z


def _lattice(spacing: float, lower: tuple[float, float], upper: tuple[float, float]) -> tuple[Floats, Floats]:
    """Corners of even triangles between two corners [m], mirrored in x = 0."""
    rows = np.arange(lower[1], upper[1], spacing * 3**0.5 / 2)
    half = np.arange(np.ceil(upper[0] / spacing) + 1) * spacing
    columns = np.concatenate([-half[:0:-1], half])
    x = columns + 0.5 * spacing * (np.arange(len(rows))[:, None] % 2)
    return x.ravel(), np.repeat(rows, len(columns))


SURFACES: dict[str, Callable[[int], PointCloud]] = {
    "cloth": cloth,
    "forehead": forehead,
    "scallop": scallop,
    "balloon": balloon,
}
"""Makers of about so many vertices."""
