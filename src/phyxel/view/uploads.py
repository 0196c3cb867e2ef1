"""Files that a page sends: a scan or a scene, with what they name, into a folder of their own.

They come in pieces over the live connection, which only the server's own page has. Names are bare and plain, whatever
the page says. The folder is named by a hash of what is in it and stays in the cache: saved scenes find their files.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from pathlib import Path
from typing import BinaryIO, Literal

from phyxel import cache
from phyxel.errors import PhyxelError
from phyxel.view.commands import LARGEST_FILE, Command, FileAhead, Name

SIDE = {".mtl", ".png", ".jpg", ".jpeg", ".bin", ".tga", ".bmp"}
"""Endings of files that others name."""


class Open(Command):
    """Open a file of this machine. Only the server makes it: no page can ask for a path."""

    do: Literal["open"] = "open"
    name: Name
    path: Path


def plain_name(name: str) -> str:
    """A file's name without folders and odd letters."""
    bare = re.split(r"[/\\]", name)[-1]
    return re.sub(r"[^\w. -]", "_", bare).strip(". ")[-100:] or "file"


class Arriving:
    """Files on their way."""

    def __init__(self, files: list[FileAhead]) -> None:
        if (total := sum(file.size for file in files)) > LARGEST_FILE:
            raise PhyxelError(f"{total / 1e6:.0f} MB: files up to {LARGEST_FILE / 1e6:.0f} MB can be dropped here")
        self._ahead = [(plain_name(file.name), file.size) for file in files]
        if len({name for name, _ in self._ahead}) < len(files):
            raise PhyxelError("two of these files have the same name; drop one of them")
        self._folder = Path(tempfile.mkdtemp(prefix="phyxel-"))
        self._digest = hashlib.sha256()
        self._file: BinaryIO | None = None
        self._left = 0
        self._done = 0

    def add(self, data: bytes) -> Open | None:
        """Some bytes more; the command to open the files once all are there."""
        while data:
            if self._file is None:
                if self._done == len(self._ahead):
                    raise PhyxelError("more bytes than were told of")
                name, self._left = self._ahead[self._done]
                self._digest.update(f"{name} {self._left} ".encode())
                self._file = open(self._folder / name, "wb")  # noqa: SIM115  it is closed when it is whole
            own, data = data[: self._left], data[self._left :]
            self._file.write(own)
            self._digest.update(own)
            self._left -= len(own)
            if self._left == 0:
                self._file.close()
                self._file, self._done = None, self._done + 1
        return self._opened() if self._done == len(self._ahead) else None

    def forget(self) -> None:
        """They come no longer."""
        if self._file is not None:
            self._file.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _opened(self) -> Open:
        """What is whole lies in the cache from then on."""
        folder = cache.folder() / "dropped" / self._digest.hexdigest()[:16]
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(self._folder, folder)
        self.forget()
        name = self._main()
        return Open(name=name, path=folder / name)

    def _main(self) -> str:
        """The file that names the others: a scene, else the first that is no picture or the like."""
        names = [name for name, _ in self._ahead]
        scenes = [name for name in names if name.lower().endswith(".toml")]
        return next(iter([*scenes, *(name for name in names if Path(name).suffix.lower() not in SIDE)]), names[0])
