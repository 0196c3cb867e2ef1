"""The command line."""

from phyxel.cli.app import main

__all__ = ["main"]
