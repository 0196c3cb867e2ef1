"""What movers share whose bodies have a model each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.state import State, prefixed, unprefixed

Floats = NDArray[np.float64]


class Measurable(Protocol):
    """A model that knows its sums, in its body's units about the body's origin where it does not say otherwise."""

    def energies(self) -> tuple[float, float]:
        """Elastic and kinetic energy [J]."""

    def momenta(self) -> tuple[Floats, Floats]:
        """Momentum [kg m/s], and angular momentum about the body's origin [kg m²/s], shape (3,) each."""

    def middle(self) -> Floats:
        """The middle of mass, shape (3,)."""

    def volume(self) -> float:
        """[m³]"""


class Stateful(Protocol):
    """What a checkpoint keeps."""

    def state(self) -> State:
        """All of it."""

    def restore(self, state: State) -> None:
        """Take over what `state` gave."""


def diagnosed(body: Body, model: Measurable, gravity: Floats) -> dict[str, Any]:
    """What `Body.diagnostics` promises, of a body with a model of its own."""
    mass = float(body.masses.sum())
    elastic, kinetic = model.energies()
    momentum, spin = model.momenta()
    return {
        "mass": mass,
        "momentum": momentum,
        "angular_momentum": spin + np.cross(body.origin, momentum),
        "kinetic": kinetic,
        "elastic": elastic,
        "potential": float(-mass * (body.origin + body.unit * model.middle()) @ gravity),
        "volume": model.volume(),
    }


def states_of(bodies: Iterable[Stateful]) -> State:
    """The states of all bodies of a mover."""
    states = [prefixed(f"body{k}.", body.state()) for k, body in enumerate(bodies)]
    return {name: array for state in states for name, array in state.items()}


def restore_states(bodies: Iterable[Stateful], state: State) -> None:
    """Give each body of a mover what `states_of` took of it."""
    for k, body in enumerate(bodies):
        body.restore(unprefixed(f"body{k}.", state))
