"""Files for others."""

from phyxel.export.clouds import ply
from phyxel.export.meshes import mesh
from phyxel.export.splats import splats

__all__ = ["mesh", "ply", "splats"]
