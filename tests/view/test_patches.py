"""Surfels of recordings: what is unpacked is what was seen, in few bytes."""

from dataclasses import replace

import numpy as np
import pytest
import warp as wp

from phyxel.surface.discs import Discs
from phyxel.view.encode import Encoder
from phyxel.view.messages import Blob, DrawnThing, Snapshot
from phyxel.view.page_files import LARGEST, packed, page_files, saved_page
from phyxel.view.patches import PRECISION, SIZED, TILTED, TURNED, Packer
from tests.view.page.stand_in import ball
from tests.view.unpacked import seen, unpacked

ROUNDED = 1.001
"""records themselves are rounded"""


def moment(time, count, size=1.0, middle=(0.0, 0.0, 0.0), rate=1.0, valued=False):
    """An ellipsoid that falls, turns, and swings: it is drawn out, sheared and bent."""
    X, s = ball(count) * [1.0, 0.7, 0.5], 0.3 * np.sin(7 * rate * time)
    turn = 2 * rate * time
    Q = np.array([[np.cos(turn), 0, np.sin(turn)], [0, 1, 0], [-np.sin(turn), 0, np.cos(turn)]])
    bent = X + s * np.stack([X[:, 1], X[:, 0] ** 2, 0 * X[:, 0]], axis=1)
    F = np.tile(np.eye(3), (count, 1, 1))
    F[:, 0, 1], F[:, 1, 0] = s, 2 * s * X[:, 0]
    F = Q @ F
    x = 0.5 * size * bent @ Q.T + size * np.array([0.0, -4.9 * rate * time**2, 0.0])
    normal = ball(count) / [1.0, 0.7, 0.5]
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    one = np.cross(normal, [0.3, 0.2, 0.9])
    radius = size * 1.2 / np.sqrt(count)
    a, b = radius * F @ one[:, :, None], 0.7 * radius * F @ np.cross(normal, one)[:, :, None]
    n = np.cross(a[:, :, 0], b[:, :, 0])
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    fields = [wp.array(field.reshape(-1, 3).astype(np.float32), dtype=wp.vec3, device="cpu") for field in (x, a, b, n)]
    values = wp.array(np.sin(X[:, 0] + 9 * time).astype(np.float32), dtype=float, device="cpu") if valued else None
    encoded = Encoder(wp.get_device("cpu")).encode(Discs(*fields, fields[3], np.array(middle)), values, (-1.0, 1.0))
    about = encoded.about() | {"valued": valued}
    return Snapshot({}, (DrawnThing("it", "surfels", about, {"records": Blob(encoded.records)}),))


def shrunk(frames):
    packer = Packer()
    return [replace(one, parts=packer.packed(one.parts)) for one in frames]


def firsts(frames):
    return [k for k, one in enumerate(frames) if "first" in one.parts[0].blobs]


@pytest.mark.parametrize(
    ("count", "size", "middle"),
    [(1, 1.0, (0, 0, 0)), (33, 0.02, (5, -3, 900)), (700, 40.0, (0, 0, 0)), (3000, 0.3, (2, 1, 0))],
)
def test_what_is_unpacked_is_what_was_seen(count, size, middle):
    frames = [moment(k / 30, count, size, middle, valued=count == 700) for k in range(25)]
    sent = shrunk(frames)
    assert count == 1 or firsts(sent) == [0]
    box = frames[0].parts[0].about
    bound = max(PRECISION * np.linalg.norm(np.subtract(box["upper"], box["lower"])), 1e-12)
    for one, now in zip(frames, unpacked(sent), strict=True):
        part = one.parts[0]
        true, it = seen(part), now["it"]
        assert np.linalg.norm(it.x - true.positions, axis=1).max() <= ROUNDED * bound + 1e-12 * np.abs(middle).max()
        assert np.linalg.norm(it.n - true.normals, axis=1).max() <= ROUNDED * TILTED
        assert np.abs(16 * np.log2(it.axes / true.axes)).max() <= SIZED + 1e-6
        long = 16 * np.log2(true.axes[:, 0] / true.axes[:, 1]) > SIZED + 0.1
        askew = np.abs(np.sum(it.first * np.cross(true.normals, true.first), axis=1))[long]
        assert count < 100 or (long.any() and askew.max() < np.sin(TURNED + 0.5 * TILTED))
        if part.about["valued"]:
            assert np.abs(it.values / 255 - true.values).max() <= 1 / 255


def test_eight_seconds_of_twenty_thousand_surfels_take_less_than_six_megabytes():
    """Even where they never rest; and far less where they do."""
    first, moving, resting = (
        len(packed({}, [(k / 30, moment(time / 30, 20_000)) for k, time in enumerate(times)]))
        for times in ([0], range(31), [10] * 31)
    )
    page = len(saved_page(page_files(), b""))
    assert page + 4 / 3 * (first + 8 * (moving - first)) < LARGEST == 6e6
    assert resting - first < 0.2 * (moving - first)


def test_other_surfels_begin_anew():
    """More of them, others in their places, other colours; and those that leap."""
    frames = [moment(0.0, 200), moment(0.1, 200), moment(0.2, 210), moment(0.3, 210)]
    part = frames[3].parts[0]
    rows = np.frombuffer(part.blobs["records"].data, np.uint8).reshape(-1, 16)
    mixed = np.random.default_rng(1).permutation(rows).tobytes()
    for other in (
        replace(part, blobs={"records": Blob(mixed)}),
        replace(part, blobs=part.blobs | {"colors": Blob(bytes(840), "grey")}),
        replace(part, about=part.about | {"valued": True}),
    ):
        sent = shrunk([*frames, Snapshot({}, (other,)), Snapshot({}, (other,))])
        now = list(unpacked(sent))[-1]["it"]
        np.testing.assert_allclose(now.x, seen(other).positions, atol=2 * PRECISION)
        if other.blobs["records"].data != mixed:
            assert firsts(sent) == [0, 2, 4]


def test_what_has_no_surfels_of_its_own_is_left_as_it_is():
    part = moment(0.0, 50).parts[0]
    kept = replace(part, blobs={"records": Blob(part.blobs["records"].data, "key")})
    for one in (kept, replace(part, kind="dots"), replace(part, blobs={"records": Blob(b"")})):
        assert Packer().packed((one,)) == (one,)
