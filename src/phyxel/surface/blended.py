"""The surface of what melts: detail where nothing changed, an implicit skin where topology did (M04 §5.2).

Zombies, the surfels a body came with, are carried along for ever and never resampled. Each moves from its own place
onto the implicit skin as the topology around it changes,

    Γ ← max(Γ, λ (|P̄ᵗ − P̄⁰| − quiet)),   s = s⁰ + Γ (S − s⁰),   b = (sᵗ − sᵗ⁻¹) / (S − sᵗ⁻¹) = ΔΓ / (1 − Γᵗ⁻¹)

with P̄ the outside probability of the phyxels that carry it. M04 eq. 30 sums |P̄ᵗ − P̄ᵗ⁻¹| over all steps; in a flow
that is mostly noise, which grows with the number of steps and wears every detail off. The net change since the melt
began does not. Detail that is stretched past three times its length is none, and goes the same way.

What is shown are the zombies that still have detail, and new surfels that keep the rest of the surface covered: on the
implicit skin where the nearest zombie is on it, on the zombies' own surface elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.mls.neighbours import nearest
from phyxel.points.frames import tangents
from phyxel.surface.blobs import ImplicitSkin
from phyxel.surface.resample import EVEN, Crowd, beside, parents, pushed, too_many
from phyxel.surface.truth import HEARD, Truth

Floats = NDArray[np.float32]

CHANGE = 8.0
QUIET = 0.06
"""λ, and |P̄ᵗ − P̄⁰| that is only the flow's noise: a face that becomes inside changes it by about 0.25."""
STRETCHED = (2.0, 3.0)
"""Longest half axis over that at birth between which detail is given up."""
SPREAD = 1.2
"""Half axis of a new disc over the distance of its neighbours."""
VARIATION = 1.5
"""Spacing of any surfel over the typical one, or less."""
ROUNDS = 2
"""Of taking away, adding and pushing apart, each time."""
MOST_SHOWN = 4.0
"""Surfels shown over those at birth, beyond which none are added."""
EMPTY = 0.6
"""Distance, in node spacings, to the nearest surfel from which on a place on the skin is bare."""


@dataclass(frozen=True)
class Sheet:
    """Surfels that are shown, in node spacings, each array of m rows."""

    points: Floats
    normals: Floats
    axis_a: Floats
    axis_b: Floats
    colors: Floats
    spacing: Floats
    """how far apart they should be, shape (m,)"""
    source: NDArray[np.int32]
    """the zombie it is, −1 for a new one, shape (m,)"""
    on_skin: NDArray[np.bool_]
    """whether it is kept on the implicit skin, shape (m,)"""

    def __len__(self) -> int:
        return len(self.points)

    def part(self, kept: NDArray[np.integer] | NDArray[np.bool_]) -> Sheet:
        """Some of them."""
        return Sheet(*(getattr(self, field.name)[kept] for field in fields(self)))

    def joined(self, more: Sheet) -> Sheet:
        """These, then others."""
        pairs = ((getattr(self, field.name), getattr(more, field.name)) for field in fields(self))
        return Sheet(*(np.concatenate(pair) for pair in pairs))


