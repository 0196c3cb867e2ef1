"""Materials ready made: numbers of data sheets by the names of their fields, in SI units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

Made = TypeVar("Made")


class Preset(NamedTuple):
    """A row of the tables below."""

    about: str
    numbers: dict[str, Any]


def _row(about: str, **numbers: Any) -> Preset:
    return Preset(about, numbers)


# Middle values at room temperature. Soft matter varies by a factor of two from batch to batch.
PRESETS = {
    "rubber": _row("Soft natural rubber.", young=1.5e6, poisson=0.48, density=930.0, damping=2e-4),
    "silicone": _row("Soft casting silicone, Shore 00-50.", young=1.7e5, poisson=0.48, density=1070.0, damping=5e-4),
    "gelatin": _row(
        "Gummy candy: firm gelatin, some 30 % by weight.", young=1.0e5, poisson=0.45, density=1150.0, damping=1e-3
    ),
    "foam": _row(
        "Upholstery foam: open-cell polyurethane.", young=6.0e4, poisson=0.2, density=40.0, damping=2e-3
    ),
    "clay": _row("Modelling clay.", young=2.0e6, poisson=0.42, density=1700.0, damping=2e-3),
    "wax": _row("Paraffin wax.", young=2.0e8, poisson=0.4, density=900.0, damping=1e-4),
    "cork": _row("Cork: no bulge when squeezed.", young=2.0e7, poisson=0.0, density=180.0, damping=2e-4),
    "wood": _row(
        "Spruce with its grain along x, rings in y (radial) and z (tangential).",
        young=(1.1e10, 8.0e8, 4.5e8), poisson=(0.45, 0.45, 0.38), shear=(4.0e7, 6.5e8, 7.0e8),
        density=430.0, damping=1e-6,
    ),
    "ice": _row("Freshwater ice at -5 °C.", young=9.3e9, poisson=0.33, density=917.0),
    "concrete": _row("Ordinary concrete, C30.", young=3.3e10, poisson=0.2, density=2400.0),
    "glass": _row("Soda-lime glass.", young=7.0e10, poisson=0.22, density=2500.0),
    "stone": _row("Granite.", young=5.0e10, poisson=0.25, density=2650.0, strength=1.0e7, strength_scatter=0.15),
    "ceramic": _row(
        "Glazed stoneware.", young=6.0e10, poisson=0.2, density=2300.0, strength=3.0e7, strength_scatter=0.15
    ),
    "aluminium": _row("Aluminium 6061.", young=6.9e10, poisson=0.33, density=2700.0),
    "steel": _row("Structural steel.", young=2.1e11, poisson=0.29, density=7850.0),
}  # fmt: skip
"""Of solids: fields of `Material`, or with three numbers for `young` those of `Material.orthotropic`."""

# Middle values. Woven ones as a Kawabata test of a plain weave gives them, air between threads counted in; bending is
# much less than that of a plate, as threads slide.
MEMBRANES = {
    "skin": _row(
        "Human skin, 2 mm, on the fat of a forearm or forehead.",
        young=5.0e5, poisson=0.48, density=1100.0, damping=2e-3, drag=200.0, thickness=2.0e-3, foundation=5.0e5,
    ),
    "latex": _row(
        "The rubber of a balloon, 0.3 mm.",
        young=1.2e6, poisson=0.49, density=940.0, damping=5e-4, drag=0.2, thickness=3.0e-4,
    ),
    "cotton": _row(
        "Plain weave cotton, 150 g/m².",
        young=2.0e7, weft=1.2e7, shear=1.5e5, bending=8.0e-6,
        poisson=0.2, density=430.0, damping=2e-3, drag=0.5, thickness=3.5e-4,
    ),
    "silk": _row(
        "Habotai silk, 65 g/m².",
        young=4.0e7, weft=2.5e7, shear=1.2e5, bending=2.0e-6,
        poisson=0.2, density=540.0, damping=1e-3, drag=1.0, thickness=1.2e-4,
    ),
    "felt": _row(
        "Pressed wool felt, 3 mm, 750 g/m².",
        young=2.0e6, poisson=0.2, density=250.0, damping=5e-3, drag=0.3, thickness=3.0e-3,
    ),
    "tin": _row(
        "A shell of sheet tin, 0.5 mm, that gives 2 mm and then keeps its dents.",
        young=5.0e10, poisson=0.36, density=7300.0, drag=60.0, thickness=5.0e-4,
        foundation=2.0e6, plasticity=0.8, elastic_limit=2.0e-3,
    ),
    "paper": _row(
        "Office paper, 80 g/m².",
        young=5.0e9, weft=2.5e9, shear=1.4e9, bending=4.0e-4,
        poisson=0.3, density=800.0, damping=1e-4, drag=1.0, thickness=1.0e-4,
    ),
}  # fmt: skip
"""Of surfaces: fields of `Membrane`."""


def call_of(made: Callable[[], Made], name: str, about: str) -> staticmethod[[], Made]:
    """A function as the public call of a preset, such as `Material.rubber()`, with its docstring."""
    made.__name__, made.__qualname__, made.__doc__ = name.rpartition(".")[2], name, about
    return staticmethod(made)
