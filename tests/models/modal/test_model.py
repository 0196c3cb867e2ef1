"""Modal bodies: holds, handles that come and go, contact, checkpoints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import warp as wp

from phyxel.errors import PhyxelError
from phyxel.material import Material, Mixture
from phyxel.models.galerkin.space import Space
from phyxel.models.modal.model import ModalModel
from phyxel.models.modal.warping import vec6d, warp, warp_derivative, warp_nodes
from phyxel.models.protocol import Goal, Hold
from phyxel.rotation import rotation_vector, rotations_by
from tests.models.modal.blocks import base, block, face, gravity, ground, modal, unmoved

STEP = 0.01


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PHYXEL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def bar() -> tuple[Space, float]:
    return block((8, 3, 2), (1.0, 0.375, 0.25))


def swinging(bar: tuple[Space, float], steps: int = 40, **material: float) -> ModalModel:
    """A bar fixed at one end that has swung under its weight for a while."""
    space, unit = bar
    model = modal(space, unit, [base(space)], **material)
    for _ in range(steps):
        model.step(STEP, gravity(space, unit, 0, -1, 0), [unmoved(base(space))], None)
    return model


def tumbling(bar: tuple[Space, float], steps: int = 40) -> ModalModel:
    """A free bar that has spun and shivered for a while."""
    space, unit = bar
    X = space.nodes
    model = modal(space, unit, velocities=np.cross([0.5, 1.0, 2.0], X) + 0.4 * np.sin(X[:, [1, 2, 0]]))
    for _ in range(steps):
        model.step(STEP, gravity(space, unit, 0, -1, 0), [], None)
    return model


def polar(J: np.ndarray) -> np.ndarray:
    left, _, right = np.linalg.svd(J)
    return left @ right


def test_kernel_and_host_warp_alike() -> None:
    rng = np.random.default_rng(1)
    linear = rng.normal(size=(50, 6))
    linear[:, 3:] *= np.geomspace(1e-6, 3.0, 50)[:, None]
    rows = np.zeros((50, 6, 16), np.float32)
    rows[:, :, 0] = linear
    u, out = wp.zeros(50, dtype=wp.vec3d, device="cpu"), wp.zeros(50, dtype=vec6d, device="cpu")
    inputs = [
        0,
        16,
        wp.array(rows.ravel(), device="cpu"),
        wp.array(np.eye(16)[0], dtype=wp.float64, device="cpu"),
        out,
        wp.zeros(50, dtype=wp.vec2d, device="cpu"),
        u,
    ]
    wp.launch(warp_nodes, 50, inputs=inputs, device="cpu")
    # The series of both leave w⁶/40320 below w² = 0.0025: nothing.
    np.testing.assert_allclose(u.numpy(), warp(rows[:, :, 0].astype(np.float64)), atol=1e-13)


def test_the_derivative_of_the_warp_is_its_slope() -> None:
    rng = np.random.default_rng(2)
    linear = rng.normal(size=(60, 6))
    linear[:, 3:] *= np.geomspace(1e-4, 3.0, 60)[:, None]
    h = 1e-5
    slopes = [(warp(linear + h * axis) - warp(linear - h * axis)) / (2 * h) for axis in np.eye(6)]
    np.testing.assert_allclose(warp_derivative(linear), np.stack(slopes, axis=2), atol=1e-9)  # h²


def test_the_base_does_not_move(bar: tuple[Space, float]) -> None:
    model = swinging(bar)
    assert np.abs(model.displacement(bar[0].at(base(bar[0]).points))).max() < 1e-12
    assert np.abs(model.u).max() > 1


def test_coefficients_on_the_device_are_u(bar: tuple[Space, float]) -> None:
    model = swinging(bar)
    coefficients, even = model.shown()
    np.testing.assert_allclose(coefficients.numpy() + even, model.u, atol=2e-6)  # single precision


def test_v_is_the_change_of_u(bar: tuple[Space, float]) -> None:
    space, unit = bar
    push = gravity(space, unit, 0, -1, 0)
    free = modal(
        space, unit, velocities=np.cross([0.5, 1.0, 2.0], space.nodes) + 0.4 * np.sin(space.nodes[:, [1, 2, 0]])
    )
    free.step(STEP, push, [], None)
    for model, goals in ((swinging(bar), [unmoved(base(space))]), (free, [])):
        h = 1e-5
        before, v = model.u, model.v
        model.step(h, push, goals, None)
        change = (model.u - before) / h
        # One-sided: off by half of h times the acceleration.
        np.testing.assert_allclose(0.5 * (v + model.v), change, atol=1e-5 * np.abs(v).max())


def test_a_hand_moves_its_points_where_it_goes(bar: tuple[Space, float]) -> None:
    space, unit = bar
    model = swinging(bar, damping=1e-3)
    hand = Hold(face(space, 0, 1), still=False)
    at = space.at(hand.points)
    start, u = model.displacement(at), model.u
    model.set_holds([base(space), hand])
    np.testing.assert_allclose(model.u, u, atol=1e-6)
    size = 8.0  # spacings
    for k in range(60):
        goal = start + np.array([0.0, 3 * np.sin(k / 30), 2 * k / 60])
        model.step(STEP, gravity(space, unit, 0, -1, 0), [unmoved(base(space)), Goal(goal, np.eye(3))], None)
        assert np.abs(model.displacement(at) - goal).max() < 1e-4 * size
    u, v = model.u, model.v
    model.set_holds([base(space)])
    np.testing.assert_allclose(model.u, u, atol=1e-6)
    np.testing.assert_allclose(model.v, v, atol=1e-5 * np.abs(v).max())


def test_held_points_go_on_at_the_pace_of_the_hand(bar: tuple[Space, float]) -> None:
    space, _ = bar
    model = swinging(bar, 1, damping=1e-3)
    hand = Hold(face(space, 0, 1)[:3], still=False)
    model.set_holds([base(space), hand])
    at = space.at(hand.points)
    start, pace = model.displacement(at), np.array([0.0, 2.0, 1.0])
    for k in range(1, 20):
        goals = [unmoved(base(space)), Goal(start + k * STEP * pace, np.eye(3))]
        model.step(STEP, np.zeros_like(space.nodes), goals, None)
        # What forces turn by in a step is left: their change is seen after the velocities were matched.
        np.testing.assert_allclose(at.values @ model.v, np.tile(pace, (3, 1)), atol=0.02 * np.linalg.norm(pace))


def test_a_hand_turns_the_body(bar: tuple[Space, float]) -> None:
    space, unit = bar
    model = swinging(bar, 20, damping=1e-3)
    at = space.at(face(space, 0, 1).mean(axis=0)[None])
    start, turned = model.displacement(at), polar(np.eye(3) + model.gradient(at)[0])
    hand = Hold(face(space, 0, 1).mean(axis=0)[None], still=False, turns=True)
    model.set_holds([base(space), hand])
    for k in range(1, 61):
        rotation = rotations_by(np.array([[2.0 * k / 60, 0.3 * np.sin(k / 10), 0.0]]))[0]
        model.step(STEP, gravity(space, unit, 0, -1, 0), [unmoved(base(space)), Goal(start, rotation)], None)
        assert np.abs(model.displacement(at) - start).max() < 1e-3 * 8
        off = rotation_vector(polar(np.eye(3) + model.gradient(at)[0]) @ (rotation @ turned).T)
        assert np.degrees(np.linalg.norm(off)) < 0.1


def test_a_free_body_hangs_from_a_point(bar: tuple[Space, float]) -> None:
    space, unit = bar
    corner = Hold(face(space, 0, -1)[:1], still=True)
    model = modal(space, unit, [corner], young=1e7, damping=2e-3)
    at = space.at(corner.points)
    for _ in range(60):
        model.step(STEP, gravity(space, unit, 0, -1, 0), [unmoved(corner)], None)
        assert np.abs(model.displacement(at)).max() < 1e-5
    mass = space.mass(np.ones(len(space.points))) * 1000 * unit**3
    middle = (mass @ (space.nodes + model.u)).sum(axis=0) / mass.sum() - corner.points[0]
    assert np.linalg.norm(middle) == pytest.approx(np.linalg.norm(corner.points[0]), rel=0.05)  # it swings
    # What it lost of its height it has as speed, but for what damping took.
    lost = -9.81 * unit * float((mass @ model.u)[:, 1].sum())
    assert 0.8 * lost < sum(model.energies()) < 1.01 * lost


def test_letting_go_of_the_base_keeps_shape_and_motion(bar: tuple[Space, float]) -> None:
    space, unit = bar
    model = swinging(bar)
    u, v, momenta = model.u, model.v, model.momenta()
    model.set_holds([])
    np.testing.assert_allclose(model.u, u, atol=1e-6 * np.abs(u).max())
    np.testing.assert_allclose(model.v, v, atol=1e-5 * np.abs(v).max())
    for now, before in zip(model.momenta(), momenta, strict=True):
        np.testing.assert_allclose(now, before, atol=1e-6 * np.abs(before).max())
    falls = model.momenta()[0]
    for _ in range(50):
        model.step(STEP, gravity(space, unit, 0, -1, 0), [], None)
    mass = 1000 * 0.375 * 0.25
    np.testing.assert_allclose(model.momenta()[0] - falls, [0, -9.81 * 0.5 * mass, 0], atol=1e-6 * mass)


def test_a_softer_material_goes_on_from_where_it_is(bar: tuple[Space, float]) -> None:
    for model in (swinging(bar), tumbling(bar)):
        for material in (Material(young=5e4, poisson=0.3), Material(young=5e4, poisson=0.1, density=500)):
            u, v = model.u, model.v
            model.set_material(Mixture.even(material, len(bar[0])), np.eye(3))
            np.testing.assert_allclose(model.u, u, atol=1e-6 * np.abs(u).max())
            np.testing.assert_allclose(model.v, v, atol=1e-5 * np.abs(v).max())


def test_the_same_bits_twice_and_after_a_checkpoint(bar: tuple[Space, float]) -> None:
    space, unit = bar
    hand = Hold(face(space, 0, 1)[:4], still=False, turns=False)

    def on(model: ModalModel, start: int, steps: int) -> None:
        for k in range(start, start + steps):
            goals = [unmoved(base(space)), Goal(np.full((4, 3), 0.05 * k), np.eye(3))]
            model.step(STEP, gravity(space, unit, 0, -1, 0), goals, ground(-6.0))

    runs = [modal(space, unit, [base(space), hand]) for _ in range(2)]
    for model in runs:
        on(model, 0, 20)
    np.testing.assert_array_equal(runs[0].u, runs[1].u)
    other = modal(space, unit, [base(space), hand])
    other.restore(runs[0].state())
    other.set_holds([base(space), hand])
    np.testing.assert_array_equal(other.u, runs[0].u)
    for model in (runs[0], other):
        on(model, 20, 20)
    np.testing.assert_array_equal(other.u, runs[0].u)
    np.testing.assert_array_equal(other.v, runs[0].v)


def test_a_tumbling_body_goes_on_from_a_checkpoint(bar: tuple[Space, float]) -> None:
    model, other = tumbling(bar), modal(*bar)
    other.restore(model.state())
    for one in (model, other):
        for _ in range(10):
            one.step(STEP, gravity(*bar, 0, -1, 0), [], None)
    np.testing.assert_array_equal(other.u, model.u)
    np.testing.assert_array_equal(other.v, model.v)


def test_nothing_settles_in_mid_air(bar: tuple[Space, float]) -> None:
    model = modal(*bar)
    with pytest.raises(PhyxelError, match="holds"):
        model.settle(gravity(*bar, 0, -1, 0), [], None, 1e-6)


def test_progress_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHYXEL_CACHE", str(tmp_path))
    space, unit = block((4, 2, 2), (1.0, 0.4, 0.4))
    told: list[float] = []
    none = np.zeros_like(space.nodes)
    model = ModalModel(space, unit, none, np.arange(0), space.device, 8, lambda _, share: told.append(share))
    model.set_material(Mixture.even(Material(), len(space)), np.eye(3))
    assert len(model.frequencies) == 8
    assert told == sorted(told) and told[-1] <= 1
