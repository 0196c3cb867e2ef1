"""What ties bodies to each other: where it finds ties, what it refuses, when it lets go. Boxes have sides of 0.2 m."""

import numpy as np
import pytest

import phyxel as px
from phyxel.errors import PhyxelError
from phyxel.movers.attachments import evened


def box(model, y, **more):
    size = {} if model == "rigid" else {"nodes": 64}
    return px.Body(px.load("box", points=800), model=model, size=0.2, at=(0, y, 0), place="center", **size, **more)


def pair(one="rigid", other="rigid", y=0.2):
    below, above = box(one, 0.0, name="below"), box(other, y, name="above")
    world = px.World()
    for body in (below, above):
        world.add(body)
    return world, below, above


def test_a_place_is_chosen_on_the_first_body():
    """Half of the face is tied: 0.02 m², to the points of half a spacing along its edge."""
    world, below, above = pair()
    glue = px.Attach(above, below, px.Box((0, -1, -1), (1, 1, 1)))
    world.add(glue)
    assert glue.area == pytest.approx(0.02, rel=0.15)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda world, below, above: px.Attach(above, above), "hangs together by itself"),
        (lambda world, below, above: px.Attach(above, below, strength=-1), "above 0"),
        (lambda world, below, above: px.Attach(above, below, where=[1, 2]), "a box, a ball, a spot or a function"),
        (lambda world, below, above: px.Attach(above, "floor"), "two bodies"),
        (lambda world, below, above: px.Attach(above, box("rigid", 1.0, name="other")), "other is not in this world"),
        (lambda world, below, above: px.Attach(above, below, px.Ball((0, 0.3, 0), 0.01)), "0.2 m away"),
    ],
)
def test_what_cannot_be_is_refused(make, said):
    world, below, above = pair()
    with pytest.raises(PhyxelError, match=said):
        world.add(make(world, below, above))


def test_bodies_that_do_not_touch_are_refused():
    world, below, above = pair(y=0.3)
    with pytest.raises(PhyxelError, match=r"0\.1 m away"):
        world.add(px.Attach(above, below))


def cloth(y, side=0.1, **more):
    material = px.Membrane.cotton().but(thickness=1e-3)
    return px.Body(px.load("cloth", points=36), model="particles", material=material, size=side, at=(0, y, 0), **more)


def test_a_surface_is_sewn_on_by_its_particles():
    """A patch of 0.1 m that lies half its thickness off a face: 36 stitches, 0.01 m² in all. Half of it: 18."""
    world, below, _ = pair()
    patch = cloth(-0.1005, place="center")
    world.add(patch)
    for where, count in ((None, 36), (px.Box((0, -1, -1), (1, 1, 1)), 18)):
        seam = px.Attach(patch, below, where)
        world.add(seam)
        assert len(seam.areas) == count
        assert seam.area == pytest.approx(0.01 * count / 36)


def test_surfaces_that_do_not_touch_are_refused():
    """6 cm are more than half a spacing of 2 cm."""
    world, below, _ = pair()
    patch = cloth(-0.16, place="center")
    world.add(patch)
    with pytest.raises(PhyxelError, match=r"within 0\.0\d+ m of it, half a node spacing"):
        world.add(px.Attach(patch, below))


def test_pieces_keep_their_seam():
    """A strip of cloth sewn across a box that is cut in two: stitches go with the half that they are on."""
    box_ = px.Body(px.load("box", points=800), model="galerkin", nodes=100, size=0.2, place="center", name="box")
    patch = cloth(-0.1005, place="center", name="patch")
    world = px.World(gravity=(0, 0, 0))
    world.add(box_)
    world.add(patch)
    seam = px.Attach(patch, box_)
    world.add(seam)
    box_.cut((0, 0, 0), (1, 0, 0))
    world.advance(0.01)
    assert len(world.bodies) == 3
    assert seam.holds.all()
    assert {pair[1] for pair in world.attachments.sewn} == {body for body in world.bodies if body is not patch}


def test_what_is_removed_or_put_elsewhere_lets_go():
    world, below, above = pair()
    below.fix(lambda X: X[:, 1] < 0)
    glue = px.Attach(above, below)
    world.add(glue)
    above.lift((0, 1, 0))
    assert not glue.holds.any()
    assert glue.torn == world.time
    world.remove(glue)
    world.advance(0.05)
    assert above.velocities[:, 1].mean() == pytest.approx(-9.81 * 0.05)


def test_what_melts_lets_go():
    world, below, above = pair("rigid", "phyxel")
    glue = px.Attach(above, below)
    world.add(glue)
    above.melt(viscosity=10.0)
    world.advance(0.01)
    assert not glue.holds.any()


def test_a_resumed_run_has_the_same_bits(tmp_path):
    """Also of ties that came by an event and have begun to tear."""

    def built():
        world, below, above = pair("modal", "rigid")
        below.fix(lambda X: X[:, 1] < -0.05)
        above.force = (60.0, 0.0, 0.0)
        world.at(0.02, lambda world: world.add(px.Attach(above, below, strength=2.5e3)))
        return world

    world = built()
    world.advance(0.04)
    world.save(tmp_path / "state.npz")
    world.advance(0.06)
    again = built()
    again.restore(tmp_path / "state.npz")
    again.advance(0.06)
    assert world.attachments.every[0].holds.tolist() == again.attachments.every[0].holds.tolist()
    for one, other in zip(world.bodies, again.bodies, strict=True):
        assert np.array_equal(one.positions, other.positions)


def test_forces_are_shared_out_as_faces_that_stay_plane_do():
    """σ = N/A + M x/I at the edge of a face of a × a, I = a⁴/12, by an even grid of ties: their own moment of inertia
    is missing, 1/n² of it."""
    n, a = 20, 0.2
    x = a * ((np.arange(n) + 0.5) / n - 0.5)
    places = np.stack([*np.meshgrid(x, [0.0], x, indexing="ij")], axis=-1).reshape(-1, 3)
    area = np.full(n * n, a * a / n**2)
    force = np.zeros((n * n, 3))
    corner = int(np.argmax(places[:, 0]))
    force[corner, 1] = 10.0  # N, and the moments 10 x, 10 z
    pull = evened(force, area, places)[:, 1]
    expected = 10 / a**2 + 10 * (places[corner] @ places.T) / (a**4 / 12)
    np.testing.assert_allclose(pull, expected, rtol=2 / n**2, atol=2 * 10 / a**2 / n**2)
