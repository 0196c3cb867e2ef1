# mypy: disable-error-code="valid-type,no-untyped-def"
"""Phyxels that a crack parts: neighbours that no longer see each other are none (physics 12.7).

Only phyxels that lose a neighbour get new moments, and a larger support where those that are left lie in one plane. A
cut moves nothing, so mass and momentum stay to the bit. What ∇u comes to be among fewer neighbours may hold more energy
than before; so much of the strain is then stored, and so much hourglass stiffness given up, that no phyxel's energy
grows: a process zone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from phyxel import device as dev
from phyxel.device import entries, float64s, over
from phyxel.mls.moments import GROWTH, extreme_eigenvalues
from phyxel.mls.neighbours import PairList
from phyxel.mls.visibility import Sees
from phyxel.models.phyxel.forces import cauchy_stress
from phyxel.models.phyxel.reference_shape import store
from phyxel.models.reductions import CHUNK

if TYPE_CHECKING:
    from phyxel.models.phyxel.model import PhyxelModel

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]
Integers = NDArray[np.integer]

THIN = 0.1
"""Ratio of a moment matrix' eigenvalues below which a phyxel beside a crack looks farther: such fits are noisy."""
WIDENINGS = 2
"""How often it looks farther: phyxels much farther away say little about it."""
UNLIKE, CRUSHED = 0.3, 0.3
"""Change of ∇u by a cut above which, and volume ratio after it below which, a phyxel's fit is not believed."""
TOGETHER = 0.75
"""Distance of neighbours that are in one piece, over their support."""
SPLINTER = 6
"""Fewest phyxels of what parts from a body: fewer have no stress of their own, and a crack's way is not known better
than to a spacing."""
ROUNDED = 1e-9
"""Energy of a phyxel over β E v that single precision makes of rigid motion: no gain."""


@wp.kernel
def find_overload(
    first: int, n: int, laws: Any, strength: entries, gradient: entries, plastic: entries, swell: entries,
    largest: float64s,
):  # fmt: skip
    """Largest principal Cauchy stress over the strength (Rankine) among the CHUNK phyxels of each chunk
    (G04 §4.3, physics 12.2)."""
    c = first + wp.tid()
    found = wp.float64(0.0)
    i = c * CHUNK
    end = wp.min(n, i + CHUNK)
    while i < end:
        row = laws.of[i]
        C, k_v, k_b = laws.stiffness[row], laws.k_v[row], laws.k_b[row]
        _low, high = extreme_eigenvalues(cauchy_stress(gradient[i], plastic[i], swell[i], C, k_v, k_b))
        found = wp.max(found, wp.float64(high / strength[i]))
        i += 1
    largest[c] = found


