"""Everything Phyxel raises on purpose."""

from collections.abc import Collection
from difflib import get_close_matches


class PhyxelError(Exception):
    """Says what was wrong, where, and what to do about it."""


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


def did_you_mean(word: str, known: Collection[str], likeness: float = 0.5) -> str:
    """The end of a message about an unknown word: what was probably meant, else what there is."""
    # Swapped letters are the commonest slip, but difflib counts two changes: it takes "baer" for "bar" before "bear".
    swapped = [candidate for candidate in known if sorted(candidate) == sorted(word)]
    near = swapped or get_close_matches(word, list(known), n=1, cutoff=likeness)
    if near:
        return f'; did you mean "{near[0]}"?'
    return f"; there are {', '.join(known)}" if known else ""
