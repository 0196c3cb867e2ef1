"""Velocities of modal bodies and their kinetic energy (physics 11.7), of bars that are bent far while they swing."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from phyxel.models.modal.field import ModalField
from tests.models.modal.blocks import base, block, gravity, modal, unmoved

SPACE, UNIT = block((8, 2, 2), (1.0, 0.2, 0.2))


def swung(how: str) -> ModalField:
    """A soft bar after some tenths of a second: clamped under its weight, or free and spinning."""
    holds = [base(SPACE)] if how == "clamped" else []
    spin = None if holds else np.cross([1.0, 0.5, 4.0], SPACE.nodes) + 0.3 * np.sin(SPACE.nodes[:, [1, 0, 2]])
    model = modal(SPACE, UNIT, holds, spin, young=5e4)
    push = gravity(SPACE, UNIT, 0, -1 if holds else 0, 0)
    for _ in range(30):
        model.step(0.01, push, [unmoved(hold) for hold in holds], None)
    return model.ready()


def places(field: ModalField, shift: float) -> NDArray[np.float64]:
    """u of amplitudes that have gone on for a time `shift` [s], in a frame that stays, shape (n, 3)."""
    field.basis.lay(field.motion.z + shift * field.motion.rate)
    return field.basis.u.copy()


@pytest.mark.parametrize("how", ["clamped", "free"])
def test_velocities_are_the_change_of_the_shape(how: str) -> None:
    """u̇ = (u(z + h ż) − u(z − h ż))/2h + O(h²), with rotations of half a radian and more where it is clamped."""
    field, h = swung(how), 1e-5
    slope = (places(field, h) - places(field, -h)) / (2 * h)
    if field.frame is not None:
        slope = field.frame.velocities(field.motion, slope)
    field.basis.lay(field.motion.z)
    if how == "clamped":
        assert np.abs(field.basis.linear[:, 3:]).max() > 0.5
    np.testing.assert_allclose(field.v, slope, atol=1e-7 * np.abs(slope).max())


@pytest.mark.parametrize("how", ["clamped", "free"])
def test_parts_of_the_kinetic_energy(how: str) -> None:
    """Of the frame and of the modes: together ½ẋᵀMẋ, to rounding. The bound is no less."""
    field = swung(how)
    whole = 0.5 * np.vdot(field.v, field.matter.mass @ field.v)
    carried, swing = field.kinetic()
    assert carried + swing == pytest.approx(whole, rel=1e-12)
    assert (carried > 0) == (how == "free")
    assert swing > 0
    most = field.kinetic_bound()
    assert most[0] == carried
    assert swing <= most[1]
