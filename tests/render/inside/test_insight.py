"""Pictures of what is inside bodies, by their numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phyxel as px
from phyxel.body.inside import Plane
from phyxel.body.quantities import QUANTITIES, quantity
from phyxel.render.camera import Camera
from phyxel.render.inside.haze import light_of_bytes
from phyxel.render.inside.lattice import FieldLattice
from phyxel.render.inside.legend import Legend, Limits, shades
from phyxel.render.stage import Stage

RADIUS, MIDDLE = 0.5, np.array([1.0, 2.0, 3.0])
SCALE = 300
"""pixels a metre"""


@pytest.fixture(scope="module")
def ball() -> px.World:
    """A ball that has not moved."""
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(px.Body(px.load("sphere", points=4000), nodes=64, size=2 * RADIUS, at=MIDDLE, place="center"))
    return world


def picture(world: px.World, inside: px.Inside, background: str | tuple[float, ...] = (1.0, 1.0, 1.0)) -> np.ndarray:
    """The ball seen along z from 5 m, its middle in the middle."""
    camera = Camera(
        np.add(MIDDLE, (0, 0, 5)), MIDDLE, fov=2 * np.degrees(np.arctan(240 / (5 * SCALE))), width=480, height=480
    )
    return Stage(camera, background, "cpu", inside=inside).draw(world)[..., :3].astype(int)


def test_a_slice_shows_the_distance_in_its_colours(ball):
    """In the plane through the middle the distance at radius r is r − ½, and the camera looks at it square on: a pixel
    off is 1/300 m, so the colour lies between those of the distance there and as much more or less; 2 for rounding."""
    seen = picture(ball, px.Inside("distance", "slice", slice="z = 3.0", range=(-0.5, 0.0)))
    legend = Legend(QUANTITIES["distance"], -0.5, 0.0)
    for angle in np.linspace(0.1, 6.0, 7):
        for radius in (0.05, 0.15, 0.25, 0.35, 0.45):  # between the lines at whole tenths
            x, y = 240 + SCALE * radius * np.cos(angle), 240 - SCALE * radius * np.sin(angle)
            at = np.hypot(int(x) + 0.5 - 240, int(y) + 0.5 - 240) / SCALE
            near = 255 * legend.colors(at - RADIUS + np.array([-1, 0, 1]) / SCALE)
            here = seen[int(y), int(x)]
            assert (here >= near.min(axis=0) - 2).all() and (here <= near.max(axis=0) + 2).all(), (angle, radius)
    for line in (seen[240, :400], seen[:, 240]):
        assert np.ptp(np.flatnonzero((line < 250).any(axis=1))) == pytest.approx(2 * RADIUS * SCALE, abs=3)


def test_the_surface_has_the_colour_of_the_field_there(ball):
    """Of a field that rises from left to right; light changes how bright a colour is, not which channel is the least
    or the most by far: violet at the left, yellow at the right."""
    seen = picture(ball, px.Inside(lambda X: X[:, 0], "surface"))
    left, right = seen[240, 240 - 130], seen[240, 240 + 130]
    assert left[2] > 1.3 * left[1] and left[2] > left[0]
    assert right[0] > 1.5 * right[2] and right[1] > 1.5 * right[2]


def test_iso_surfaces_lie_where_the_field_has_their_value(ball):
    """Of the distance, marked at −0.4 … −0.1, the outermost is a ball of radius 0.4: there the brightness jumps, to
    half a spacing of the lattice of 480²/20 places, ½ (0.524 / 11,520)^⅓ = 1.8 cm = 5 pixels."""
    inside = px.Inside("distance", "iso", range=(-0.5, 0.0))
    seen = picture(ball, inside, (0.0, 0.0, 0.0)).sum(axis=2)
    rise = np.diff(seen[240, 240:380])
    assert abs(int(np.argmin(rise)) - 0.4 * SCALE) < 5


def test_a_bars_stress_is_bright_at_its_root_and_dark_at_its_tip():
    """A cantilever under its weight: bending stress at the root, none at the tip, where only the glass of the surface
    is seen: less than a fifth of the light. The neutral fibre is darker than what is pulled and pressed."""
    bar = px.Body(
        px.load("bar", points=6000), nodes=120, model="galerkin",
        material=px.Material(young=4e6, poisson=0.3, density=1000.0),
    )  # fmt: skip
    world = px.World(device="cpu")
    world.add(bar)
    lower, upper = bar.placed_cloud().min(axis=0), bar.placed_cloud().max(axis=0)
    bar.fix(px.Box((-9, -9, -9), (lower[0] + 0.01, 9, 9)))
    world.settle()
    stage = px.stage(
        world, px.Inside("stress", "volume"), width=600, height=300, direction=(0, 0, 1), background=(0, 0, 0)
    )
    light = light_of_bytes()[stage.draw(world)[..., :3]].sum(axis=2)

    def at(x: float, y: float) -> float:
        """Light at a share of the length and of the height, seen from the front."""
        place = lower + np.array([x, y, 1.0]) * (upper - lower)
        place = place + bar.displacement_at(place[None])[0] - np.asarray(stage.camera.eye)
        right, up, depth = stage.camera.axes @ place
        column, row = 300 + stage.camera.focal * right / depth, 150 - stage.camera.focal * up / depth
        return float(light[round(row) - 2 : round(row) + 2, round(column) - 2 : round(column) + 2].mean())

    root, tip = (np.mean([at(x, y) for y in (0.1, 0.9)]) for x in (0.06, 0.94))
    assert root > 5 * tip
    assert at(0.1, 0.5) < 0.3 * min(at(0.1, 0.1), at(0.1, 0.9))


def test_quantities_of_known_tensors():
    """A bar pulled by σ has σ of von Mises and as largest principal stress; under pressure alone 0 and −p. A stretch
    that keeps the volume, λ = 1 + ε along x, has ε as equivalent strain to first order."""

    class Probe:
        def stress(self):
            return np.array([np.diag([5.0, 0.0, 0.0]), np.diag([-3.0, -3.0, -3.0])])

        def gradient(self):
            return np.array([np.diag([1e-4, -0.5e-4, -0.5e-4])])

    assert QUANTITIES["stress"].at(Probe()) == pytest.approx([5.0, 0.0], abs=1e-12)
    assert QUANTITIES["principal"].at(Probe()) == pytest.approx([5.0, -3.0])
    assert QUANTITIES["strain"].at(Probe()) == pytest.approx([1e-4], rel=1e-3)


def test_the_scale_says_what_it_shows():
    stress = QUANTITIES["stress"]
    assert Legend(stress, 0.0, 180e3).labels == ("von Mises stress [kPa]", ["0", "50", "100", "150"])
    assert Legend(stress, 0.0, 2.4).labels == ("von Mises stress [Pa]", ["0.0", "0.5", "1.0", "1.5", "2.0"])
    assert Legend(QUANTITIES["strain"], 0.0, 0.002).labels == (
        "equivalent strain [1e-3]",
        ["0.0", "0.5", "1.0", "1.5", "2.0"],
    )
    distance = Legend(QUANTITIES["distance"], -0.02, 0.0)
    assert distance.labels == ("distance to the surface [cm]", ["-2.0", "-1.5", "-1.0", "-0.5", "0.0"])
    assert np.allclose(distance.colors(np.array([0.0, -0.02])), shades()[[0, -1]]), "what is deep is bright"


def test_colours_are_evenly_apart_and_rise_in_brightness():
    """From each to the next as far in Oklab, by construction; and luminance rises all the way, so that a picture in
    grey says the same."""
    light = shades() ** 2.2 @ np.array([0.2126, 0.7152, 0.0722])
    assert (np.diff(light) > -1e-4).all() and light[-1] > 20 * light[0]


def test_limits_are_round_leave_out_what_is_extreme_and_only_widen():
    limits = Limits(QUANTITIES["stress"])
    limits.see(np.append(np.linspace(0, 97.0, 10_000), 1e9))
    first = limits.legend()
    assert (first.low, first.high) == (0.0, 100.0)
    limits.see(np.linspace(0, 3.0, 100))
    assert limits.legend() == first
    limits.see(np.linspace(0, 130.0, 1000))
    assert limits.legend().high == 140.0
    nothing = Limits(QUANTITIES["plastic"])
    nothing.see(np.zeros(9))
    assert (nothing.legend().low, nothing.legend().high) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"field": "stres"}, 'did you mean "stress"'),
        ({"mode": "volum"}, 'did you mean "volume"'),
        ({"range": (1.0, 0.0)}, "lower value first"),
        ({"range": (1.0,)}, "two different numbers"),
        ({"slice": "w = 3"}, "give an axis"),
        ({"slice": "x = deep"}, "give an axis"),
        ({"slice": [[[0, 0, 0], [0, 0, 0]]]}, "give an axis"),
        ({"brightness": 0}, "above 0"),
        ({"field": 3}, "f(X)"),
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong, word):
    with pytest.raises(px.PhyxelError) as refusal:
        px.Inside(**wrong)
    assert word in str(refusal.value)


def test_planes_are_read():
    inside = px.Inside(slice=["x", "z = -0.5", ((0, 2, 0), (7, 3, 1))])
    assert inside.slice == (Plane((1, 0, 0)), Plane((0, 0, 1), -0.5), Plane((0, 1, 0), 3.0))
    assert px.Inside(slice=((0, 0, 1), (0, 0, 2))).slice == (Plane((0, 0, 1), 2.0),)


def test_a_function_of_ones_own(ball):
    def twice_the_height(body, X):
        assert body.name == "sphere"
        return 2 * X[:, 1]

    body = ball.bodies[0]
    own = quantity(twice_the_height)
    assert own.title == "twice the height"
    assert own.at(body.probe(MIDDLE[None])) == pytest.approx([4.0])
    with pytest.raises(px.PhyxelError, match="one number for each"):
        quantity(lambda X: X).at(body.probe(MIDDLE[None]))


def test_pieces_share_the_lattice_of_what_they_were():
    """A ball cut in two: each half gets its own places, together they fill the ball's volume and no more. A lattice of
    8,000 places in a ball has them 1/16 of the diameter apart and weighs parts of cells: 1 %."""
    world = px.World(gravity=(0, 0, 0), device="cpu")
    body = px.Body(px.load("sphere", points=1000), nodes=100, size=2 * RADIUS)
    world.add(body)
    body.cut(at=(0.1, 0.0, 0.0), normal=(1.0, 0.0, 0.0))
    world.advance(1e-3)
    assert len(world.bodies) == 2
    spacing = float(np.cbrt(np.pi / 6 / 8000))
    volumes, ends = [], []
    for piece in world.bodies:
        lattice = FieldLattice(piece, spacing)
        owner, offset, volume = lattice.parts
        volumes.append(volume.sum())
        x = (lattice.X[owner] + offset)[volume > 0.5 * volume.max(), 0]
        ends.append((x.min(), x.max()))
    cap = np.pi * (RADIUS - 0.1) ** 2 * (3 * RADIUS - (RADIUS - 0.1)) / 3
    assert sorted(volumes) == pytest.approx([cap, np.pi / 6 - cap], rel=0.01)
    (_, high), (low, _) = sorted(ends)
    assert high < 0.1 + spacing / 2 and low > 0.1 - spacing / 2


@pytest.fixture(scope="module")
def asked() -> px.World:
    asked = px.World()
    asked.add(px.Body(px.load("sphere", points=2000), nodes=60, model="galerkin", name="ball"))
    return asked


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (lambda X: np.where(X[:, 1] > 0, np.nan, X[:, 0]), "gave nan at .* in ball; give a finite number"),
        (lambda X: np.full(len(X), -np.inf), "gave -inf"),
        (lambda body, X, time: X[:, 0], "a function of 3 arguments; give f"),
    ],
)
def test_fields_that_say_nothing(asked: px.World, field: Callable[..., Any], said: str) -> None:
    with pytest.raises(px.PhyxelError, match=said):
        px.stage(asked, px.Inside(field, "slice")).draw(asked)


def test_a_range_of_words_and_an_empty_world() -> None:
    with pytest.raises(px.PhyxelError, match="range = low: give two different numbers"):
        px.Inside("stress", range="low")  # type: ignore[arg-type]
    with pytest.raises(px.PhyxelError, match="no body to look at"):
        px.stage(px.World(), px.Inside("stress"))
