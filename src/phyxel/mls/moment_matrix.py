# mypy: disable-error-code="valid-type,no-untyped-def"
"""What shape functions ask of their moment matrices A, 4 × 4 or 10 × 10 (physics 2.4): inverses, conditions, and terms
of second order tied where nodes do not span them."""

from __future__ import annotations

from typing import Any

import warp as wp

SINGULAR = 1e-13
"""A pivot this small against its diagonal entry is rounding: the nodes do not determine that term of the basis."""


@wp.func
def largest_eigenvalue(A: Any):
    """(Σλ⁸)^⅛ of a symmetric n × n matrix: at least its largest |λ|, and at most n^⅛ (1.19, 1.33) times that."""
    A2 = A * A
    A4 = A2 * A2
    return wp.sqrt(wp.sqrt(wp.sqrt(wp.ddot(A4, A4))))


@wp.func
def inverse_of(A: Any):
    """A⁻¹ of a symmetric positive definite matrix, zero if it is singular. Each pivot in turn is swept out:
    A_ij ← A_ij − A_ik A_kj / A_kk, A_kj ← A_kj / A_kk, A_kk ← −1/A_kk; after the last one −A⁻¹ stands there."""
    swept = A.dtype(1.0) * A
    least = A.dtype(SINGULAR) * wp.get_diag(A)
    regular = bool(True)
    for k in range(len(least)):
        pivot = swept[k, k]
        if not pivot > least[k]:
            regular = False
            break
        row = swept[k]
        swept -= wp.outer(row, row / pivot)
        for j in range(len(least)):
            swept[k, j] = row[j] / pivot
            swept[j, k] = row[j] / pivot
        swept[k, k] = A.dtype(-1.0) / pivot
    return wp.where(regular, -swept, type(swept)())


LINEAR, SQUARES = wp.constant(4), wp.constant(7)
"""Terms of a basis before those of second order, and before products of two axes."""


@wp.func
def without_second_order(A: Any):
    """A with 1 for what it has of terms of second order."""
    linear = A.dtype(1.0) * A
    for i in range(LINEAR, len(A[0])):
        for j in range(len(A[0])):
            linear[i, j] = A.dtype(0.0)
            linear[j, i] = A.dtype(0.0)
        linear[i, i] = A.dtype(1.0)
    return linear


@wp.func
def tie_of(term: int, tie: wp.float64):
    """What τ adds to the diagonal of A at a term of second order, over Σ w: c·c = ¼ |∇∇q|² of q = c·p."""
    return wp.where(term < SQUARES, tie, wp.float64(0.5) * tie)


@wp.func
def tied(a: Any, tie: wp.float64):
    """What that adds to A a, over Σ w."""
    added = type(a)()
    for k in range(LINEAR, len(a)):
        added[k] = tie_of(k, tie) * a[k]
    return added
