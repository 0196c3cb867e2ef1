"""The clock and what stands around: worlds, their checkpoints, and bodies that fall apart in them."""

from phyxel.world.world import Frame, World, settle

__all__ = ["Frame", "World", "settle"]
