"""Pictures as files: PNG, JPEG and mp4."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
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


def encode(pngs: Sequence[Path], path: str | Path, fps: float, crf: int = 18) -> None:
    """Encode pictures of one size as an H.264 mp4 that starts playing while it loads. Appears only when complete.

    A transparent picture is laid over white; an odd width or height loses its last column or row.
    """
    if not pngs:
        raise PhyxelError(f"{path}: no frames to encode; render at least one picture first")
    first, options = _even_picture(pngs[0]), {"movflags": "+faststart"}
    with whole_file(path) as file, av.open(file.name, "w", format="mp4", options=options) as container:
        stream = container.add_stream("libx264", rate=Fraction(fps).limit_denominator(1001))
        stream.height, stream.width = first.shape[:2]
        stream.pix_fmt = "yuv420p"
        stream.options = {"crf": str(crf), "preset": "medium"}
        for png in pngs:
            picture = _even_picture(png)
            if picture.shape != first.shape:
                raise PhyxelError(f"{png}: {picture.shape[1]} x {picture.shape[0]} pixels, unlike the first frame")
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())


def _even_picture(path: Path) -> NDArray[np.uint8]:
    """A picture as (H, W, 3) bytes over white, H and W even as 4:2:0 color needs."""
    with Image.open(path) as image:
        rgba = image.convert("RGBA")
    flat = Image.alpha_composite(Image.new("RGBA", rgba.size, (255, 255, 255, 255)), rgba)
    pixels = np.asarray(flat.convert("RGB"))
    height, width = pixels.shape[0] // 2 * 2, pixels.shape[1] // 2 * 2
    return np.ascontiguousarray(pixels[:height, :width])
