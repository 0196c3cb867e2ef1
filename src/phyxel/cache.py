"""Results that took long: kept in memory under a name, or on disk under a hash of all they depend on."""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import PhyxelError
from phyxel.files import whole_file

T = TypeVar("T")
Arrays = dict[str, NDArray[Any]]

MOST_BYTES = 2_000_000_000
"""What all remembered results together may take; beyond it the longest unused go."""


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
        found: T | None = self._made.pop(name, None)
        if found is None:
            found = make()
        self._made[name] = found
        if self._most is not None and len(self._made) > self._most:
            del self._made[next(iter(self._made))]
        return found


def folder() -> Path:
    """Where results lie: `$PHYXEL_CACHE`, else a folder in the platform's place for such files."""
    asked = os.environ.get("PHYXEL_CACHE")
    if asked:
        return Path(asked)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "phyxel" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "phyxel"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "phyxel"


def remembered(name: str, parts: Sequence[Any], compute: Callable[[], Mapping[str, NDArray[Any]]]) -> Arrays:
    """What `compute` gives, from disk if it was computed before with the same `parts`: arrays, bytes, numbers or text.

    A file that cannot be read is computed anew, and a disk that cannot be written to is left alone.
    """
    path = folder() / f"{name}-{digest(parts)}.npz"
    known = _read(path)
    if known is not None:
        return known
    result = {key: np.asarray(array) for key, array in compute().items()}
    with suppress(PhyxelError, OSError):
        with whole_file(path) as file:
            np.savez(file, allow_pickle=False, **result)
        _forget_oldest(path)
    return result


def digest(parts: Sequence[Any]) -> str:
    """A hash of values, types and shapes."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str}{part.shape}".encode() + np.ascontiguousarray(part).tobytes())
        else:
            digest.update(type(part).__name__.encode() + (part if isinstance(part, bytes) else repr(part).encode()))
        digest.update(b"\0")
    return digest.hexdigest()[:32]


def _read(path: Path) -> Arrays | None:
    try:
        with np.load(path, allow_pickle=False) as file:
            known = {key: file[key] for key in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
        return None
    with suppress(OSError):
        path.touch()  # used now: the last to be forgotten
    return known


def _forget_oldest(newest: Path) -> None:
    files = [(entry.stat(), entry) for entry in newest.parent.glob("*.npz") if entry != newest]
    room = MOST_BYTES - newest.stat().st_size
    for stat, entry in sorted(files, key=lambda item: item[0].st_mtime, reverse=True):
        room -= stat.st_size
        if room < 0:
            entry.unlink(missing_ok=True)
