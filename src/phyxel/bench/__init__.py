"""Benchmarks: the papers' tables and the neighbours beside ours."""

from phyxel.bench.registry import BenchSetting, Result, measure

__all__ = ["BenchSetting", "Result", "measure"]
