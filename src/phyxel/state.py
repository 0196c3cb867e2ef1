"""States: what checkpoints keep of things, arrays by name."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

State = dict[str, NDArray[Any]]


def prefixed(prefix: str, state: State) -> State:
    """A state whose names begin with `prefix`."""
    return {prefix + name: array for name, array in state.items()}


def unprefixed(prefix: str, state: State) -> State:
    """What of a state has names that begin with `prefix`, without it."""
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
