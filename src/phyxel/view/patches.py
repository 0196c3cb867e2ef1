"""Surfels that move, in few bytes: for recordings.

The first frame of a part has its records (see `encode`), rounded, as the blob "first": the first bytes of all of them,
then the second ones, and so on. Sorted along the Z curve through their places (the upper ten bits of each, x lowest),
every so many as `patch` says are a patch. A surfel is at c + A R with the normal A N: A and c are those of its patch, R
is where it is in the first frame, seen from the first surfel of its patch, C, and N its normal then. Its longer half
axis points along A P, as seen along the normal, turned about it by an angle; P is that of the first frame. Half axes
have lengths of their own. Every further frame has the blobs

- "motion": what is added to the twelve numbers of each patch: A by rows, counted in `turn`, 1 at first; and c - C, in
  `place` [m], 0 at first;
- "offsets": what is added to the nine numbers of each surfel, in that order: R, counted in `offset` [m]; N, in `tilt`;
  both half axes, in sixteenths of an octave; that angle, in `angle`, 0 at first. Almost all of it is 0;
- "values", if there are any: u8, what is added to the upper byte of each value, modulo 256.

Numbers of the first two are 16 bits each, 2 k for k >= 0 and -2 k - 1 for k < 0; first those of all patches or surfels
that come first, then those that come second; low bytes of all, then high ones. The first frame tells `patch` and what
is counted in as "code" about the part.

Places are within `PRECISION` of the part's size, and normals within `TILTED`, of what was seen: where they would not
be, there is another first frame.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from phyxel.region import Floats
from phyxel.view.messages import Blob, DrawnThing

PRECISION = 1e-3
"""by which decoded places are off at most, over the diagonal of the part's box in its first frame"""
TILTED = 0.1
"""[rad] by which decoded normals are off at most"""
SIZED, TURNED = 2.0, 0.35
"""by which half axes may be off, in sixteenths of an octave, and the angle of ellipses as long as that [rad]"""
ALLOWED = 0.8
"""share of `PRECISION` and `TILTED` that is let go uncorrected: what corrects is rounded"""
PATCH = 32
"""surfels that go together: more have fewer matrices, fewer need fewer offsets"""
STEADY = 1e-2
"""weight of a patch's matrix before, over that of its surfels: decides what they leave open"""
RECORD = np.dtype(
    [("x", "<u2", 3), ("value", "<u2"), ("normal", "<i2", 2), ("axes", "u1", 2), ("angle", "u1"), ("rest", "u1")]
)
Ints = NDArray[np.int64]


class Packer:
    """Packs frames of a recording one after the other."""

    def __init__(self) -> None:
        self._tracks: dict[str, Track] = {}

    def packed(self, parts: tuple[DrawnThing, ...]) -> tuple[DrawnThing, ...]:
        before, self._tracks = self._tracks, {}
        return tuple(self._part(part, before.get(part.name)) for part in parts)

    def _part(self, part: DrawnThing, track: Track | None) -> DrawnThing:
        records = part.blobs["records"]
        if part.kind not in ("surfels", "mesh") or records.key is not None or not records.data:
            return part
        about, blobs = part.about, None if track is None else track.follow(part)
        if track is None or blobs is None:
            track = Track(part)
            about, blobs = part.about | {"code": track.code}, {"first": track.first}
        self._tracks[part.name] = track
        others = {name: blob for name, blob in part.blobs.items() if name != "records"}
        return DrawnThing(part.name, part.kind, about, blobs | others)


class SeenSurfels(NamedTuple):
    """What records stand for, (m, 3) each."""

    x: Floats
    """[m]"""
    n: Floats
    first: Floats
    """direction of the longer half axis"""
    size: Floats
    """half axes, 16 log2 of metres, shape (m, 2)"""

    @staticmethod
    def read(rows: NDArray[Any], about: dict[str, Any]) -> SeenSurfels:
        lower, upper = np.array(about["lower"]), np.array(about["upper"])
        u, v = (rows["normal"] / 32767.0).T
        z = 1 - np.abs(u) - np.abs(v)
        under = np.maximum(-z, 0)
        n = np.stack([u - np.copysign(under, u), v - np.copysign(under, v), z], axis=1)
        n /= np.linalg.norm(n, axis=1, keepdims=True)
        x, y, z = n.T
        none, up = np.zeros_like(x), (np.abs(y) >= 0.9)[:, None]
        t = np.where(up, np.stack([none, -z, y], axis=1), np.stack([z, none, -x], axis=1))
        angle = (np.pi / 255 * rows["angle"])[:, None]
        size = rows["axes"] - 255.0 + 16 * np.log2(about["finest"])
        place = lower + rows["x"] / 65535.0 * (upper - lower)
        return SeenSurfels(place, n, np.cos(angle) * t + np.sin(angle) * np.cross(n, t), size)


