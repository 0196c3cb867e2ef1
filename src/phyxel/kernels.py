"""What a world will launch, compiled before it begins: each module once, side by side on all cores, and told of.

Warp compiles a module when the first of its kernels is launched, and once more when one that is generic in precision
is launched with other types. Left to itself a first run stands still again and again, on one core, and nobody knows
how long. So it is on record what worlds launch: `kernels.json` says which modules, how long each takes to compile, and
the types of generic kernels. `python tools/kernels.py` plays a scene for each kind of world and writes it. Of what is
not on record nothing is lost but time: it is compiled when it is launched.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import warp as wp

from phyxel import device as dev
from phyxel import progress
from phyxel.structs import struct_type

SHORT = 2.0
"""Seconds of compiling that nobody is told of."""
WAITS = 0.1
"""Seconds for which compilers are waited for at a time."""

NUMBERS = {
    "b": wp.bool, "i1": wp.int8, "u1": wp.uint8, "i4": wp.int32, "i8": wp.int64, "f4": wp.float32, "f8": wp.float64,
}  # fmt: skip
"""Numbers as Warp's signatures have them."""
CODE = re.compile(
    rf"(?:a(?P<dims>\d))?(?:v(?P<length>\d+)|m(?P<rows>10|\d)(?P<columns>10|\d))?(?P<number>{'|'.join(NUMBERS)})"
)
"""A type in a signature: an array of, or one, vector, matrix or number."""

_lock = threading.Lock()
_ready: set[tuple[str, str]] = set()
"""modules that were made ready, and for which device"""


@dataclass(frozen=True)
class Record:
    """What worlds launch."""

    worlds: list[tuple[frozenset[str], list[str]]]
    """what was said of each world that was played, and the modules that it launched from"""
    seconds: dict[str, float]
    """what it takes to compile each module"""
    overloads: dict[str, dict[str, list[dict[str, str]]]]
    """of each module the generic kernels, and with which types of their generic arguments they are launched"""
    structs: dict[str, dict[str, str]]
    """types of the fields of structs among them, by the name in a signature"""

    def modules(self, words: Iterable[str]) -> list[str]:
        """Modules that a world of which this is said launches from, those that take longest first: those of every
        world on record of which no more was said."""
        said = frozenset(words)
        names = {name for some, names in self.worlds if some <= said for name in names}
        return sorted(names, key=lambda name: (-self.seconds[name], name))

    def add_overloads(self, name: str) -> wp.Module:
        """Make known how the generic kernels of a module are launched: added later, they would have it compiled
        again."""
        import_module(name)
        module = wp.get_module(name)
        for key, signatures in self.overloads.get(name, {}).items():
            declared = {argument.label: argument.type for argument in module.kernels[key].adj.args}
            for codes in signatures:
                kinds = declared | {label: self.type_of(code) for label, code in codes.items()}
                module.kernels[key].add_overload(list(kinds.values()))
        return module

    def type_of(self, code: str) -> Any:
        """The type that a word of a signature means."""
        if code in self.structs:
            fields = {name: self.type_of(kind) for name, kind in self.structs[code].items()}
            return struct_type(code.rpartition("_")[0], fields)
        part = CODE.fullmatch(code)
        if part is None:
            raise ValueError(f"kernels.json: {code} is no type; run python tools/kernels.py")
        kind: Any = NUMBERS[part["number"]]
        if part["length"]:
            kind = wp.types.vector(int(part["length"]), kind)
        elif part["rows"]:
            kind = wp.types.matrix((int(part["rows"]), int(part["columns"])), kind)
        return wp.array(dtype=kind, ndim=int(part["dims"])) if part["dims"] else kind


@cache
def record() -> Record:
    """What is on record."""
    read = json.loads((resources.files("phyxel") / "kernels.json").read_text(encoding="utf-8"))
    worlds = [(frozenset(one["words"]), one["modules"]) for one in read["worlds"]]
    return Record(worlds, read["seconds"], read["overloads"], read["structs"])


def ready(words: Iterable[str], device: wp.Device) -> None:
    """Have all compiled and loaded that a world launches of which this is said: "phyxel" or another model, "implicit";
    what there is of "bodies" (several, or pieces to come), "ground", "collider" (any other), "strength", "cut", "melt"
    and other events and fields by their key in a scene; "video" and how it is drawn, "mesh", "splat", "view" (in a
    browser). Of solids, that they are made "from points" or "from mesh"; "picture" is one of something alone."""
    with _lock:
        names = [name for name in record().modules(words) if (name, device.alias) not in _ready]
        modules = [record().add_overloads(name) for name in names]
        _compile([module for module in modules if not _is_compiled(module, device)], device)
        for module in modules:
            wp.force_load(device, [module])
        _ready.update((name, device.alias) for name in names)


def _is_compiled(module: wp.Module, device: wp.Device) -> bool:
    """Whether Warp's cache has a module as it is now."""
    block = module.options["block_dim"] if device.is_cuda else 1
    folder = Path(wp.config.kernel_cache_dir) / module.get_module_identifier(block)
    return any(next(folder.glob(f"*{ending}"), None) for ending in ((".ptx", ".cubin") if device.is_cuda else (".o",)))


def _compile(modules: Sequence[wp.Module], device: wp.Device) -> None:
    """Compile modules, those that take longest first: then all cores are done at about the same time."""
    seconds = sum(record().seconds[module.name] for module in modules) / dev.thread_count()
    tell = progress.tell if seconds > SHORT else lambda *_: None
    tell(f"compiling kernels for the first time, about {seconds:.0f} s", 0, len(modules))
    for done, name in enumerate(_side_by_side(modules, device), start=1):
        tell(f"compiling kernels ({name.removeprefix('phyxel.')})", done, len(modules))


@cache
def _pool() -> ThreadPoolExecutor:
    """Threads that stay: each has Warp's headers prepared once."""
    return ThreadPoolExecutor(dev.thread_count())


def _side_by_side(modules: Sequence[wp.Module], device: wp.Device) -> Iterator[str]:
    """Compile and load modules; their names, each when it is done. Compilers do not hold Python's lock."""
    if dev.thread_count() == 1:
        for module in modules:
            wp.force_load(device, [module])
            yield module.name
        return
    jobs = {_pool().submit(wp.force_load, device, [module]): module.name for module in modules}
    try:
        waiting = set(jobs)
        while waiting:
            done, waiting = wait(waiting, WAITS, FIRST_COMPLETED)
            progress.breathe()
            for job in done:
                job.result()
                yield jobs[job]
    finally:
        for job in jobs:
            job.cancel()
