"""Pictures as files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from phyxel.errors import PhyxelError
from phyxel.files import whole_file

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
"""by the file's suffix"""


def save_png(image: NDArray[np.uint8], path: str | os.PathLike[str], compress_level: int = 1) -> None:
    """Write (H, W, 3 or 4) bytes as PNG. The file appears under its name only when complete."""
    with whole_file(path) as file:
        Image.fromarray(image).save(file, format="PNG", compress_level=compress_level)


def format_of(path: str | os.PathLike[str]) -> str:
    """Pillow's name for the format a file's suffix asks for, or a `PhyxelError`."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise PhyxelError(f"{path}: pictures are written as {', '.join(FORMATS)}; end the name in one of these")
    return FORMATS[suffix]


def save_picture(image: NDArray[np.uint8], path: str | os.PathLike[str]) -> None:
    """Write (H, W, 3) bytes as PNG or JPEG. The file appears under its name only when complete."""
    name = format_of(path)
    with whole_file(path) as file:
        Image.fromarray(image).save(file, format=name, quality=92)
