"""What a cloud of points says of a surface (physics 9.2): without dirt, with outward normals, and with its openings
closed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from phyxel.errors import SolidError
from phyxel.mls.neighbours import nearest
from phyxel.points.cloud import Floats, PointCloud
from phyxel.points.creases import beside_creases
from phyxel.points.normals import (
    Neighbourhoods,
    areas_of,
    consistency,
    estimate_normals,
    neighbourhoods,
    orient_normals,
)
from phyxel.rotation import tangents
from phyxel.solid.openings import IF_A_SHEET, close_openings
from phyxel.solid.winding import Soup

THICK = 0.03
"""Share of a neighbourhood's spread that lies across it, above which it is no sheet. Curvature alone stays below."""
SIZES = (32, 64, 128, 256)
"""Neighbours to look at, until they make a sheet."""
PASSES = 2
AT_ONCE = 2**22
"""Numbers in one working array, so that memory stays small."""
Mask = NDArray[np.bool_]

FEWEST_DISTINCT = 50
"""Distinct points below which no surface can be told."""
STRAY = 4.0
"""A point is an outlier if its neighbours are so many times farther than theirs are from them, or than is usual while
they make no sheet."""
STRAY_NEAREST = 3.5
"""The same for the nearest one alone, of a point that is also a little lonelier than its neighbours."""
SPECK = 0.02
"""Share of the points below which a piece apart from the others is dirt if it is no sheet."""
SHEET_SPREAD = 0.05
"""Share of a neighbourhood's spread that may lie across it for it to be a sheet."""
MOST_STRAY = 0.3
"""Share of points that may be dirt."""
CONSISTENT = 0.002
"""Share of neighbouring pairs whose given normals may disagree in sign without their signs being doubted."""
WIDEST_AREA = 9.0
"""The most a point's area counts, in medians."""
ASKED_BESIDE = 0.5
"""How far beside a point the winding number is asked, in spacings."""
MOST_PROBED = 50_000
"""Points whose sides are looked at, at most."""
VOTES = 9
"""Of them, how many decide on a point."""
ENCLOSED = 0.8
"""Least mean winding number just inside a closed surface."""


def without_noise(x: Floats, spread: Floats) -> Floats:
    """The points (N, 3), moved onto the surface they scatter about, if they do.

    `spread` (N, 3, 3) is the covariance of each point's nearest neighbours. Where these are as thick as they are wide,
    more are taken, until they are flat; a quadratic height field through them is where the point belongs.
    """
    thinnest, count = _thickness(spread), 0
    for size in SIZES:
        thickness = _thickness(_spreads(x, min(size, len(x) - 1))) if thinnest >= THICK else thinnest
        # More neighbours are thinner, over their width, if noise makes them thick, and thicker if curvature does.
        if thickness >= thinnest:
            break
        thinnest, count = thickness, min(size, len(x) - 1)
    if count == 0:
        return x
    for _ in range(PASSES):
        x = _smoothed(x, count)
    return x


def _thickness(spread: Floats) -> float:
    """Median of the smallest eigenvalue over the trace."""
    values = np.linalg.eigvalsh(spread)
    return float(np.median(values[:, 0] / np.maximum(values.sum(axis=1), 1e-300)))


def _spreads(x: Floats, count: int) -> Floats:
    """Covariances of some thousand neighbourhoods of so many points."""
    some = np.random.default_rng(0).permutation(len(x))[:2000]
    _, index = cKDTree(x).query(x[some], count, workers=-1)
    away = x[index] - x[index].mean(axis=1, keepdims=True)
    return np.einsum("nki,nkj->nij", away, away) / count


