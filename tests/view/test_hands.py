"""Hands in a live world: what is under the pointer is what is taken, and it goes where the pointer goes."""

import numpy as np
import pytest

from phyxel.errors import PhyxelError
from phyxel.scene import Scene
from phyxel.scene.event_tables import MeltPart
from phyxel.view import commands as do
from phyxel.view.aim import Ray, aimed_at, through
from phyxel.view.hands import Hands, size_of
from phyxel.view.journal import Journal
from phyxel.view.pace import rate_for

GROUND = '[[collider]]\nkind = "ground"\n'


def scene(
    model="phyxel",
    shape="bear",
    nodes=150,
    material='{ preset = "gelatin", young = 3e4, damping = 4e-3 }',
    at=0.0,
    tilt=0,
):
    return f"""
gravity = [0, -4, 0]
[[body]]
name = "bear"
shape = "{shape}"
points = 600
nodes = {nodes}
{"modes = 24" if model == "modal" else ""}
model = "{model}"
at = [0, {at}, 0]
place = "file"
rotate = [{tilt}, 0, 0]
material = {material}
"""


class Room:
    """A world with hands in it, seen from the front."""

    def __init__(self, text):
        played = Scene.parse(text, "room")
        self.performance = played.performance("cpu")
        self.journal = Journal(played)
        self.hands = Hands(self.performance, self.journal)
        self.world = self.performance.world
        self.hands.happen(rate=rate_for(self.world, 1.0))
        self.body = self.world.bodies[0]
        self.size = size_of(self.body)
        self.eye = np.array([0.0, 0.4, 8 * self.size])

    def live_on(self, seconds):
        end = self.world.time + seconds - 1e-9
        while self.world.time < end:
            self.hands.follow()
            self.world.tick()
            self.hands.correct()

    def aim(self, at):
        return {"ray": tuple(self.eye.tolist()), "way": tuple((np.asarray(at) - self.eye).tolist())}

    def grab(self, at):
        told = self.hands.grab(1, do.Grab(do="grab", ahead=(0.0, 0.0, -1.0), **self.aim(at)))
        return np.array(told["at"])

    def pull(self, to):
        self.hands.pull(1, do.Pull(do="pull", **self.aim(to)))

    def front(self, best):
        """A place in front that a function of positions is largest for."""
        discs = self.body.surface.carried
        facing = np.flatnonzero(discs.normal.numpy()[:, 2] > 0.6)
        return discs.positions[facing[np.argmax(best(discs.positions[facing]))]]


def test_a_ray_meets_the_first_disc_and_what_is_near():
    room = Room(scene(shape="sphere") + GROUND)
    skin = room.body.surface.positions
    middle, radius = 0.5 * (skin.min(axis=0) + skin.max(axis=0)), 0.25 * np.ptp(skin, axis=0).sum() * 2 / 3
    for off in np.random.default_rng(1).uniform(-0.6, 0.6, (20, 2)) * radius:
        start = middle + np.array([off[0], off[1], 3.0])
        ray = Ray.of(start, (0, 0, -1))
        exact = 3.0 - np.sqrt(radius**2 - off @ off)  # where the ray comes into the sphere
        hit = aimed_at(room.world, ray)
        assert hit.distance == pytest.approx(exact, abs=0.03 * radius)
        assert np.linalg.norm(hit.place - ray.eye - exact * ray.way) < 0.15 * radius  # a spacing
        first, last = through(room.body, ray)
        assert first.surfel == hit.surfel and last.distance == pytest.approx(6.0 - exact, abs=0.03 * radius)
    beside = Ray.of(middle + np.array([1.01 * radius, 0, 3.0]), (0, 0, -1))
    assert aimed_at(room.world, beside) is not None  # a few pixels off
    assert aimed_at(room.world, Ray.of(middle + np.array([1.2 * radius, 0, 3.0]), (0, 0, -1))) is None
    assert aimed_at(room.world, Ray.of(middle + np.array([0, 0, 3.0]), (0, 0, 1))) is None  # behind the eye


CLOTH = scene("particles", "cloth", material='{ preset = "latex", drag = 3.0 }', at=0.3, tilt=90)


