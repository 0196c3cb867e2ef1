# mypy: disable-error-code="valid-type,no-untyped-def,index"
"""What a surface looks like in a small ball: a quadratic height field, or two or three of them at an edge or a corner.

The points of the ball are fitted by w = g(u, v) over their mean tangent plane (Ohtake et al. 2003, §3.2). Where their
normals fall into two or three groups, each group has a patch of its own, and the solid there is what all of them hold
inside (convex) or any of them (concave).
"""

from __future__ import annotations

import warp as wp

from phyxel import device as dev

wp.set_module_options(dev.KERNEL_OPTIONS)

SHARP = wp.constant(0.8)
"""Cosine of a normal against the mean below which a ball may hold an edge."""
CORNER = wp.constant(0.7)
"""Sine of a normal against the plane of the two other normals above which it is a third face's."""
SLOPE_SHARE = wp.constant(wp.float64(0.1))
"""Weight of a point's normal in the fit, over that of its position."""
SMOOTH, CONVEX, CONCAVE = range(3)
"""How the patches of a cell are combined: one alone, what all hold inside, what any holds inside."""

vec6d = wp.types.vector(6, wp.float64)
mat66d = wp.types.matrix((6, 6), wp.float64)
vec6 = wp.types.vector(6, float)


@wp.struct
class Patch:
    """A height field over a plane; u, v, w count from `origin` in units of `radius`."""

    origin: wp.vec3
    axis_u: wp.vec3
    axis_v: wp.vec3
    normal: wp.vec3
    radius: float
    height: vec6
    """g = h0 + h1 u + h2 v + h3 u² + h4 uv + h5 v²"""


@wp.struct
class Points:
    """The points of a fit, in units of the surface's size."""

    grid: wp.uint64
    position: wp.array(dtype=wp.vec3)
    normal: wp.array(dtype=wp.vec3)


@wp.func
def b_spline(r: float):
    """Quadratic B-spline of r = distance / radius, 0 from 1 on, and its slope."""
    t = 1.5 * r
    value = float(0.0)
    slope = float(0.0)
    if t < 0.5:
        value = 0.75 - t * t
        slope = -3.0 * t
    elif t < 1.5:
        value = 0.5 * (1.5 - t) * (1.5 - t)
        slope = -1.5 * (1.5 - t)
    return value, slope


@wp.func
def group_of(n: wp.vec3, groups: wp.mat33, count: int):
    """Which of `count` directions, rows of `groups`, is nearest to n."""
    best = int(0)
    k = int(1)
    while k < count:
        if wp.dot(n, groups[k]) > wp.dot(n, groups[best]):
            best = k
        k += 1
    return best


@wp.func
def solve6(A: mat66d, b: vec6d):
    """x of A x = b by Cholesky; A is symmetric and made definite by its ridge."""
    L = mat66d()
    x = vec6d()
    i = int(0)
    while i < 6:
        j = int(0)
        while j <= i:
            s = A[i, j]
            k = int(0)
            while k < j:
                s -= L[i, k] * L[j, k]
                k += 1
            if i == j:
                L[i, i] = wp.sqrt(wp.max(s, wp.float64(1.0e-12)))
            else:
                L[i, j] = s / L[j, j]
            j += 1
        s = b[i]
        k = int(0)
        while k < i:
            s -= L[i, k] * x[k]
            k += 1
        x[i] = s / L[i, i]
        i += 1
    i = int(5)
    while i >= 0:
        s = x[i]
        k = i + 1
        while k < 6:
            s -= L[k, i] * x[k]
            k += 1
        x[i] = s / L[i, i]
        i -= 1
    return x


@wp.func
def tangent(n: wp.vec3):
    """A unit vector across n."""
    other = wp.vec3(1.0, 0.0, 0.0)
    if wp.abs(n[0]) > 0.6:
        other = wp.vec3(0.0, 1.0, 0.0)
    return wp.normalize(wp.cross(n, other))


