"""The page on accuracy: what it shows of a row, and that a stopped run goes on from it."""

import pytest

from phyxel.bench import BenchSetting, accuracy, measure
from phyxel.bench.accuracy import page
from phyxel.bench.accuracy.row import Finding, Row
from phyxel.errors import PhyxelError


def row(test: str, model: str, errors=(0.1, -0.02, 0.0), asked=(None, 5.0, 5.0)) -> Row:
    found = dict(zip((10, 20, 40), errors, strict=True))

    def measure(nodes: int) -> Finding:
        if found[nodes] is None:
            raise PhyxelError("refused")
        return Finding(found[nodes], nodes + 1)

    return Row(test, "theory", model, (10, 20, 40), measure, asked)


@pytest.fixture
def rows(monkeypatch) -> list[Row]:
    made = [row("bent", "one"), row("bent", "two"), row("twisted", "one")]
    monkeypatch.setattr(accuracy, "all_rows", lambda: made)
    return made


def test_misses_are_bold_where_something_is_asked():
    shown = page.cells_of(*(lambda one: (one, one.findings()))(row("bent", "one", (0.9, -0.06, None))))
    assert shown == ("+90.00 (11)", "**−6.00 (21)**", "**failed**")


def test_a_page_is_read_as_it_was_written(tmp_path):
    rows = [row("bent", "one"), row("bent", "two", (0.0, 0.1, 1e-9)), row("twisted", "one")]
    cells = {one.name: page.cells_of(one, one.findings()) for one in rows[:2]}
    text = page.written(rows, cells, 6000)
    page.write(tmp_path / "page.md", text)
    assert page.read(tmp_path / "page.md") == cells
    assert "Of 4 numbers of which something is asked 1 are bold" in text
    assert text.count("| bent |") == 1, "a test is named once"


def test_a_stopped_run_goes_on_and_single_rows_are_measured_anew(tmp_path, rows):
    path = tmp_path / "accuracy.md"
    run = measure(["accuracy"], BenchSetting(page=path))
    next(run)
    stopped = path.read_text()
    names = [one.name for one in measure(["accuracy"], BenchSetting(page=path, resume=True))]
    assert names == ["accuracy bent: two", "accuracy twisted: one"]
    whole = path.read_text()
    path.unlink()
    assert len(list(measure(["accuracy"], BenchSetting(page=path)))) == 3
    assert path.read_text() == whole != stopped
    names = [one.name for one in measure(["accuracy"], BenchSetting(page=path, only="Twisted one"))]
    assert names == ["accuracy twisted: one"] and path.read_text() == whole
    with pytest.raises(PhyxelError, match="no row has these words"):
        list(measure(["accuracy"], BenchSetting(only="bear")))


def test_only_pages_are_written_over(tmp_path, rows):
    with pytest.raises(PhyxelError, match=r"\.md"):
        next(measure(["accuracy"], BenchSetting(page=tmp_path / "scan.ply")))
