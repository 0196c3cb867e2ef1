"""What a page looks like, as numbers."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image

TRIES = 50
"""to get a picture, 0.1 s apart: a browser has none to give while it makes its first one, and calls that an error"""


def shot(page: Any) -> np.ndarray:
    """What the window shows, (height, width, 3) from 0 to 255."""
    from playwright.sync_api import Error

    for _ in range(TRIES - 1):
        try:
            return pixels(page)
        except Error:
            page.wait_for_timeout(100)
    return pixels(page)


def pixels(page: Any) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB"), float)
