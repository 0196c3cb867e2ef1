"""Kernels are compiled before a world begins, once and side by side; what is on record is what worlds launch."""

import hashlib
import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import warp as wp

from phyxel import device as dev
from phyxel import kernels, progress
from phyxel.run import Run
from phyxel.scene import Scene

Heard = list[tuple[str, int, int]]

OUTDATED = "run `python tools/kernels.py`"
SOURCE = """
import warp as wp
from typing import Any

@wp.kernel
def add_{number}(first: int, values: wp.array(dtype=Any)):
    i = first + wp.tid()
    values[i] = values[i] + values.dtype({number}.0)
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Three small modules on record, as if they took long, and no kernel compiled before."""
    names = [f"small_{tmp_path.name}_{number}" for number in range(3)]
    for number, name in enumerate(names):
        (tmp_path / f"{name}.py").write_text(SOURCE.format(number=number))
    overloads = {name: {f"add_{number}": [{"values": "a1f4"}, {"values": "a1f8"}]} for number, name in enumerate(names)}
    worlds = [(frozenset({"plain"}), names[:2]), (frozenset({"plain", "rare"}), names[2:])]
    known = kernels.Record(worlds, dict.fromkeys(names, 100.0), overloads, {})
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(kernels, "record", lambda: known)
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path / "kernels"))
    return names


def hear(work: Callable[[], Any]) -> Heard:
    """What is told while something is done."""
    heard: Heard = []
    with progress.heard_by(lambda *told: heard.append(told)):
        work()
    return heard


def compiled(folder: Path) -> list[str]:
    return sorted(path.parent.name.rpartition("_")[0].removeprefix("wp_") for path in folder.glob("*/*.o"))


# The record


def test_the_record_fits_the_kernels() -> None:
    """Every kernel is there, every argument that is generic has a type, and structs are those that Warp calls so."""
    on_record = kernels.record()
    for code in on_record.structs:
        assert on_record.type_of(code).native_name == code, OUTDATED
    for name in on_record.seconds:
        module = on_record.add_overloads(name)
        for key, signatures in on_record.overloads.get(name, {}).items():
            assert len(module.kernels[key].overloads) >= len(signatures), OUTDATED


def test_every_world_on_record_says_what_it_is_of() -> None:
    models = {"phyxel", "galerkin", "modal", "particles", "rigid"}
    for words, names in kernels.record().worlds:
        assert len(words & models) == 1 or words in ({"from mesh"}, {"from points"}, {"picture"})
        assert set(names) <= set(kernels.record().seconds)


@pytest.mark.parametrize("code", ["a1v3f4", "a1m33f8", "m66f4", "a1m1010f8", "a1m34f4", "v5f4", "a2i4", "f8", "b"])
def test_types_are_read_as_warp_writes_them(code: str) -> None:
    @wp.kernel(module="unique")
    def takes(value: Any) -> None: ...

    overload = takes.add_overload([kernels.record().type_of(code)])
    assert overload.sig == code


def test_a_word_that_is_no_type_is_refused() -> None:
    with pytest.raises(ValueError, match=r"kernels\.json: a1q3 is no type; run python tools/kernels\.py"):
        kernels.record().type_of("a1q3")


# Worlds launch what is on record


SCENES = {
    "dropped": '[[collider]]\nkind = "ground"\n[output]\nwidth = 64\nheight = 48',
    "melting": '[[collider]]\nkind = "ground"\n[[event]]\nat = 0.1\nmelt = {}\n[output]\nvideo = false',
    "parted": "[[body.cut]]\nat = [0.5, 0.1, 0.0]\nnormal = [1.0, 0.2, 0.0]\n[output]\nvideo = false",
    "implicit": "[output]\nvideo = false",
}


