"""Nothing is half-written: files appear under their name only when complete. And the files that come with Phyxel."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import IO

from phyxel.errors import PhyxelError


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file to write, which takes its name when the block ends well and vanishes when it does not."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise PhyxelError(f"{target}: cannot be written ({error.strerror})") from error
    try:
        os.close(handle)
        with open(name, "wb") as file:
            yield file
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise PhyxelError(f"{target}: cannot be written ({error.strerror})") from error
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def check_folder(folder: Path) -> None:
    """Refuse, before anything is made, a folder that nothing can be written to."""
    if folder.exists() and not folder.is_dir():
        raise PhyxelError(f"{folder}: is a file; give another folder with --out")
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PhyxelError(f"{folder}: cannot be written; give another folder with --out")


def _umask() -> int:
    """What the user takes away from new files' permissions; mkstemp ignores it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def check_suffix(path: str | os.PathLike[str], known: Sequence[str]) -> None:
    """Refuse a name that other programs would not take for what is in the file."""
    if Path(path).suffix.lower() not in known:
        raise PhyxelError(f"{path}: give a name that ends in {' or '.join(known)}")


def gallery_files() -> dict[str, Traversable]:
    """The scenes that come with Phyxel, by their names."""
    folder = resources.files("phyxel") / "gallery"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return {file.name.removesuffix(".toml"): file for file in files if file.name.endswith(".toml")}