@pytest.mark.parametrize(
    ("text", "sizes", "seconds"),
    [
        (scene() + GROUND, 2, 1.2),
        pytest.param(scene("modal") + GROUND, 2, 1.2, marks=pytest.mark.slow),
        (scene("galerkin", nodes=40), 0.4, 0.3),
        (CLOTH, 2, 1.2),
        (scene("rigid", material='{ preset = "stone" }') + GROUND, 2, 1.2),
    ],
    ids=["phyxel", "modal", "galerkin", "particles", "rigid"],
)
def test_a_drag_moves_the_surfel_to_the_pointer_within_five_per_cent(text, sizes, seconds):
    room = Room(text)
    room.live_on(0.05)
    at = room.grab(room.front(lambda x: x[:, 1]))
    there = at + sizes * room.size * np.array([1.0, 0.5, 0.0])
    room.pull(there)
    room.live_on(seconds)
    hit = room.hands.in_hand[1].hit
    pointer = Ray.of(room.eye, there - room.eye).on_plane(at, np.array([0.0, 0.0, -1.0]))
    place = room.body.surface.carried.positions[hit.surfel]
    assert np.linalg.norm(place - pointer) < 0.05 * room.size
    (mark,) = room.hands.grabs
    assert np.allclose(mark["to"], pointer)
    before = energy(room.body)
    room.hands.let_go(1)
    assert not room.body.handles and not room.hands.grabs
    room.live_on(0.05)
    assert energy(room.body) < before + 0.02 * abs(before)  # opening a hand does no work


def energy(body):
    found = body.diagnostics()
    return found["kinetic"] + found["elastic"] + found["potential"]


def test_jerks_do_not_tear_the_numbers_apart_and_play_again_to_the_bit():
    room = Room(scene(material='{ preset = "gelatin", young = 6e3, damping = 1e-3 }') + GROUND)
    room.live_on(0.05)
    at = room.grab(room.front(lambda x: x[:, 0]))
    for way in ((5, 0, 0), (-5, 4, 0), (0, -9, 0), (0, 2, 0)):
        room.pull(at + room.size * np.array(way))
        room.live_on(0.15)
        assert room.hands.in_hand[1].hit.place[1] + room.hands.in_hand[1].gone[1] > 0  # never into the ground
    room.hands.let_go(1)
    room.live_on(0.1)
    again = room.journal.scene(room.performance).world("cpu")
    again.advance(room.world.time)
    assert (again.bodies[0].positions == room.body.positions).all()


@pytest.mark.parametrize("model", ["phyxel", pytest.param("modal", marks=pytest.mark.slow)])
def test_a_pinned_body_stretches_to_a_pointer_far_away_and_comes_back(model):
    room = Room(scene(model, nodes=80))
    room.hands.pin(do.Pin(do="pin", **room.aim(room.front(lambda x: x[:, 1]))))
    at = room.grab(room.front(lambda x: -x[:, 1]))
    start = energy(room.body)
    room.pull(at - np.array([0, 2 * room.size, 0]))
    room.live_on(1.0)
    hit = room.hands.in_hand[1].hit
    gone = room.body.surface.carried.positions[hit.surfel] - hit.place
    assert np.linalg.norm(gone + np.array([0, 2 * room.size, 0])) < 0.05 * room.size
    held = energy(room.body)
    room.hands.let_go(1)
    room.live_on(0.3)
    assert energy(room.body) < start + 0.5 * (held - start)  # nothing is added, and damping takes
    assert np.ptp(room.body.positions, axis=0).max() < 2 * room.size


def test_pins_hold_and_are_taken_out_by_a_second_one():
    room = Room(scene())
    top = room.front(lambda x: x[:, 1])
    room.hands.pin(do.Pin(do="pin", **room.aim(top)))
    (pin,) = room.hands.pins
    room.live_on(0.5)
    assert room.body.positions[:, 1].max() > pin[1] - 0.2 * room.size  # it hangs; free it would have fallen by 0.5 m
    room.hands.pin(do.Pin(do="pin", **room.aim(pin)))
    assert not room.hands.pins and not room.body.handles
    start = room.body.diagnostics()
    room.live_on(0.3)
    weight = 4.0 * start["mass"]
    fallen = (start["potential"] - room.body.diagnostics()["potential"]) / weight
    assert fallen == pytest.approx(0.5 * 4.0 * 0.3**2 - 0.3 * start["momentum"][1] / start["mass"], rel=1e-3)


def test_a_push_of_a_force_gives_a_momentum_and_a_drop_lets_fall():
    room = Room(scene())
    room.world.gravity = (0.0, 0.0, 0.0)
    room.hands.push(1, do.PushAway(do="push", force=7.0, **room.aim(room.front(lambda x: x[:, 1]))))
    room.live_on(0.2)
    room.hands.stop_push(1)
    room.live_on(0.1)
    momentum = room.body.diagnostics()["momentum"]
    assert np.linalg.norm(momentum) == pytest.approx(7.0 * 0.2, rel=1e-3)  # F t
    assert not room.world.fields
    grounded = Room(scene() + GROUND)
    grounded.live_on(0.05)
    grounded.grab(grounded.front(lambda x: x[:, 1]))
    grounded.hands.drop(None)
    assert grounded.body.surface.positions[:, 1].min() == pytest.approx(
        grounded.size, rel=0.01
    )  # on the ground, surfels that dip in are shown on it
    assert not grounded.body.handles and not grounded.hands.grabs
    grounded.hands.let_go(1)
    grounded.live_on(0.1)
    assert grounded.body.velocities[:, 1].mean() == pytest.approx(-0.4, rel=0.02)  # g t


