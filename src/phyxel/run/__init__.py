"""Scenes played into folders, and finished runs drawn anew."""

from phyxel.run.run import Run

__all__ = ["Run"]
