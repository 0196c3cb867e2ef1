"""What is offered to machines that cannot keep up."""

import pytest

from phyxel.scene import Scene
from phyxel.view.remedies import LEAST, Remedies, remedies
from tests.view.boxes import BOX
from tests.view.driven import Driven

SOFT = '[[body]]\nname = "a"\nshape = "box"\nnodes = {nodes}\npoints = 200\nsize = 0.2\nmaterial = {{ {material} }}\n'


def offers(pace: float, nodes: int = 1000, material: str = "young = 2e4", more: str = "") -> dict[str, Scene]:
    scene = Scene.parse(SOFT.format(nodes=nodes, material=material) + more)
    bodies = Scene.parse(SOFT.format(nodes=40, material=material) + more.replace("1000", "40")).world("cpu").bodies
    return {remedy.name: remedy.scene for remedy in remedies(scene, bodies, pace)}


@pytest.mark.parametrize("pace", [0.9, 0.5, 0.3])
@pytest.mark.parametrize("nodes", [400, 3000])
def test_so_few_nodes_that_the_machine_keeps_up(pace, nodes):
    """The work of a second goes with n^(4/3)."""
    (body,) = offers(pace, nodes)["nodes"].content.body
    work = (body.nodes / nodes) ** (4 / 3)
    assert 0.65 * pace < work <= 0.8 * pace


def test_never_fewer_than_a_quarter_at_once_nor_too_few_to_be_a_body():
    assert offers(1e-3, 1000)["nodes"].content.body[0].nodes == 1000 * LEAST
    assert "nodes" not in offers(0.5, 60)


@pytest.mark.parametrize(
    ("material", "more", "offered"),
    [
        ("young = 2e4", "", True),
        ("young = 2e4, strength = 1e3", "", False),
        ("young = 2e4, yield_strain = 0.1", "", False),
        ("young = 2e4, viscosity = 10", "", False),
        ("young = 2e4", "[[event]]\nat = 1\nmelt = {}\n", False),
        ("young = 2e4", "[[event]]\nat = 1\ncut = { at = [0, 0, 0], normal = [1, 0, 0] }\n", False),
        ("young = 2e4", '[[body]]\nname = "b"\nshape = "box"\nnodes = 1000\nat = [1, 0, 0]\npoints = 200\n', False),
    ],
)
def test_modes_are_offered_for_a_body_that_never_changes(material, more, offered):
    found = offers(0.3, material=material, more=more)
    assert ("model" in found) == offered
    if offered:
        assert found["model"].content.body[0].model == "modal"


def test_what_is_offered_stays_while_the_pace_is_about_the_same():
    driven = Driven(Scene.parse(BOX.replace("nodes = 30", "nodes = 300")))
    offered, play = Remedies(), driven.live.play
    offered.update(play, play.scene, 0.5)
    first = offered.offered
    assert first
    offered.update(play, play.scene, 0.6)
    assert offered.offered is first
    offered.update(play, play.scene, 0.2)
    assert offered.offered is not first
    offered.update(play, play.scene, 1.0)
    assert offered.offered == []


def test_a_remedy_begins_again_and_the_saved_scene_has_it():
    driven = Driven(Scene.parse(BOX.replace("nodes = 30", "nodes = 300")))
    driven.ask(do="speed", factor=1.0)
    driven.live.remedies.update(driven.live.play, driven.live.play.scene, 0.3)
    before = len(driven.world.bodies[0].birth)
    driven.ask(do="ease", remedy="nodes")
    driven.go_on(2)
    assert len(driven.world.bodies[0].birth) < 0.5 * before
    assert driven.saved().content.body[0].nodes == driven.live.play.scene.content.body[0].nodes < 150
    assert "begun again" in driven.hub.of("notice")[-1]["text"]
    driven.ask(do="ease", remedy="miracle")
    assert "not offered" in driven.hub.of("notice")[-1]["text"]
    driven.ask(do="undo")
    assert len(driven.world.bodies[0].birth) == before
