"""A brush that melts a body where it goes, lets it be solid again, or makes it of another material there."""

from __future__ import annotations

from typing import Any

import numpy as np

from phyxel.errors import PhyxelError, did_you_mean
from phyxel.material.presets import PRESETS
from phyxel.scene.body_tables import MaterialPart
from phyxel.scene.event_tables import MeltPart, SolidifyPart
from phyxel.view import commands as do
from phyxel.view.aim import Ray, aimed_at
from phyxel.view.hands import Hands

DEEDS = ("melt", "solidify")


def brush(hands: Hands, command: do.Brush) -> bool:
    """Do what a brush is for at the place under the pointer; whether there was anything to be done. Where there is no
    body the stroke goes on."""
    if command.what not in (*DEEDS, *PRESETS):
        raise PhyxelError(f'brush: "{command.what}" is not known{did_you_mean(command.what, (*DEEDS, *PRESETS))}')
    hit = aimed_at(hands.world, Ray.of(command.ray, command.way))
    if hit is None:
        return False
    spot: dict[str, Any] = {**hit.spot, "radius": command.radius}
    nodes = hit.body.held(MeltPart(**spot).where)[0]
    molten = hit.body.substance.is_molten[nodes]
    if command.what == "melt":
        done = bool(molten.all())
        verbs: dict[str, Any] = {"melt": MeltPart(**spot)}
    elif command.what == "solidify":
        done = not molten.any()
        verbs = {"solidify": SolidifyPart(**spot)}
    else:  # cast anew in the shape it has, of the other material
        preset = MaterialPart(preset=command.what)
        other = preset.over(hit.body.material)
        numbers = hit.body.mixture.number("young")[nodes], hit.body.mixture.number("density")[nodes]
        done = bool(np.all(numbers[0] == other.young) and np.all(numbers[1] == other.density))
        verbs = {"melt": MeltPart(**spot), "solidify": SolidifyPart(**spot, material=preset)}
    if not done:
        hands.happen(body=hit.body.name, **verbs)
    return not done