class Blended:
    """Zombies and what is shown of them. Works in the reference shape just after it was absorbed, where u = 0."""

    def __init__(self, zombies: Sheet, outside: Floats, device: wp.Device, seed: int = 0) -> None:
        self.zombies = zombies
        self.first_outside = outside
        """P̄⁰, shape (m,)"""
        self.change = np.zeros(len(zombies), np.float32)
        """Γ, shape (m,)"""
        self.alive = np.ones(len(zombies), bool)
        """those that are still somewhere, shape (m,)"""
        self.birth_axis = longest_axis(zombies)
        self.shown = zombies
        self.renewals = 0
        self._crowd, self._device, self._seed = Crowd(device), device, seed

    def renew(self, zombies: Sheet, shown: Sheet, outside: Floats, skin: ImplicitSkin, body: int) -> None:
        """Bring both to where they belong. `zombies` and `shown` as they were carried, `outside` P̄ of the zombies."""
        rng = np.random.default_rng([self._seed, body, self.renewals])
        self.renewals += 1
        self.zombies = self._changed(zombies, outside, skin)
        sheet = self._refreshed(shown)
        truth = self._truth()
        sheet = self._settled(sheet, truth, skin, body)
        for _ in range(ROUNDS):
            sheet = self._resampled(sheet, rng)
            sheet = self._settled(sheet, truth, skin, body)
        sheet = self._seeded(sheet, skin, body)
        self.shown = self._dressed(sheet, truth)

    def _changed(self, zombies: Sheet, outside: Floats, skin: ImplicitSkin) -> Sheet:
        """Zombies moved as far toward the skin as topology around them has changed."""
        near = CHANGE * (np.abs(outside - self.first_outside) - QUIET)
        low, high = STRETCHED
        long = (longest_axis(zombies) / self.birth_axis - low) / (high - low)
        change = np.maximum(self.change, np.clip(np.maximum(near, long), 0, 1)).astype(np.float32)
        moving = np.flatnonzero(self.alive & ((change > self.change) | (change >= 1)))
        onto, normals, found = skin.project(zombies.points[moving])
        self.alive[moving[~found]] = False
        share = np.where(self.change >= 1, 1, (change - self.change) / np.maximum(1 - self.change, 1e-6))[moving, None]
        self.change = change
        points, upright = zombies.points.copy(), zombies.normals.copy()
        points[moving] += np.where(found[:, None], share * (onto - points[moving]), 0)
        upright[moving] = unit((1 - share) * upright[moving] + share * normals)
        return laid(replace(zombies, points=points, normals=upright), moving)

    def _refreshed(self, sheet: Sheet) -> Sheet:
        """What is shown of zombies is where they are; those that have lost all detail are new surfels from now on."""
        z = self.zombies
        copies = np.flatnonzero(sheet.source >= 0)
        of = sheet.source[copies]
        taken = {}
        for name in ("points", "normals", "axis_a", "axis_b"):
            values = getattr(sheet, name).copy()
            values[copies] = getattr(z, name)[of]
            taken[name] = values
        source, on_skin = sheet.source.copy(), sheet.on_skin.copy()
        lost = self.change[of] >= 1
        source[copies[lost]] = -1
        on_skin[copies[lost]] = True
        kept = np.ones(len(sheet), bool)
        kept[copies[~self.alive[of]]] = False
        return replace(sheet, **taken, source=source, on_skin=on_skin).part(kept)

    def _truth(self) -> Truth:
        z = self.zombies
        farthest = HEARD * float(z.spacing.max())
        alive = self.alive
        return Truth(z.points[alive], z.normals[alive], z.colors[alive], self.change[alive], farthest, self._device)

    def _settled(self, sheet: Sheet, truth: Truth, skin: ImplicitSkin, body: int) -> Sheet:
        """New surfels brought onto the skin, or the zombies' surface; those that do not get there are taken away."""
        new = np.flatnonzero(sheet.source < 0)
        heard = truth.ask(sheet.points[new], sheet.normals[new], sheet.colors[new], sheet.spacing[new])
        on_skin = (heard.change < 0) | (heard.change >= 1)
        onto, normals, found = skin.project(sheet.points[new[on_skin]])
        found &= skin.owners(onto, body)
        points, upright = heard.onto.copy(), heard.normals.copy()
        points[on_skin], upright[on_skin] = onto, normals
        all_points, all_normals, flags = sheet.points.copy(), sheet.normals.copy(), sheet.on_skin.copy()
        all_points[new], all_normals[new], flags[new] = points, upright, on_skin
        kept = np.ones(len(sheet), bool)
        kept[new[on_skin][~found]] = False
        return replace(sheet, points=all_points, normals=all_normals, on_skin=flags).part(kept)

    def _resampled(self, sheet: Sheet, rng: np.random.Generator) -> Sheet:
        """Too many are thinned, too few get others beside them, new ones keep their distance. Zombies around which
        nothing has changed stay as they are."""
        count, push = self._crowd.around(sheet.points, sheet.normals, sheet.spacing)
        settled = (sheet.source >= 0) & (self.change[sheet.source] == 0)
        free = sheet.source < 0
        points = np.where(free[:, None], pushed(sheet.points, push, sheet.spacing), sheet.points)
        by = parents(count)
        if len(sheet) > MOST_SHOWN * len(self.zombies):
            by = by[:0]
        children = sheet.part(by)
        children = replace(
            children,
            points=beside(children.points, children.normals, children.spacing, rng),
            source=np.full(len(by), -1, np.int32),
        )
        kept = settled | ~too_many(count, rng)
        return replace(sheet, points=points).part(kept).joined(children)

    def _seeded(self, sheet: Sheet, skin: ImplicitSkin, body: int) -> Sheet:
        """Surfels where the skin is bare: a fresh break has none to grow from."""
        onto, normals = skin.seeds(body)
        bare = self._crowd.bare(onto, sheet.points, EMPTY)
        if not bare.any():
            return sheet
        onto, normals = onto[bare], normals[bare]
        spacing = np.full(len(onto), np.median(self.zombies.spacing), np.float32)
        _, nearby = nearest(onto, self.zombies.points, 1)
        new = Sheet(
            onto,
            normals,
            np.zeros_like(onto),
            np.zeros_like(onto),
            self.zombies.colors[nearby[:, 0]],
            spacing,
            np.full(len(onto), -1, np.int32),
            np.ones(len(onto), bool),
        )
        return sheet.joined(new)

    def _dressed(self, sheet: Sheet, truth: Truth) -> Sheet:
        """New surfels get discs that cover their surroundings, and the colour of the zombies there."""
        new = np.flatnonzero(sheet.source < 0)
        count, _ = self._crowd.around(sheet.points, sheet.normals, sheet.spacing)
        wide = np.sqrt(EVEN / np.maximum(count[new], 4))
        radius = (SPREAD * sheet.spacing[new] * np.clip(wide, 0.8, 1.6))[:, None]
        a, b = tangents(sheet.normals[new])
        colors, axis_a, axis_b = sheet.colors.copy(), sheet.axis_a.copy(), sheet.axis_b.copy()
        axis_a[new], axis_b[new] = radius * a, radius * b
        colors[new] = truth.ask(sheet.points[new], sheet.normals[new], sheet.colors[new], sheet.spacing[new]).colors
        return replace(sheet, colors=colors, axis_a=axis_a, axis_b=axis_b)


def longest_axis(sheet: Sheet) -> Floats:
    """Longest half axis of each disc: the larger singular value of [a b], shape (m,)."""
    aa, bb, ab = (
        np.einsum("ma,ma->m", x, y)
        for x, y in ((sheet.axis_a, sheet.axis_a), (sheet.axis_b, sheet.axis_b), (sheet.axis_a, sheet.axis_b))
    )
    return np.sqrt(0.5 * (aa + bb) + np.sqrt(0.25 * (aa - bb) ** 2 + ab * ab)).astype(np.float32)


def unit(vectors: NDArray[np.floating]) -> Floats:
    """Vectors (m, 3) of length one."""
    return (vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)).astype(np.float32)


def laid(sheet: Sheet, which: NDArray[np.integer]) -> Sheet:
    """Discs of some surfels, (k,), laid flat to their normals."""
    n = sheet.normals[which]
    axes = []
    for axis in (sheet.axis_a, sheet.axis_b):
        turned = axis.copy()
        turned[which] -= np.einsum("ma,ma->m", axis[which], n)[:, None] * n
        axes.append(turned)
    return replace(sheet, axis_a=axes[0], axis_b=axes[1])
