"""Scene files: what a user writes, checked before anything is done, and played."""

from phyxel.scene.scene import Scene, find_scene, gallery, gallery_names

__all__ = ["Scene", "find_scene", "gallery", "gallery_names"]
