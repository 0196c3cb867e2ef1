"""Blended surfaces: detail where nothing changed, the implicit skin where topology did, the same bits every time."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

import phyxel as px
from phyxel.export.meshes import mesh_of
from phyxel.movers.phyxel_bodies import phyxels_of
from phyxel.surface.blended import DETAIL, EMPTY, SKIN, Blended
from phyxel.surface.implicit_skin import BLOBBINESS

RED, BLUE = (0.8, 0.2, 0.1), (0.1, 0.2, 0.8)
SOFT = px.Material(young=2e4, poisson=0.4)
MELT = SOFT.but(viscosity=30.0)


def painted(shape, points, color):
    cloud = px.load(shape, points=points)
    return cloud.with_colors(np.broadcast_to(color, (len(cloud), 3)))


def drop_onto_ground(surface=None):
    """A soft bear that melts as it falls apart on the ground."""
    world = px.World(device="cpu")
    bear = px.Body(
        px.load("bear", points=4000),
        nodes=200,
        at=(0, 0.05, 0),
        place="file",
        surface=surface,
        material=px.Material.gelatin(),
    )
    world.add(bear)
    world.add(px.Ground())
    world.at(0.02, lambda _: bear.melt(viscosity=20.0))
    return world, bear


@pytest.fixture(scope="module")
def puddle():
    world, bear = drop_onto_ground()
    world.advance(0.7)
    return world, bear


def field_of(world, body, points):
    """F of the phyxels where they are now (M04 eq. 28), in double."""
    volumes = phyxels_of(world).model.now.rest_volume.numpy().astype(float) * body.unit**3
    radii = 0.78 * np.cbrt(3 * volumes / (4 * np.pi))
    rr = ((points[:, None] - body.positions) ** 2).sum(axis=2)
    return np.exp(-BLOBBINESS + BLOBBINESS * rr / radii**2).sum(axis=1), radii


def test_what_lies_on_the_skin_lies_on_the_skin(puddle):
    """|F − S| < 1e-3 S, and no farther than 2 R from a phyxel."""
    world, bear = puddle
    surface = bear.surface
    on = surface.positions[surface.layers == SKIN]
    assert len(on) > 500
    F, radii = field_of(world, bear, on)
    assert np.abs(F - 1).max() < 1e-3
    away = np.linalg.norm(on[:, None] - bear.positions, axis=2)
    assert (away / radii).min(axis=1).max() < 2


def test_normals_look_out_of_the_body(puddle):
    """Fewer than one in a thousand is turned against −∇F, by central differences; and a × b is along each normal."""
    world, bear = puddle
    surface = bear.surface
    step = 0.01 * bear.unit
    shifts = [
        field_of(world, bear, surface.positions + step * way)[0]
        - field_of(world, bear, surface.positions - step * way)[0]
        for way in np.eye(3)
    ]
    outward = -np.stack(shifts, axis=1)
    assert ((surface.normals * outward).sum(axis=1) < 0).mean() < 1e-3
    assert (np.cross(*(a.numpy() for a in (surface.axis_a, surface.axis_b))) * surface.normals).sum(axis=1).min() > 0


def test_the_surface_is_covered(puddle):
    """From no phyxel at the boundary does a way lead out of the skin where no surfel is near."""
    world, bear = puddle
    model, surface = phyxels_of(world).model, bear.surface
    skin = phyxels_of(world).melting.surface.skin_now()
    onto, _, _ = skin.seeds(np.arange(len(model)), 60)
    places = surface.origin + bear.unit * onto
    nearest, _ = cKDTree(surface.positions).query(places)
    assert (nearest > 0.8 * bear.unit).mean() < 0.01


def test_the_count_is_bounded_and_nothing_is_under_the_ground(puddle):
    _, bear = puddle
    assert len(bear.surface) < 3 * len(bear.cloud)
    assert bear.surface.positions[:, 1].min() > -1e-6


def test_the_same_bits_every_time_and_after_a_checkpoint(puddle, tmp_path):
    world, bear = drop_onto_ground()
    world.advance(0.3)
    world.save(tmp_path / "half.npz")
    again, other = drop_onto_ground()
    again.restore(tmp_path / "half.npz")
    assert (other.surface.positions == bear.surface.positions).all()
    for one in (world, again):
        one.advance(0.2)
        one.advance(0.2)
    for name in ("positions", "normals", "colors", "layers", "ids"):
        assert (getattr(other.surface, name) == getattr(bear.surface, name)).all()


def test_surfels_around_which_nothing_changed_are_where_they_would_be_carried():
    """Melt the legs of a bear that is held by its ears: what is far from the melt is carried, to the bit of what a
    carried surface shows there."""
    worlds = []
    for surface in ("carried", "blended"):
        world = px.World(device="cpu")
        bear = px.Body(px.load("bear", points=4000), nodes=300, surface=surface, material=px.Material(young=3e5))
        world.add(bear)
        top = np.ptp(bear.birth[:, 1])
        bear.fix(px.Box((-9, 0.85 * top, -9), (9, 9, 9)))
        bear.melt(px.Box((-9, -9, -9), (9, 0.2 * top, 9)), viscosity=50.0)
        world.advance(0.5)
        worlds.append((world, bear))
    carried, blended = (bear for _, bear in worlds)
    assert (carried.positions == blended.positions).all(), "surfaces do not move bodies"
    blend = blended.surface.blend
    kept = np.flatnonzero((blend.known.source >= 0) & (blend.known.layer == DETAIL))
    kept = kept[blend.known.change[blend.known.source[kept]] == 0]
    assert len(kept) > 0.5 * len(blended.cloud)
    assert blend.known.change.max() == 1
    size = np.ptp(carried.birth, axis=0).max()
    shown = blend.shown.positions[kept]
    carried_to = carried.surface.carried.positions[blend.known.source[kept]]
    assert np.linalg.norm(shown - carried_to, axis=1).max() < 1e-3 * size


def test_a_body_that_only_bends_looks_the_same_either_way():
    pictures = []
    for surface in ("carried", "blended"):
        world = px.World(device="cpu")
        bar = px.Body(px.load("bar", points=3000), nodes=200, surface=surface, material=px.Material(young=2e6))
        world.add(bar)
        bar.fix(px.Box((-9, -9, -9), (bar.birth[:, 0].min() + 0.05, 9, 9)))
        world.advance(0.2)
        pictures.append((bar.surface.positions, bar.surface.axis_a.numpy(), bar.surface.colors))
    for one, other in zip(*pictures, strict=True):
        assert (one == other).all()


def test_two_that_flow_together_have_one_skin_and_keep_their_colours():
    """Red and blue drops meet; where they touched no surfel is left, and none has a third colour."""
    world = px.World(gravity=(0, 0, 0), device="cpu")
    material = px.Material(young=2e4, poisson=0.4, viscosity=30.0)
    radius = 0.5 * px.load("sphere", points=100).size
    drops = []
    for side, color in ((-1, RED), (1, BLUE)):
        drop = px.Body(
            painted("sphere", 2500, color),
            nodes=200,
            at=(1.02 * side * radius, 0, 0),
            place="center",
            velocity=(-side * 2 * radius, 0, 0),
            material=material,
        )
        drops.append(drop)
        world.add(drop)
    world.advance(0.5)
    assert len(world.pieces()) == 1
    for drop, color in zip(drops, (RED, BLUE), strict=True):
        assert np.abs(drop.surface.colors - np.array(color, np.float32)).max() < 1e-6
    left = np.concatenate([drop.surface.positions[drop.surface.layers == DETAIL] for drop in drops])
    left = np.linalg.norm(left[np.abs(left[:, 0]) < 0.25 * drops[0].unit][:, 1:], axis=1)
    seam = np.concatenate([drop.surface.positions for drop in drops])
    seam = seam[np.abs(seam[:, 0]) < 0.25 * drops[0].unit]
    from_axis = np.linalg.norm(seam[:, 1:], axis=1)
    assert len(seam) > 30, "the neck between them has a skin"
    assert from_axis.max() > 2 * drops[0].unit
    assert (left < 0.6 * from_axis.max()).sum() < 0.01 * len(seam), "and nothing of what met is left within"


def test_what_is_solid_again_keeps_its_surface():
    """Looked at frame by frame, as pictures are made: a surface that nobody has asked for yet has long ways to go."""
    world, bear = drop_onto_ground()
    for _ in range(8):
        world.advance(0.0375)
        shown = bear.surface.positions
    bear.solidify()
    assert (bear.surface.layers == DETAIL).all()
    gone, _ = cKDTree(bear.surface.positions).query(shown)
    assert np.percentile(gone, 99) < 0.3 * bear.unit
    added, _ = cKDTree(shown).query(bear.surface.positions)
    assert np.percentile(added, 99) < EMPTY * bear.unit, "renewed once more, and bare places are covered"
    before = bear.surface.carried.positions
    world.advance(0.2)
    moved = bear.surface.carried.positions
    assert len(moved) == len(before)
    assert np.isfinite(moved).all()
    bear.melt()
    world.advance(0.05)
    assert len(bear.surface) > 0.5 * len(before)


# Lone drops, bodies unlike each other, melts that freeze and melt again


def assert_same_surface(one, other):
    for name in ("positions", "normals", "colors", "layers", "ids"):
        assert np.array_equal(getattr(one.surface, name), getattr(other.surface, name)), name


def far_from_surface(body, nodes):
    """How far nodes are from the nearest surfel over the radius of a ball with their volume, at most."""
    distance, _ = cKDTree(body.surface.positions).query(body.positions[nodes])
    return (distance / np.cbrt(3 * body.volumes[nodes] / (4 * np.pi))).max()


def test_drops_of_a_few_phyxels_are_seen_and_melt_again():
    """The surface of a drop passes within the radius of any of its phyxels, nearly: all are at its boundary. Frozen and
    melted again, where no phyxel has enough neighbours for any stress, they go no faster than they went."""
    world = px.World(device="cpu")
    drop = px.Body(
        px.load("sphere", points=100), nodes=8, at=(0, 0.2, 0), place="center", material=px.Material.gelatin()
    )
    world.add(drop)
    world.add(px.Ground())
    drop.melt(viscosity=20.0)
    world.advance(1.5)
    everyone = np.arange(len(drop.birth))
    assert far_from_surface(drop, everyone) < 1.2
    drop.solidify()
    assert far_from_surface(drop, everyone) < 1.2
    before = drop.velocities
    drop.melt()
    world.advance(0.1)
    assert np.linalg.norm(drop.velocities, axis=1).max() <= np.linalg.norm(before, axis=1).max()
    assert far_from_surface(drop, everyone) < 1.2


@pytest.mark.slow
def test_what_has_passed_through_another_is_seen_again():
    world = px.World(gravity=(0, 0, 0), device="cpu")
    big = px.Body(px.load("sphere", points=2000), nodes=300, material=MELT, size=1.0, name="big", scheme="m04")
    small = px.Body(
        px.load("sphere", points=300),
        nodes=20,
        material=MELT,
        size=0.25,
        at=(0, 0.58, 0),
        place="center",
        name="small",
        scheme="m04",
    )
    world.add(big)
    world.add(small)
    small.force = (0, -60 * small.masses.sum(), 0)
    world.advance(0.6)
    away, _ = cKDTree(big.positions).query(small.positions)
    out = np.flatnonzero(away > 3 * big.unit)
    assert len(out) > 8
    assert far_from_surface(small, out) < 2


def changing():
    """A bear that melts, freezes, is stiffened and melts again."""
    world = px.World(device="cpu")
    bear = px.Body(
        px.load("bear", points=1000), nodes=100, at=(0, 0.05, 0), place="file", material=px.Material.gelatin()
    )
    world.add(bear)
    world.add(px.Ground())
    world.at(0.05, lambda _: bear.melt(viscosity=20.0))
    world.at(0.2, lambda _: bear.solidify())
    world.at(0.25, lambda _: bear.change(young=4e6))
    world.at(0.3, lambda _: bear.melt(viscosity=20.0))
    return world, bear


@pytest.mark.parametrize("stop", [pytest.param(0.15, marks=pytest.mark.slow), 0.3])
def test_the_same_bits_go_on_from_any_stage_seen_or_not(stop, tmp_path):
    """Whoever looks at the surface knows the forces: a checkpoint must know all that was found with them."""
    world, bear = changing()
    world.advance(stop)
    assert len(bear.surface) > 0
    world.save(tmp_path / "seen.npz")
    (restored, again), (unseen, other) = changing(), changing()
    restored.restore(tmp_path / "seen.npz")
    assert_same_surface(bear, again)
    unseen.advance(stop)
    for one in (world, restored, unseen):
        one.advance(0.4 - stop)
    assert_same_surface(bear, again)
    assert_same_surface(bear, other)


def kneaded():
    """A melt on a ball that rises, and is taken away."""
    world = px.World(device="cpu")
    drop = px.Body(px.load("sphere", points=400), nodes=50, size=0.2, at=(0, 0.36, 0), place="center", material=MELT)
    ball = px.Sphere(radius=0.25, path=[(0.0, (0, 0, 0)), (1.0, (0, 2.0, 0))])
    world.add(drop)
    world.add(ball)
    world.at(0.1, lambda now: now.remove(ball))
    return world, drop


@pytest.mark.parametrize("stop", [0.01, 0.1])
def test_surfaces_keep_out_of_what_is_there_at_that_moment(stop, tmp_path):
    """Not of a collider where it was a step before, nor of one just taken away; a checkpoint knows neither."""
    (world, drop), (restored, again) = kneaded(), kneaded()
    world.advance(stop)
    world.save(tmp_path / "kneaded.npz")
    restored.restore(tmp_path / "kneaded.npz")
    assert_same_surface(drop, again)
    height = np.linalg.norm(drop.surface.positions - (0, 2.0 * stop, 0), axis=1).min()
    assert height > 0.25 - 1e-6 if stop < 0.1 else (drop.surface.layers != 2).all()


def blown():
    """A drop that melts in the wind."""
    world = px.World(gravity=(0, 0, 0), device="cpu")
    drop = px.Body(px.load("sphere", points=500), nodes=60, material=SOFT, spin=(0, 0, 15))
    world.add(drop)
    world.add(px.Wind(velocity=(20, 0, 0)))
    world.at(0.02, lambda _: drop.melt(viscosity=1.0))
    return world, drop


@pytest.mark.parametrize("stop", [0.02, 0.1])
def test_wind_presses_on_the_same_skin_after_a_checkpoint(stop, tmp_path):
    """That of what flows was found some moments before."""
    (world, drop), (restored, again) = blown(), blown()
    world.advance(stop)
    world.save(tmp_path / "blown.npz")
    restored.restore(tmp_path / "blown.npz")
    for one in (world, restored):
        one.advance(0.15 - stop)
    assert phyxels_of(world).melting.absorptions > 4
    assert np.array_equal(drop.positions, again.positions)
    assert_same_surface(drop, again)


def test_what_another_hides_is_written_and_freezes(tmp_path, monkeypatch):
    """No surfel of it is shown; when it is solid again it has the points it came with."""
    monkeypatch.setattr(Blended, "_settled", lambda self, sheet, *_: sheet.part(np.zeros(0, np.int64)))
    world = px.World(gravity=(0, 0, 0), device="cpu")
    drop = px.Body(px.load("sphere", points=200), nodes=40, material=MELT, spin=(0, 0, 15))
    world.add(drop)
    world.advance(0.2)
    assert len(drop.surface) == len(drop.surface.layers) == 0
    assert len(drop.surface.carried) == 200
    assert len(mesh_of(drop).faces) > 100
    px.export.ply(drop, tmp_path / "hidden.ply")
    assert b"element vertex 0" in (tmp_path / "hidden.ply").read_bytes()
    drop.solidify()
    world.advance(0.01)
    assert len(drop.surface.carried) == 200
    distance, _ = cKDTree(drop.positions).query(drop.surface.positions)
    assert distance.max() < 2 * drop.unit


def test_surfels_stay_as_far_apart_however_often_it_melts():
    """Discs that are put in are 1.25 times as large as at birth: twice after four melts, if they told the spacing."""
    world = px.World(device="cpu")
    drop = px.Body(
        px.load("sphere", points=800), nodes=80, at=(0, 0.3, 0), place="center", material=SOFT, velocity=(0, -2, 0)
    )
    world.add(drop)
    world.add(px.Ground())
    spacings = []
    for _ in range(4):
        drop.melt(viscosity=2.0)
        spacings.append(np.median(drop.surfels.blend.known.first_spacing))
        world.advance(0.1)
        drop.solidify()
        world.advance(0.02)
    assert (drop.surface.carried.positions[:, 1] < 0.1).mean() > 0.5, "it has flowed"
    assert np.array(spacings) == pytest.approx(spacings[0], rel=0.05), "more surface is covered a little more coarsely"


def test_each_has_its_own_skin_whichever_melts_first():
    """Two drops far apart, the second of which melts first; the first is three times as coarse. Surfels are at their
    own body, and hang on several phyxels of it: on one alone they would jump from one's motion to the next one's."""
    world = px.World(gravity=(0, 0, 0), device="cpu")
    coarse = px.Body(px.load("sphere", points=800), nodes=100, material=SOFT, size=0.3, spin=(0, 0, 8), name="coarse")
    fine = px.Body(
        px.load("sphere", points=800), nodes=100, material=SOFT, size=0.1, at=(2, 0, 0), place="center", name="fine"
    )
    for body in (coarse, fine):
        world.add(body)
    for body in (fine, coarse):
        body.melt(viscosity=1.0)
    world.advance(0.25)
    assert (coarse.surface.layers == 1).sum() > 100
    for body in (coarse, fine):
        distance, _ = cKDTree(body.positions).query(body.surface.positions)
        assert distance.max() < 2 * body.born.unit
    carriers = (coarse.surface.carried.carriers.shares > 0).sum(axis=1)
    assert np.median(carriers) > 5


def test_the_points_it_came_with_fall_with_a_melt(tmp_path):
    """Nothing moves against anything, so nothing is absorbed; after a checkpoint as well."""
    world, again = px.World(device="cpu"), px.World(device="cpu")
    drop, other = (px.Body(px.load("sphere", points=300), nodes=40, material=SOFT) for _ in range(2))
    for one, body in ((world, drop), (again, other)):
        one.add(body)
        body.melt()
    before = drop.surface.carried.positions
    world.advance(0.3)
    height = drop.surface.carried.positions[:, 1] - before[:, 1]
    assert height == pytest.approx(-0.5 * 9.81 * 0.3**2, abs=1e-3)
    world.save(tmp_path / "fallen.npz")
    again.restore(tmp_path / "fallen.npz")
    assert np.array_equal(drop.surface.carried.positions, other.surface.carried.positions)


def test_meshes_of_what_melted_are_as_fine_as_its_own_nodes():
    """A drop that melts after one eight times as coarse has a closed mesh of its own volume all the same."""
    world = px.World(gravity=(0, 0, 0), device="cpu")
    coarse = px.Body(px.load("sphere", points=400), nodes=60, material=SOFT, size=0.8)
    fine = px.Body(px.load("sphere", points=400), nodes=60, material=SOFT, size=0.1, at=(2, 0, 0), place="center")
    volumes = []
    for body in (coarse, fine):
        world.add(body)
    for body in (coarse, fine):
        body.melt()
        mesh = mesh_of(body)
        a, b, c = (mesh.vertices[mesh.faces[:, k]] - body.positions.mean(axis=0) for k in range(3))
        volumes.append((a * np.cross(b, c)).sum() / 6 / body.volumes.sum())
    assert volumes[0] == pytest.approx(volumes[1], rel=0.05), "two drops of the same shape"
    assert len(fine.pick(0)) == len(coarse.pick(0)), "1.5 spacings of its own around a surfel"


def test_wrong_uses_are_refused(tmp_path):
    world = px.World(device="cpu")
    drop = px.Body(px.load("sphere", points=300), nodes=30, material=MELT)
    with pytest.raises(px.PhyxelError, match="from 0 to 1"):
        drop.paint(px.Box((-9, -9, -9), (9, 9, 9)), (255, 0, 0))
    world.add(drop)
    with pytest.raises(px.PhyxelError, match="molten"):
        world.settle()
    with pytest.raises(px.PhyxelError, match="one body"):
        px.export.ply([drop], tmp_path / "drops.ply")
    assert not list(tmp_path.iterdir())
