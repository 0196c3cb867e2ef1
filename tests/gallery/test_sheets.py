"""What must be seen in the gallery's scenes of particle surfaces, at reduced size."""

import numpy as np
import pytest

import phyxel as px
from phyxel.contact.table import measured


def scene_world(name: str, points: int) -> px.World:
    return px.gallery(name).changed(points=points).world("cpu")


def test_the_wrinkles_come_back_where_they_were_designed():
    """Pressed onto the bone, a ball, the skin lies half its thickness off it everywhere; let go, each point is back
    within 1 % of the depth of the deepest wrinkle."""
    world = scene_world("wrinkles", 2000)
    skin = world.bodies[0]
    designed = np.linalg.norm(skin.birth, axis=1)
    depth = designed.max() - designed.min()
    for smooth in (0.9, 3.5):
        world.advance(smooth - world.time)
        assert np.ptp(np.linalg.norm(skin.positions, axis=1)) < 1e-6 * depth
        if smooth < 1:
            world.advance(2.5 - world.time)
            assert np.linalg.norm(skin.positions - skin.birth, axis=1).max() < 0.01 * depth


def rate_of(swing: np.ndarray, dt: float) -> float:
    """ω of q(t) = e^(−st) cos(ωt + φ), sampled every dt [s], shape (k, n): q₊ + q₋ e^(−2s dt) = 2 e^(−s dt) q cos(ω dt)
    holds for all k."""
    before, now, after = (swing[k : len(swing) - 2 + k].reshape(-1) for k in range(3))
    (twice, squared), *_ = np.linalg.lstsq(np.stack([now, -before], axis=1), after, rcond=None)
    return float(np.arccos(twice / (2 * np.sqrt(squared))) / dt)


def test_the_head_rings_as_it_should_and_settles():
    """ω = √(K/m − (c/2m)²) with K/m = foundation/(density · thickness) and c/m = drag. The air in it cannot be
    squeezed, so a dent keeps the volume, and rings as if there were none. At the end it is where it began."""
    world = scene_world("head", 3000)
    head = world.bodies[0]
    film, size = head.material, np.ptp(head.birth, axis=0).max()
    world.advance(0.8)
    crown = np.argsort(head.birth[:, 1])[-20:]
    assert (head.birth - head.positions)[crown, 1].min() > 0.03 * size, "pressed in"
    dt, swing = 1 / 120, []
    for _ in range(180):
        world.advance(dt)
        swing.append((head.positions - head.birth)[crown, 1])
    omega = np.sqrt(film.foundation / (film.density * film.thickness) - (film.drag / 2) ** 2)
    assert rate_of(np.array(swing), dt) == pytest.approx(omega, rel=0.01)
    assert np.max(swing) > 0.01 * size, "it swings beyond its place"
    world.advance(4.0 - world.time)
    assert np.linalg.norm(head.positions - head.birth, axis=1).max() < 1e-4 * size


def test_the_dent_of_a_shell_is_proportional_to_its_plasticity():
    world = scene_world("shell", 1500)
    size = np.ptp(world.bodies[0].birth, axis=0).max()
    world.advance(0.9)
    pressed = [np.linalg.norm(shell.positions - shell.birth, axis=1).max() for shell in world.bodies]
    assert min(pressed) > 0.03 * size, "all are dented by the load"
    world.advance(1.3)
    dents = {shell.material.plasticity: shell.positions - shell.birth for shell in world.bodies}
    depth = {plasticity: np.linalg.norm(dent, axis=1).max() for plasticity, dent in dents.items()}
    assert depth[1.0] > 0.05 * size
    assert depth[0.0] < 1e-3 * depth[1.0]
    for plasticity in (0.25, 0.5):
        assert depth[plasticity] == pytest.approx(plasticity * depth[1.0], rel=0.05)
        ratio = (dents[plasticity] * dents[1.0]).sum() / (dents[1.0] ** 2).sum()
        assert ratio == pytest.approx(plasticity, rel=0.05), "all over the dent"


