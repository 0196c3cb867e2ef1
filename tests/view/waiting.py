"""Waiting for what happens on another thread."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(found: Callable[[], T], seconds: float = 60.0, what: str = "it did not happen") -> T:
    """What `found()` gives as soon as it gives something."""
    end = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < end, what
        time.sleep(0.005)
    return result
