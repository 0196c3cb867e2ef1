"""Links brought into equilibrium in the midst of a step, on the CPU, where iterations would not get there."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.models.particles.newton import Drive, TensionNewton
from phyxel.models.particles.sheet import LARGEST
from phyxel.models.particles.tension import Tension

CALM = 0.01
"""How far particles move in a step [units], root mean square, below which links hardly turn, and soft ones are brought
into equilibrium: what moves faster is followed by iterations alone."""
LOST = 1.0
"""Force that these may leave over, over what links then pull with: more, and they are brought into equilibrium."""


class Equilibrium:
    """Newton's method for the links of a sheet: what it needs from the device, and back."""

    def __init__(self, tension: Tension) -> None:
        self._tension = tension
        self._newton: TensionNewton | None = None
        self._k: NDArray[np.float64] = np.zeros(0)
        self.missing = 0.0
        """force that the last step left over, over what links pull with"""

    @property
    def tensions(self) -> NDArray[np.float64]:
        """λ of each link in the last step; none if it has never been asked, shape (E,)"""
        return np.zeros(0) if self._newton is None else self._newton.tension

    @tensions.setter
    def tensions(self, values: NDArray[np.float64]) -> None:
        self._made().tension = np.array(values)

    @property
    def friction(self) -> NDArray[np.float64]:
        """How far friction held each particle back in the last step; none if it has never been asked, shape (n,)"""
        return np.zeros(0) if self._newton is None else self._newton.held

    @friction.setter
    def friction(self, values: NDArray[np.float64]) -> None:
        self._made().held = np.array(values)

    def _made(self) -> TensionNewton:
        if self._newton is None:
            tension = self._tension
            self._newton = TensionNewton(tension.solve.X.numpy(), tension.elements, tension.links)
        return self._newton

    def forget(self) -> None:
        """Links were solved for otherwise: their tensions are not known."""
        self.missing = 0.0
        if self._newton is not None:
            self._newton.forget()

    def follow(self, iteration: dev.Program | None, particles: Any, arrival: Any, dt: float) -> bool:
        """Let iterations alone follow soft links in a step of dt [s], of a sheet that moves; whether that has found
        what they hold. What they have not would drive the sheet for good."""
        if iteration is None:
            return False
        v = particles.v.numpy()
        # What bears large sheets would be found with a factor.
        found_otherwise = len(v) <= LARGEST or not arrival.wall.numpy().any()
        if found_otherwise and float((v**2).sum()) * dt**2 <= CALM**2 * len(v):
            return False
        before = wp.clone(particles.pull)
        iteration.run()
        left = self._tension.left_over(particles.pull)
        if found_otherwise and left > LOST:
            wp.copy(particles.pull, before)
            return False
        self.forget()
        self.missing = left if left > LOST else 0.0
        return True

    def find(self, u: wp.array, P: wp.array, arrival: Any, soft: bool) -> None:
        """y of `Solve` from displacements u (n,) and the last pull P (n,), in place of all iterations; `soft`:
        conjugate gradients are sooner there than a factor."""
        tension, s = self._tension, self._tension.solve
        newton, order, n = self._made(), tension.order, len(tension.order)
        newton.set_stiffness(tension.k, s.D.numpy()[:n], soft)
        lain = len(arrival.wall) > 0
        wall, spot = (a.numpy()[order] if lain else np.zeros((n, 3)) for a in (arrival.wall, arrival.spot))
        grip = arrival.grip.numpy()[order] if lain else np.zeros(n)
        drive = Drive(s.free.numpy()[:n], s.inertia.numpy()[:n], wall, spot, grip)
        with dev.one_blas_thread():
            y, self.missing = newton.solve(s.X.numpy() + u.numpy()[order], P.numpy()[order], drive)
        dev.write(s.y, 0, y)
