"""Eigenmodes against a finite-element solution, and what is remembered of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import skfem
from scipy.linalg import eigh
from skfem.helpers import dot
from skfem.models.elasticity import lame_parameters, linear_elasticity

from phyxel import cache
from phyxel.material import Material, Mixture
from phyxel.models.modal.modes import Clamp, Compliance, ModalMatrices, eigenmodes
from tests.models.modal.blocks import base, block, modal

SIZE = (1.0, 0.25, 0.2)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PHYXEL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.slow
def test_frequencies_of_a_clamped_bar_are_those_of_finite_elements() -> None:
    # Quadratic hexahedra, 8 × 2 × 2 of them; 12 × 3 × 3 change the first ten frequencies by less than 0.8 %.
    mesh = skfem.MeshHex.init_tensor(*(np.linspace(-s / 2, s / 2, n + 1) for s, n in zip(SIZE, (8, 2, 2), strict=True)))
    elements = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementHex2()), intorder=4)
    K = skfem.asm(linear_elasticity(*lame_parameters(1e6, 0.3)), elements)
    M = skfem.asm(skfem.BilinearForm(lambda u, v, w: 1000.0 * dot(u, v)), elements)
    free = elements.complement_dofs(elements.get_dofs(lambda x: np.isclose(x[0], -SIZE[0] / 2)))
    parts = [matrix[free][:, free].toarray() for matrix in (K, M)]
    expected = np.sqrt(eigh(*parts, eigvals_only=True, subset_by_index=[0, 9])) / (2 * np.pi)
    space, unit = block((16, 4, 3), SIZE)
    model = modal(space, unit, [base(space)], young=1e6)
    np.testing.assert_allclose(model.frequencies[:10], expected, rtol=0.03)


def test_modes_are_orthonormal_and_diagonal() -> None:
    space, _ = block((6, 2, 2), SIZE)
    matter = ModalMatrices.of(space, Mixture.even(Material(), len(space)), np.eye(3))
    for clamp in (None, Clamp(space, [base(space)])):
        modes = eigenmodes(matter, clamp, 12, lambda clamp=clamp: Compliance(matter, clamp))
        flat = modes.shapes.reshape(-1, 12)
        np.testing.assert_allclose(flat.T @ matter.weighed(modes.shapes).reshape(-1, 12), np.eye(12), atol=1e-9)
        stiffness = flat.T @ matter.strained(modes.shapes).reshape(-1, 12)
        np.testing.assert_allclose(stiffness, np.diag(modes.values), atol=1e-9 * modes.values[-1])
        if clamp is not None:  # the clamped points do not move
            moved = np.tensordot(space.at(clamp.points).values.toarray(), modes.shapes, 1)
            assert np.abs(moved).max() < 1e-9 * np.abs(modes.shapes).max()


def test_a_free_body_has_six_rigid_modes_apart() -> None:
    space, _ = block((5, 3, 2), SIZE)
    matter = ModalMatrices.of(space, Mixture.even(Material(), len(space)), np.eye(3))
    lowest = Compliance(matter, None).lowest(7, None)
    values = np.einsum("iak,iak->k", lowest, matter.strained(lowest)) / np.einsum(
        "iak,iak->k", lowest, matter.weighed(lowest)
    )
    elastic = eigenmodes(matter, None, 1, lambda: Compliance(matter, None)).values[0]
    assert np.abs(values[:6]).max() < 1e-9 * elastic
    assert values[6] == pytest.approx(elastic, rel=1e-6)


def test_a_small_body_has_no_more_modes_than_freedoms() -> None:
    space, unit = block((1, 1, 1), (1.0, 1.0, 1.0))
    assert len(modal(space, unit, modes=64).frequencies) == 3 * 8 - 6


def test_modes_are_computed_once(own_cache: Path) -> None:
    space, _ = block((4, 2, 2), SIZE)
    calls = []

    def modes(**numbers: float) -> np.ndarray:
        matter = ModalMatrices.of(space, Mixture.even(Material(**numbers), len(space)), np.eye(3))

        def compliance() -> Compliance:
            calls.append(numbers)
            return Compliance(matter, None)

        return eigenmodes(matter, None, 5, compliance).shapes

    first = modes(young=1e6)
    assert len(calls) == 1
    np.testing.assert_array_equal(modes(young=3e7, density=700.0), first)  # only stiffer and lighter: the same shapes
    assert len(calls) == 1
    modes(poisson=0.1)
    assert len(calls) == 2
    for file in own_cache.glob("*.npz"):
        file.write_bytes(file.read_bytes()[:100])
    np.testing.assert_array_equal(modes(young=1e6), first)
    assert len(calls) == 3


def test_a_stiffer_body_only_sounds_higher() -> None:
    space, unit = block((4, 2, 2), SIZE)
    soft, stiff = modal(space, unit, young=1e5), modal(space, unit, young=4e5)
    np.testing.assert_allclose(stiff.frequencies, 2 * soft.frequencies, rtol=1e-12)


def test_a_disk_that_cannot_be_written_breaks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PHYXEL_CACHE", str(tmp_path / "file"))
    assert cache.remembered("x", [1], lambda: {"a": np.arange(3)})["a"].tolist() == [0, 1, 2]


def test_the_oldest_results_go_first(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_BYTES", 3000)
    for k in range(4):
        cache.remembered("x", [k], lambda: {"a": np.zeros(100)})
    assert sum(file.stat().st_size for file in own_cache.iterdir()) <= 3000
    fresh = []
    cache.remembered("x", [3], lambda: fresh.append(3) or {"a": np.zeros(100)})
    assert not fresh


def test_parts_of_another_type_or_shape_are_another_result() -> None:
    keys = [1, 1.0, "1", b"1", np.array([1]), np.array([1.0]), np.array([[1.0]])]
    for k, key in enumerate(keys):
        assert cache.remembered("x", [key], lambda k=k: {"a": np.array(k)})["a"] == k
