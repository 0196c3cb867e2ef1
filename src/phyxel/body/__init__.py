"""What a user holds: a cloud, the solid it encloses, and what moves and shows it, under one name."""

from phyxel.body.body import Body

__all__ = ["Body"]