@pytest.mark.parametrize(
    "what",
    ["dropped", *(pytest.param(what, marks=pytest.mark.slow) for what in ("melting", "parted", "implicit"))],
)
def test_nothing_is_compiled_after_the_first_frame(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that a run launches from are those made ready, and no kernel comes to them with other types."""
    ready: dict[str, bytes] = {}
    asked: set[str] = set()
    make_ready, load = kernels.ready, wp.Module.load

    def noted(words: Any, device: wp.Device) -> None:
        make_ready(words, device)
        ready.update({name: wp.get_module(name).get_module_hash(1) for name in kernels.record().modules(words)})

    def watched(module: wp.Module, *arguments: Any, **named: Any) -> Any:
        asked.add(module.name)
        return load(module, *arguments, **named)

    begun: list[dict[str, bytes]] = []
    monkeypatch.setattr(kernels, "ready", noted)
    monkeypatch.setattr(wp.Module, "load", watched)
    body = 'shape = "bar"\nnodes = 90\npoints = 800\nat = [0.0, 0.15, 0.0]\nmaterial = { young = 1.0e5 }'
    body += '\nintegrator = "implicit"' if what == "implicit" else ""
    scene = Scene.parse(f"seconds = 0.4\nfps = 20\n[[body]]\n{body}\n{SCENES[what]}")
    Run(scene, tmp_path / "run", "cpu").play(False, lambda row: begun.append(dict(ready)))
    assert {name for name in asked if name.startswith("phyxel.")} <= set(begun[0]), OUTDATED
    assert begun[-1] == begun[0]
    assert {name: wp.get_module(name).get_module_hash(1) for name in ready} == ready, OUTDATED


def test_a_scene_says_of_its_world_what_the_world_says_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else more would be compiled when the bodies are made."""
    said: list[set[str]] = []
    monkeypatch.setattr(kernels, "ready", lambda words, device: said.append(set(words) - {""}))
    body = 'shape = "box"\nnodes = 40\npoints = 300\n'
    scene = Scene.parse(
        f'[[body]]\n{body}at = [0, 1, 0]\nintegrator = "leapfrog"\n[[body]]\n{body}model = "galerkin"\n'
        'material = { strength = 1e5 }\n[[collider]]\nkind = "ground"\n[[collider]]\nkind = "sphere"\nradius = 0.1\n'
        'at = [3, 0, 0]\n[[event]]\nat = 0.0\nbody = "box"\nmelt = {}\n'
    )
    world = scene.world("cpu")
    world.advance(0.001)
    whole = {"phyxel", "galerkin", "leapfrog", "strength", "cut", "ground", "collider", "bodies", "melt"}
    assert scene.content.words() == whole
    assert said[0] == whole
    assert set().union(*said) == whole
    assert said[-1] == whole


# Compiling


def test_modules_are_compiled_once_and_told_of(small: list[str], tmp_path: Path) -> None:
    device = dev.pick("cpu")
    first = hear(lambda: kernels.ready({"plain"}, device))
    assert compiled(tmp_path / "kernels") == small[:2]
    assert first[0] == (f"compiling kernels for the first time, about {200 / dev.thread_count():.0f} s", 0, 2)
    assert {what for what, _, _ in first[1:]} == {f"compiling kernels ({name})" for name in small[:2]}
    assert [(done, most) for _, done, most in first] == [(0, 2), (1, 2), (2, 2)]
    assert hear(lambda: kernels.ready({"plain"}, device)) == []
    more = hear(lambda: kernels.ready({"plain", "rare", "else"}, device))
    assert [(done, most) for _, done, most in more] == [(0, 1), (1, 1)]
    assert compiled(tmp_path / "kernels") == small
    for number, name in enumerate(small):
        kernel = getattr(importlib.import_module(name), f"add_{number}")
        for dtype in (wp.float32, wp.float64):
            values = wp.zeros(5, dtype=dtype, device=device)
            dev.launch(kernel, 5, [values], device)
            assert values.numpy().tolist() == [number] * 5
    assert compiled(tmp_path / "kernels") == small


def test_what_is_compiled_already_is_not_told_of(small: list[str]) -> None:
    device = dev.pick("cpu")
    for name in small[:2]:
        wp.force_load(device, [kernels.record().add_overloads(name)])
    assert hear(lambda: kernels.ready({"plain"}, device)) == []


def test_what_is_done_in_a_moment_is_not_told_of(small: list[str], tmp_path: Path) -> None:
    kernels.record().seconds.update(dict.fromkeys(small, 0.1))
    assert hear(lambda: kernels.ready({"plain"}, dev.pick("cpu"))) == []
    assert compiled(tmp_path / "kernels") == small[:2]


def test_a_kernel_that_cannot_be_compiled_is_an_error_at_once(small: list[str], tmp_path: Path) -> None:
    broken = (tmp_path / f"{small[0]}.py").read_text().replace("values[i] + ", "values[i] + nothing + ")
    (tmp_path / f"{small[0]}.py").write_text(broken)
    with pytest.raises(Exception, match="nothing"):
        kernels.ready({"plain"}, dev.pick("cpu"))


@pytest.mark.slow
def test_side_by_side_or_one_by_one_the_code_is_the_same(tmp_path: Path) -> None:
    """The same modules under the same keys, and the same machine code."""
    program = (
        "import json, warp as wp; from phyxel import device, kernels; chosen = device.pick('cpu');"
        "kernels.ready({'from points', 'from mesh'}, chosen); print(wp.config.kernel_cache_dir)"
    )
    found = []
    for threads in ("1", "2"):
        environment = os.environ | {"PHYXEL_THREADS": threads, "WARP_CACHE_PATH": str(tmp_path / threads)}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        objects = Path(done.stdout.strip()).glob("*/*.o")
        found.append({path.parent.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in objects})
    assert len(found[0]) == 4
    assert found[0] == found[1]
