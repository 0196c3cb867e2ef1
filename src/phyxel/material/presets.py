"""Materials ready made: numbers of data sheets by the names of their fields, in SI units, and where they come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

Made = TypeVar("Made")


class Preset(NamedTuple):
    """A row of the tables below."""

    about: str
    source: str
    """where the numbers come from"""
    numbers: dict[str, Any]


def _row(about: str, source: str, **numbers: Any) -> Preset:
    return Preset(about, source, numbers)


# Middle values at room temperature. Soft matter varies by a factor of two from batch to batch. What is nearly
# incompressible has a Poisson's ratio of 0.42 to 0.48 in place of 0.499: steps get shorter as 1/√(1 − 2ν). Damping β is
# the loss factor tan δ = βω at the frequencies that a thing as large as a hand rings with.
PRESETS = {
    "rubber": _row(
        "Soft natural rubber.",
        "Natural rubber as tables of engineering materials have it (Ashby, Materials Selection in Mechanical Design): "
        "1.5 to 2.5 MPa, 920 to 930 kg/m³; with little filler it loses some hundredths of a swing.",
        young=1.5e6, poisson=0.48, density=930.0, damping=2e-4,
    ),
    "silicone": _row(
        "Soft casting silicone, Shore 00-50.",
        "Smooth-On's sheet of Ecoflex 00-50: 1.07 g/cm³, 12 psi at twice the length, 83 kPa, which makes "
        "E = 3 · 83 kPa/(2 − 1/4) of a neo-Hookean rubber. Damping is a guess.",
        young=1.4e5, poisson=0.48, density=1070.0, damping=5e-4,
    ),
    "gelatin": _row(
        "Firm jelly: gelatin, some 30 % by weight, with some sugar.",
        "Moduli of gels go with the square of the gelatin and scatter by a factor of three, about 0.1 MPa at 20 to "
        "30 %; density of 30 % gelatin (1.35 g/cm³), 15 % sugar, 55 % water. Candy has less water: 1.3 to 1.4 g/cm³.",
        young=1.0e5, poisson=0.45, density=1150.0, damping=1e-3,
    ),
    "foam": _row(
        "Upholstery foam: open-cell polyurethane.",
        "Open cells have E = E_s (ρ/ρ_s)² (Gibson and Ashby, Cellular Solids): 50 kPa with 45 MPa and 1,200 kg/m³ of "
        "soft polyurethane; their Poisson's ratio is measured anywhere from 0 to 0.4. Damping is a guess.",
        young=6.0e4, poisson=0.2, density=40.0, damping=2e-3,
    ),
    "clay": _row(
        "Modelling clay: stays as it is pressed.",
        "Oil-based clays such as Plasticine have no data sheet: they flow at some 0.03 to 0.2 MPa, by rate and warmth, "
        "and have a few MPa before; 1.5 to 1.9 g/cm³. Chosen within that so that a ball stays where it falls.",
        young=4.0e6, poisson=0.42, density=1700.0, damping=2e-3, yield_stress=3.0e4,
    ),
    "wax": _row(
        "Paraffin wax.",
        "Paraffin at room temperature: 0.1 to 0.3 GPa, by grade and warmth, 0.88 to 0.92 g/cm³.",
        young=2.0e8, poisson=0.4, density=900.0, damping=1e-4,
    ),
    "cork": _row(
        "Cork: no bulge when squeezed.",
        "Gibson, Easterling and Ashby, The structure and mechanics of cork (1981): 13 to 20 MPa, Poisson's ratio 0 to "
        "0.1 along the radius; tables of engineering materials have 120 to 240 kg/m³.",
        young=2.0e7, poisson=0.0, density=180.0, damping=2e-4,
    ),
    "wood": _row(
        "Spruce with its grain along x, rings in y (radial) and z (tangential).",
        "Forest Products Laboratory, Wood Handbook, mechanical properties, Sitka spruce of 12 % moisture: 10.8 GPa in "
        "bending, the other moduli as shares of it, Poisson's ratios; 0.40 g/cm³ dry.",
        young=(1.08e10, 8.4e8, 4.6e8), poisson=(0.435, 0.467, 0.372), shear=(3.2e7, 6.6e8, 6.9e8),
        density=450.0, damping=1e-6,
    ),
    "ice": _row(
        "Freshwater ice at -5 °C.",
        "Gammon, Kiefte, Clouter and Denner (1983): crystals at -16 °C, with grains in all directions 9.3 GPa and "
        "0.325; 1.5 % less at -5 °C. 917 kg/m³.",
        young=9.2e9, poisson=0.325, density=917.0,
    ),
    "concrete": _row(
        "Ordinary concrete, C30/37.",
        "Eurocode 2 (EN 1992-1-1), table 3.1: E_cm = 33 GPa; 3.1.3: 0.2; EN 1991-1-1: 2,400 kg/m³ unreinforced.",
        young=3.3e10, poisson=0.2, density=2400.0,
    ),
    "glass": _row(
        "Soda-lime glass.", "EN 572-1: 70 GPa, 2,500 kg/m³; Poisson's ratio is given as 0.20 to 0.23.",
        young=7.0e10, poisson=0.22, density=2500.0,
    ),
    "stone": _row(
        "Granite.",
        "Granites as tables of rocks have them: 40 to 70 GPa, 0.2 to 0.3, 2.6 to 2.7 g/cm³, 7 to 25 MPa in tension.",
        young=5.0e10, poisson=0.25, density=2650.0, strength=1.0e7, strength_scatter=0.15,
    ),
    "ceramic": _row(
        "Glazed stoneware.",
        "Stoneware: 50 to 70 GPa, 2.2 to 2.4 g/cm³; EN 14411, group BIb: at least 30 MPa in bending.",
        young=6.0e10, poisson=0.2, density=2300.0, strength=3.0e7, strength_scatter=0.15,
    ),
    "aluminium": _row(
        "Aluminium 6061.", "Sheets of 6061-T6: 68.9 GPa, 0.33, 2,700 kg/m³ (it yields at 276 MPa).",
        young=6.9e10, poisson=0.33, density=2700.0,
    ),
    "steel": _row(
        "Structural steel.",
        "Eurocode 3 (EN 1993-1-1), 3.2.6: 210 GPa, 0.3; EN 1991-1-1: 7,850 kg/m³ (S235 yields at 235 MPa).",
        young=2.1e11, poisson=0.3, density=7850.0,
    ),
}  # fmt: skip
"""Of solids: fields of `Material`, or with three numbers for `young` those of `Material.orthotropic`."""

# Middle values. Woven ones as a Kawabata test of a plain weave gives them, air between threads counted in; bending is
# much less than that of a plate, as threads slide.
MEMBRANES = {
    "skin": _row(
        "Human skin, 2 mm, on the fat of a forearm or forehead.",
        "Agache and others (1980), torsion of a forearm: 0.42 MPa below 30 years, 0.85 above; other ways to pull give "
        "a tenth or ten times that. 1.1 g/cm³. Foundation and damping are guesses.",
        young=5.0e5, poisson=0.48, density=1100.0, damping=2e-3, drag=200.0, thickness=2.0e-3, foundation=5.0e5,
    ),
    "latex": _row(
        "The rubber of a balloon, 0.3 mm.",
        "Unfilled natural rubber from latex: 1 to 1.5 MPa, 0.94 g/cm³; a toy balloon is 0.2 to 0.3 mm thick.",
        young=1.2e6, poisson=0.49, density=940.0, damping=5e-4, drag=0.2, thickness=3.0e-4,
    ),
    "cotton": _row(
        "Plain weave cotton, 150 g/m².",
        "Shirtings as Kawabata's tests find them, about: bending 3 to 10 µN m, shear 0.5 to 2 N/(m °), which over the "
        "thickness is 0.1 to 0.3 MPa; warp stiffer than weft.",
        young=2.0e7, weft=1.2e7, shear=1.5e5, bending=8.0e-6,
        poisson=0.2, density=430.0, damping=2e-3, drag=0.5, thickness=3.5e-4,
    ),
    "silk": _row(
        "Habotai silk, 65 g/m².",
        "Light silks as Kawabata's tests find them, about: bending 1 to 4 µN m, shear 0.2 to 0.5 N/(m °); 16 momme are "
        "69 g/m².",
        young=4.0e7, weft=2.5e7, shear=1.2e5, bending=2.0e-6,
        poisson=0.2, density=540.0, damping=1e-3, drag=1.0, thickness=1.2e-4,
    ),
    "felt": _row(
        "Pressed wool felt, 3 mm, 750 g/m².",
        "Soft pressed felts are 0.2 to 0.3 g/cm³; their modulus is a few MPa, and hangs on how they were pressed.",
        young=2.0e6, poisson=0.2, density=250.0, damping=5e-3, drag=0.3, thickness=3.0e-3,
    ),
    "tin": _row(
        "A shell of sheet tin, 0.5 mm, that gives 2 mm and then keeps its dents.",
        "Tin as tables of the elements have it: 50 GPa, 0.36, 7,300 kg/m³; foundation and dents "
        "are those of the shell of W96, Figure 8.",
        young=5.0e10, poisson=0.36, density=7300.0, drag=60.0, thickness=5.0e-4,
        foundation=2.0e6, plasticity=0.8, elastic_limit=2.0e-3,
    ),
    "paper": _row(
        "Office paper, 80 g/m².",
        "Printing papers: 4 to 6 GPa along the machine, about half across; bending is E h³/12 of 0.1 mm.",
        young=5.0e9, weft=2.5e9, shear=1.4e9, bending=4.0e-4,
        poisson=0.3, density=800.0, damping=1e-4, drag=1.0, thickness=1.0e-4,
    ),
}  # fmt: skip
"""Of surfaces: fields of `Membrane`."""


def call_of(made: Callable[[], Made], name: str, preset: Preset) -> staticmethod[[], Made]:
    """A function as the public call of a preset, such as `Material.rubber()`, with its docstring."""
    made.__name__, made.__qualname__ = name.rpartition(".")[2], name
    made.__doc__ = f"{preset.about}\n\n{preset.source}"
    return staticmethod(made)