def test_the_membrane_wraps_the_jack_and_stops_at_its_surface():
    """Never more than 0.5 % of the jack's size in it; closer by the larger force."""
    world = scene_world("shrink-wrap", 500)
    membrane, jack = world.bodies[0], world.colliders[0]
    lower, upper = jack.box
    size = (upper - lower).max()
    away = {}
    for frame in world.play(2.9, 30):
        place, axes = jack.pose(frame.time)
        distance = measured(jack, (membrane.positions - place) @ axes, world.device)[0]
        assert distance.min() > -0.005 * size
        away[frame.index] = distance.mean() / size
    assert away[40] < 0.9 * away[0], "drawn in by the small force"
    assert away[87] < 0.3 * away[40], "wrapped by the large one"
    assert np.mean(distance < 0.01 * size) > 0.3, "much of it lies on the jack"


def bent(cloth: px.Body) -> tuple[float, float]:
    """Root mean square curvature of the warp threads, along x, and of the weft threads [1/m]."""
    side = round(len(cloth.birth) ** 0.5)
    x = cloth.positions.reshape(side, side, 3)
    warp, weft = x[:, 2:] - 2 * x[:, 1:-1] + x[:, :-2], x[2:] - 2 * x[1:-1] + x[:-2]
    return tuple(np.sqrt((part**2).sum(axis=2).mean()) / cloth.unit**2 for part in (warp, weft))


def test_the_cloth_folds_across_its_stiff_warp():
    """It hangs down on all sides, threads hardly stretched and none in the ball. Weft threads bend 1.4 times as much as
    warp threads at least; of a cloth that is the same both ways, they bend alike."""
    world = scene_world("drape", 400)
    cloth, ball = world.bodies[0], world.colliders[0]
    world.advance(1.5)
    away = np.linalg.norm(cloth.positions - ball.at, axis=1)
    assert away.min() > ball.radius
    assert cloth.positions[:, 1].max() < 0.7 and cloth.positions[:, 1].min() < 0.3
    warp, weft = bent(cloth)
    assert weft > 1.4 * warp
    even = scene_world("drape", 400)
    even.bodies[0].material = even.bodies[0].material.but(weft=None)
    even.advance(1.5)
    warp, weft = bent(even.bodies[0])
    assert weft == pytest.approx(warp, rel=0.25)


def test_the_bear_is_caught_by_the_hammock_and_comes_to_lie_in_it():
    """What falls into it is braked by more than its weight before it has come halfway down to the ground. After a
    second and a half it is nearly at rest (5 cm/s) above the ground, deeper than where the cloth was sewn on, and
    stitches, of which none has torn, bear what bear and cloth weigh, to what is left of their swinging (10 per cent, in
    the mean)."""
    world = px.gallery("hammock").changed(nodes=60, points=100).world("cpu")
    cloth, bear, braked = world.bodies[0], world.bodies[3], 0.0
    start = bear.positions[:, 1].mean()
    for _ in range(8):
        before = bear.velocities[:, 1].mean()
        world.advance(0.04)
        braked = max(braked, bear.velocities[:, 1].mean() - before)
    assert bear.positions[:, 1].mean() < start - 0.1
    assert bear.positions[:, 1].min() > 0.3
    assert braked > 9.81 * 0.04
    world.advance(1.08)
    pull = []
    for _ in range(10):
        world.advance(0.02)
        pull.append(sum(seam.force[1] for seam in world.attachments.every))
    assert all(seam.holds.all() for seam in world.attachments.every)
    weight = 9.81 * (bear.masses.sum() + cloth.masses.sum())
    assert np.mean(pull) == pytest.approx(weight, rel=0.1)
    assert np.abs(bear.velocities).max() < 0.05
    assert 0.2 < bear.positions[:, 1].min() < 0.5
    assert np.abs(bear.positions.mean(axis=0)[[0, 2]]).max() < 0.1
