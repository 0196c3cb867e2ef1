"""Neighbouring tools on the bar job, each in its own process at its own stable settings.

The job: an elastic bar 1 x 0.25 x 0.25 m (x from 0 to 1, y up), Poisson's ratio 0.3, 1000 kg/m³, the end x = 0 held,
let go under gravity with no damping asked for, one second simulated. What is measured is the wall time of the stepping
alone, after one untimed step that takes the compilation and set-up, and the mean tip: the displacement along y of the
end face x = 1, averaged over the second. At E = 1e7 Pa the bar swings four times about its static sag, so that the
average is the sag (−0.0251 m when right); at E = 1e5 Pa it is part of one swing and serves as a sanity check only.

Each tool is one file ``peer_NAME.py`` here with a ``build(nodes, young)`` that returns a :class:`Sim`. These files and
this one need the standard library, numpy and the tool itself, nothing else of the package, so that
``python peers.py NAME NODES YOUNG [SECONDS]`` runs by path where only the tool is installed.
"""

import importlib.util
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, cast

FRAME = 0.01  # s between two samples of the tip; every tool's time step divides it
MODULES = {"mujoco": "mujoco", "taichi": "taichi", "pypbd": "pypbd"}  # our name -> the module that must be there


@dataclass(frozen=True)
class PeerResult:
    """One tool on one job. A run that failed has an infinite ``wall``, and ``note`` says why."""

    tool: str
    nodes: int
    wall: float  # seconds per simulated second
    tip: float  # m, mean over the simulated second; NaN where less than a second was simulated
    note: str = ""


class Sim(Protocol):
    """What a ``peer_NAME.py`` builds: the bar, ready to step."""

    tool: str
    nodes: int
    dt: float
    note: str

    def advance(self, steps: int) -> None:
        """Step the physics, and return when it is done."""

    def tip(self) -> float:
        """Mean displacement along y of the end face x = 1 (m)."""

    def drift(self) -> float:
        """How far a held node has moved at most (m)."""


def available() -> list[str]:
    """The tools installed here."""
    return [name for name, module in MODULES.items() if importlib.util.find_spec(module) is not None]


def run_peer(name: str, nodes: int, young: float, timeout: float, seconds: float = 1.0) -> PeerResult:
    """Run one tool in a process of its own, so that its threads, its crash or its hang stay out of ours."""
    if name not in PEERS:
        raise KeyError(f"no such peer: {name!r}; there are {', '.join(PEERS)}")
    command = [sys.executable, "-P", __file__, name, str(nodes), repr(young), repr(seconds)]
    failed = partial(PeerResult, name, nodes, math.inf, math.nan)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return failed(f"stopped after {timeout:g} s")
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"tool"')]
    if done.returncode != 0 or not lines:
        complaint = (done.stderr.strip().splitlines() or [""])[-1][:200]
        return failed(f"failed with status {done.returncode}: {complaint}".rstrip(": "))
    return _from_json(lines[-1])


def simulate(name: str, nodes: int, young: float, seconds: float = 1.0) -> PeerResult:
    """Run one tool here, in this process."""
    sim = _build(name, nodes, young)
    sim.advance(1)  # compilation, colouring, first touch of the memory
    frames, steps = max(1, round(seconds / FRAME)), max(1, round(FRAME / sim.dt))
    wall, tips = 0.0, []
    for _ in range(frames):
        start = time.perf_counter()
        sim.advance(steps)
        wall += time.perf_counter() - start
        tips.append(sim.tip())
        if not math.isfinite(tips[-1]) or abs(tips[-1]) > 3:
            return PeerResult(sim.tool, sim.nodes, math.inf, math.nan, f"diverged; {sim.note}")
    notes = [sim.note] if sim.drift() < 0.01 else [sim.note, f"held end moved {sim.drift():.3f} m"]
    tip = sum(tips) / len(tips) if seconds >= 1 else math.nan
    return PeerResult(sim.tool, sim.nodes, wall / (frames * steps * sim.dt), tip, "; ".join(notes))


PEERS: dict[str, Callable[..., PeerResult]] = {name: partial(simulate, name) for name in MODULES}


def _build(name: str, nodes: int, young: float) -> Sim:
    """Load ``peer_NAME.py`` from beside this file, without the package around it, and build its bar."""
    path = Path(__file__).with_name(f"peer_{name}.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast(Sim, module.build(nodes, young, FRAME))


def _to_json(result: PeerResult) -> str:
    """One line, with null for what is not finite."""
    fields = asdict(result)
    return json.dumps({k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in fields.items()})


def _from_json(line: str) -> PeerResult:
    fields = json.loads(line)
    fields["wall"] = math.inf if fields["wall"] is None else fields["wall"]
    fields["tip"] = math.nan if fields["tip"] is None else fields["tip"]
    return PeerResult(**fields)


def main(arguments: list[str]) -> None:
    """``NAME NODES YOUNG [SECONDS]``: run one tool here and print its result as one JSON line."""
    name, nodes, young = arguments[0], int(arguments[1]), float(arguments[2])
    seconds = float(arguments[3]) if len(arguments) > 3 else 1.0
    print(_to_json(PEERS[name](nodes, young, seconds)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
