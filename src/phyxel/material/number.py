"""Numbers of materials: given in SI units, or as a text with a unit of their own."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from phyxel.errors import MaterialError
from phyxel.units import in_unit

N = TypeVar("N", bound=float | None)


class Number(Generic[N]):
    """A field of a dataclass, counted in a unit, that may also be given as a text: `young="2 GPa"` is 2e9."""

    def __init__(self, default: N, unit: str) -> None:
        self.default, self.unit = default, unit

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, owner: object | None, kind: type | None = None) -> N:
        return self.default if owner is None else owner.__dict__[self._name]

    def __set__(self, owner: object, value: N | str) -> None:
        try:
            owner.__dict__[self._name] = in_unit(value, self.unit)
        except ValueError as error:
            raise MaterialError(f"material.{self._name} = {value!r}: {error}") from None


def units_of(kind: type) -> dict[str, str]:
    """The unit of each number of a material, by its name."""
    found: dict[str, Any] = {name: entry for base in reversed(kind.__mro__) for name, entry in vars(base).items()}
    return {name: entry.unit for name, entry in found.items() if isinstance(entry, Number)}
