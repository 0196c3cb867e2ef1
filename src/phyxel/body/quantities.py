"""Quantities inside a body that pictures can show: each is one number at every place."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phyxel.body.probes import Probe
from phyxel.errors import PhyxelError, did_you_mean

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Quantity:
    """A number at every place of a body."""

    title: str
    unit: str
    """"Pa", "m", "m/s", or "" for a plain number"""
    at: Callable[[Probe], NDArray[np.floating]]
    """at a probe's places, shape (m,)"""
    from_zero: bool = True
    """whether it is never negative, and 0 where nothing happens"""
    inward: bool = False
    """whether small numbers are what one looks for: they are drawn bright"""


def von_mises(stress: Floats) -> Floats:
    """√(3/2 s:s) of stresses (m, 3, 3), s their deviator (physics 14.4): what a bar pulled by it alone would have,
    shape (m,)."""
    return np.sqrt(1.5 * _square(_deviator(stress)))


def equivalent_strain(gradient: Floats) -> Floats:
    """√(2/3 e:e), e the deviator of Green's strain ½(JᵀJ − I) of ∇u (m, 3, 3) (physics 14.4): that of a bar which is
    stretched by it and keeps its volume, shape (m,)."""
    J = np.eye(3) + gradient
    return np.sqrt(2 / 3 * _square(_deviator(0.5 * (np.swapaxes(J, 1, 2) @ J - np.eye(3)))))


def _deviator(tensors: Floats) -> Floats:
    return tensors - np.trace(tensors, axis1=1, axis2=2)[:, None, None] / 3 * np.eye(3)


def _square(tensors: Floats) -> Floats:
    return np.einsum("mab,mab->m", tensors, tensors)


QUANTITIES = {
    "stress": Quantity("von Mises stress", "Pa", lambda at: von_mises(at.stress())),
    "principal": Quantity("largest principal stress", "Pa", lambda at: np.linalg.eigvalsh(at.stress())[:, 2], False),
    "strain": Quantity("equivalent strain", "", lambda at: equivalent_strain(at.gradient())),
    "plastic": Quantity("plastic strain", "", lambda at: np.sqrt(_square(at.plastic()))),
    "speed": Quantity("speed", "m/s", lambda at: np.linalg.norm(at.velocity(), axis=1)),
    "distance": Quantity("distance to the surface", "m", lambda at: at.distance, from_zero=False, inward=True),
}


def quantity(field: str | Callable[..., NDArray[np.floating]]) -> Quantity:
    """One by its name, or of a user's function f(X) or f(body, X) of (m, 3) reference positions [m]."""
    if isinstance(field, str):
        if field not in QUANTITIES:
            raise PhyxelError(f'field = "{field}": not known{did_you_mean(field, QUANTITIES)}')
        return QUANTITIES[field]
    if not callable(field):
        raise PhyxelError(f"field = {field!r}: give one of {', '.join(QUANTITIES)}, or a function f(X) or f(body, X)")
    name = getattr(field, "__name__", "field")
    title = "field" if name == "<lambda>" else name.replace("_", " ")
    wanted = len(inspect.signature(field).parameters)
    if wanted not in (1, 2):
        raise PhyxelError(f"{title}: a function of {wanted} arguments; give f(X) or f(body, X)")
    with_body = wanted == 2

    def asked(probe: Probe) -> Floats:
        found = np.asarray(field(probe.body, probe.X) if with_body else field(probe.X), np.float64)
        if found.shape != (len(probe.X),):
            raise PhyxelError(
                f"{title}: gave shape {found.shape} for {len(probe.X)} positions; give one number for each"
            )
        if not (known := np.isfinite(found)).all():
            raise PhyxelError(
                f"{title}: gave {found[~known][0]} at {probe.X[~known][0]} m in {probe.body.name}; "
                "give a finite number everywhere in the bodies"
            )
        return found

    return Quantity(title, "", asked, from_zero=False)