class Track:
    """The surfels of a part from a first frame on, as they are decoded.

    Arrays have shape (patches, PATCH, ...): the last patch is filled up with its last surfel.
    """

    def __init__(self, part: DrawnThing) -> None:
        rows = rounded(rows_of(part))
        self.first = Blob(planes(rows.view(np.uint8).reshape(-1, RECORD.itemsize)))
        self._alike, self._count = alike(part), len(rows)
        size = float(np.linalg.norm(np.subtract(part.about["upper"], part.about["lower"])))
        self._bound = max(PRECISION * size, 1e-12)
        """[m]"""
        steps = {"turn": 1 / 512, "place": self._bound / 4, "offset": self._bound / 4, "tilt": 1 / 64}
        self.code: dict[str, float] = {"patch": PATCH, **steps, "angle": np.pi / 16}
        self._order = np.pad(along_curve(rows["x"]), (0, -len(rows) % PATCH), "edge").reshape(-1, PATCH)
        start = self._sorted(rows, part.about)
        self._centre = start.x[:, 0]
        self._place, self._normal = start.x - self._centre[:, None], start.n
        self._first, self._size = start.first, start.size
        self._angle = np.zeros(self._order.shape, np.int64)
        self._turn = np.tile(np.rint(np.eye(3) / self.code["turn"]).astype(np.int64), (len(self._order), 1, 1))
        self._path = np.zeros((len(self._order), 3), np.int64)
        self._value = upper_bytes(rows)

    def _sorted(self, rows: NDArray[Any], about: dict[str, Any]) -> SeenSurfels:
        return SeenSurfels(*(field[self._order] for field in SeenSurfels.read(rows, about)))

    def follow(self, part: DrawnThing) -> dict[str, Blob] | None:
        """The blobs of the next frame; none if these are other surfels, or would be off by too much."""
        if alike(part) != self._alike:
            return None
        rows = rows_of(part)
        seen = self._sorted(rows, part.about)
        motion, offsets = self._move(seen), self._correct(seen)
        if not self._right(seen) or max(np.abs(motion).max(), np.abs(offsets).max()) >= 2**15:
            return None
        blobs = {"motion": Blob(small(motion)), "offsets": Blob(small(offsets[: self._count]))}
        if part.about["valued"]:
            blobs["values"] = Blob((upper_bytes(rows) - self._value).tobytes())
            self._value = upper_bytes(rows)
        return blobs

    def _move(self, seen: SeenSurfels) -> Ints:
        """Let patches move as fits best by least squares, where normals are arms as long as the patch is wide; what is
        added to their numbers, (patches, 12)."""
        middle, c = self._place.mean(axis=1), seen.x.mean(axis=1)
        R, x = self._place - middle[:, None], seen.x - c[:, None]
        arm = (R**2).sum(axis=2).mean(axis=1)[:, None, None]
        own = transposed(R) @ R + arm * transposed(self._normal) @ self._normal
        to = transposed(R) @ x + arm * transposed(self._normal) @ seen.n
        weight = STEADY * np.trace(own, axis1=1, axis2=2)[:, None, None] + 1e-30
        A = transposed(np.linalg.solve(own + weight * np.eye(3), to + weight * transposed(self._matrices)))
        turn, path = self._turn, self._path
        self._turn = np.rint(A / self.code["turn"]).astype(np.int64)
        moved = (middle[:, None] @ transposed(self._matrices))[:, 0]
        self._path = np.rint((c - moved - self._centre) / self.code["place"]).astype(np.int64)
        return np.concatenate([(self._turn - turn).reshape(-1, 9), self._path - path], axis=1)

    def _correct(self, seen: SeenSurfels) -> Ints:
        """Put surfels right that are off by too much; what is added to their numbers, (m, 9)."""
        x, n, first = self._moved
        back = transposed(np.linalg.pinv(self._matrices))
        straight = seen.n * np.linalg.norm(n, axis=2, keepdims=True)
        place = np.rint((seen.x - x) @ back / self.code["offset"])
        normal = np.rint((straight - n) @ back / self.code["tilt"])
        angle = angles(first, seen.first, seen.n) - self._angle * self.code["angle"]
        angle -= np.pi * np.rint(angle / np.pi)  # the other end of an axis is as good
        size, long = seen.size - self._size, seen.size[..., 0] - seen.size[..., 1] > SIZED
        offsets = [
            place * (distance(seen.x, x) > ALLOWED * self._bound)[..., None],
            normal * (tilt(seen.n, n) > ALLOWED * TILTED)[..., None],
            np.rint(size) * (np.abs(size).max(axis=2, keepdims=True) > SIZED),
            (np.rint(angle / self.code["angle"]) * (long & (np.abs(angle) > TURNED)))[..., None],
        ]
        self._place = self._place + offsets[0] * self.code["offset"]
        self._normal = self._normal + offsets[1] * self.code["tilt"]
        self._size = self._size + offsets[2]
        self._angle = self._angle + offsets[3][..., 0]
        return np.concatenate(offsets, axis=2).reshape(-1, 9).astype(np.int64)

    def _right(self, seen: SeenSurfels) -> bool:
        x, n, _ = self._moved
        return bool(distance(seen.x, x).max() <= self._bound and tilt(seen.n, n).max() <= TILTED)

    @property
    def _moved(self) -> tuple[Floats, Floats, Floats]:
        """Places [m], normals and longer half axes before they are turned, both of any length."""
        A = transposed(self._matrices)
        c = self._centre + self._path * self.code["place"]
        return c[:, None] + self._place @ A, self._normal @ A, self._first @ A

    @property
    def _matrices(self) -> Floats:
        return self._turn * self.code["turn"]


