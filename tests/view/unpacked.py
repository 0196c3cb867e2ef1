"""Surfels of a recording, unpacked as the page does it, but from the words in `phyxel.view.patches` alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from phyxel.view.messages import DrawnThing, Snapshot
from tests.view.records import RECORD, Decoded, Floats, decoded


def seen(part: DrawnThing) -> Decoded:
    """What a part of a snapshot shows."""
    return decoded(part.blobs["records"].data, part.about)


def unpacked(frames: Iterable[Snapshot]) -> Iterator[dict[str, Unpacked]]:
    """Parts by name, frame after frame."""
    known: dict[str, Unpacked] = {}
    for frame in frames:
        for part in frame.parts:
            if "first" in part.blobs:
                known[part.name] = Unpacked(part)
            else:
                known[part.name].go_on({name: blob.data for name, blob in part.blobs.items()})
        yield known


class Unpacked:
    """The surfels of a part, in the order of their records."""

    def __init__(self, part: DrawnThing) -> None:
        count, self.code = part.about["count"], part.about["code"]
        rows = np.frombuffer(part.blobs["first"].data, np.uint8).reshape(RECORD.itemsize, count).T.copy()
        records = rows.view(RECORD)[:, 0]
        first = decoded(records.tobytes(), part.about)
        bits = [(records["x"][:, axis] >> 6).astype(int) for axis in range(3)]
        curve = [sum(((bits[k % 3][i] >> k // 3) & 1) << k for k in range(30)) for i in range(count)]
        self._order = sorted(range(count), key=lambda i: (curve[i], i))
        self._patch = np.empty(count, int)
        self._patch[self._order] = np.arange(count) // self.code["patch"]
        self._centre = first.positions[self._order[:: self.code["patch"]]]
        self._R, self._N = first.positions - self._centre[self._patch], first.normals
        self._P, self._angle, self._log = first.first, np.zeros(count), np.log2(first.axes)
        self.values = records["value"] >> 8
        self._A = np.tile(np.round(np.eye(3) / self.code["turn"]), (len(self._centre), 1, 1))
        self._c = np.zeros((len(self._centre), 3))

    def go_on(self, blobs: dict[str, Any]) -> None:
        motion = _numbers(blobs["motion"], len(self._centre), 12)
        self._A += motion[:, :9].reshape(-1, 3, 3)
        self._c += motion[:, 9:]
        offsets = np.empty((len(self._R), 9))
        offsets[self._order] = _numbers(blobs["offsets"], len(self._R), 9)
        self._R = self._R + offsets[:, :3] * self.code["offset"]
        self._N = self._N + offsets[:, 3:6] * self.code["tilt"]
        self._log = self._log + offsets[:, 6:8] / 16
        self._angle = self._angle + offsets[:, 8] * self.code["angle"]
        if "values" in blobs:
            self.values = (self.values + np.frombuffer(blobs["values"], np.uint8)) % 256

    def _turned(self, vectors: Floats) -> Floats:
        return np.einsum("mij,mj->mi", (self._A * self.code["turn"])[self._patch], vectors)

    @property
    def x(self) -> Floats:
        return (self._centre + self._c * self.code["place"])[self._patch] + self._turned(self._R)

    @property
    def n(self) -> Floats:
        n = self._turned(self._N)
        return n / np.linalg.norm(n, axis=1, keepdims=True)

    @property
    def axes(self) -> Floats:
        """Half axes [m]."""
        return 2.0**self._log

    @property
    def first(self) -> Floats:
        """Directions of the longer ones."""
        n, along = self.n, self._turned(self._P)
        along = along - n * np.einsum("mi,mi->m", n, along)[:, None]
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        return np.cos(self._angle)[:, None] * along + np.sin(self._angle)[:, None] * np.cross(n, along)


def _numbers(data: bytes, rows: int, columns: int) -> Floats:
    low, high = np.frombuffer(data, np.uint8).reshape(2, -1).astype(int)
    folded = low + 256 * high
    return np.where(folded % 2, -(folded + 1) // 2, folded // 2).reshape(columns, rows).T.astype(float)
