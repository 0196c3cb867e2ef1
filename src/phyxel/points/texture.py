"""The pictures and colours that the faces of a mesh are painted with, and what of them is seen at a point."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Indices = NDArray[np.integer]
Picture = NDArray[np.uint8]
"""red, green, blue, shape (height, width, 3), the upper row first"""

MOST_PIXELS = 4096
"""along a side of a picture; points are farther apart than its pixels then"""
UNPAINTED = 0.72
"""of red, green and blue, for points of faces without colour beside others that have one"""


@dataclass(frozen=True)
class Texture:
    """What each face of a mesh is painted with."""

    pictures: Sequence[Picture]
    of_face: Indices
    """which picture, −1 for none, shape (M,)"""

    def paint(self, colors: Floats, faces: Indices, uv: Floats | None) -> None:
        """Give points on `faces` (n,), at texture coordinates (n, 2), the colours there, written to `colors` (n, 3)."""
        which = self.of_face[faces]
        for k, picture in enumerate(self.pictures):
            on = which == k
            if uv is None:
                colors[on] = picture.mean(axis=(0, 1)) / 255
            else:
                colors[on] = colors_at(picture, uv[on])


def colors_at(picture: Picture, uv: Floats) -> Floats:
    """Colours in 0..1 at texture coordinates (n, 2), which count from the lower left corner; bilinear between the
    middles of pixels. Beyond 0..1 the picture repeats."""
    height, width = picture.shape[:2]
    at = np.stack([uv[:, 0] * width, (1 - uv[:, 1].astype(np.float64)) * height], axis=1) - 0.5
    at = np.where(np.isfinite(at), at, 0.0)
    low = np.floor(at)
    x1, y1 = (at - low).T[:, :, None]
    column, row = low.T
    columns = (column % width).astype(int), ((column + 1) % width).astype(int)
    rows = (row % height).astype(int), ((row + 1) % height).astype(int)
    above, below = ((1 - x1) * picture[y, columns[0]] + x1 * picture[y, columns[1]] for y in rows)
    return ((1 - y1) * above + y1 * below) / 255


def display_colors(light: Floats) -> Floats:
    """Light in 0..1 as it is written for displays (sRGB), as all colours of clouds are."""
    c = np.clip(light, 0, 1)
    return np.where(c <= 0.0031308, 12.92 * c, 1.055 * c ** (1 / 2.4) - 0.055)


def light_of(display: Floats) -> Floats:
    """What `display_colors` was made of."""
    return np.where(display <= 0.04045, display / 12.92, ((display + 0.055) / 1.055) ** 2.4)


def one_color(color: Sequence[float]) -> Picture:
    """A picture of a single colour in 0..1."""
    return np.round(255 * np.clip(np.asarray(color, np.float64), 0, 1)).astype(np.uint8).reshape(1, 1, 3)


def read_picture(source: Path | bytes) -> Picture | None:
    """A PNG, JPEG or other picture from a file or its bytes; None if it cannot be read."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(source) if isinstance(source, bytes) else source) as image:
            image.thumbnail((MOST_PIXELS, MOST_PIXELS))
            return np.asarray(image.convert("RGB"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def at_vertices(texture: Texture, colors: Floats | None, faces: Indices, uv: Floats | None, points: int) -> Floats:
    """Colours of the vertices of painted faces, `colors` for others: (points, 3). `uv` are of each corner of each face,
    (3 M, 2); at a seam one of its sides decides."""
    found = np.full((points, 3), UNPAINTED) if colors is None else np.array(colors, np.float64)
    at_corners = found[faces.ravel()]
    texture.paint(at_corners, np.repeat(np.arange(len(faces)), 3), uv)
    painted = np.repeat(texture.of_face >= 0, 3)
    found[faces.ravel()[painted]] = at_corners[painted]
    return found.astype(np.float32)


# --- materials beside OBJ files


def obj_texture(
    folder: Path, libraries: Sequence[str], names: Sequence[str], of_face: Indices
) -> tuple[Texture | None, tuple[str, ...]]:
    """What the materials of an OBJ file paint its faces with, and sentences on what could not be read.

    `names` are the materials the faces use, `of_face` which of them each face uses, −1 for none. Where all are of the
    same grey, which programs write by default, nothing is painted.
    """
    known: dict[str, _Finish] = {}
    missing = []
    for library in libraries:
        try:
            known |= _finishes((folder / library).read_text(encoding="utf-8", errors="replace"))
        except (OSError, ValueError):
            missing.append(f'its materials "{library}" cannot be read: put the file beside it')
    pictures: list[Picture | None] = []
    for name in names:
        finish = known.get(name, _Finish())
        picture = None
        if finish.picture:
            picture = read_picture(folder / finish.picture)
            if picture is None:
                missing.append(f'its texture "{finish.picture}" cannot be read: put the picture beside it')
        if picture is None and finish.color is not None:
            picture = one_color(finish.color)
        pictures.append(picture)
    return _texture(pictures, of_face), tuple(missing)


def _texture(pictures: Sequence[Picture | None], of_face: Indices) -> Texture | None:
    painted = [picture for picture in pictures if picture is not None]
    if not painted or all(picture.size == 3 and (picture == painted[0][0, 0, 0]).all() for picture in painted):
        return None
    number = np.cumsum([picture is not None for picture in pictures]) - 1
    number = np.where([picture is not None for picture in pictures], number, -1)
    return Texture(painted, np.where(of_face < 0, -1, number[of_face]))


@dataclass
class _Finish:
    """A material of an MTL file."""

    color: tuple[float, ...] | None = None
    picture: str = ""


def _finishes(text: str) -> dict[str, _Finish]:
    found: dict[str, _Finish] = {}
    current = _Finish()
    for line in text.splitlines():
        words = line.split("#")[0].split()
        match words:
            case ["newmtl", *name]:
                current = found[" ".join(name)] = _Finish()
            case ["Kd", red, green, blue]:
                current.color = (float(red), float(green), float(blue))
            case ["map_Kd", *rest] if rest:
                current.picture = _without_options(rest).replace("\\", "/")
    return found


def _without_options(words: list[str]) -> str:
    """The file's name behind options such as "-s 1 1 1"; it may have blanks in it."""
    k = 0
    while k < len(words) - 1 and words[k].startswith("-"):
        k += 1
        while k < len(words) - 1 and _is_value(words[k]):
            k += 1
    return " ".join(words[k:])


def _is_value(word: str) -> bool:
    return word in ("on", "off") or word.lstrip("+-").replace(".", "", 1).isdigit()
