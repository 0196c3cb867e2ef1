"""Blended surfaces: detail where nothing changed, the implicit skin where topology did, the same bits every time."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

import phyxel as px
from phyxel.movers.phyxel_bodies import phyxels_of
from phyxel.surface.blended import DETAIL, EMPTY, SKIN
from phyxel.surface.implicit_skin import BLOBBINESS

RED, BLUE = (0.8, 0.2, 0.1), (0.1, 0.2, 0.8)


def painted(shape, points, color):
    cloud = px.load(shape, points=points)
    return cloud.with_colors(np.broadcast_to(color, (len(cloud), 3)))


def drop_onto_ground(surface=None):
    """A soft bear that melts as it falls apart on the ground."""
    world = px.World(device="cpu")
    bear = px.Body(
        px.load("bear", points=4000), nodes=200, at=(0, 0.05, 0), surface=surface, material=px.Material.gelatin()
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
    volumes = phyxels_of(world).model.matter.rest_volume.numpy().astype(float) * body.unit**3
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
    for name in ("positions", "normals", "colors", "layers"):
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
    world, bear = drop_onto_ground()
    world.advance(0.3)
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
