"""The built-in shapes: eight solids given by their signed distance, in metres, y up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phyxel.points.cloud import BuiltInShape, Floats
from phyxel.points.moments import of_ball, of_box, of_dome, of_ring
from phyxel.points.sdf import (
    Jet,
    Vector,
    ball,
    blend,
    carve,
    combed,
    cut,
    distance_of,
    ellipsoid,
    enlarged,
    half_space,
    paired,
    round_cone,
    union,
)
from phyxel.rotation import about_axis

BAR_MIDDLE, BAR_HALF = np.array([0.5, 0, 0]), np.array([0.5, 0.125, 0.125])
BOX_HALF = np.array([0.25, 0.25, 0.25])
SPHERE_RADIUS = 0.25
TORUS_MAJOR, TORUS_MINOR = 0.3, 0.1
JACK_REACH, JACK_BALL, JACK_ROD = 0.35, 0.11, 0.055
SHELL_OUTER, SHELL_THICKNESS = 0.5, 0.06

BEAR_NOSE: tuple[Vector, Vector] = (0, 0.444, 0.15), (0.027, 0.019, 0.017)
BEAR_EYE: tuple[Vector, float] = (0.056, 0.48, 0.092), 0.0185


# --- exact distances, (N, 3) -> (N,) -------------------------------------------------------------------------------


def box_distance(positions: Floats, center: Floats, half: Floats) -> Floats:
    """A box with half edges `half` [m]."""
    beyond = np.abs(positions - center) - half
    return np.linalg.norm(np.maximum(beyond, 0), axis=1) + np.minimum(beyond.max(axis=1), 0)


def bar_distance(positions: Floats) -> Floats:
    """A beam from x = 0 to x = 1."""
    return box_distance(positions, BAR_MIDDLE, BAR_HALF)


def cube_distance(positions: Floats) -> Floats:
    """A cube about the origin."""
    return box_distance(positions, np.zeros(3), BOX_HALF)


def sphere_distance(positions: Floats) -> Floats:
    """A ball about the origin."""
    return np.linalg.norm(positions, axis=1) - SPHERE_RADIUS


def torus_distance(positions: Floats) -> Floats:
    """A ring about the y axis."""
    x, y, z = positions.T
    return np.hypot(np.hypot(x, z) - TORUS_MAJOR, y) - TORUS_MINOR


def shell_distance(positions: Floats) -> Floats:
    """A half-sphere dome of even thickness standing on y = 0, open below."""
    x, y, z = positions.T
    middle, half = SHELL_OUTER - SHELL_THICKNESS / 2, SHELL_THICKNESS / 2
    to_sphere = np.abs(np.linalg.norm(positions, axis=1) - middle) - half
    to_rim = np.hypot(np.maximum(np.abs(np.hypot(x, z) - middle) - half, 0), y)
    return np.where(y < 0, to_rim, np.maximum(to_sphere, -to_rim))


# --- blended fields, (3, N) -> Jet: numbers are positions and radii in metres --------------------------------------


def jack(p: Floats) -> Jet:
    """Three crossed rods with a ball at each end."""
    arms = []
    for axis in range(3):
        # An arm lies along x of its own frame, so that one mirrored ball serves both ends.
        own = np.roll(p, -axis, axis=0)
        rod = round_cone(own, (-JACK_REACH, 0, 0), (JACK_REACH, 0, 0), JACK_ROD, JACK_ROD)
        arm = blend(rod, paired(own, lambda q: ball(q, (JACK_REACH, 0, 0), JACK_BALL)), 0.03)
        arms.append(Jet(arm.value, np.roll(arm.gradient, axis, axis=0)))
    return union(arms, 0.05)


def bear(p: Floats) -> Jet:
    """The gummy bear, facing +z: parts blended from the trunk outward, the finer the tighter; soles flat at y = 0."""
    trunk = union(
        [
            ellipsoid(p, (0, 0.215, -0.01), (0.14, 0.165, 0.11)),
            ellipsoid(p, (0, 0.195, 0.045), (0.125, 0.115, 0.108)),
            ellipsoid(p, (0, 0.442, 0.0), (0.14, 0.116, 0.112)),
        ],
        0.045,
    )
    body = blend(trunk, bear_legs(p), 0.03)
    arms = paired(p, lambda q: round_cone(q, (0.122, 0.29, 0.02), (0.083, 0.252, 0.122), 0.053, 0.049))
    body = blend(blend(body, arms, 0.022), bear_ears(p), 0.02)
    return carve(bear_face(p, body), half_space(p, (0, 0, 0), (0, 1, 0)), 0.02)


def bear_legs(p: Floats) -> Jet:
    """Short legs and feet that point forward."""
    legs = paired(p, lambda q: round_cone(q, (0.078, 0.14, 0.0), (0.086, 0.048, 0.012), 0.085, 0.074), 0.01)
    feet = paired(p, lambda q: ellipsoid(q, (0.09, 0.046, 0.07), (0.068, 0.081, 0.095)), 0.01)
    return blend(legs, feet, 0.03)


def bear_ears(p: Floats) -> Jet:
    """Round ears, hollowed in front."""

    def ear(q: Floats) -> Jet:
        hollow = ball(q, (0.107, 0.543, 0.055), 0.036)
        return carve(ellipsoid(q, (0.105, 0.54, -0.005), (0.055, 0.055, 0.042)), hollow, 0.02)

    return paired(p, ear)


def bear_face(p: Floats, head: Jet) -> Jet:
    """Snout with a smile, nose and eyes, put on the head."""
    smile = paired(p, lambda q: round_cone(q, (0, 0.405, 0.162), (0.027, 0.41, 0.158), 0.005, 0.005))
    snout = carve(ellipsoid(p, (0, 0.418, 0.108), (0.062, 0.049, 0.052)), smile, 0.006)
    head = blend(head, snout, 0.012)
    head = blend(head, ellipsoid(p, *BEAR_NOSE), 0.006)
    return blend(head, paired(p, lambda q: ball(q, *BEAR_EYE)), 0.005)


def bust(p: Floats) -> Jet:
    """A head with parted hair on neck and shoulders, cut flat at y = 0, facing +z."""
    whole = blend(bust_torso(p), enlarged(p, bust_head, 1.14, (0, 0.585, 0)), 0.02)
    return cut(whole, half_space(p, (0, 0, 0), (0, -1, 0)))


def bust_head(p: Floats) -> Jet:
    """Head of about life size, before it is enlarged."""
    head = bust_mouth(p, bust_nose(p, bust_eyes(p, bust_skull(p))))
    return blend(blend(head, bust_ears(p), 0.014), bust_hair(p), 0.004)


def bust_skull(p: Floats) -> Jet:
    """Skull, face, jaw, chin, the rise behind the lips, cheeks, cheekbones."""
    parts = [
        ellipsoid(p, (0, 0.505, -0.02), (0.088, 0.095, 0.113)),
        ellipsoid(p, (0, 0.452, 0.032), (0.072, 0.112, 0.07)),
        paired(p, lambda q: round_cone(q, (0.05, 0.41, 0.0), (0.016, 0.355, 0.072), 0.026, 0.02), 0.01),
        ball(p, (0, 0.349, 0.085), 0.016),
        ellipsoid(p, (0, 0.385, 0.07), (0.03, 0.028, 0.028)),
        paired(p, lambda q: ellipsoid(q, (0.036, 0.403, 0.05), (0.026, 0.03, 0.026))),
        paired(p, lambda q: ellipsoid(q, (0.048, 0.436, 0.06), (0.024, 0.02, 0.022))),
    ]
    return union(parts, 0.03)


def bust_eyes(p: Floats, head: Jet) -> Jet:
    """Brows, sockets, and eyeballs that look out between their lids."""
    brows = paired(p, lambda q: round_cone(q, (0.014, 0.486, 0.095), (0.056, 0.484, 0.068), 0.011, 0.009))
    sockets = paired(p, lambda q: ellipsoid(q, (0.034, 0.463, 0.112), (0.021, 0.014, 0.022)))
    head = carve(blend(head, brows, 0.02), sockets, 0.016)
    outward = about_axis((0, 1, 0), 14)
    lids = paired(p, lambda q: ellipsoid(q, (0.0335, 0.462, 0.076), (0.021, 0.0175, 0.0185)))
    opening = paired(p, lambda q: ellipsoid(q, (0.0345, 0.461, 0.094), (0.0155, 0.0065, 0.014), outward))
    eyeballs = paired(p, lambda q: ball(q, (0.0335, 0.4615, 0.0755), 0.0165))
    return blend(carve(blend(head, lids, 0.006), opening, 0.003), eyeballs, 0.002)


def bust_nose(p: Floats, head: Jet) -> Jet:
    """Bridge, the wall under it, wings and nostrils."""
    head = blend(head, round_cone(p, (0, 0.482, 0.098), (0, 0.421, 0.125), 0.008, 0.0115), 0.016)
    head = blend(head, ellipsoid(p, (0, 0.42, 0.106), (0.012, 0.013, 0.02)), 0.01)
    wings = paired(p, lambda q: ellipsoid(q, (0.011, 0.4165, 0.1115), (0.0085, 0.008, 0.0125)))
    nostrils = paired(p, lambda q: ball(q, (0.0075, 0.4075, 0.118), 0.0035))
    return carve(blend(head, wings, 0.01), nostrils, 0.004)


def bust_mouth(p: Floats, head: Jet) -> Jet:
    """Two lips and the line between them."""
    upper = paired(p, lambda q: ellipsoid(q, (0.0075, 0.3885, 0.0965), (0.0145, 0.0064, 0.01)))
    lower = ellipsoid(p, (0, 0.3755, 0.095), (0.0175, 0.0078, 0.0115))
    line = paired(p, lambda q: round_cone(q, (0, 0.3825, 0.1055), (0.022, 0.3818, 0.1), 0.002, 0.0014))
    return carve(blend(blend(head, upper, 0.006), lower, 0.006), line, 0.004)


def bust_ears(p: Floats) -> Jet:
    """Ears, hollowed from outside; they lean, so that the lobes meet the jaw."""
    leaning = about_axis((0, 0, 1), -9) @ about_axis((0, 1, 0), -20)

    def ear(q: Floats) -> Jet:
        hollow = ellipsoid(q, (0.103, 0.454, -0.008), (0.01, 0.02, 0.012))
        return carve(ellipsoid(q, (0.09, 0.45, -0.014), (0.012, 0.034, 0.021), leaning), hollow, 0.006)

    return paired(p, ear)


def bust_hair(p: Floats) -> Jet:
    """Hair combed to both sides and gathered at the nape; the face is left free."""
    hair = blend(
        ellipsoid(p, (0, 0.511, -0.023), (0.099, 0.103, 0.122)),
        ellipsoid(p, (0, 0.455, -0.07), (0.075, 0.07, 0.06)),
        0.03,
    )
    face = ellipsoid(p, (0, 0.44, 0.09), (0.09, 0.107, 0.095))
    return carve(combed(hair, p, (330, 170, -140), 0.0011), face, 0.015)


def bust_torso(p: Floats) -> Jet:
    """Neck, its muscles, shoulders with the stumps of the arms, chest and collar bones."""
    parts = [
        round_cone(p, (0, 0.16, -0.03), (0, 0.38, -0.01), 0.065, 0.06),
        paired(p, lambda q: round_cone(q, (0.03, 0.25, -0.045), (0.15, 0.15, -0.04), 0.034, 0.035), 0.01),
        paired(p, lambda q: round_cone(q, (0.08, 0.12, -0.02), (0.165, 0.11, -0.025), 0.08, 0.062), 0.01),
        paired(p, lambda q: round_cone(q, (0.165, 0.11, -0.025), (0.15, -0.02, -0.02), 0.062, 0.05), 0.01),
        ellipsoid(p, (0, 0.04, 0.0), (0.17, 0.165, 0.105)),
    ]
    muscles = paired(p, lambda q: round_cone(q, (0.066, 0.4, -0.02), (0.014, 0.188, 0.028), 0.013, 0.009))
    collar = paired(p, lambda q: round_cone(q, (0.018, 0.182, 0.042), (0.14, 0.182, 0.0), 0.009, 0.008))
    return blend(blend(union(parts, 0.05), muscles, 0.025), collar, 0.02)


# --- colours, (N, 3) positions -> (N, 3) red, green, blue ----------------------------------------------------------


def mix(first: Floats | Vector, second: Floats | Vector, share: Floats) -> Floats:
    """From `first` to `second` as `share` (N,) goes from 0 to 1."""
    t = np.clip(share, 0, 1)[:, None]
    return np.asarray(first) * (1 - t) + np.asarray(second) * t


def bear_color(positions: Floats) -> Floats:
    """Red gummy: orange where light would shine through thin limbs, nearly black eyes and nose."""
    folded = np.array(positions, np.float64)
    folded[:, 0] = np.abs(folded[:, 0])
    thin = np.zeros(len(positions))
    for center, reach in (((0.12, 0.57, 0.0), 0.09), ((0.08, 0.25, 0.17), 0.08), ((0.1, 0.04, 0.16), 0.12)):
        thin = np.maximum(thin, 1 - np.linalg.norm(folded - center, axis=1) / reach)
    gummy = mix((0.80, 0.05, 0.06), (0.88, 0.11, 0.05), positions[:, 1] / 0.6)
    gummy = mix(gummy, (1.0, 0.42, 0.12), 0.9 * thin)
    p = folded.T
    dark = np.minimum(ellipsoid(p, *BEAR_NOSE).value, ball(p, *BEAR_EYE).value)
    return mix(gummy, (0.16, 0.02, 0.03), 1 - dark / 0.002)


def bust_color(positions: Floats) -> Floats:
    """Warm marble with faint veins."""
    x, y, z = positions.T
    wander = np.sin(9 * x + 14 * z) + 0.5 * np.sin(31 * y - 17 * x)
    vein = np.abs(np.sin(11 * x + 17 * y - 8 * z + 1.6 * wander))
    return mix((0.86, 0.79, 0.72), (0.94, 0.89, 0.82), vein**0.35)


def jack_color(positions: Floats) -> Floats:
    """Steel rods, brass balls."""
    from_center = np.linalg.norm(positions, axis=1)
    return mix((0.62, 0.68, 0.75), (0.93, 0.73, 0.33), (from_center - 0.25) / 0.008)


def torus_color(positions: Floats) -> Floats:
    """A doughnut: pink icing that runs down in drops, with sprinkles."""
    x, y, z = positions.T
    around = np.arctan2(z, x)
    outward = np.hypot(x, z) - TORUS_MAJOR
    rim = 0.012 + 0.014 * np.sin(7 * around + 0.6) + 0.008 * np.sin(12 * around)
    dough = mix((0.72, 0.42, 0.18), (0.92, 0.70, 0.40), 0.5 + y / 0.1)
    iced = mix(dough, (0.96, 0.50, 0.66), (y - rim) / 0.003)
    return sprinkled(iced, np.stack([around * TORUS_MAJOR, np.arctan2(outward, y) * TORUS_MINOR], axis=1))


def sprinkled(colors: Floats, sheet: Floats) -> Floats:
    """Short sugar strands, one in each cell of a 36 mm net on the icing; `sheet` (N, 2) [m] unrolls the surface."""
    net = 2 * np.pi * TORUS_MAJOR / 52
    cell = np.round(sheet / net)
    chance = np.modf(np.abs(np.sin(cell @ [12.9898, 78.233])) * 43758.5453)[0]
    away = sheet - (cell + 0.25 * np.stack([np.sin(40 * chance), np.cos(70 * chance)], axis=1)) * net
    direction = np.stack([np.cos(6.3 * chance), np.sin(6.3 * chance)], axis=1)
    along = np.clip(np.einsum("ij,ij->i", away, direction), -0.006, 0.006)
    off = np.linalg.norm(away - along[:, None] * direction, axis=1)
    sugar = np.array([[1.0, 0.95, 0.85], [1.0, 0.85, 0.25], [0.35, 0.75, 0.95], [0.55, 0.85, 0.45]])
    on_top = np.abs(sheet[:, 1]) < 0.115
    return mix(colors, sugar[(chance * 97).astype(int) % 4], np.where(on_top, (0.0045 - off) / 0.001, 0))


def shell_color(positions: Floats) -> Floats:
    """Mother of pearl."""
    x, y, z = positions.T
    sheen = 9 * y + 2.5 * np.sin(5 * x + 2 * y) + 2.5 * np.cos(6 * z)
    return 0.87 + 0.09 * np.cos(sheen[:, None] + np.array([0.0, 1.6, 3.4]))


def bar_color(positions: Floats) -> Floats:
    """Teal and cream rings, ten to the metre, which show how it bends."""
    wave = np.sin(10 * np.pi * positions[:, 0])
    return mix((0.08, 0.52, 0.55), (0.95, 0.90, 0.78), 0.5 + 8 * wave)


def cube_color(positions: Floats) -> Floats:
    """A chequered cube, blue and ivory, four fields to an edge."""
    fields = np.floor(positions * (0.999999 / 0.125)).sum(axis=1) % 2
    return mix((0.20, 0.36, 0.66), (0.93, 0.91, 0.84), fields)


def sphere_color(positions: Floats) -> Floats:
    """A beach ball."""
    sector = np.floor(np.arctan2(positions[:, 2], positions[:, 0]) * (3 / np.pi)).astype(int) % 6
    cloth = np.array([[0.93, 0.27, 0.22], [0.97, 0.96, 0.92], [0.98, 0.77, 0.20]])
    colors = np.where((sector % 2 == 0)[:, None], cloth[1], cloth[0])
    colors = np.where((sector == 3)[:, None], cloth[2], colors)
    return mix(colors, cloth[1], (np.abs(positions[:, 1]) - 0.243) / 0.0005)


MOMENTS = {
    "bar": of_box(BAR_MIDDLE, BAR_HALF),
    "box": of_box(np.zeros(3), BOX_HALF),
    "sphere": of_ball(SPHERE_RADIUS),
    "torus": of_ring(TORUS_MAJOR, TORUS_MINOR),
    "shell": of_dome(SHELL_OUTER, SHELL_OUTER - SHELL_THICKNESS),
}
"""Of the shapes that have formulas for them."""
SHAPES: dict[str, BuiltInShape] = {
    shape.name: replace(shape, moments=MOMENTS.get(shape.name))
    for shape in (
        BuiltInShape("bear", distance_of(bear), (-0.175, 0, -0.1201), (0.175, 0.5951, 0.171), bear_color),
        BuiltInShape("bar", bar_distance, (0, -0.125, -0.125), (1, 0.125, 0.125), bar_color),
        BuiltInShape("box", cube_distance, (-0.25, -0.25, -0.25), (0.25, 0.25, 0.25), cube_color),
        BuiltInShape("sphere", sphere_distance, (-0.25, -0.25, -0.25), (0.25, 0.25, 0.25), sphere_color),
        BuiltInShape("torus", torus_distance, (-0.4, -0.1, -0.4), (0.4, 0.1, 0.4), torus_color),
        BuiltInShape("jack", distance_of(jack), (-0.46, -0.46, -0.46), (0.46, 0.46, 0.46), jack_color),
        BuiltInShape("shell", shell_distance, (-0.5, 0, -0.5), (0.5, 0.5, 0.5), shell_color),
        BuiltInShape("bust", distance_of(bust), (-0.2394, 0, -0.1665), (0.2394, 0.6194, 0.1557), bust_color),
    )
}
