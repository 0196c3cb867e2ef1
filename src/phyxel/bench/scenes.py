"""Whole scenes, from the command line to the video."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from phyxel.bench.registry import BenchSetting, Result
from phyxel.scene import gallery_names


def demo(setting: BenchSetting) -> Iterator[Result]:
    """`phyxel demo` as a user starts it: once with an empty kernel cache, once more with a filled one."""
    with tempfile.TemporaryDirectory() as folder:
        cache = {"WARP_CACHE_PATH": str(Path(folder) / "kernels")}
        for label in ("cold", "warm"):
            seconds, memory = timed_command(["demo", "--out", str(Path(folder) / label)], setting, cache)
            yield Result(f"demo-{label}", seconds, "s")
        yield Result("demo-memory", memory / 1e6, "MB")


def gallery(setting: BenchSetting) -> Iterator[Result]:
    """Every gallery scene at full size."""
    for name in gallery_names():
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / name
            seconds, memory = timed_command(["run", name, "--out", str(out)], setting, {})
            rows = [json.loads(line) for line in (out / "run.jsonl").read_text().splitlines()]
            stages = {
                key: round(sum(row["milliseconds"][key] for row in rows) / len(rows), 2)
                for key in rows[0]["milliseconds"]
            }
            yield Result(
                f"gallery-{name}", seconds, "s", details={"memory_mb": round(memory / 1e6), "milliseconds": stages}
            )


def timed_command(arguments: list[str], setting: BenchSetting, environment: dict[str, str]) -> tuple[float, int]:
    """Wall seconds and peak bytes of a `phyxel` command."""
    if setting.device:
        arguments = [*arguments, "--device", setting.device]
    command = [sys.executable, "-c", "from phyxel.cli import main; main()", *arguments]
    start = time.perf_counter()
    process = subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return time.perf_counter() - start, usage.ru_maxrss * 1024