def overload(model: PhyxelModel, strength: wp.array) -> float:
    """Largest principal stress of all phyxels over their strength [Pa], (n,) on the device."""
    model.ensure_forces()
    n = len(model)
    largest = wp.zeros((n + CHUNK - 1) // CHUNK, dtype=wp.float64, device=model.device)
    find = over(find_overload, len(largest), model.matter, model.now, n=n, strength=strength, largest=largest)
    dev.launch(find.kernel, find.count, find.inputs, model.device)
    return float(largest.numpy().max())


def components(model: PhyxelModel, body: int) -> NDArray[np.int32]:
    """Number of the part of a body that each of its phyxels belongs to, shape (n,): neighbours are in one."""
    return _Links.of(model.matter.near.pairs()).components(*model.ranges[body])


def pieces(model: PhyxelModel) -> NDArray[np.int32]:
    """Number of the piece each phyxel belongs to, shape (n,): neighbours that are near are in one piece."""
    links = _Links.of(model.matter.near.pairs())
    X, h = model.matter.X.numpy(), model.matter.support.numpy()
    apart = np.linalg.norm(X[links.owner] - X[links.index], axis=1)
    near = apart < TOGETHER * np.maximum(h[links.owner], h[links.index])
    return links.part(near).components(0, len(model))


def cut(model: PhyxelModel, body: int, places: Floats, cracks: Sees, sees: Sees, fewest: int = 1) -> None:
    """Part the neighbours of a body between which cracks run, as `cracks` says.

    `places` (n, 3) are those of its phyxels at birth. New neighbours, where the old ones are too few, are those that
    `sees` allows. No part of less than `fewest` phyxels comes off.
    """
    low, high = model.ranges[body]
    links = _Links.of(model.matter.near.pairs())
    kept = _with_splinters(links, _uncrossed(links, low, high, places, cracks), low, high, fewest)
    if kept.all():
        return
    model.synchronise()
    before = model.now.gradient.numpy()
    energy, trace = model.measure()[0].astype(np.float64), model.matter.moments.trace.numpy().astype(np.float64)
    affected = np.unique(links.owner[~kept])
    X, support = model.matter.X.numpy().astype(np.float64), model.matter.support.numpy()
    links = _with_more(links.part(kept), X, support, affected, low, places, sees)
    model.matter.support.assign(support)
    _relay(model, links.pairs(len(model)))
    now = model.matter.moments.trace.numpy().astype(np.float64)
    thinner = np.divide(now, trace, out=np.ones_like(now), where=(trace > 0) & (now > 0))
    _loosen(model, affected, thinner[affected])  # c_i stays: of what is left of a fit, no tie gets stiffer
    _numb(model, affected, before)
    _store_excess(model, affected, energy)


@dataclass(frozen=True)
class _Links:
    """Neighbour lists as pairs, those of a phyxel one after another."""

    owner: Integers
    index: Integers

    @staticmethod
    def of(pairs: PairList) -> _Links:
        return _Links(np.repeat(np.arange(len(pairs.count)), pairs.count), pairs.index.astype(np.int64))

    def part(self, kept: NDArray[np.bool_]) -> _Links:
        return _Links(self.owner[kept], self.index[kept])

    def joined(self, i: Integers, j: Integers) -> _Links:
        """With the links i -> j and back, as far as they are new."""
        return _Links(np.concatenate([self.owner, i, j]), np.concatenate([self.index, j, i])).once()

    def once(self) -> _Links:
        _, first = np.unique(self.owner * (self.index.max(initial=0) + 1) + self.index, return_index=True)
        return self.part(np.sort(first))

    def components(self, low: int, high: int) -> NDArray[np.int32]:
        """Number of the part that each phyxel of a range belongs to, shape (high - low,)."""
        own = (self.owner >= low) & (self.owner < high)
        ends = self.owner[own] - low, self.index[own] - low
        graph = coo_array((np.ones(own.sum()), ends), shape=(high - low, high - low))
        return connected_components(graph, directed=False)[1]

    def pairs(self, n: int) -> PairList:
        order = np.argsort(self.owner, kind="stable")
        return PairList(np.bincount(self.owner, minlength=n).astype(np.int32), self.index[order].astype(np.int32))


def _uncrossed(links: _Links, low: int, high: int, places: Floats, cracks: Sees) -> NDArray[np.bool_]:
    """Which links cross no crack. Each pair is asked for once: both ends must come to the same answer."""
    asked = np.flatnonzero((links.owner >= low) & (links.owner < high) & (links.owner < links.index))
    one, other = links.owner[asked], links.index[asked]
    hidden = ~cracks(places[one - low], places[other - low])
    n = int(links.index.max()) + 1
    gone = np.concatenate([one[hidden] * n + other[hidden], other[hidden] * n + one[hidden]])
    return ~np.isin(links.owner * n + links.index, gone)


def _with_splinters(links: _Links, kept: NDArray[np.bool_], low: int, high: int, fewest: int) -> NDArray[np.bool_]:
    """Which links to keep so that no part of less than `fewest` phyxels comes off: cracks closer together than
    nodes can tell. It stays with the part, a large one if it can be, that most of its links lead to."""
    if kept.all():
        return kept
    label = links.part(kept).components(low, high)
    count = np.bincount(label)
    small = count < fewest
    small[count.argmax()] = False
    if not small.any():
        return kept
    lost = np.flatnonzero(~kept)
    one, other = label[links.owner[lost] - low], label[links.index[lost] - low]
    stays_with = np.full(len(count), -1)
    for part in np.flatnonzero(small):
        led = other[(one == part) & (other != part)]
        led = led[~small[led]] if (~small[led]).any() else led
        if len(led):
            stays_with[part] = np.bincount(led).argmax()
    kept = kept.copy()
    kept[lost[(stays_with[one] == other) | (stays_with[other] == one)]] = True
    return kept


def _with_more(
    links: _Links, X: Floats, support: Floats, nodes: Integers, low: int, places: Floats, sees: Sees
) -> _Links:
    """Links in which none of some nodes has its neighbours in one plane, if that can be helped: their supports, in
    `support`, grow. Where it cannot, they stay."""
    chosen = np.zeros(len(X), bool)
    chosen[nodes] = True
    own = links.part(chosen[links.owner])
    thin = nodes[_ratios(X, support, nodes, own) < THIN]
    tree, wider = cKDTree(X[low : low + len(places)]), support.copy()
    for _ in range(WIDENINGS):
        if not len(thin):
            break
        wider[thin] *= GROWTH
        near = tree.query_ball_point(X[thin], wider[thin], return_sorted=True)
        i = np.repeat(thin, [len(one) for one in near])
        j = low + np.concatenate([np.asarray(one, np.int64) for one in near])
        # A phyxel near enough already, and no neighbour, was parted before.
        beyond = np.linalg.norm(X[j] - X[i], axis=1) >= np.maximum(support[i], support[j])
        i, j = i[beyond], j[beyond]
        seen = sees(places[i - low], places[j - low])
        known = links.part(np.isin(links.owner, thin))
        found = _Links(np.concatenate([known.owner, i[seen]]), np.concatenate([known.index, j[seen]])).once()
        solid = thin[_ratios(X, wider, thin, found) >= THIN]
        support[solid] = wider[solid]
        done = np.isin(found.owner, solid)
        links = links.joined(found.owner[done], found.index[done])
        thin = np.setdiff1d(thin, solid)
    return links


def _ratios(X: Floats, support: Floats, nodes: Integers, links: _Links) -> Floats:
    """Smallest over largest eigenvalue of the moment matrices of some nodes, shape (m,); `links` are theirs alone."""
    arm = X[links.index] - X[links.owner]
    weight = np.maximum(1 - (arm * arm).sum(axis=1) / support[links.owner] ** 2, 0) ** 3
    A = np.zeros((len(nodes), 3, 3))
    np.add.at(A, np.searchsorted(nodes, links.owner), weight[:, None, None] * arm[:, :, None] * arm[:, None, :])
    values = np.linalg.eigvalsh(A)
    return np.divide(values[:, 0], values[:, 2], out=np.zeros(len(nodes)), where=values[:, 2] > 0)


def _relay(model: PhyxelModel, pairs: PairList) -> None:
    """Other neighbours than the reference shape makes."""
    model.relaid = True
    if model.melt is None:
        model.lay_out(pairs, np.arange(0), 0)
    else:
        model.melt.restore(pairs, model.melt.numbers)


def _loosen(model: PhyxelModel, nodes: Integers, shares: Floats) -> None:
    """Leave so much (m,) of their hourglass stiffness to some phyxels, never more than they have."""
    loose = model.matter.loose.numpy()
    loose[nodes] *= np.minimum(shares, 1.0)
    model.matter.loose.assign(loose)
    model.matter.tie()
    model.shape_changed()


def _numb(model: PhyxelModel, nodes: Integers, before: NDArray[np.floating]) -> None:
    """Leave no stress of their own to those of some phyxels that see quite another ∇u than `before` (n, 3, 3) in the
    few neighbours they have left: they stand for no volume, and go where the others take them."""
    model.ensure_forces()
    now = model.now.gradient.numpy()[nodes].astype(np.float64)
    unlike = np.abs(now - before[nodes]).max(axis=(1, 2)) > UNLIKE
    crushed = np.linalg.det(now + np.eye(3)) < CRUSHED
    volume = model.matter.volume.numpy()
    volume[nodes[unlike | crushed]] = 0
    model.matter.volume.assign(volume)
    _loosen(model, nodes[:0], np.zeros(0))


def _store_excess(model: PhyxelModel, nodes: Integers, before: Floats) -> None:
    """Let no phyxel of some have more energy than `before` (n,): with f² = before/now it keeps the share f of its
    elastic strain and of its change of volume, and f² of its hourglass stiffness."""
    nodes = nodes[model.matter.volume.numpy()[nodes] > 0]
    now, matter = model.measure()[0][nodes], model.matter
    noise = ROUNDED * model.matter.grip.numpy().astype(np.float64) * matter.volume.numpy()
    rising = now > before[nodes] + noise[nodes]
    if not rising.any():
        return
    nodes, share = nodes[rising], before[nodes][rising] / now[rising]
    _loosen(model, nodes, share)
    kept = np.sqrt(share)
    J = model.now.gradient.numpy()[nodes].astype(np.float64) + np.eye(3)
    strain, ratio = 0.5 * (np.swapaxes(J, 1, 2) @ J - np.eye(3)), np.linalg.det(J)
    plastic, swell = (array.numpy()[nodes] for array in (model.now.plastic, model.now.swell))
    stored = strain - kept[:, None, None] * (strain - plastic)
    store(model, nodes, stored, (1 + kept * (swell * ratio - 1)) / ratio)
