"""A small scene for live worlds, and what pages can do to it."""

from typing import Any

BOX = """
[[body]]
name = "a"
shape = "box"
nodes = 30
points = 100
size = 0.2
at = [0, 0.11, 0]
place = "center"
material = { young = 2e4 }

[[collider]]
kind = "ground"
"""
AIM: dict[str, Any] = {"ray": [0.0, 0.12, 2.0], "way": [0.0, 0.0, -1.0]}
GRAB: dict[str, Any] = {"do": "grab", "ahead": [0, 0, -1], **AIM}
CUT: dict[str, Any] = {"do": "cut", "ray": [0.0, 0.12, 2.0], "way": [-0.1, 0.01, -2.0], "to_way": [0.1, 0.0, -2.0]}
DEEDS: list[dict[str, Any]] = [
    GRAB,
    {"do": "pull", "ray": [0.05, 0.2, 2.0], "way": [0, 0, -1]},
    {"do": "push", **AIM},
    {"do": "let_go"},
]
