"""Shape functions: what they reproduce, their gradients, where they hold, and covers grown until they do."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.transform import Rotation

from phyxel import device as dev
from phyxel.errors import SolidError
from phyxel.mls.covers import grown, grown_covers
from phyxel.mls.shape_functions import ShapeFunctions
from phyxel.mls.shape_values import ShapeValues

CPU = dev.pick("cpu")
ALPHA = {"linear": 4.0, "quadratic": 6.0}
BASES = list(ALPHA)
CUBE = 6


def grid_nodes(count: int, size: float = 1.0) -> np.ndarray:
    """Centres of count³ octants of a cube with one corner at the origin."""
    centres = (np.arange(count) + 0.5) * size
    return np.stack(np.meshgrid(centres, centres, centres, indexing="ij"), axis=-1).reshape(-1, 3)


def regular() -> tuple[np.ndarray, np.ndarray]:
    return grid_nodes(CUBE), np.ones(CUBE**3)


def jittered() -> tuple[np.ndarray, np.ndarray]:
    nodes, size = regular()
    return nodes + np.random.default_rng(1).uniform(-0.3, 0.3, nodes.shape), size


def graded() -> tuple[np.ndarray, np.ndarray]:
    """The cube with its octants halved beyond x = 4, as an octree graded 2:1 has them."""
    coarse, fine = grid_nodes(CUBE), grid_nodes(2 * CUBE, 0.5)
    coarse, fine = coarse[coarse[:, 0] < 4], fine[fine[:, 0] > 4]
    return np.concatenate([coarse, fine]), np.concatenate([np.ones(len(coarse)), np.full(len(fine), 0.5)])


SAMPLES = {"regular": regular, "jittered": jittered, "graded": graded}


def shapes_of(nodes: np.ndarray, size: np.ndarray, basis: str, **options) -> ShapeFunctions:
    """Covers of α octants, as the solid's octree will give them."""
    return ShapeFunctions(nodes, ALPHA[basis] / 2 * size, basis, device=CPU, **options)


def points_inside(count: int = 300, seed: int = 0) -> np.ndarray:
    """Random points of the cube and its eight corners."""
    corners = CUBE * np.stack(np.meshgrid([0.0, 1], [0.0, 1], [0.0, 1]), axis=-1).reshape(-1, 3)
    return np.concatenate([corners, np.random.default_rng(seed).uniform(0, CUBE, (count, 3))])


def row_sums(matrix: csr_array) -> np.ndarray:
    return matrix @ np.ones(matrix.shape[1])


def polynomial(basis: str, q: np.ndarray) -> np.ndarray:
    """The terms of the basis at positions q, shape (count, terms)."""
    second = [q[:, a] * q[:, b] for a, b in combinations_with_replacement(range(3), 2)]
    return np.stack([np.ones(len(q)), *q.T, *(second if basis == "quadratic" else [])], axis=1)


def moments_by_numpy(nodes, covers, basis, x):
    """w_I, p_I and A at x, lengths in units of the mean cover there: G04 §3.1 written down as it stands."""
    s = np.abs(x - nodes) / covers[:, None]
    w = np.where(s < 0.5, 1 - 2 * s**2, 2 * np.maximum(1 - s, 0) ** 2).prod(axis=1)
    near = (s < 1).all(axis=1)
    p = polynomial(basis, (nodes - x) / covers[near].mean())
    return w, p, (p.T * w) @ p


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("sample", SAMPLES)
def test_reproduction(sample, basis):
    """Σφ_I = 1 and Σφ_I X_I = x, with their gradients Σ∇φ_I = 0 and Σ∇φ_I X_Iᵀ = I, to 1e-10."""
    nodes, size = SAMPLES[sample]()
    points = points_inside()
    shape = shapes_of(nodes, size, basis).at(points)
    assert shape.condition.max() < 1e4
    assert np.abs(row_sums(shape.values) - 1).max() < 1e-10
    assert np.abs(shape.values @ nodes - points).max() < 1e-10
    for k, gradient in enumerate(shape.gradients):
        assert np.abs(row_sums(gradient)).max() < 1e-10
        assert np.abs(gradient @ nodes - np.eye(3)[k]).max() < 1e-10


