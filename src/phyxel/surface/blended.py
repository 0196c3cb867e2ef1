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

from phyxel.contact.mold import Mold
from phyxel.mls.carry import Carriers
from phyxel.mls.neighbours import nearest
from phyxel.points.frames import tangents
from phyxel.surface.blobs import ImplicitSkin
from phyxel.surface.carried import Carried, Discs
from phyxel.surface.relief import pressed
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

    @staticmethod
    def of(discs: Discs, spacing: Floats, source: NDArray[np.int32], on_skin: NDArray[np.bool_]) -> Sheet:
        """Discs as they are carried."""
        points, axis_a, axis_b, colors = (np.asarray(values, np.float32) for values in discs)
        return Sheet(points, unit(np.cross(axis_a, axis_b)), axis_a, axis_b, colors, spacing, source, on_skin)

    @property
    def discs(self) -> Discs:
        return Discs(self.points, self.axis_a, self.axis_b, self.colors)

    def part(self, kept: NDArray[np.integer] | NDArray[np.bool_]) -> Sheet:
        """Some of them."""
        return Sheet(*(getattr(self, field.name)[kept] for field in fields(self)))

    def joined(self, more: Sheet) -> Sheet:
        """These, then others."""
        pairs = ((getattr(self, field.name), getattr(more, field.name)) for field in fields(self))
        return Sheet(*(np.concatenate(pair) for pair in pairs))


class Blended:
    """The surface of a body that flows. It is changed in the reference shape just after that was absorbed: u = 0."""

    def __init__(self, zombies: Carried, outside: Floats, device: wp.Device, seed: int = 0) -> None:
        self.zombies = zombies
        """never resampled"""
        self.shown = zombies.copy()
        self.first_outside = zombies.carriers.mean(outside)
        """P̄⁰, shape (m,)"""
        self.change = np.zeros(len(zombies), np.float32)
        """Γ, shape (m,)"""
        self.alive = np.ones(len(zombies), bool)
        """zombies that are still at the surface, shape (m,)"""
        self.birth_axis = longest_axis(zombies.discs)
        """longest half axes at the beginning, shape (m,)"""
        spacing = self.birth_axis / SPREAD
        typical = float(np.median(spacing))
        self.spacing = np.clip(spacing, typical / VARIATION, typical * VARIATION).astype(np.float32)
        """how far apart surfels should be, shape (m,)"""
        self._sheet_spacing = self.spacing
        self.source = np.arange(len(zombies), dtype=np.int32)
        """the zombie that each surfel shown is, −1 for a new one, shape (k,)"""
        self.on_skin = wp.zeros(len(zombies), dtype=wp.int32, device=device)
        """whether each surfel shown is kept on the implicit skin, shape (k,)"""
        self.renewals = 0
        self._crowd, self._device, self._seed = Crowd(device), device, seed

    def absorb(self, unit: float, origin: NDArray[np.floating]) -> None:
        """Where both are now becomes their reference shape."""
        for surfels in (self.zombies, self.shown):
            surfels.absorb(unit, origin)

    def press(self, mold: Mold, time: float, spacing: float) -> None:
        """Give what is shown the relief of a mold where it touches; `spacing` of the nodes [m]."""
        shown = self.shown
        positions, normals, _ = pressed(
            shown.origin + shown.position.numpy(), shown.normal.numpy(), mold, time, spacing
        )
        shown.position.assign((positions - shown.origin).astype(np.float32))
        sheet = replace(
            Sheet.of(shown.present(), self._sheet_spacing, self.source, self.source < 0),
            normals=normals.astype(np.float32),
        )
        sheet = laid(sheet, np.arange(len(sheet)))
        shown.normal.assign(normals.astype(np.float32))
        shown.axis_a.assign(sheet.axis_a)
        shown.axis_b.assign(sheet.axis_b)

    def renew(self, outside: Floats, skin: ImplicitSkin, nodes: NDArray[np.floating], body: int) -> None:
        """Bring all surfels to where they belong. `outside` is P and `nodes` (n, 3) are the places of the body's
        phyxels; `skin` is that of all phyxels that flow together."""
        rng = np.random.default_rng([self._seed, body, self.renewals])
        self.renewals += 1
        zombies = self._changed(outside, skin)
        truth = self._truth(zombies)
        sheet = self._settled(self._refreshed(zombies), truth, skin, body)
        for _ in range(ROUNDS):
            sheet = self._settled(self._resampled(sheet, rng), truth, skin, body)
        sheet = self._dressed(self._seeded(sheet, zombies, skin, body), truth)
        self.zombies = Carried(zombies.discs, Carriers.found(zombies.points, nodes), self._device)
        self.shown = Carried(sheet.discs, Carriers.found(sheet.points, nodes), self._device)
        self.source, self._sheet_spacing = sheet.source, sheet.spacing
        self.on_skin = wp.array(sheet.on_skin.astype(np.int32), dtype=wp.int32, device=self._device)

    def _changed(self, outside: Floats, skin: ImplicitSkin) -> Sheet:
        """Zombies moved as far toward the skin as topology around them has changed."""
        carried = self.zombies
        zombies = Sheet.of(carried.discs, self.spacing, np.arange(len(carried), dtype=np.int32), self.change >= 1)
        near = CHANGE * (np.abs(carried.carriers.mean(outside) - self.first_outside) - QUIET)
        low, high = STRETCHED
        long = (longest_axis(carried.discs) / self.birth_axis - low) / (high - low)
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

    def _refreshed(self, z: Sheet) -> Sheet:
        """What is shown of zombies is where they are; those that have lost all detail are new surfels from now on."""
        sheet = Sheet.of(self.shown.discs, self._sheet_spacing, self.source, self.on_skin.numpy() == 1)
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

    def _truth(self, z: Sheet) -> Truth:
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

    def _seeded(self, sheet: Sheet, zombies: Sheet, skin: ImplicitSkin, body: int) -> Sheet:
        """Surfels where the skin is bare: a fresh break has none to grow from."""
        onto, normals = skin.seeds(body)
        bare = self._crowd.bare(onto, sheet.points, EMPTY)
        if not bare.any():
            return sheet
        onto, normals = onto[bare], normals[bare]
        spacing = np.full(len(onto), np.median(self.spacing), np.float32)
        _, nearby = nearest(onto, zombies.points, 1)
        new = Sheet(
            onto,
            normals,
            np.zeros_like(onto),
            np.zeros_like(onto),
            zombies.colors[nearby[:, 0]],
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


def longest_axis(sheet: Discs | Sheet) -> Floats:
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
