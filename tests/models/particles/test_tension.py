"""Links of particle surfaces: stiff as data sheets say, at any step, and in the way of nothing else."""

import numpy as np
import pytest
import warp as wp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.linalg import spsolve
from scipy.spatial import Delaunay

from phyxel import device as dev
from phyxel.errors import PhyxelError
from phyxel.material import Membrane, Mixture
from phyxel.models.particles.arrival import no_arrival
from phyxel.models.particles.conjugate import ENOUGH, Gradients
from phyxel.models.particles.elements import BEND, BEND_WARP, BEND_WEFT, SPRING, WARP, WEFT, Elements
from phyxel.models.particles.fronts import Fronts
from phyxel.models.particles.model import ParticleModel
from phyxel.models.particles.sheet import Sheet
from phyxel.models.particles.tension import Tension
from phyxel.models.particles.umbrellas import umbrellas
from phyxel.points.sheets import balloon

CPU = dev.pick("cpu")
G = 9.81
CLOTH = Membrane(
    young=2e6, weft=5e5, shear=1e5, bending=3e-4, poisson=0.2, density=500.0, drag=0.0, damping=0.0, thickness=1e-3
)


def grid(columns, rows, width=1.0):
    """Points of a flat mesh of quads, 1 along x and `width` along z, and the quads."""
    z, x = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    X = np.stack([x.ravel(), 0 * x.ravel(), -width * z.ravel()], axis=1).astype(float)
    i = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    return X, np.stack([i, i + 1, i + columns + 1, i + columns], axis=1)


def up(X):
    return np.tile([0.0, 1.0, 0.0], (len(X), 1))


def woven(columns, rows, width=1.0, **options):
    X, quads = grid(columns, rows, width)
    return Sheet.made(X, up(X), quads=quads, **options)


def hexagonal(columns, rows):
    """A patch of equilateral triangles."""
    X, quads = grid(columns, rows, np.sqrt(0.75))
    X[:, 0] += 0.5 * np.repeat(np.arange(rows), columns)
    faces = np.concatenate([quads[:, [0, 1, 3]], quads[:, [1, 2, 3]]])
    return Sheet.made(X, up(X), faces=faces)


def chain(count, length=1.0):
    """Particles in a row downwards, linked by springs, each of area 1."""
    X = np.zeros((count, 3))
    X[:, 1] = -length * np.arange(count)
    pairs = np.stack([np.arange(count - 1), np.arange(1, count)], axis=1)
    springs = Elements.of(SPRING, X, pairs, np.array([1.0, -1.0]), np.ones(count - 1))
    return Sheet(X, up(X), np.ones(count), None, springs)


def moving(sheet, material, held=(), velocities=None, unit=1.0):
    still = np.zeros_like(sheet.X) if velocities is None else velocities
    model = ParticleModel(sheet, unit, still, CPU)
    model.set_material(Mixture.even(material, len(sheet.X)))
    model.set_holds(np.asarray(held, int))
    return model


def weight(model):
    """Gravity on each particle [N], (n, 3)."""
    density = model.mixture.number("density") * model.mixture.number("thickness")
    return (density * model.sheet.areas * model.unit**2)[:, None] * np.array([0.0, -G, 0.0])


def tangent(sheet, material, unit=1.0):
    """Stiffness [N/m] per area and strain of a flat sheet in its plane, by the energy of even strains (C₁₁, C₂₂, C₁₂,
    C₆₆)."""
    k = sheet.elements.stiffness(Mixture.even(material, len(sheet.X)), unit)
    tension = Tension(sheet, CPU)
    tension.set_stiffness(k)
    small = 1e-5

    def energy(xx, zz, xz):
        x, _, z = sheet.X.T
        u = small * np.stack([xx * x + 0.5 * xz * z, 0 * x, zz * z + 0.5 * xz * x], axis=1)
        return tension.energy(wp.array(u, dtype=wp.vec3d, device=CPU)) / (0.5 * small**2 * sheet.areas.sum())

    first, second, shear = energy(1, 0, 0), energy(0, 1, 0), energy(0, 0, 1)
    return first, second, 0.5 * (energy(1, 1, 0) - first - second), shear


