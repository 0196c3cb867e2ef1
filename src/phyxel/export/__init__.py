"""Files for others."""

from phyxel.export.clouds import ply
from phyxel.export.meshes import mesh

__all__ = ["mesh", "ply"]
