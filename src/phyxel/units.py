"""Lengths and volumes as people write them."""

from __future__ import annotations

import math

LENGTHS = {"km": 1e3, "m": 1.0, "cm": 1e-2, "mm": 1e-3, "µm": 1e-6, "nm": 1e-9}
"""metres in one unit"""
VOLUMES = {"km³": 1e9, "m³": 1.0, "l": 1e-3, "cm³": 1e-6, "mm³": 1e-9, "µm³": 1e-18, "nm³": 1e-27}
"""cubic metres in one unit"""
STRESSES = {"GPa": 1e9, "MPa": 1e6, "kPa": 1e3, "Pa": 1.0, "mPa": 1e-3}
"""pascals in one unit"""
SPEEDS = {"km/s": 1e3, "m/s": 1.0, "mm/s": 1e-3}
"""metres a second in one unit"""
FAR_ABOVE_NEXT = {"km³": 1e-3, "mm³": 1e-3, "µm³": 1e-3}
"""Units so much larger than the next that less than one of them is written in them too: down to this share."""


def length_unit(length: float) -> tuple[str, float]:
    """The largest unit of which a length [m] has at least one, or the smallest there is; and the metres in it."""
    return _fitting(length, LENGTHS)


def length_text(length: float) -> str:
    """A length [m] with three digits and its unit."""
    unit, metres = length_unit(length)
    return f"{digits(length / metres)} {unit}"


def unit_for(value: float, si: str) -> tuple[str, float]:
    """The unit in which a value [si: "m", "Pa", "m/s" or "" for a plain number] is written, and what is in one."""
    tables = {"m": LENGTHS, "Pa": STRESSES, "m/s": SPEEDS}
    if si in tables:
        return _fitting(value, tables[si])
    small = 0 < abs(value) < 0.01
    thousands = math.floor(math.log10(abs(value)) / 3) if small else 0
    return (f"1e{3 * thousands}", 10.0 ** (3 * thousands)) if small else (si, 1.0)


def volume_text(volume: float) -> str:
    """A volume [m³] with three digits and its unit."""
    unit, cubic_metres = _fitting(volume, VOLUMES)
    return f"{digits(volume / cubic_metres)} {unit}"


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
