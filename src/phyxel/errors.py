"""Everything Phyxel raises on purpose."""

import inspect
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar

Called = TypeVar("Called", bound=Callable[..., Any])

LONGEST = 60
"""Characters of what was given that a message repeats."""


class PhyxelError(Exception):
    """Says what was wrong, where, and what to do about it; all that is raised on purpose derives from it.

    >>> try:
    ...     px.load("bear", points=1)
    ... except px.PhyxelError as error:
    ...     print(error)
    points = 1: expected a whole number, at least 4; leave it out for what the file has
    """


class LoadError(PhyxelError):
    """A file cannot be read as a point cloud."""


class SolidError(PhyxelError):
    """A cloud does not enclose a solid."""


class MaterialError(PhyxelError):
    """A material number is outside what physics allows."""


class SceneError(PhyxelError):
    """A scene file asks for something impossible or unknown."""


class CheckpointError(PhyxelError):
    """A checkpoint does not belong to this world, or cannot be read."""


class BlowUpError(PhyxelError):
    """The simulation left what physics allows; names the body and the time."""


class PhyxelWarning(UserWarning):
    """Says what looks unmeant, and what to do about it; it goes on all the same. To hear of none:

    >>> import warnings
    >>> warnings.simplefilter("ignore", px.PhyxelWarning)
    """


_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@contextmanager
def told_to(listener: Callable[[str], None]) -> Iterator[None]:
    """Inside, in this thread, what `tell` says goes to a listener, not to Python's warnings."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(text: str) -> None:
    """Say what looks unmeant: a `PhyxelWarning` at the line of a user's that led here, unless somebody listens."""
    if (listener := _listener.get()) is not None:
        listener(text)
        return
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __name__.partition(".")[0]:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, PhyxelWarning, stacklevel=level + 1)


class CallError(PhyxelError, TypeError):
    """A call with an argument that what is called does not have."""


OTHER_WORDS: dict[str, tuple[str, ...]] = {
    "floor": ("ground",),
    "plane": ("ground",),
    "ball": ("sphere",),
    "cube": ("box",),
    "cylinder": ("capsule",),
    "cone": ("spike", "funnel"),
    "donut": ("torus",),
    "teddy": ("bear",),
    "jelly": ("gelatin",),
    "metal": ("steel",),
    "plastic": ("silicone",),
    "gust": ("wind",),
    "gravity": ("attraction",),
    "force": ("push",),
    "pressure": ("filling",),
    "position": ("at", "to"),
    "pos": ("at", "to"),
    "rotation": ("rotate", "turn"),
    "scale": ("size",),
    "colour": ("color",),
    "speed": ("velocity",),
    "mass": ("density",),
    "bounce": ("restitution",),
    "elasticity": ("young",),
    "e": ("young",),
    "nu": ("poisson",),
    "rho": ("density",),
    "time": ("at", "seconds"),
    "when": ("at",),
    "duration": ("seconds", "over"),
    "mesh": ("file",),
    "resolution": ("nodes", "width"),
}
"""What people call things that have another name here: the first of these that is known where they are."""


def did_you_mean(word: str, known: Collection[str], likeness: float = 0.5) -> str:
    """The end of a message about an unknown word: what was probably meant, else what there is."""
    named = [name for name in OTHER_WORDS.get(word.lower(), ()) if name in known]
    # Swapped letters are the commonest slip, but difflib counts two changes: it takes "baer" for "bar" before "bear".
    swapped = [candidate for candidate in known if sorted(candidate.lower()) == sorted(word.lower())]
    near = named or swapped or get_close_matches(word, list(known), n=1, cutoff=likeness)
    if near:
        return f'; did you mean "{near[0]}"?'
    return f"; there are {', '.join(known)}" if known else ""


def brief(given: Any) -> str:
    """What was given, in a few words for a message: never a whole array."""
    if hasattr(given, "shape") and hasattr(given, "dtype"):
        return f"an array of shape {tuple(given.shape)}, {given.dtype}"
    text = repr(given)
    if isinstance(given, str | bytes):
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    if len(text) <= LONGEST and "\n" not in text and " at 0x" not in text:
        return text
    return f"a {type(given).__name__}" + (f" of {len(given)}" if hasattr(given, "__len__") else "")


def knows_its_arguments(called: Called) -> Called:
    """A class or function that is told of an argument it does not have says which was probably meant."""
    function = called.__init__ if isinstance(called, type) else called  # type: ignore[misc]
    known = [name for name in inspect.signature(function).parameters if name != "self"]

    @wraps(function)
    def checked(*args: Any, **given: Any) -> Any:
        for name in given:
            if name not in known:
                raise CallError(
                    f"{called.__qualname__}({name}={brief(given[name])}): not known{did_you_mean(name, known)}"
                )
        return function(*args, **given)

    if not isinstance(called, type):
        return checked  # type: ignore[return-value]
    called.__init__ = checked  # type: ignore[misc]
    return called
