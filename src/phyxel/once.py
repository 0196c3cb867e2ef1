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
    """Keeps what was made: all of it, or the `most` that were asked for last."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._made: dict[Hashable, Any] = {}

    def __call__(self, name: Hashable, make: Callable[[], T]) -> T:
        found: T = self._made.pop(name) if name in self._made else make()
        self._made[name] = found
        if self._most is not None and len(self._made) > self._most:
            del self._made[next(iter(self._made))]
        return found