@wp.func
def fit_patch(points: Points, centre: wp.vec3, radius: float, groups: wp.mat33, count: int, group: int):
    """The height field nearest to the ball's points of one group, and how many these are (physics 9.1).

    Least squares over positions and, a little, normals, weighted with the B-spline about the ball's centre.
    """
    patch = Patch()
    mean_x = wp.vec3()
    mean_n = wp.vec3()
    total = float(0.0)
    held = int(0)
    for j in wp.hash_grid_query(points.grid, centre, radius):
        x = points.position[j]
        r = wp.length(x - centre) / radius
        if r < 1.0 and group_of(points.normal[j], groups, count) == group:
            b, _slope = b_spline(r)
            b += 1.0e-3
            mean_x += b * x
            mean_n += b * points.normal[j]
            total += b
            held += 1
    patch.origin = mean_x / wp.max(total, 1.0e-12)
    patch.normal = wp.normalize(mean_n)
    patch.axis_u = tangent(patch.normal)
    patch.axis_v = wp.cross(patch.normal, patch.axis_u)
    patch.radius = radius
    A = mat66d()
    rhs = vec6d()
    for j in wp.hash_grid_query(points.grid, centre, radius):
        x = points.position[j]
        n = points.normal[j]
        r = wp.length(x - centre) / radius
        if r < 1.0 and group_of(n, groups, count) == group:
            b, _slope = b_spline(r)
            weight = wp.float64(b + 1.0e-3)
            d = (x - patch.origin) / radius
            u = wp.float64(wp.dot(d, patch.axis_u))
            v = wp.float64(wp.dot(d, patch.axis_v))
            w = wp.float64(wp.dot(d, patch.normal))
            one = wp.float64(1.0)
            zero = wp.float64(0.0)
            two = wp.float64(2.0)
            row = vec6d(one, u, v, u * u, u * v, v * v)
            A += weight * wp.outer(row, row)
            rhs += weight * w * row
            steep = wp.dot(n, patch.normal)
            if steep > 0.3:
                tilt = SLOPE_SHARE * weight
                row_u = vec6d(zero, one, zero, two * u, v, zero)
                row_v = vec6d(zero, zero, one, zero, u, two * v)
                A += tilt * (wp.outer(row_u, row_u) + wp.outer(row_v, row_v))
                rhs -= tilt * wp.float64(wp.dot(n, patch.axis_u) / steep) * row_u
                rhs -= tilt * wp.float64(wp.dot(n, patch.axis_v) / steep) * row_v
    ridge = wp.float64(1.0e-4 * total)
    for k in range(6):
        A[k, k] = A[k, k] + ridge * wp.float64(wp.where(k > 2, 1.0, 1.0e-4))
    height = solve6(A, rhs)
    for k in range(6):
        patch.height[k] = float(height[k])
    return patch, held


@wp.func
def patch_value(patch: Patch, x: wp.vec3):
    """Signed distance to first order, and its gradient."""
    d = (x - patch.origin) / patch.radius
    u = wp.dot(d, patch.axis_u)
    v = wp.dot(d, patch.axis_v)
    h = patch.height
    g = h[0] + h[1] * u + h[2] * v + h[3] * u * u + h[4] * u * v + h[5] * v * v
    gu = h[1] + 2.0 * h[3] * u + h[4] * v
    gv = h[2] + h[4] * u + 2.0 * h[5] * v
    scale = 1.0 / wp.sqrt(1.0 + gu * gu + gv * gv)
    value = patch.radius * (wp.dot(d, patch.normal) - g) * scale
    gradient = scale * (patch.normal - gu * patch.axis_u - gv * patch.axis_v)
    return value, gradient


@wp.func
def cell_value(patches: wp.array(dtype=Patch), first_patch: int, count: int, how: int, x: wp.vec3):
    """f_c and its gradient (physics 9.1): the one patch's, the largest (convex) or the smallest (concave)."""
    value, gradient = patch_value(patches[first_patch], x)
    k = int(1)
    while k < count:
        other, slope = patch_value(patches[first_patch + k], x)
        if (how == wp.static(CONVEX) and other > value) or (how == wp.static(CONCAVE) and other < value):
            value = other
            gradient = slope
        k += 1
    return value, gradient


@wp.func
def misses(
    points: Points,
    centre: wp.vec3,
    radius: float,
    patches: wp.array(dtype=Patch),
    first_patch: int,
    count: int,
    how: int,
):
    """Root mean square and largest |f_c| over the ball's points, and how many these are."""
    squares = float(0.0)
    largest = float(0.0)
    held = float(0.0)
    for j in wp.hash_grid_query(points.grid, centre, radius):
        x = points.position[j]
        if wp.length(x - centre) < radius:
            value, _slope = cell_value(patches, first_patch, count, how, x)
            squares += value * value
            largest = wp.max(largest, wp.abs(value))
            held += 1.0
    return wp.sqrt(squares / wp.max(held, 1.0)), largest, int(held)


@wp.func
def farthest_normal(points: Points, centre: wp.vec3, radius: float, n: wp.vec3):
    """The normal in the ball that looks least along n, and its cosine."""
    least = float(2.0)
    found = n
    for j in wp.hash_grid_query(points.grid, centre, radius):
        if wp.length(points.position[j] - centre) < radius:
            along = wp.dot(points.normal[j], n)
            if along < least:
                least = along
                found = points.normal[j]
    return found, least


