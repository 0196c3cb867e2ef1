"""Rows of the page on accuracy: which there are, and that each is found by name."""

from collections import Counter

from phyxel.bench.accuracy import all_rows
from phyxel.bench.accuracy.row import ways
from phyxel.models.kind import public_kinds


def test_every_model_scheme_and_basis_is_there():
    labels = [way.label for way in ways()]
    for kind in public_kinds():
        if kind.has_inside and kind.bends:
            assert {f"{kind.name}, {scheme}" for scheme in kind.schemes} <= set(labels)
            assert any(label.startswith(kind.name) for label in labels)
    assert len(labels) == len(set(labels))


def test_rows_have_names_of_their_own():
    rows = all_rows()
    assert max(Counter(row.name for row in rows).values()) == 1
    for word in ("cantilever", "turned", "scan", "torsion", "frequencies", "pendulum", "fall", "momenta", "plastic",
                 "clay", "strip", "weave", "bare", "mass", "melt", "modal", "finite elements"):  # fmt: skip
        assert any(row.matches(word) for row in rows), word
    assert all(row.counts[0] < row.counts[1] < row.counts[2] for row in rows)