def test_a_stroke_cuts_what_is_under_it_and_pieces_can_be_taken():
    room = Room(scene(nodes=200))
    room.world.gravity = (0.0, 0.0, 0.0)
    x = room.body.surface.positions
    neck = x[:, 1].min() + 0.5 * np.ptp(x[:, 1])
    ends = [np.array([side * room.size, neck, 0.0]) - room.eye for side in (-1, 1)]
    room.hands.cut(do.Cut(do="cut", ray=tuple(room.eye), way=tuple(ends[0]), to_way=tuple(ends[1])))
    room.live_on(0.05)
    assert len(room.world.bodies) == 2
    upper = max(room.world.bodies, key=lambda body: body.positions[:, 1].mean())
    lower = min(room.world.bodies, key=lambda body: body.positions[:, 1].mean())
    assert upper.positions[:, 1].min() > neck - room.body.unit and lower.positions[:, 1].max() < neck + room.body.unit
    at = room.grab(upper.surface.carried.positions[upper.surface.carried.positions[:, 1].argmax()])
    room.pull(at + np.array([0, room.size, 0]))
    room.live_on(0.3)
    assert upper.positions[:, 1].mean() > lower.positions[:, 1].mean() + room.size
    with pytest.raises(PhyxelError, match="nothing under the stroke"):
        room.hands.cut(do.Cut(do="cut", ray=(0, 0, 50), way=(0, 0, 1), to_way=(0, 0.1, 1)))


def test_a_stroke_that_only_grazes_is_refused_in_words():
    """Beside the head, by more and more: first it is met by aim alone, then by nothing."""
    room = Room(scene())
    top = room.body.surface.positions[:, 1].max()
    said = []
    for above in np.linspace(0.002, 0.2, 12) * room.size:
        ends = [np.array([side * 0.02 * room.size, top + above, 0.0]) - room.eye for side in (-1, 1)]
        with pytest.raises(PhyxelError, match=r"cut: .*draw it across") as caught:
            room.hands.cut(do.Cut(do="cut", ray=tuple(room.eye), way=tuple(ends[0]), to_way=tuple(ends[1])))
        said.append("only grazes bear" in str(caught.value))
    assert said[0] and not said[-1]
    assert len(room.world.bodies) == 1


def test_what_has_melted_can_be_taken_too():
    room = Room(scene() + GROUND)
    room.hands.happen(body="bear", melt=MeltPart())
    room.live_on(0.1)
    at = room.grab(room.front(lambda x: x[:, 1]))
    assert room.body.handles[0].nodes.size
    room.pull(at + np.array([0, 0.3 * room.size, 0]))
    room.live_on(0.3)
    held = room.body.positions[room.body.handles[0].nodes].mean(axis=0)
    assert held[1] > at[1] + 0.15 * room.size
    room.hands.gone(1)
    assert not room.body.handles


@pytest.mark.parametrize("kinds", [("rigid", "phyxel"), ("phyxel", "modal"), ("modal", "rigid")], ids="-".join)
def test_what_a_hand_brings_along_pushes_what_is_of_another_kind(kinds):
    """At 2 m/s a hand takes a ball 10 cm into where a box stands, and lets go: the box is on its way then, and the
    ball, both half a metre wide, has not got through."""
    ball = scene(kinds[0], "sphere", 40, "{ young = 1e6 }")
    box = scene(kinds[1], "box", 64, "{ young = 1e6 }").replace('"bear"', '"box"').replace("at = [0,", "at = [1,")
    room = Room("gravity = [0, 0, 0]" + (ball + box).replace("gravity = [0, -4, 0]", ""))
    pushing, pushed = room.world.bodies
    at = room.grab(room.front(lambda x: x[:, 0]))  # which the rest of it trails behind
    for way in np.linspace(0.03, 0.6, 20):
        room.pull(at + np.array([way, 0.0, 0.0]))
        room.live_on(0.015)
    room.hands.let_go(1)
    room.live_on(0.2)
    assert pushing.positions[:, 0].mean() < pushed.positions[:, 0].mean() - 0.2
    assert pushed.diagnostics()["momentum"][0] > 0.1 * pushed.masses.sum()