def _smoothed(x: Floats, count: int) -> Floats:
    """Each point on the quadratic height field w = g(u, v) through its neighbours."""
    tree = cKDTree(x)
    moved = np.empty_like(x)
    step = max(AT_ONCE // (6 * count), 1)
    for start in range(0, len(x), step):
        own = x[start : start + step]
        distance, index = tree.query(own, count, workers=-1)
        reach = distance[:, -1:]
        weight = (1 - (distance / (1.1 * reach)) ** 2) ** 2
        moved[start : start + step] = _on_height_field(own, x[index], weight, reach[:, 0])
    return moved


def _on_height_field(own: Floats, around: Floats, weight: Floats, reach: Floats) -> Floats:
    """(n, 3) points moved along the normal of (n, k, 3) neighbours onto their weighted quadratic fit."""
    middle = np.einsum("nk,nkd->nd", weight, around) / weight.sum(axis=1, keepdims=True)
    away = (around - middle[:, None]) / reach[:, None, None]
    _, axes = np.linalg.eigh(np.einsum("nk,nki,nkj->nij", weight, away, away))
    normal = axes[:, :, 0]
    a, b = tangents(normal)
    u, v, w = (np.einsum("nkd,nd->nk", away, axis) for axis in (a, b, normal))
    basis = np.stack([np.ones_like(u), u, v, u * u, u * v, v * v], axis=2)
    weighted = basis * weight[:, :, None]
    A = np.einsum("nki,nkj->nij", weighted, basis) + 1e-9 * np.eye(6)
    height = np.linalg.solve(A, np.einsum("nki,nk->ni", weighted, w)[:, :, None])[:, :, 0]
    off = (own - middle) / reach[:, None]
    u, v, w = (np.einsum("nd,nd->n", off, axis) for axis in (a, b, normal))
    wanted = np.einsum("ni,ni->n", height, np.stack([np.ones_like(u), u, v, u * u, u * v, v * v], axis=1))
    return own + ((wanted - w) * reach)[:, None] * normal


@dataclass(frozen=True)
class Findings:
    """What was understood of the points."""

    points: int
    """given"""
    duplicates: int = 0
    """at the same place as another; counted once"""
    outliers: int = 0
    """far from everything, or on no side of anything; left out"""
    buried: int = 0
    """inside the solid, where another part of the surface covers them; left out"""
    noise: float = 0.0
    """how far points were moved onto the surface they scatter about, root mean square over the size"""
    turned: int = 0
    """with a normal that looked inward, or had to be given a side"""
    normals_made: bool = False
    holes: int = 0
    """openings closed"""
    closed_share: float = 0.0
    """share of the surface's area that was made up to close them"""
    open_edges: int = 0
    """of a mesh: edges that are not passed as often one way as the other; the rims of its openings"""
    doubts: tuple[str, ...] = ()
    """sentences on what may have been understood otherwise than it was meant: where the volume could be off by more
    than 2 %, which part of the mesh that is, and what to do"""


@dataclass(frozen=True)
class Scan:
    """Points of a closed surface, in units of `size` about `middle`."""

    positions: Floats
    normals: Floats
    areas: Floats
    middle: Floats
    """[m], shape (3,)"""
    size: float
    """[m]"""
    kept: NDArray[np.integer]
    """which of the cloud's points the first ones are"""
    findings: Findings


def read_scan(cloud: PointCloud, closing: float, device: wp.Device) -> Scan:
    """The closed surface the cloud's points lie on. `closing` is the share of its area that may be made up."""
    _refuse_coarse_numbers(cloud)
    scan, near = _sheet(cloud)
    scan, near = _one_sided(cloud, scan, near, device)
    return _closed(cloud, scan, near, closing, device)


def _sheet(cloud: PointCloud) -> tuple[Scan, Neighbourhoods]:
    """The cloud's distinct points without strays and noise, with normals and areas."""
    kept, near = _without_strays(cloud)
    positions = cloud.positions[kept]
    lower, upper = positions.min(axis=0), positions.max(axis=0)
    middle, size = 0.5 * (lower + upper), float((upper - lower).max())
    scattered = (positions - middle) / size
    x = without_noise(scattered, near.spread)
    noise = float(np.sqrt(((x - scattered) ** 2).sum(axis=1).mean()))
    near = replace(near, size=near.size / size)
    if noise > 0:
        near, order = _around_each(x)
        x, kept = x[order], kept[order]
    areas = areas_of(x, near)
    areas = np.minimum(areas, WIDEST_AREA * np.median(areas))
    duplicates = len(cloud) - len(np.unique(cloud.positions, axis=0))
    found = Findings(
        points=len(cloud),
        duplicates=duplicates,
        outliers=len(cloud) - duplicates - len(kept),
        noise=noise,
        normals_made=cloud.normals is None,
    )
    return Scan(x, _normals(cloud, kept, x, near), areas, middle, size, kept, found), near


def _one_sided(cloud: PointCloud, scan: Scan, near: Neighbourhoods, device: wp.Device) -> tuple[Scan, Neighbourhoods]:
    """The points that have the solid on their inner side only."""
    sides = _sides(scan, device)
    if sides.reversed.any():
        scan = replace(scan, normals=np.where(sides.reversed[:, None], -scan.normals, scan.normals))
        sides = _sides(scan, device)
    turned = 0 if cloud.normals is None else int(((cloud.normals[scan.kept] * scan.normals).sum(axis=1) < 0).sum())
    outliers = scan.findings.outliers + int(sides.loose.sum())
    _refuse_if_mostly_dirt(cloud, outliers, scan.findings.duplicates)
    found = replace(scan.findings, outliers=outliers, buried=int(sides.buried.sum()), turned=turned)
    whole = np.flatnonzero(~sides.buried & ~sides.loose)
    if len(whole) == len(scan.kept):
        return replace(scan, findings=found), near
    near, order = _around_each(scan.positions[whole])
    left = whole[order]
    positions, normals, areas, kept = (part[left] for part in (scan.positions, scan.normals, scan.areas, scan.kept))
    return Scan(positions, normals, areas, scan.middle, scan.size, kept, found), near


def _refuse_coarse_numbers(cloud: PointCloud) -> None:
    """Single precision far from the origin leaves no digits for the surface."""
    x = cloud.positions
    step = float(np.abs(x).max()) * 2.0**-24
    spacing = cloud.size / np.sqrt(len(cloud))
    if step > 0.2 * spacing and (x == x.astype(np.float32)).all():
        raise SolidError(
            f"{cloud.name}: coordinates near {np.abs(x).max():.3g} m are kept in steps of {2 * step:.2g} m, but the "
            f"points lie about {spacing:.2g} m apart; move the scan to the origin before saving it, or save it in "
            "double precision"
        )


def _around_each(positions: Floats) -> tuple[Neighbourhoods, NDArray[np.integer]]:
    """Neighbourhoods of the distinct ones of the points, and which of them these are, in the same order."""
    near = neighbourhoods(positions)
    every = np.arange(len(near.x))
    return replace(near, original=every, copy_of=every), near.original


def _without_strays(cloud: PointCloud) -> tuple[NDArray[np.integer], Neighbourhoods]:
    """Indices of distinct points that have others about as near as these have, and their neighbourhoods."""
    near, kept = _around_each(cloud.positions)
    for _ in range(5):
        if len(kept) < FEWEST_DISTINCT:
            raise SolidError(
                f"{cloud.name}: only {len(kept)} distinct points; a solid needs a closed surface of at least "
                f"{FEWEST_DISTINCT}"
            )
        stray = _strays(near)
        if not stray.any():
            break
        kept = kept[~stray]
        near, order = _around_each(cloud.positions[kept])
        kept = kept[order]
    return kept, near


def _strays(near: Neighbourhoods) -> Mask:
    """Points that stand off: from their nearest, or all in all, more than their neighbours do; or alone in space.

    A gap to the nearest alone says nothing where others come in tight pairs.
    """
    values = np.linalg.eigvalsh(near.spread)
    scattered = values[:, 0] > SHEET_SPREAD * values.sum(axis=1)
    gap = np.linalg.norm(near.x - near.x[near.index[:, 0]], axis=1)
    farther, lonelier = (far / np.median(far[near.index], axis=1) for far in (gap, near.reach))
    off = (farther > STRAY_NEAREST) & (lonelier > 1.3)
    return (
        off | _specks(near, scattered) | (lonelier > STRAY) | (scattered & (near.reach > STRAY * np.median(near.reach)))
    )


def _specks(near: Neighbourhoods, scattered: Mask) -> Mask:
    """Points of small pieces, apart from all others, that are heaps rather than sheets."""
    n, k = near.index.shape
    links = csr_array((np.ones(n * k), near.index.reshape(-1), np.arange(0, n * k + 1, k)), shape=(n, n))
    _, piece = connected_components(links, directed=False)
    size = np.bincount(piece)
    heap = np.bincount(piece, scattered) > 0.5 * size
    return (heap & (size < SPECK * n))[piece]


def _normals(cloud: PointCloud, kept: NDArray[np.integer], positions: Floats, near: Neighbourhoods) -> Floats:
    """Given normals where they can be believed, else estimated ones; outward as far as neighbours can tell."""
    if cloud.normals is None:
        return beside_creases(estimate_normals(positions, near), near)
    given = cloud.normals[kept]
    disagreement = 1 - consistency(positions, given, near)
    if disagreement < CONSISTENT:
        return given
    oriented = orient_normals(positions, given, near)
    return oriented if 1 - consistency(positions, oriented, near) < 0.5 * disagreement else given


@dataclass(frozen=True)
class _Sides:
    """What the winding number beside each point says of it."""

    reversed: Mask
    """nothing outside it, and less than nothing inside: its part of the surface is inside out"""
    buried: Mask
    """inside on both sides"""
    loose: Mask
    """outside on both sides"""


def _sides(scan: Scan, device: wp.Device) -> _Sides:
    """Of many points some are asked, and each point goes by the majority of those near it: one may be off by noise."""
    soup = Soup.of_points(scan.positions, scan.normals, scan.areas, device)
    some = np.random.default_rng(0).permutation(len(scan.positions))[:MOST_PROBED]
    x = scan.positions[some]
    shift = ASKED_BESIDE * np.sqrt(scan.areas[some])[:, None] * scan.normals[some]
    behind, before = soup.winding_number(x - shift), soup.winding_number(x + shift)
    reversed = (before < -0.6) & (behind < 0.4)
    buried = np.minimum(behind, before) > 0.75
    loose = (np.maximum(behind, before) < 0.25) & ~reversed
    if not (reversed | buried | loose).any():
        nowhere = np.zeros(len(scan.positions), bool)
        return _Sides(nowhere, nowhere, nowhere)
    _, near = nearest(scan.positions, x, min(VOTES, len(x)))
    return _Sides(*(flag[near].mean(axis=1) > 0.5 for flag in (reversed, buried, loose)))


def _refuse_if_mostly_dirt(cloud: PointCloud, outliers: int, duplicates: int) -> None:
    distinct = len(cloud) - duplicates
    if outliers > MOST_STRAY * distinct:
        raise SolidError(
            f"{cloud.name}: {outliers} of {distinct} points lie on no closed surface; this is no scan of a solid's "
            "skin. Check that the file holds surface points, and that its normals belong to them"
        )


def _closed(cloud: PointCloud, scan: Scan, near: Neighbourhoods, closing: float, device: wp.Device) -> Scan:
    """The scan with its openings closed, or a word on why it cannot be a solid."""
    soup = Soup.of_points(scan.positions, scan.normals, scan.areas, device)
    made = close_openings(scan.positions, scan.normals, scan.areas, near, soup)
    made.check(cloud.name, float(scan.areas.sum()), closing)
    whole = replace(
        scan,
        positions=np.concatenate([scan.positions, made.positions]),
        normals=np.concatenate([scan.normals, made.normals]),
        areas=np.concatenate([scan.areas, made.areas]),
        findings=replace(scan.findings, holes=made.holes, closed_share=made.share(float(scan.areas.sum()))),
    )
    _refuse_if_nothing_is_enclosed(cloud, whole, device)
    return whole


def _refuse_if_nothing_is_enclosed(cloud: PointCloud, scan: Scan, device: wp.Device) -> None:
    """Just inside a closed surface the winding number is 1; beside a sheet it is ½, in a heap of points anything."""
    soup = Soup.of_points(scan.positions, scan.normals, scan.areas, device)
    some = np.random.default_rng(0).permutation(len(scan.positions))[:5000]
    shift = ASKED_BESIDE * np.sqrt(scan.areas[some])[:, None] * scan.normals[some]
    inside = float(np.median(soup.winding_number(scan.positions[some] - shift)))
    outside = float(np.median(soup.winding_number(scan.positions[some] + shift)))
    if inside < ENCLOSED or outside > 1 - ENCLOSED:
        raise SolidError(
            f"{cloud.name}: the points enclose nothing (winding number {inside:.2f} on their inner side, {outside:.2f} "
            f"on the outer; a closed surface has 1 and 0). A solid needs points all around it. {IF_A_SHEET}"
        )