@pytest.mark.parametrize("sample", SAMPLES)
def test_quadratic_reproduction(sample):
    """Σφ_I X_I X_Iᵀ = x xᵀ, and its gradient ∂_k(x_a x_b) = δ_ka x_b + x_a δ_kb, to 1e-9."""
    nodes, size = SAMPLES[sample]()
    points = points_inside()
    shape = shapes_of(nodes, size, "quadratic").at(points)
    for a, b in combinations_with_replacement(range(3), 2):
        product = nodes[:, a] * nodes[:, b]
        assert np.abs(shape.values @ product - points[:, a] * points[:, b]).max() < 1e-9
        for k, gradient in enumerate(shape.gradients):
            exact = (k == a) * points[:, b] + points[:, a] * (k == b)
            assert np.abs(gradient @ product - exact).max() < 1e-9


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("sample", ["jittered", "graded"])
def test_gradients_against_finite_differences(sample, basis):
    """φ_I,k = (φ_I(x + h e_k) − φ_I(x − h e_k)) / 2h to 1e-6 with h = 1e-6: φ,k is continuous, and where φ,kk jumps
    between the two points (by 4 or so) the difference is off by a quarter of that times h."""
    nodes, size = SAMPLES[sample]()
    points = points_inside(100, seed=2)[8:]
    shapes, h = shapes_of(nodes, size, basis), 1e-6
    for k, gradient in enumerate(shapes.at(points).gradients):
        step = h * np.eye(3)[k]
        difference = (shapes.at(points + step).values - shapes.at(points - step).values) / (2 * h)
        assert abs(gradient - difference).max() < 1e-6


@pytest.mark.parametrize("basis", BASES)
def test_smooth_along_a_line(basis):
    """φ and ∇φ are continuous where covers begin and end: half the step, half the largest change. A jump would stay."""
    nodes, size = graded()
    shapes = shapes_of(nodes, size, basis)

    def largest_changes(steps: int) -> np.ndarray:
        shape = shapes.at(np.linspace([0.1, 0.2, 0.3], [5.9, 5.7, 5.8], steps + 1))
        return np.array([abs(matrix[1:] - matrix[:-1]).max() for matrix in (shape.values, *shape.gradients)])

    assert np.allclose(largest_changes(1500) / largest_changes(3000), 2, rtol=0.02)


@pytest.mark.parametrize("basis", BASES)
def test_as_numpy_has_it(basis):
    """φ_I = w_I p_Iᵀ A⁻¹ p(0) to 1e-12, and cond(A) at least that of the 2-norm and at most n^¼ times it."""
    nodes, size = jittered()
    covers = ALPHA[basis] / 2 * size * np.random.default_rng(3).uniform(1.0, 1.5, len(nodes))
    points = points_inside(12)
    shape = ShapeFunctions(nodes, covers, basis, device=CPU).at(points)
    for x, row, condition in zip(points, shape.values.toarray(), shape.condition, strict=True):
        w, p, A = moments_by_numpy(nodes, covers, basis, x)
        assert np.allclose(row, w * (p @ np.linalg.inv(A)[0]), atol=1e-12)
        exact = np.linalg.cond(A)
        assert 0.999 * exact < condition < len(A) ** 0.25 * exact


def test_every_pair_is_found():
    """φ has an entry, in ascending order, exactly where |x − X_I|∞ < d_I; covers differ 16-fold."""
    rng = np.random.default_rng(4)
    nodes, covers = rng.uniform(-5, 5, (500, 3)), 0.25 * 2.0 ** rng.uniform(0, 4, 500)
    points = rng.uniform(-6, 6, (400, 3))
    owner, index = ShapeFunctions(nodes, covers, device=CPU).pairs(points)
    near = (np.abs(points[:, None] - nodes) < covers[:, None]).all(axis=2)
    assert np.array_equal(np.stack([owner, index]), np.nonzero(near))


def test_condition_at_a_corner():
    """Covers of 4 octants (linear) and 6 (quadratic) hold at the corners of a cube aligned with the octants: by hand
    from the 8 and 27 nodes there, cond₂ = 62 and 2321. Covers of 5 octants do not hold the quadratic basis."""
    nodes, size = regular()
    corners = points_inside(0)
    linear, quadratic = (shapes_of(nodes, size, basis).condition(corners) for basis in BASES)
    assert np.all((linear > 61.7) & (linear < 65))
    assert np.all((quadratic > 2320) & (quadratic < 2500))
    assert np.isinf(ShapeFunctions(nodes, 2.5 * size, "quadratic", device=CPU).condition(corners)).all()


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_scale_costs_no_digits(basis, scale):
    """φ(s x; s X) = φ(x; X) and ∇φ(s x; s X) = ∇φ / s, to 1e-12."""
    nodes, size = jittered()
    points = points_inside(50)
    ours = shapes_of(nodes, size, basis).at(points)
    scaled = shapes_of(scale * nodes, scale * size, basis).at(scale * points)
    assert np.allclose(ours.condition, scaled.condition, rtol=1e-9)
    assert abs(ours.values - scaled.values).max() < 1e-12
    for ours_k, scaled_k in zip(ours.gradients, scaled.gradients, strict=True):
        assert abs(ours_k - scale * scaled_k).max() < 1e-11


