# mypy: disable-error-code="valid-type,no-untyped-def"
"""How fast phyxels can vibrate: the largest frequency of M⁻¹K (physics 5.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.device import Launch, Shared
from phyxel.models.reductions import CHUNK, sum_products

if TYPE_CHECKING:
    from phyxel.models.phyxel.model import PhyxelModel

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.floating]


@wp.kernel
def iterate_power(
    first: int,
    mass: wp.array(dtype=Any),
    per_omega_squared: wp.array(dtype=Any),
    change: wp.array(dtype=Any),
    ripple: wp.array(dtype=Any),
    last_ripple: wp.array(dtype=Any),
):
    """One power iteration p ← M⁻¹K p / ω²; `change` is −K p (physics 5.3)."""
    i = first + wp.tid()
    last_ripple[i] = ripple[i]
    ripple[i] = -per_omega_squared[0] / mass[i] * change[i]


class Vibration:
    """Frequencies of a model's phyxels."""

    def __init__(self, model: PhyxelModel) -> None:
        self._model = model
        n, vector, device = len(model), model.matter.X.dtype, model.device
        self._change, self._last_ripple = (wp.zeros(n, dtype=vector, device=device) for _ in range(2))
        self._partial = Shared((n + CHUNK - 1) // CHUNK, wp.float64, device)
        self._per_omega_squared = Shared(1, model.real, device)
        self.omega = 0.0
        """largest frequency at rest [1/s]; 0 while it is not known"""
        self._fresh = self._begun = False
        """whether `ripple` is newer than `ripple_before`, and whether that is any"""

    @property
    def numbers(self) -> NDArray[np.float64]:
        """What a checkpoint keeps, beside the ripples."""
        return np.array([self.omega, self._fresh, self._begun])

    @numbers.setter
    def numbers(self, numbers: NDArray[np.float64]) -> None:
        self.omega, self._fresh, self._begun = float(numbers[0]), bool(numbers[1]), bool(numbers[2])

    def begin_step(self) -> None:
        """Phyxels are to move by the laws of now. Only from the ripple of such laws is another one looked for: what is
        found does not depend on how often it was asked for while laws changed."""
        if self._fresh:
            wp.copy(self._model.now.ripple_before, self._model.now.ripple)
            self._fresh, self._begun = False, True

    def launches(self) -> dict[str, list[Launch]]:
        """Programs of the model."""
        matter, ripple, n = self._model.matter, self._model.now.ripple, len(self._model)
        tangent = self._model.forces.tangent(ripple, self._change)
        power = [matter.mass, self._per_omega_squared.array, self._change, ripple, self._last_ripple]

        def norm(p: wp.array) -> list[Launch]:
            inputs = [n, matter.mass, p, p, self._partial.array]
            return [Launch(sum_products, len(self._partial.host), inputs, work=CHUNK // 8)]

        return {
            "tangent": tangent,
            "power": [*tangent, Launch(iterate_power, n, power)],
            "norm": norm(ripple),
            "last norm": norm(self._last_ripple),
        }

    def at_rest(self) -> float:
        """Largest frequency of M⁻¹K in the reference shape [1/s], nothing held, by power iteration to 0.5 %. Phyxels
        that have flowed apart feel little of each other until they meet: no less than sound across a spacing."""
        if self.omega == 0.0:
            gradient = self._model.now.gradient
            known = gradient.numpy().copy()
            gradient.zero_()
            self.omega = self._iterate()
            gradient.assign(known)
        return self.omega

    def _iterate(self) -> float:
        model, ripple = self._model, self._model.now.ripple
        start = np.random.default_rng(1).standard_normal((len(model), 3))
        if self._begun:
            # The ripple of the laws before, over noise: it may be where nothing is stiff any more.
            before = model.now.ripple_before.numpy()
            start += before / before.std()
        ripple.assign(start.astype(ripple.numpy().dtype))
        # Sound crosses a spacing in 1/ω, about: from there ten unnormalised iterations neither over- nor underflow.
        omega = sound = model.materials.sound
        for iterations in (1, 4, *[10] * 20):
            last = omega
            self._per_omega_squared.host[:] = 1.0 / omega**2
            self._per_omega_squared.push()
            model.run("power", iterations)
            norm = self._norm("norm")
            if norm == 0:
                return sound
            omega *= np.sqrt(norm / self._norm("last norm"))
            # The first guesses may agree by chance.
            if iterations == 10 and abs(omega - last) < 0.005 * omega:
                break
        self._fresh = True
        return max(float(omega), sound)

    def _norm(self, which: str) -> float:
        self._model.run(which)
        return float(np.sqrt(self._partial.pull().sum()))

    def tangent(self, p: Floats) -> Floats:
        """−K p at the gradient of the last force, for p of shape (n, 3)."""
        ripple = self._model.now.ripple
        ripple.assign(p.astype(ripple.numpy().dtype))
        self._fresh = False
        self._model.run("tangent")
        return self._change.numpy()
