"""What bodies are made of: numbers of data sheets, presets, variations over a body, changes over time, looks."""

from phyxel.material.material import Material, Mixture
from phyxel.material.membrane import Membrane

__all__ = ["Material", "Membrane", "Mixture"]