@pytest.mark.parametrize("basis", BASES)
def test_place_costs_no_digits(basis):
    """φ(x + t; X + t) = φ(x; X) to 1e-12 at t = 1e7: positions are rounded to 2⁻²⁰ so that the sum itself is exact."""
    nodes, size = jittered()
    nodes, points = (np.round(x * 2**20) / 2**20 for x in (nodes, points_inside(50)))
    ours, moved = (shapes_of(nodes + t, size, basis).at(points + t) for t in (0.0, np.array([1e7, -1e7, 3e7])))
    assert abs(ours.values - moved.values).max() < 1e-12
    for ours_k, moved_k in zip(ours.gradients, moved.gradients, strict=True):
        assert abs(ours_k - moved_k).max() < 1e-11


def split_at_three(points: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """A cut through the cube at x = 3: who is on one side sees nobody on the other."""
    return (points[:, 0] < 3) == (nodes[:, 0] < 3)


@pytest.mark.parametrize("basis", BASES)
def test_a_cut_parts_the_body(basis):
    """Points of one half depend on nodes of that half alone, and still reproduce linear fields to 1e-10."""
    nodes, size = jittered()
    points = points_inside()
    shape = shapes_of(nodes, size, basis, sees=split_at_three).at(points)
    assert shape.condition.max() < 1e4
    left, right = points[:, 0] < 3, nodes[:, 0] >= 3
    for matrix in (shape.values, *shape.gradients):
        assert matrix[left][:, right].nnz == 0 == matrix[~left][:, ~right].nnz
    assert np.abs(shape.values @ nodes - points).max() < 1e-10
    assert np.abs(row_sums(shape.values) - 1).max() < 1e-10


def test_where_nodes_do_not_determine_a_field():
    """Outside all covers, under three nodes, and over a plane of nodes: zero rows, infinite condition, no NaN."""
    plane = grid_nodes(4) * [1, 1, 0]
    nodes = np.concatenate([plane, [[50.0, 0, 0], [50, 1, 0], [50, 0, 1]]])
    shape = ShapeFunctions(nodes, np.full(len(nodes), 2.0), device=CPU).at([[99.0, 0, 0], [50, 0.2, 0.2], [2, 2, 0.1]])
    assert np.isinf(shape.condition).all()
    assert np.diff(shape.values.indptr).tolist() == [0, 3, len(plane)]
    for matrix in (shape.values, *shape.gradients):
        assert not matrix.data.any()


@pytest.mark.parametrize("waves", [0.0, 1e-6, 1e-2])
@pytest.mark.parametrize("turn", [np.eye(3), Rotation.from_rotvec([0.3, 0.5, 0.2]).as_matrix()])
def test_two_layers_of_nodes_in_a_quadratic_basis(turn, waves):
    """Nodes on the two faces of a plate, which may wave: z² is ¼ at all of them, and a quadratic basis is not
    determined. With its terms of second order tied Σφ_I = 1, Σφ_I X_I = x and their gradients are exact to 1e-10 as
    everywhere, ∇φ is the slope of φ, as above to what rounding leaves of a difference, 1e-16 cond(A)/h ~ 1e-4, and what
    nodes do tell, x y of the plate, is there but for a twentieth of what a linear basis misses, however the axes lie.
    """
    grid = grid_nodes(CUBE)
    plate = grid[grid[:, 2] < 2]
    nodes = (plate + waves * np.random.default_rng(0).uniform(-1, 1, plate.shape)) @ turn.T
    points = np.random.default_rng(1).uniform([1, 1, 0.5], [5, 5, 1.5], (100, 3)) @ turn.T
    plain = shapes_of(nodes, np.ones(len(nodes)), "quadratic")
    assert not plain.condition(points).max() < 1e4
    shapes = grown(plain, points)
    shape, h = shapes.at(points), 1e-5
    assert shape.condition.max() < 1e4
    assert np.abs(row_sums(shape.values) - 1).max() < 1e-10
    assert np.abs(shape.values @ nodes - points).max() < 1e-10
    for k, gradient in enumerate(shape.gradients):
        assert np.abs(gradient @ nodes - np.eye(3)[k]).max() < 1e-10
        step = h * np.eye(3)[k]
        difference = (shapes.at(points + step).values - shapes.at(points - step).values) / (2 * h)
        assert abs(gradient - difference).max() < 1e-4
    off = [
        np.abs(one.values @ (nodes @ turn)[:, :2].prod(axis=1) - (points @ turn)[:, :2].prod(axis=1)).max()
        for one in (shape, shapes_of(nodes, np.ones(len(nodes)), "linear").at(points))
    ]
    assert off[0] < 0.05 * off[1]


def test_no_points():
    shape = ShapeFunctions(*regular(), device=CPU).at(np.empty((0, 3)))
    assert shape.values.shape == (0, CUBE**3)
    assert len(shape.condition) == 0


def test_device_arrays_are_the_matrices():
    """What kernels read, row by row, is what the host's matrices hold."""
    nodes, size = jittered()
    shape: ShapeValues = shapes_of(nodes, size, "linear").at(points_inside(20))
    start, index, phi, dphi = (array.numpy() for array in (shape.start, shape.index, shape.phi, shape.dphi))
    values, gradients = shape.values.toarray(), [gradient.toarray() for gradient in shape.gradients]
    for i in range(len(values)):
        row = slice(start[i], start[i + 1])
        assert np.array_equal(values[i, index[row]], phi[row])
        assert np.array_equal(np.stack([gradient[i, index[row]] for gradient in gradients], axis=1), dphi[row])


@pytest.mark.parametrize(("basis", "alpha"), [("linear", 3.0), ("linear", 2.0), ("quadratic", 5.0)])
def test_grown_covers_make_bad_points_good(basis, alpha):
    """Covers too small for corners and faces: grown ones hold everywhere, none shrinks, none grows more than 4-fold."""
    nodes, size = graded()
    points = points_inside(1000)
    covers = alpha / 2 * size
    assert ShapeFunctions(nodes, covers, basis, device=CPU).condition(points).max() > 1e4
    grown = grown_covers(nodes, covers, points, basis, device=CPU)
    assert ShapeFunctions(nodes, grown, basis, device=CPU).condition(points).max() < 1e4
    assert np.all((grown >= covers) & (grown < 4 * covers))


def test_only_covers_around_bad_points_grow():
    """One bad corner: nodes farther from it than 3 octants keep their covers; a good set keeps all of them."""
    nodes, size = regular()
    covers = 1.5 * size
    corner = np.zeros((1, 3))
    grown = grown_covers(nodes, covers, corner, device=CPU)
    assert ShapeFunctions(nodes, grown, device=CPU).condition(corner) < 1e4
    assert np.abs(nodes[grown > covers]).max() < 3
    assert np.array_equal(grown_covers(nodes, 2 * size, points_inside(), device=CPU), 2 * size)


def test_grown_covers_see_the_cut():
    """The nodes of the other half are no help and are left alone."""
    nodes, size = regular()
    points = points_inside()
    points = points[points[:, 0] < 3]
    grown = grown_covers(nodes, 1.2 * size, points, sees=split_at_three, device=CPU)
    assert ShapeFunctions(nodes, grown, sees=split_at_three, device=CPU).condition(points).max() < 1e4
    assert np.array_equal(grown[nodes[:, 0] > 3], 1.2 * size[nodes[:, 0] > 3])


@pytest.mark.parametrize(
    ("nodes", "basis"),
    [(grid_nodes(5) * [1, 1, 0], "linear"), (grid_nodes(5)[:3], "linear"), (grid_nodes(2), "quadratic")],
    ids=["plane", "three nodes", "eight nodes"],
)
def test_hopeless_nodes_are_refused(nodes, basis):
    points = np.array([[1.0, 1, 0], [1.2, 0.8, 0.5]])
    with pytest.raises(SolidError, match=rf"of 2 points, between \(1, .*{basis} basis.*give more \(nodes = "):
        grown_covers(nodes, np.full(len(nodes), 2.0), points, basis, device=CPU)


@pytest.mark.parametrize(
    ("nodes", "covers", "basis", "message"),
    [
        (grid_nodes(2)[:, :2], np.ones(8), "linear", r"nodes have shape \(8, 2\)"),
        (grid_nodes(2), np.ones(7), "linear", "8 nodes with covers of shape"),
        (grid_nodes(2) * np.nan, np.ones(8), "linear", "8 of 8 nodes have no finite position"),
        (grid_nodes(2), np.arange(8.0), "linear", "covers between 0 and 7"),
        (grid_nodes(2), np.ones(8), "quadratc", 'did you mean "quadratic"'),
    ],
)
def test_wrong_input_is_refused(nodes, covers, basis, message):
    with pytest.raises(SolidError, match=message):
        ShapeFunctions(nodes, covers, basis, device=CPU)
