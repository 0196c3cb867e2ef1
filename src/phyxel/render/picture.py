"""Pictures as files."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from phyxel.files import whole_file


def save_png(image: NDArray[np.uint8], path: str | os.PathLike[str], compress_level: int = 1) -> None:
    """Write (H, W, 3 or 4) bytes as PNG. The file appears under its name only when complete."""
    with whole_file(path) as file:
        Image.fromarray(image).save(file, format="PNG", compress_level=compress_level)
