"""Quantities as people write them, and read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from phyxel.errors import PhyxelError, did_you_mean

LENGTHS = {"km": 1e3, "m": 1.0, "cm": 1e-2, "mm": 1e-3, "µm": 1e-6, "nm": 1e-9}
"""metres in one unit"""
VOLUMES = {"km³": 1e9, "m³": 1.0, "l": 1e-3, "cm³": 1e-6, "mm³": 1e-9, "µm³": 1e-18, "nm³": 1e-27}
"""cubic metres in one unit"""
MASSES = {"t": 1e3, "kg": 1.0, "g": 1e-3, "mg": 1e-6, "µg": 1e-9}
"""kilograms in one unit"""
STRESSES = {"GPa": 1e9, "MPa": 1e6, "kPa": 1e3, "Pa": 1.0, "mPa": 1e-3}
"""pascals in one unit"""
SPEEDS = {"km/s": 1e3, "m/s": 1.0, "mm/s": 1e-3}
"""metres a second in one unit"""
READ: dict[str, tuple[str, dict[str, float]]] = {
    "m": ("a length", LENGTHS | {"dm": 0.1, "in": 0.0254, "ft": 0.3048}),
    "s": ("a time", {"h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6}),
    "1/s": ("a rate", {"kHz": 1e3, "Hz": 1.0, "1/s": 1.0, "1/min": 1 / 60, "1/h": 1 / 3600}),
    "m/s": ("a speed", SPEEDS | {"cm/s": 1e-2, "km/h": 1 / 3.6}),
    "m/s²": ("an acceleration", {"m/s²": 1.0, "cm/s²": 1e-2, "mm/s²": 1e-3, "g": 9.80665}),
    "Pa": ("a pressure", STRESSES | {"bar": 1e5, "mbar": 1e2, "psi": 6894.757, "N/mm²": 1e6, "N/m²": 1.0}),
    "Pa s": ("a viscosity", {f"{unit} s": worth for unit, worth in STRESSES.items()} | {"P": 0.1, "cP": 1e-3}),
    "kg/m³": ("a density", {"g/cm³": 1e3, "kg/l": 1e3, "t/m³": 1e3, "kg/m³": 1.0, "g/l": 1.0}),
    "N": ("a force", {"MN": 1e6, "kN": 1e3, "N": 1.0, "mN": 1e-3}),
    "N m": ("a bending stiffness", {"kN m": 1e3, "N m": 1.0, "N mm": 1e-3, "mN m": 1e-3, "µN m": 1e-6}),
    "N/m³": ("a stiffness of an area", {"N/mm³": 1e9, "MN/m³": 1e6, "kN/m³": 1e3, "N/m³": 1.0}),
    "degrees": ("an angle", {"degrees": 1.0, "deg": 1.0, "°": 1.0, "rad": 180 / math.pi, "turns": 360.0}),
    "rad/s": ("a spin", {"rad/s": 1.0, "degrees/s": math.pi / 180, "°/s": math.pi / 180, "rpm": math.pi / 30}),
    "degrees/s": ("a spin", {"degrees/s": 1.0, "°/s": 1.0, "rad/s": 180 / math.pi, "rpm": 6.0}),
    "": ("a plain number", {"%": 1e-2}),
}
"""By the unit in which a quantity is counted: what it is, and in what units it may be given, with their worth."""
FAR_ABOVE_NEXT = {"km³": 1e-3, "mm³": 1e-3, "µm³": 1e-3}
"""Units so much larger than the next that less than one of them is written in them too: down to this share."""


def quantity(label: str, value: Any, unit: str) -> Any:
    """A quantity that is counted in a unit, one of `READ`: "2 GPa" is 2e9 for "Pa"; what is no text stays as it is. A
    message about a wrong one begins with the label."""
    try:
        return in_unit(value, unit)
    except ValueError as error:
        raise PhyxelError(f"{label} = {value!r}: {error}") from None


def in_unit(value: Any, unit: str) -> Any:
    """The same, but what is wrong is a `ValueError` that says what would do."""
    if not isinstance(value, str):
        return value
    name, units = READ[unit]
    example = f'a number{f" [{unit}]" if unit else ""}, or one with its unit, such as "2 {next(iter(units))}"'
    found = re.fullmatch(r"\s*([-+]?(?:\d+\.?\d*|\.\d+|inf)(?:e[-+]?\d+)?)\s*((?!,).*?)\s*", value, re.IGNORECASE)
    if found is None:
        raise ValueError(f"give {name}: {example}")
    number, given = float(found[1]), _plain(found[2])
    if given == "":
        return number
    worths = {_plain(one): worth for one, worth in units.items()}
    if given in worths:
        return number * worths[given]
    others = [other for other, known in READ.values() if given in map(_plain, known)]
    if others:
        raise ValueError(f"{found[2]} is a unit of {others[0]}, but this is {name}; give {example}")
    meant = did_you_mean(found[2], units, likeness=0.6)
    raise ValueError(f"the unit {found[2]} is not known{meant}")


def _plain(unit: str) -> str:
    """A unit in letters that every keyboard has, so that "kg/m^3" is "kg/m³" and "Pa·s" is "Pa s"."""
    for sign, letter in {"³": "3", "²": "2", "^": "", "·": " ", "*": " ", "µ": "u", "μ": "u"}.items():
        unit = unit.replace(sign, letter)
    return " ".join(unit.split())


def length_unit(length: float) -> tuple[str, float]:
    """The largest unit of which a length [m] has at least one, or the smallest there is; and the metres in it."""
    return _fitting(length, LENGTHS)


def length_text(length: float) -> str:
    """A length [m] with three digits and its unit."""
    return amount_text(length, "m")


def extents_text(extents: Iterable[float]) -> str:
    """The three extents of a box [m], in one unit, the largest with three digits."""
    sides = list(extents)
    unit, metres = length_unit(max(sides))
    places = decimals(max(sides) / metres)
    return f"{' × '.join(f'{side / metres:z.{places}f}' for side in sides)} {unit}"


def amount_text(value: float, si: str) -> str:
    """A value [si: one of those that `unit_for` knows] with three digits and its unit."""
    unit, worth = unit_for(value, si)
    return f"{digits(value / worth)} {unit}"


def unit_for(value: float, si: str) -> tuple[str, float]:
    """The unit in which a value [si: "m", "m³", "kg", "Pa", "m/s" or "" for a plain number] is written, and what is in
    one."""
    tables = {"m": LENGTHS, "m³": VOLUMES, "kg": MASSES, "Pa": STRESSES, "m/s": SPEEDS}
    if si in tables:
        return _fitting(value, tables[si])
    small = 0 < abs(value) < 0.01
    thousands = math.floor(math.log10(abs(value)) / 3) if small else 0
    return (f"1e{3 * thousands}", 10.0 ** (3 * thousands)) if small else (si, 1.0)


def volume_text(volume: float) -> str:
    """A volume [m³] with three digits and its unit."""
    return amount_text(volume, "m³")


def digits(value: float, count: int = 3) -> str:
    """A number with so many digits that count, and with all those before its point."""
    return f"{value:,.{decimals(value, count)}f}" if abs(value) < 1e9 else f"{value:.{count - 1}e}"


def decimals(value: float, count: int = 3) -> int:
    """How many digits behind the point make so many in all."""
    if value == 0:
        return 0
    rounded = float(f"{abs(value):.{count - 1}e}")  # 0.9999 is written as 1.00
    return max(count - 1 - math.floor(math.log10(rounded)), 0)


def _fitting(value: float, units: dict[str, float]) -> tuple[str, float]:
    for unit, worth in units.items():
        # A hair less than one, so that what should be 1 m but for rounding is not written as 100 cm.
        if abs(value) >= FAR_ABOVE_NEXT.get(unit, 0.9999) * worth:
            return unit, worth
    return unit, worth