@wp.func
def third_normal(points: Points, centre: wp.vec3, radius: float, a: wp.vec3, b: wp.vec3):
    """The normal in the ball that looks most out of the plane of a and b, and the sine of its angle."""
    across = wp.normalize(wp.cross(a, b))
    most = float(0.0)
    found = a
    for j in wp.hash_grid_query(points.grid, centre, radius):
        if wp.length(points.position[j] - centre) < radius:
            out = wp.abs(wp.dot(points.normal[j], across))
            if out > most:
                most = out
                found = points.normal[j]
    return found, most


@wp.func
def side_of_others(
    points: Points,
    centre: wp.vec3,
    radius: float,
    groups: wp.mat33,
    count: int,
    patches: wp.array(dtype=Patch),
    first_patch: int,
):
    """Smallest and largest mean height of a group's points over another group's patch, over the radius.

    All below: the faces meet in a convex edge or corner; all above: in a concave one.
    """
    lowest = float(1.0e9)
    highest = float(-1.0e9)
    a = int(0)
    while a < count:
        b = int(0)
        while b < count:
            if a != b:
                total = float(0.0)
                held = float(0.0)
                for j in wp.hash_grid_query(points.grid, centre, radius):
                    x = points.position[j]
                    if wp.length(x - centre) < radius and group_of(points.normal[j], groups, count) == b:
                        value, _slope = patch_value(patches[first_patch + a], x)
                        total += value / radius
                        held += 1.0
                mean = total / wp.max(held, 1.0)
                lowest = wp.min(lowest, mean)
                highest = wp.max(highest, mean)
            b += 1
        a += 1
    return lowest, highest


@wp.kernel
def fit_cells(
    first: int,
    points: Points,
    centres: wp.array(dtype=wp.vec3),
    fewest: int,
    radii: wp.array(dtype=float),
    patches: wp.array(dtype=Patch),
    spare: wp.array(dtype=Patch),
    patch_count: wp.array(dtype=int),
    combined: wp.array(dtype=int),
    held: wp.array(dtype=int),
    worst: wp.array(dtype=float),
):
    """Patches of each cell; its ball is grown until it holds `fewest` points.

    `held` is how many these are, `worst` how far it misses one of them.
    """
    c = first + wp.tid()
    centre = centres[c]
    radius = radii[c]
    count = int(0)
    mean_n = wp.vec3()
    tries = int(0)
    while count < fewest and tries < 12:
        if tries > 0:
            radius *= 1.25
        count = int(0)
        mean_n = wp.vec3()
        for j in wp.hash_grid_query(points.grid, centre, radius):
            if wp.length(points.position[j] - centre) < radius:
                count += 1
                mean_n += points.normal[j]
        tries += 1
    radii[c] = radius
    groups = wp.mat33()
    patch, used = fit_patch(points, centre, radius, groups, 1, 0)
    at = 3 * c
    patches[at] = patch
    rms, largest, total = misses(points, centre, radius, patches, at, 1, wp.static(SMOOTH))
    patch_count[c] = 1
    combined[c] = wp.static(SMOOTH)
    a, cosine = farthest_normal(points, centre, radius, wp.normalize(mean_n))
    if cosine < SHARP:
        b, _cosine = farthest_normal(points, centre, radius, a)
        third, sine = third_normal(points, centre, radius, a, b)
        faces = int(2)
        if sine > CORNER:
            faces = int(3)
        groups = wp.matrix_from_rows(a, b, third)
        # The groups' own mean normals part them better than the extremes they were found from.
        least = int(1000000)
        rounds = int(0)
        while rounds < 2:
            k = int(0)
            least = int(1000000)
            while k < faces:
                patch, used = fit_patch(points, centre, radius, groups, faces, k)
                spare[at + k] = patch
                least = wp.min(least, used)
                k += 1
            if rounds == 0:
                k = int(0)
                while k < faces:
                    groups[k] = spare[at + k].normal
                    k += 1
            rounds += 1
        if least >= 3:
            lowest, highest = side_of_others(points, centre, radius, groups, faces, spare, at)
            how = int(wp.static(CONVEX))
            if lowest + highest > 0.0:
                how = int(wp.static(CONCAVE))
            sharp_rms, sharp_largest, _held = misses(points, centre, radius, spare, at, faces, how)
            if sharp_rms < 0.5 * rms:
                k = int(0)
                while k < faces:
                    patches[at + k] = spare[at + k]
                    k += 1
                patch_count[c] = faces
                combined[c] = how
                largest = sharp_largest
    held[c] = total
    worst[c] = largest
