"""Files for others."""

from phyxel.export.blender import blender
from phyxel.export.clouds import ply, vtk, vtk_series
from phyxel.export.meshes import mesh
from phyxel.export.splats import splats
from phyxel.export.usd import join_usd, usd

__all__ = ["blender", "join_usd", "mesh", "ply", "splats", "usd", "vtk", "vtk_series"]