def rows_of(part: DrawnThing) -> NDArray[Any]:
    return np.frombuffer(part.blobs["records"].data, RECORD)


def alike(part: DrawnThing) -> tuple[Any, ...]:
    """What parts with the same surfels have in common."""
    others = [(name, blob.key) for name, blob in part.blobs.items() if name != "records"]
    return part.kind, part.about["count"], part.about["valued"], others


def rounded(rows: NDArray[Any]) -> NDArray[Any]:
    """Records with no more digits than are needed."""
    coarse = rows.copy()
    coarse["x"] = np.minimum(np.rint(rows["x"] / 16.0) * 16, 65535)
    coarse["normal"] = np.clip(np.rint(rows["normal"] / 64.0) * 64, -32767, 32767)
    coarse["value"] = upper_bytes(rows) * np.uint16(257)
    coarse["angle"] = np.minimum(np.rint(rows["angle"] / 8.0) * 8, 255)
    return coarse


def upper_bytes(rows: NDArray[Any]) -> NDArray[np.uint8]:
    """Of values."""
    return (rows["value"] >> 8).astype(np.uint8)


def along_curve(x: NDArray[np.uint16]) -> Ints:
    """Surfels (m, 3) in the order of the Z curve."""
    place = np.zeros(len(x), np.int64)
    for bit in range(10):
        for axis in range(3):
            place |= ((x[:, axis].astype(np.int64) >> (6 + bit)) & 1) << (3 * bit + axis)
    return np.argsort(place, kind="stable")


def planes(rows: NDArray[Any]) -> bytes:
    """The first bytes of all rows (m, k), then all second ones, and so on."""
    return np.ascontiguousarray(rows.T).tobytes()


def small(rows: Ints) -> bytes:
    """Numbers (m, k) around 0 as 16 bits each, by columns: low bytes, then high ones."""
    folded = np.where(rows < 0, -2 * rows - 1, 2 * rows).T
    return planes(np.ascontiguousarray(folded, "<u2").view(np.uint8).reshape(-1, 2))


def distance(a: Floats, b: Floats) -> Floats:
    return np.linalg.norm(a - b, axis=-1)


def tilt(n: Floats, other: Floats) -> Floats:
    """Angles between unit vectors and vectors of any length [rad], if they are small."""
    return distance(n, other / np.maximum(np.linalg.norm(other, axis=-1, keepdims=True), 1e-30))


def angles(a: Floats, b: Floats, n: Floats) -> Floats:
    """From a to b about n [rad]."""
    return np.arctan2((np.cross(a, b) * n).sum(axis=-1), (a * b).sum(axis=-1))


def transposed(A: Floats) -> Floats:
    return np.swapaxes(A, -1, -2)
