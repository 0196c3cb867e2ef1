"""What follows from something that never changes: made once, when somebody first asks for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Once(Protocol):
    """Gives what `make` makes under a name, or what it made before. Nobody may change what he gets."""

    def __call__(self, name: Hashable, make: Callable[[], T]) -> T: ...


def anew(name: Hashable, make: Callable[[], T]) -> T:
    """Made each time it is asked for."""
    return make()


class Kept:
    """Keeps all that was made."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}

    def __call__(self, name: Hashable, make: Callable[[], T]) -> T:
        if name not in self._made:
            self._made[name] = make()
        found: T = self._made[name]
        return found
