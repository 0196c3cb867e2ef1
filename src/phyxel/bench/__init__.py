"""Benchmarks: the papers' tables and the neighbours beside ours."""

from phyxel.bench.registry import Result, Setting, measure

__all__ = ["Result", "Setting", "measure"]
