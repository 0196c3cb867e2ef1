"""A scripted world for tests of the page: it tells a scene, wobbles, and writes down what pages ask of it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phyxel.view.commands import Command
from phyxel.view.hub import Hub
from phyxel.view.messages import Blob, DrawnThing, Snapshot

RADIUS = 0.05
"""[m] of the ball that is shown, which stands on the ground"""
SURFELS = 800
UPDATES = 8
"""a second: browsers without a graphics card draw slowly"""
UNITS: dict[str, list[Any]] = {
    "young": ["Pa", 1e3, 1e9, "Young's modulus: how hard it is to stretch"],
    "poisson": ["", 0.0, 0.49, "How much it thins when it is stretched"],
    "density": ["kg/m³", 10.0, 1e4, "Mass of a cubic metre"],
    "damping": ["s", 1e-6, 1e-1, "Inner friction: a force against the rate of deformation"],
    "yield_strain": ["", 1e-3, 1.0, "Strain beyond which some of it stays"],
    "creep": ["1/s", 1e-2, 1e3, "How fast strain beyond the yield becomes permanent"],
    "viscosity": ["Pa s", 1e-1, 1e5, "How thick it is when it is molten"],
    "strength": ["Pa", 1e3, 1e9, "Tensile stress that it bears before it cracks"],
}
MATERIAL: dict[str, float | None] = {
    "young": 1.5e6, "poisson": 0.45, "density": 1150.0, "damping": 1e-3,
    "yield_strain": None, "creep": None, "viscosity": None, "strength": None,
}  # fmt: skip


def ball(count: int) -> NDArray[np.float64]:
    """Directions spread evenly over the sphere, (n, 3)."""
    k = np.arange(count) + 0.5
    height, turn = 1 - 2 * k / count, np.pi * (3 - np.sqrt(5)) * k
    level = np.sqrt(1 - height**2)
    return np.column_stack([level * np.cos(turn), height, level * np.sin(turn)])


def records(normals: NDArray[np.float64], places: NDArray[np.float64], values: NDArray[np.float64]) -> bytes:
    """Round surfels as pages read them (see `phyxel.view.encode`); `places` and `values` in 0..1."""
    made = np.zeros(len(normals), [("x", "<u2", 3), ("value", "<u2"), ("normal", "<i2", 2), ("rest", "u1", 4)])
    flat = normals / np.abs(normals).sum(1, keepdims=True)
    folded = (1 - np.abs(flat[:, 1::-1])) * np.where(flat[:, :2] >= 0, 1, -1)
    made["x"] = np.round(65535 * places)
    made["value"] = np.round(65535 * values)
    made["normal"] = np.round(32767 * np.where(flat[:, 2:] >= 0, flat[:, :2], folded))
    made["rest"][:, :2] = 255
    return made.tobytes()


def snapshot(frame: int, clock: float, shown: dict[str, Any], count: int = SURFELS) -> Snapshot:
    """The ball at a time [s]: it swings to and fro along y."""
    stretch = np.array([1, 1 + 0.2 * np.cos(6 * clock), 1])
    normals = ball(count)
    lower, upper = np.array([-1, 0, -1]) * RADIUS, np.array([1, 2.4, 1]) * RADIUS
    places = (RADIUS * (normals + np.array([0, 1, 0])) * stretch - lower) / (upper - lower)
    valued = shown["field"] not in (None, "none")
    colors = np.tile(np.array([226, 122, 60, 255], np.uint8), (count, 1)).tobytes()
    about = {
        "count": count, "lower": lower.tolist(), "upper": upper.tolist(), "look": "gummy", "sheet": False,
        "pose": None, "valued": valued, "finest": RADIUS * 4 / np.sqrt(count), "collider": False,
    }  # fmt: skip
    blobs = {"records": Blob(records(normals, places, (1 + normals[:, 1]) / 2)), "colors": Blob(colors, "colors")}
    ramp = [[round(255 * k / 63), 90, round(255 - 255 * k / 63)] for k in range(64)]
    legend = {"title": "von Mises stress", "unit": "kPa", "low": 0.0, "high": 12.0, "colors": ramp}
    legend["ticks"] = [[k, str(k)] for k in (0, 3, 6, 9, 12)]
    moment = {"frame": frame, "time": clock, "ground": 0.0, "size": 2 * RADIUS, "pins": [], "grabs": []}
    return Snapshot({**moment, "legend": legend if valued else None}, (DrawnThing("bear", "surfels", about, blobs),))


class StandIn:
    """A show (see `phyxel.view.server`) that does as little as it can: what it is told it believes."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.asked: list[Command] = []
        self._heard: dict[int, int] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.clock = 0.0
        body = {
            "name": "bear", "model": "phyxel", "nodes": 512, "surfels": SURFELS, "membrane": False, "molten": False,
            "brittle": False, "material": dict(MATERIAL), "preset_names": ["rubber", "gelatin", "clay"],
            "look": "gummy", "color": "orange", "shows": ["surfels", "nodes"],
        }  # fmt: skip
        camera = {"eye": [0.14, 0.14, 0.24], "target": [0, 0.048, 0], "fov": 32}
        self.scene: dict[str, Any] = {
            "kind": "scene", "mode": "live", "name": "bear", "title": "Gummy bear", "camera": camera, "bodies": [body],
            "models": ["phyxel", "galerkin", "modal"], "units": UNITS, "gravity": [0, -9.81, 0], "paused": False,
            "fields": [{"name": "stress", "title": "von Mises stress", "unit": "Pa"}], "speed": 1.0,
            "shown": {"field": None, "mode": "surface", "plane": None, "surface": "surfels"}, "recording": False,
        }  # fmt: skip

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        self._thread.join()

    def play_back(self, duration: float) -> None:
        """From now on it is a finished run."""
        self.scene |= {"mode": "run", "duration": duration}
        times = np.linspace(0, duration, 41)
        series = {"kinetic": np.sin(times) ** 2, "elastic": np.cos(times) ** 2, "potential": 0 * times}
        history = {name: values.tolist() for name, values in (series | {"volume": 1 + 0 * times}).items()}
        self.hub.tell(self.scene)
        self.hub.tell({"kind": "history", "time": times.tolist(), **history})

    def go_live(self) -> None:
        self.scene |= {"mode": "live", "duration": None}
        self.hub.tell(self.scene)

    def joined(self, page: int) -> None:
        self.hub.tell(self.scene, page)

    def gone(self, page: int) -> None:
        self._heard.pop(page, None)

    def ask(self, page: int, command: Command) -> None:
        self.asked.append(command)
        self._heard[page] = max(self._heard.get(page, 0), command.n)
        said = command.model_dump()
        match command.do:
            case "material":
                self.scene["bodies"][0]["material"] |= said["numbers"]
            case "pause":
                self.scene["paused"] = said["on"]
            case "speed":
                self.scene["speed"] = said["factor"]
            case "gravity":
                self.scene["gravity"] = list(said["value"])
            case "melt" | "solidify":
                self.scene["bodies"][0]["molten"] = command.do == "melt"
            case "show":
                self.scene["shown"] |= {key: said[key] for key in ("field", "mode", "surface") if said[key] is not None}
            case "slice":
                self.scene["shown"]["plane"] = {"normal": said["normal"], "place": said["place"]}
            case "seek":
                self.clock = said["time"]
            case _:
                return
        self.hub.tell(self.scene)

    def _run(self) -> None:
        frame = 0
        while not self._ending.wait(1 / UPDATES):
            frame += 1
            if not self.scene["paused"]:
                self.clock += self.scene["speed"] / UPDATES
            if self.scene["mode"] == "run":
                self.clock %= self.scene["duration"]
            self.hub.publish(snapshot(frame, self.clock, self.scene["shown"]), self._heard)
            self.hub.tell(self._numbers())

    def _numbers(self) -> dict[str, Any]:
        swing = np.cos(6 * self.clock)
        stages = {"physics": 5.5 + swing, "surface": 1.8, "encoding": 0.9, "sending": 0.4}
        energies = {"kinetic": 0.02 * (1 - swing**2), "elastic": 0.02 * swing**2, "potential": 0.004 * swing}
        return {
            "kind": "numbers", "time": self.clock, "pace": 0.4, "updates": float(UPDATES), "milliseconds": stages,
            **energies, "volume": 1 + 0.01 * swing, "surfels": SURFELS, "pages": len(self.hub.pages),
        }  # fmt: skip
