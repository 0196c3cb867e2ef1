"""How far bodies are off what theory and finite elements say: all models, three numbers of nodes, one page."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import replace

from phyxel.bench.accuracy import bars, motion, page, ringing, sheets, weights, yielding
from phyxel.bench.accuracy.boxes import SCANNED
from phyxel.bench.accuracy.row import Row
from phyxel.bench.registry import BenchSetting, Result
from phyxel.errors import PhyxelError, PhyxelWarning

TESTS = (bars, ringing, motion, yielding, sheets, weights)
"""in the order of the page"""


def all_rows() -> list[Row]:
    return [row for tests in TESTS for row in tests.rows()]


def accuracy(setting: BenchSetting) -> Iterator[Result]:
    """A row at a time; the page, if one is asked for, is written anew after each."""
    rows = all_rows()
    chosen = [row for row in rows if row.matches(setting.only)]
    if not chosen:
        raise PhyxelError(f'--only "{setting.only}": no row has these words; "cantilever" and "modal" are such')
    known = page.read(setting.page) if setting.page and (setting.only or setting.resume) else {}
    if setting.resume:
        chosen = [row for row in chosen if row.name not in known]
    for row in chosen:
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PhyxelWarning)  # of few nodes, which are meant
            findings = row.findings()
        known[row.name] = page.cells_of(row, findings)
        if setting.page:
            page.write(setting.page, page.written(rows, known, SCANNED))
        result = row.result(findings)
        yield replace(result, details=result.details | {"CPU [s]": round(time.process_time() - start, 1)})