# --- data sheets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1.0, 0.6])
def test_a_weave_stretches_and_shears_as_its_data_sheet_says(width):
    """E = C₁₁ − C₁₂²/C₂₂ along warp and weft, and G; strains of 1e-5 are linear to as much."""
    sheet = woven(9, 6, width)
    along, across, coupling, shear = tangent(sheet, CLOTH, unit=0.02)
    h = CLOTH.thickness
    assert along - coupling**2 / across == pytest.approx(CLOTH.young * h, rel=1e-4)
    assert across - coupling**2 / along == pytest.approx(CLOTH.weft * h, rel=1e-4)
    assert shear == pytest.approx(CLOTH.shear * h, rel=1e-4)
    turned = woven(9, 6, width, warp=(0.0, 0.0, 1.0))
    swapped = tangent(turned, CLOTH)
    assert swapped[0] - swapped[2] ** 2 / swapped[1] == pytest.approx(CLOTH.weft * h, rel=1e-4)


def test_triangles_and_bare_points_stretch_as_youngs_modulus_says():
    """Equilateral triangles are isotropic with ν = 1/3 whatever the edge of the patch; a network of neighbours is so in
    its middle, and its edge and the few directions of its springs make it differ by a tenth."""
    even = Membrane(young=3e6, poisson=1 / 3, thickness=2e-3)
    stiff = even.young * even.thickness
    along, across, coupling, shear = tangent(hexagonal(7, 5), even)
    assert [along, across] == pytest.approx([9 / 8 * stiff] * 2, rel=1e-4)  # E/(1 − ν²)
    assert [coupling, shear] == pytest.approx([3 / 8 * stiff] * 2, rel=1e-4)  # νE/(1 − ν²), E/2(1 + ν)
    X = hexagonal(20, 20).X + 0.15 * np.random.default_rng(3).normal(size=(400, 3)) * [1, 0, 1]
    bare = Sheet.made(X, up(X))
    along, across, coupling, _ = tangent(bare, even)
    area = 20 * 20 * np.sqrt(0.75)
    assert bare.areas.sum() == pytest.approx(area, rel=0.15)
    assert along - coupling**2 / across == pytest.approx(stiff, rel=0.1)
    assert across - coupling**2 / along == pytest.approx(stiff, rel=0.1)


def deflection(sheet, material, unit, pressure):
    """How far the end of a flat strip along x sinks whose first two columns are held: its bending is linear."""
    elements = sheet.elements
    bends = np.flatnonzero(elements.kind >= BEND)
    assert np.abs(elements.rest[bends]).max() < 1e-12
    k = elements.stiffness(Mixture.even(material, len(sheet.X)), unit)[bends]
    index, c = elements.index[bends], elements.weight[bends]
    known = index >= 0
    C = csr_array((c[known], (np.nonzero(known)[0], index[known])), (len(bends), len(sheet.X)))
    free = sheet.X[:, 0] > 1.6
    w = spsolve((C.T @ C.multiply(k[:, None])).tocsc()[free][:, free], (pressure * sheet.areas * unit**2)[free])
    return w[sheet.X[free, 0] == sheet.X[:, 0].max()].mean()


@pytest.mark.parametrize("across", [False, True])
def test_a_woven_strip_bends_under_its_weight_as_a_beam(across):
    """w = q L⁴/8D at the end of a cantilever. It is clamped between the two held columns and has no bending in the last
    half column: errors of second order in the spacing, 1/41 of the length, but for that of the clamp, which is known to
    a quarter of a column: 4 · 0.25/41 = 2.5 %."""
    X, quads = grid(42, 5)
    sheet = Sheet.made(X, up(X), quads=quads, warp=(0, 0, 1) if across else (1, 0, 0))
    D = CLOTH.bending * (CLOTH.weft / CLOTH.young if across else 1)
    length = (41 - 0.5) * 0.01
    assert deflection(sheet, CLOTH, 0.01, 0.3) == pytest.approx(0.3 * length**4 / (8 * D), rel=0.025)


