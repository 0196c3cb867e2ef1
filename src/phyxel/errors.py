"""Everything Phyxel raises on purpose."""


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