def strip(columns, uneven=0.0):
    """Points of a flat strip of 4 : 1 along x, spacing 1, moved at random by so much but for its ends and rims."""
    rows = columns // 4 + 1
    X, quads = grid(columns, rows)
    rng = np.random.default_rng(columns)
    inside = (X[:, 0] > 1.5) & (X[:, 0] < columns - 1)
    between = inside & (X[:, 2] < 0) & (X[:, 2] > 1 - rows)
    X += uneven * rng.normal(size=X.shape) * np.stack([inside, 0 * inside, between], axis=1)
    return X, quads


@pytest.mark.parametrize("columns", [11, 21, 41])
@pytest.mark.parametrize("links", ["right", "uneven", "bare", "bare and uneven"])
def test_a_strip_of_triangles_or_bare_points_bends_as_a_beam(columns, links):
    """w = q L⁴/8D, however the triangles lie, as there is no Poisson's ratio in bending. It is clamped between the two
    held columns, and has no bending in the last half: errors of second order, 0.6 % of the coarsest. On uneven
    triangles (points moved by a tenth of the spacing, root mean square) two curvatures that are 7 % too soft and 4 %
    too stiff make a mean that is right to some 3 %; of 2 × 10 squares few make it."""
    X, quads = strip(columns, 0.1 if "uneven" in links else 0.0)
    faces = Delaunay(X[:, [0, 2]]).simplices if links == "uneven" else quads[:, [0, 1, 2, 0, 2, 3]].reshape(-1, 3)
    sheet = Sheet.made(X, up(X), faces=None if "bare" in links else faces)
    length = (columns - 1 - 0.5) * 0.01
    assert sheet.areas.sum() == pytest.approx((columns - 1) * (columns // 4), rel=1e-3)
    beam = 0.3 * length**4 / (8 * CLOTH.bending)
    assert deflection(sheet, CLOTH, 0.01, 0.3) == pytest.approx(beam, rel=0.03 if "uneven" in links else 0.01)


def test_threads_are_told_apart_and_only_straight_rows_bend():
    """Of a grid of m × n quads: its edges by direction, two diagonals a quad, and rows of three along both."""
    sheet = woven(5, 4)
    counts = np.bincount(sheet.elements.kind, minlength=7)
    assert counts.tolist() == [0, 4 * 4, 5 * 3, 2 * 4 * 3, 0, 3 * 4, 5 * 2]
    ways = sheet.X[sheet.elements.index[:, 1]] - sheet.X[sheet.elements.index[:, 0]]
    assert np.abs(ways[sheet.elements.kind == WARP, 2]).max() == 0
    assert np.abs(ways[sheet.elements.kind == WEFT, 0]).max() == 0
    assert not np.abs(ways[sheet.elements.kind == BEND_WARP, 2]).any()
    assert not np.abs(ways[sheet.elements.kind == BEND_WEFT, 0]).any()
    X, _ = grid(5, 4)
    for links in ("weave", "edges", "knots", 0, True):
        with pytest.raises(PhyxelError, match="links"):
            Sheet.made(X, up(X), links=links)


# --- forces --------------------------------------------------------------------------------------------------------


def pulled(sheet, k, x, compliance, abreast=8):
    """P at the end of a step that would lead to displacements x, of particles of compliance H (n,)."""
    n = len(sheet.X)
    tension, arrival, P = Tension(sheet, CPU), no_arrival(n, CPU), wp.zeros(n, dtype=wp.vec3d, device=CPU)
    tension.set_stiffness(k)
    tension.abreast = abreast
    arrival.x.assign(x)
    arrival.A.assign(compliance)
    arrival.H.assign(compliance)
    dev.Program(tension.launches(arrival, P), CPU).run()
    return P.numpy(), tension


@pytest.mark.parametrize("links", ["weave", "edges", 6])
def test_the_pull_is_minus_the_gradient_of_the_energy_at_the_end_and_moves_nothing_as_a_whole(links):
    """P = −∂E/∂y at y = x + H P, with ΣP = Σ y × P = 0, of a crumpled sheet of uneven particles with one held."""
    rng = np.random.default_rng(5)
    X, quads = grid(6, 5)
    X += 0.1 * rng.normal(size=X.shape)  # rest lengths of bending that are not zero
    sheet = Sheet.made(X, up(X), quads=quads, links=links)
    k = rng.uniform(0.5, 2.0, len(sheet.elements))
    H = rng.uniform(0.1, 1.0, len(X))
    x = 0.3 * rng.normal(size=X.shape)
    P, tension = pulled(sheet, k, x, H)
    y = x + H[:, None] * P
    assert np.abs(P.sum(axis=0)).max() < 1e-7 * np.abs(P).sum()
    assert np.abs(np.cross(X + y, P).sum(axis=0)).max() < 1e-6 * np.abs(P).sum()

    def energy(u):
        return tension.energy(wp.array(u, dtype=wp.vec3d, device=CPU))

    for i, axis in ((0, 0), (7, 1), (14, 2), (29, 0)):
        step = np.zeros_like(y)
        step[i, axis] = 1e-5
        slope = (energy(y + step) - energy(y - step)) / 2e-5
        assert P[i, axis] == pytest.approx(-slope, abs=1e-6 * np.abs(P).max())


def test_a_large_stiff_sheet_moves_nothing_as_a_whole_before_its_iterations_are_through():
    """ΣP = 0 to rounding, torques to second order in the turn that makes it so; two pieces, each for itself."""
    rng = np.random.default_rng(6)
    X, quads = grid(20, 20)
    far = np.concatenate([X, X + np.array([30.0, 0.0, 0.0])])
    sheet = Sheet.made(far, up(far), quads=np.concatenate([quads, quads + 400]))
    k = np.full(len(sheet.elements), 1e6)
    x = 0.1 * rng.normal(size=far.shape)
    H = rng.uniform(0.1, 1.0, len(far))
    P, _ = pulled(sheet, k, x, H)
    y = far + x + H[:, None] * P
    for piece in (slice(0, 400), slice(400, 800)):
        arms = y[piece] - y[piece].mean(axis=0)
        torques = np.cross(arms, P[piece])
        assert np.abs(P[piece].sum(axis=0)).max() < 1e-9 * np.abs(P[piece]).sum()
        assert np.abs(torques.sum(axis=0)).max() < 1e-3 * np.abs(torques).sum()


def test_eight_particles_abreast_are_pulled_as_each_alone():
    """The kernels of the CPU and those of a GPU, of a crumpled sheet of several levels that is held at one side: the
    same but for rounding in single precision, which stiff links make 1e-3 of what they pull with."""
    sheet = woven(21, 17)
    x = 0.05 * np.random.default_rng(8).normal(size=sheet.X.shape)
    H = np.where(sheet.X[:, 0] == 0, 0.0, 1.0)
    k = np.full(len(sheet.elements), 1e3)
    (eights, _), (ones, _) = (pulled(sheet, k, x, H, abreast) for abreast in (8, 1))
    assert eights == pytest.approx(ones, abs=1e-5 * np.abs(ones).max())


def test_a_hanging_sheet_is_stretched_by_its_weight_alone():
    """Σ over rows of what hangs below over k: E h strain = ρ h g (L − z). Hats end at the held row, so that few
    iterations leave no more than a tenth of it."""
    rows = 40
    cotton = Membrane.cotton().but(drag=20.0)
    sheet = woven(40, rows)
    model = moving(sheet, cotton, held=np.flatnonzero(sheet.X[:, 2] == 0), unit=0.01)
    model.set_force(weight(model)[:, [0, 2, 1]])
    for _ in range(60):
        model.step(1 / 240, np.zeros((40, 3)))
    length = (rows - 1) * 0.01
    exact = cotton.density * G * length**2 / (2 * cotton.weft) / 0.01
    assert -model.u[sheet.X[:, 2] == 1 - rows, 2].mean() == pytest.approx(exact, rel=0.1)


def test_a_held_particle_is_immovable_and_a_link_of_no_length_pulls_nowhere():
    sheet = chain(3)
    x = np.zeros((3, 3))
    x[1, 1] = 1.0  # onto the first
    P, _ = pulled(sheet, np.full(2, 10.0), x, np.array([0.0, 1.0, 1.0]))
    assert np.isfinite(P).all()
    assert not P[0].any()


def test_a_factor_by_nested_dissection_solves_what_a_dense_one_does():
    """A x = r to rounding, of a crumpled sheet of two pieces, one of them a lone pair: cond(A) is some 1e4."""
    X, quads = grid(17, 13)
    sheet = Sheet.made(X, up(X), quads=quads)
    ends = sheet.elements.index[sheet.elements.index[:, 2] < 0, :2]
    n = len(X) + 2
    pairs = np.concatenate([ends, ends[:, ::-1], np.tile(np.arange(n)[:, None], 2), [[n - 2, n - 1], [n - 1, n - 2]]])
    joined = csr_array((np.ones(len(pairs)), tuple(pairs.T)), (n, n))
    fronts = Fronts(np.concatenate([X, [[40.0, 0, 0], [41.0, 0, 0]]]), joined)
    rng = np.random.default_rng(2)
    blocks, dense = np.zeros((len(fronts.rows), 3, 3)), np.zeros((3 * n, 3 * n))
    for entry, (i, j) in enumerate(zip(fronts.rows, fronts.columns, strict=True)):
        half = rng.normal(size=(3, 3))
        blocks[entry] = half + half.T if i != j else 60 * np.eye(3)
        dense[3 * i : 3 * i + 3, 3 * j : 3 * j + 3] = dense[3 * j : 3 * j + 3, 3 * i : 3 * i + 3] = blocks[entry]
    r = rng.normal(size=(n, 3))
    fronts.factor(blocks)
    assert fronts.solve(r).ravel() == pytest.approx(np.linalg.solve(dense, r.ravel()), rel=1e-10, abs=1e-13)


def test_conjugate_gradients_solve_what_a_dense_factor_does():
    """They end where √(r·z) is 1 % of what it was, z = r in blocks of single particles; with cond(A) of about 3 in
    those terms the error of x, in A's norm, is less than √3 times as much."""
    n, rng = 40, np.random.default_rng(3)
    rows, columns = np.tril_indices(n)
    near = rows - columns < 3
    rows, columns = rows[near], columns[near]
    blocks, dense = np.zeros((len(rows), 3, 3)), np.zeros((3 * n, 3 * n))
    for entry, (i, j) in enumerate(zip(rows, columns, strict=True)):
        half = rng.normal(size=(3, 3))
        blocks[entry] = half + half.T if i != j else 20 * np.eye(3) + 5 * np.diag(rng.random(3))
        dense[3 * i : 3 * i + 3, 3 * j : 3 * j + 3] = blocks[entry]
        dense[3 * j : 3 * j + 3, 3 * i : 3 * i + 3] = blocks[entry]
    r = rng.normal(size=(n, 3))
    exact = np.linalg.solve(dense, r.ravel())
    off = Gradients(n, rows, columns).solve(blocks, r).ravel() - exact
    assert off @ dense @ off < 3 * ENOUGH**2 * (exact @ dense @ exact)


def test_squares_of_uneven_bare_points_are_parted_along_the_same_diagonal():
    """However the points lie in space: of each square of a grid, shifted by up to 5 % of its spacing, the same two
    triangles, turned or not."""
    X, _ = grid(9, 7)
    X += 0.05 * np.random.default_rng(4).uniform(-1, 1, X.shape) * (1, 0, 1)
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    for found in (umbrellas(X), umbrellas(X @ turn)):
        assert len(found) == 2 * 8 * 6
        ways = X[found[:, [1, 2, 0]]] - X[found]
        longest = np.take_along_axis(ways, np.linalg.norm(ways, axis=2).argmax(axis=1)[:, None, None], axis=1)[:, 0]
        slope = longest[:, 0] * longest[:, 2]
        assert (slope > 0).all() or (slope < 0).all()


def test_triangles_of_bare_points_are_those_of_the_surface():
    """All of a closed mesh of even triangles, found again of its points alone; none of points in space."""
    ball = balloon(600)
    found = umbrellas(ball.positions)
    assert np.array_equal(found, np.unique(np.sort(ball.faces, axis=1), axis=0))
    assert len(umbrellas(np.zeros((3, 3)))) == 0


# --- motion --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dt", [1 / 240, 1 / 20])
def test_a_hanging_chain_is_stretched_by_what_hangs_below(dt):
    """Link j carries m g (n − 1 − j): the equilibrium is that of the closed form however long the steps are."""
    count = 12
    rope = Membrane(young=1e6, thickness=1e-3, density=1e3, drag=8.0, damping=0.0)  # k = 1000 N/m, m = 1 kg
    model = moving(chain(count), rope, held=[0])
    model.set_force(weight(model))
    for _ in range(round(6 / dt)):
        model.step(dt, np.zeros((1, 3)))
    below = np.arange(count - 1, 0, -1)
    exact = -np.concatenate([[0], np.cumsum(below * G / 1000)])
    assert model.u[:, 1] == pytest.approx(exact, rel=1e-6)
    assert np.abs(model.u[:, [0, 2]]).max() < 1e-12


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    exponent=st.floats(-5, 1),
    stiffness=st.floats(0, 6),
    foundation=st.sampled_from([0.0, 1.0]),
    crumpled=st.sampled_from([1e-3, 0.3, 3.0]),
    uneven=st.booleans(),
    seed=st.integers(0, 99),
)
def test_no_step_makes_a_chain_blow_up(exponent, stiffness, foundation, crumpled, uneven, seed):
    """k from K to 1e6 K and K = 0, steps of 1e-5 to 10 s, masses a thousandfold apart: what moves never has more than
    the energy there was. Only where links turn over within a step the speed has another bound: to move by no more than
    the length of the chain."""
    rng = np.random.default_rng(seed)
    count = 12
    sheet = chain(count)
    rope = Membrane(young=10.0**stiffness, thickness=1.0, density=1.0, drag=0.0, damping=0.0, foundation=foundation)
    mixture = Mixture.of([rope.but(density=10 ** rng.uniform(-3, 0)) if uneven else rope for _ in range(count)])
    model = ParticleModel(sheet, 1.0, rng.normal(size=(count, 3)), CPU)
    model.set_material(mixture)
    model.set_holds(np.array([0]) if seed % 2 else np.array([], int))
    start = crumpled * rng.normal(size=(count, 3)) * (np.arange(count) > 0)[:, None]
    model.restore({**model.state(), "u": start})
    dt, mass = 10.0**exponent, mixture.number("density").sum()
    most = 1.1 * sum(model.energies()) + (0.5 * mass * (count / dt) ** 2 if dt > 0.02 else 0)
    for _ in range(60):
        model.step(dt, np.zeros((seed % 2, 3)))
        assert model.energies()[1] <= most


@pytest.mark.parametrize("dt", [1 / 240, 10.0])
def test_a_crumpled_sheet_of_several_levels_calms_down(dt):
    """As a chain: stiff as steel, far from its rest shape and solved by few iterations it has never more energy of
    motion than there was, and in the end hardly any; folds that stay are minima of the energy, too."""
    rng = np.random.default_rng(1)
    steel = Membrane(young=2e11, thickness=1e-3, density=7800.0, drag=0.0, damping=0.0)
    model = moving(woven(15, 15), steel, velocities=rng.normal(size=(225, 3)))
    model.restore({**model.state(), "u": 0.3 * rng.normal(size=(225, 3))})
    start = sum(model.energies())
    for _ in range(40):
        model.step(dt)
        assert model.energies()[1] <= start
    assert model.energies()[1] < 0.05 * start


def test_stiff_links_do_not_hinder_a_fall():
    """½ g t² and nothing else, to rounding, of a sheet as stiff as steel."""
    steel = Membrane(young=2e11, thickness=1e-3, density=7800.0, drag=0.0, damping=0.0)
    model = moving(woven(8, 8), steel, unit=0.01)
    model.set_force(weight(model))
    for _ in range(48):
        model.step(1 / 240)
    fall = 0.5 * G * 0.2**2 / 0.01
    assert model.u == pytest.approx(np.tile([0.0, -fall, 0.0], (64, 1)), abs=1e-9 * fall)


def test_a_weight_on_a_thread_swings_as_a_pendulum():
    """T = 2π√(l/g)(1 + θ²/16) of a thread that does not stretch. Steps are of first order, so the swing fades by
    ½ω²Δt a second; the period stays to second order."""
    thread = Membrane(young=1e8, thickness=1.0, density=1.0, drag=0.0, damping=0.0)
    model = moving(chain(2), thread, held=[0])
    angle, dt = 0.2, 1 / 240
    start = np.zeros((2, 3))
    start[1] = [np.sin(angle), 1 - np.cos(angle), 0.0]
    model.restore({**model.state(), "u": start})
    model.set_force(weight(model))
    side, longest = [], 0.0
    for _ in range(round(6 / dt)):
        model.step(dt, np.zeros((1, 3)))
        side.append(model.u[1, 0])
        longest = max(longest, abs(np.linalg.norm(model.u[1] - [0, 1, 0]) - 1))
    side = np.array(side)
    crossings = np.flatnonzero(side[:-1] * side[1:] < 0)
    times = dt * (crossings + side[crossings] / (side[crossings] - side[crossings + 1]))
    period = 2 * np.diff(times).mean()
    assert period == pytest.approx(2 * np.pi * np.sqrt(1 / G) * (1 + angle**2 / 16), rel=3e-3)
    assert longest < 1e-4


@pytest.mark.parametrize(("young", "side", "unit"), [(2e11, 8, 0.01), (2e9, 16, 0.1)])
def test_stiff_links_go_on_with_the_same_bits_from_a_checkpoint(young, side, unit):
    """Tensions are a part of it: Newton's rounds begin with them. So do those of softer ones while they are calm, as in
    the first steps here; later these follow their motion by iterations."""
    steel = Membrane(young=young, thickness=1e-3, density=7800.0, drag=1.0)

    def made():
        sheet = woven(side, side)
        model = moving(sheet, steel, held=np.flatnonzero(sheet.X[:, 0] == 0), unit=unit)
        model.set_force(weight(model))
        return model

    one, other = made(), made()
    for _ in range(10):
        one.step(1 / 240, np.zeros((side, 3)))
    assert "tensions" in one.state()
    other.restore(one.state())
    for model in (one, other):
        for _ in range(5):
            model.step(1 / 240, np.zeros((side, 3)))
    for name, values in one.state().items():
        np.testing.assert_array_equal(other.state()[name], values, err_msg=name)
