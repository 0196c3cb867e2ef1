"""What newcomers call wrong in Python, and what they are told: the place, what was given, what is taken, what to do."""

import numpy as np
import pytest

import phyxel as px
from phyxel.errors import CallError


@pytest.fixture
def box() -> px.Body:
    return px.Body(cloud(), nodes=64)


@pytest.fixture
def world(box) -> px.World:
    world = px.World()
    world.add(box)
    return world


def cloud() -> px.PointCloud:
    return px.load("box", points=300)


UP = (0.0, 1.0, 0.0)

CALLS = [
    # loading
    ("a shape", lambda: px.load("baer"), ('"baer"', "no built-in shape", 'did you mean "bear"?')),
    ("a file", lambda: px.load("scans/bear.ply"), ('"scans/bear.ply": no such file', "check the path")),
    ("too few points", lambda: px.load("bear", points=2), ("points = 2", "at least")),
    ("units", lambda: px.load("bear", units="meter"), ('units = "meter": not known', '"m"')),
    ("an argument of load", lambda: px.load("bear", unit="mm"), ("load(unit='mm')", 'did you mean "units"?')),
    ("no such shape", lambda: px.load("mug"), ('"mug": no such file, and no built-in shape', "there are balloon, bar")),
    ("colours", lambda: px.PointCloud([UP], color=[UP]), ("PointCloud(color=", 'did you mean "colors"?')),
    ("tolerance", lambda: px.Solid(cloud(), tolerence=1), ("Solid(tolerence=1): not known", '"tolerance"?')),
    # making a body
    ("a name", lambda: px.Body("bear"), ("Body: 'bear'", "px.load('bear')")),
    ("an unknown argument", lambda: px.Body(cloud(), node=100), ("Body(node=100): not known", 'did you mean "nodes"?')),
    ("another word", lambda: px.Body(cloud(), position=UP), ("Body(position=", 'did you mean "at"?')),
    ("a material's name", lambda: px.Body(cloud(), material="rubber"), ("material = 'rubber'", "Material.rubber()")),
    ("many nodes", lambda: px.Body(cloud(), nodes="many"), ("box: nodes = 'many'", "a whole number")),
    ("no nodes", lambda: px.Body(cloud(), nodes=0), ("box: nodes = 0", "at least 1")),
    ("a model", lambda: px.Body(cloud(), model="galerkni"), ('box: model = "galerkni"', 'did you mean "galerkin"?')),
    ("no such model", lambda: px.Body(cloud(), model="fem"), ('model = "fem"', "there are phyxel, galerkin, modal")),
    ("a look", lambda: px.Body(cloud(), look="shiny"), ('box: look = "shiny"', "there are gummy, wax")),
    ("two numbers", lambda: px.Body(cloud(), at=(0, 1)), ("box: at = (0, 1)", "three finite numbers")),
    ("a size", lambda: px.Body(cloud(), size=-1), ("box: size = -1", "in metres, above 0")),
    ("a size in kilograms", lambda: px.Body(cloud(), size="2 kg"), ("box: size = '2 kg'", "kg is not known", "km, m")),
    ("a velocity", lambda: px.Body(cloud(), nodes=64, velocity=3), ("box: velocity = 3", "three finite numbers [m/s]")),
    ("a basis", lambda: px.Body(cloud(), basis="cubic"), ('box: basis = "cubic"', "there are linear, quadratic")),
    ("another's option", lambda: px.Body(cloud(), modes=20), ("box: modes = 20", 'needs model = "modal"')),
    ("an integrator", lambda: px.Body(cloud(), integrator="euler"), ('integrator = "euler"', "leapfrog, implicit")),
    ("rough", lambda: px.Ground(friction="rough"), ("ground.friction = rough", "0 or more", "rubber 1")),
    ("a strength", lambda: px.Attraction(UP, "strong"), ("attraction: strength = 'strong'", "an acceleration")),
    ("friction", lambda: px.Body(cloud(), friction=-1), ("box: friction = -1", "give 0 or more")),
    ("support", lambda: px.Body(cloud(), support=9), ("box: support = 9", "1.2 to 5")),
    ("parts", lambda: px.Body(cloud(), parts="soft"), ("box: parts = 'soft'", "px.Box(...), material")),
    ("bytes", lambda: px.Body(cloud(), nodes=64, inside=(50, 120, 230)), ("box: inside = (50, 120, 230)", "[0.196")),
    ("a colour", lambda: px.Body(cloud(), nodes=64, inside="bleu"), ("box: inside = 'bleu'", '"blue"?')),
    ("cloth", lambda: px.Body(cloud(), nodes=64, material=px.Membrane.silk()), ("a Membrane is for model", "Material")),
    # materials
    ("below zero", lambda: px.Material(young=-1), ("material.young = -1", "above 0 Pa")),
    ("Poisson", lambda: px.Material(poisson=0.5), ("material.poisson = 0.5", "between -1 and 0.5")),
    ("a number", lambda: px.Material(yong=1e5), ("Material(yong=100000.0): not known", 'did you mean "young"?')),
    ("a Greek letter", lambda: px.Material(rho=900), ("Material(rho=900): not known", 'did you mean "density"?')),
    ("a dimension", lambda: px.Material(young="2 kg/m³"), ("material.young = '2 kg/m³'", "a density", "GPa")),
    ("a unit", lambda: px.Material(young="2 gpa"), ("material.young = '2 gpa'", 'did you mean "GPa"?')),
    ("a word", lambda: px.Material(density="heavy"), ("material.density = 'heavy'", "give a density", "[kg/m³]")),
    ("a change", lambda: px.Material().but(yong=1), ("material.yong: not known", 'did you mean "young"?')),
    ("a preset", lambda: px.Material.preset("ruber"), ('material preset "ruber"', 'did you mean "rubber"?')),
    ("a preset of none", lambda: px.Membrane.preset("mud"), ('membrane preset "mud"', "there are skin, latex")),
    ("both yields", lambda: px.Material(yield_strain=0.1, yield_stress=1e5), ("yield_strain or yield_stress",)),
    ("a solid's number", lambda: px.Membrane(viscosity=3), ("material.viscosity = 3", "cannot melt")),
    ("a channel", lambda: px.Channel("rad", 0, 1), ('channel "rad": not known', 'did you mean "red"?')),
    # the world
    ("gravity", lambda: px.World(gravity=-9.81), ("gravity = -9.81", "three finite numbers [m/s²]")),
    ("an argument of the world", lambda: px.World(gravty=UP), ("World(gravty=", 'did you mean "gravity"?')),
    ("a device", lambda: px.World(device="gpu"), ('device = "gpu": not on this machine', "cpu", "leave it out")),
    ("a rate", lambda: px.World(rate=0.5), ("rate = 0.5", "a whole number of ticks")),
    ("a cloud", lambda: px.World().add(cloud()), ("world.add(a PointCloud of 300)", "px.Body(cloud)", "a collider")),
    ("an empty world", lambda: px.World().settle(), ("settle: the world has no body", "world.add(body)")),
    ("backwards", lambda: px.World().advance(-1), ("world.advance(-1)", "0 s or more")),
    ("a while", lambda: next(px.World().play(seconds="a while")), ("world.play: seconds = 'a while'", "give a time")),
    ("seconds", lambda: px.World().play(second=1), ("World.play(second=1): not known", 'did you mean "seconds"?')),
    ("no time", lambda: next(px.World().play(seconds=0)), ("world.play(seconds=0", "above 0")),
    # colliders and fields
    ("a radius", lambda: px.Sphere(0), ("sphere.radius = 0", "a length above 0 m")),
    ("a radius in seconds", lambda: px.Sphere("2 s"), ("sphere.radius = '2 s'", "a unit of a time", "a length")),
    ("a place", lambda: px.Sphere(1, at=(0, 1)), ("sphere.at = (0, 1)", "three finite numbers [m]")),
    ("restitution", lambda: px.Ground(restitution=2), ("ground.restitution = 2", "from 0 to 1")),
    ("corners", lambda: px.Box((1, 1, 1), (0, 0, 0)), ("box: lower = (1, 1, 1) lies above upper",)),
    ("a path", lambda: px.Sphere(1, path=[(0, UP), (0, UP)]), ("sphere.path[1]: time = 0 s", "rising times")),
    ("wind", lambda: px.Wind(5), ("wind: velocity = 5", "three finite numbers [m/s]")),
    ("bodies", lambda: px.Wind(UP, bodies="bear"), ('wind: bodies = "bear"', 'give a list, ["bear"]')),
    ("during", lambda: px.Wind(UP, during=(2, 1)), ("wind: during = (2, 1)", "begins and ends")),
    ("fading", lambda: px.Push(UP, fades=True), ("push: fades", "px.Ball(...)")),
    ("height", lambda: px.Ground(heigth=1), ("Ground(heigth=1): not known", 'did you mean "height"?')),
    ("rotation", lambda: px.Box(UP, UP, rotation=UP), ("Box(rotation=", 'did you mean "rotate"?')),
    ("a capsule", lambda: px.Capsule(UP, UP, 1, radus=1), ("Capsule(radus=1): not known", 'did you mean "radius"?')),
    ("inside out", lambda: px.Mold(cloud(), insideout=True), ("Mold(insideout=True)", 'did you mean "inside_out"?')),
    ("one body", lambda: px.Wind(UP, body=["bear"]), ("Wind(body=['bear']): not known", 'did you mean "bodies"?')),
    ("where", lambda: px.Push(UP, wher=None), ("Push(wher=None): not known", 'did you mean "where"?')),
    ("a ball", lambda: px.Ball(UP, radus=1), ("Ball(radus=1): not known", 'did you mean "radius"?')),
    ("a bone", lambda: px.Bone("arm", UP, UP, paht=1), ("Bone(paht=1): not known", "did you mean")),
    ("bones", lambda: px.Skeleton(bone=[]), ("Skeleton(bone=[]): not known", 'did you mean "bones"?')),
    ("the high end", lambda: px.Channel("red", 0, hi=1), ("Channel(hi=1): not known", 'did you mean "high"?')),
    # pictures and scenes
    ("a range", lambda: px.Inside("stress", rnage=(0, 1)), ("Inside(rnage=(0, 1)): not known", '"range"?')),
    ("a width", lambda: px.render(cloud(), widht=9), ("render(widht=9): not known", 'did you mean "width"?')),
    ("no picture of a number", lambda: px.render(3), ("render(3): give a World", "a Body, a PointCloud or a Solid")),
    ("inside a cloud", lambda: px.render(cloud(), px.Inside()), ("render: inside =", "is for worlds")),
    ("an empty world", lambda: px.render(px.World()), ("stage: there is no body", "world.add(body)")),
    ("a file's name", lambda: px.Scene("jelly.toml"), ("Scene('jelly.toml')", "px.Scene.read(file)")),
    ("a change of a scene", lambda: px.gallery("demo").changed(second=1), ("Scene.changed(second=1)", '"seconds"?')),
    ("a run of a name", lambda: px.Run("demo", "out"), ("Run: scene = 'demo': give a Scene", "px.gallery(name)")),
    ("no run", lambda: px.Run.read("no-such-folder"), ("no-such-folder: no run there", "phyxel run")),
    ("no video", lambda: px.Run(px.gallery("demo"), "no-such-folder").video(), ("has no video yet", "to its end")),
    ("what is shown", lambda: px.Inside("stres"), ('field = "stres": not known', 'did you mean "stress"?')),
    ("how it is shown", lambda: px.Inside(mode="fog"), ('mode = "fog": not known', "there are surface, slice, iso")),
    ("an empty stage", lambda: px.stage(px.World()), ("stage: there is no body", "world.add(body)")),
    ("the gallery", lambda: px.gallery("dmeo"), ('"dmeo": no such scene', 'did you mean "demo"?')),
    ("a scene that is not there", lambda: px.Scene.read("no.toml"), ("no.toml: cannot be read", "No such file")),
]  # fmt: skip


@pytest.mark.parametrize("call, words", [entry[1:] for entry in CALLS], ids=[entry[0] for entry in CALLS])
def test_a_wrong_call_is_told_what_would_do(call, words):
    with pytest.raises(px.PhyxelError) as caught:
        call()
    holds(caught.value, words)


ON_A_BODY = [
    ("change", lambda box: box.change(yong=1), ("material.yong: not known", 'did you mean "young"?')),
    ("over", lambda box: box.change(young=1e5, over="soon"), ("box: change: over = 'soon'", "give a time")),
    ("over nothing", lambda box: box.change(young=1e5, over=-1), ("box: change(over=-1)", "0 s or more")),
    ("viscosity", lambda box: box.melt(viscosity="3 m"), ("box: melt: viscosity = '3 m'", "a viscosity", "Pa s")),
    ("a viscosity", lambda box: box.melt(viscosty=3), ("Body.melt(viscosty=3): not known", '"viscosity"?')),
    ("solidify", lambda box: box.solidify(), ("box: solidify: nothing here has melted",)),
    ("material", lambda box: setattr(box, "material", "wax"), ("box: material = 'wax'", "Material.rubber()")),
    ("force", lambda box: setattr(box, "force", 3), ("box: force = 3", "three finite numbers [N]")),
    ("nowhere", lambda box: box.fix(px.Box((8, 8, 8), (9, 9, 9))), ("box: the region holds no node", "larger")),
    ("drag", lambda box: box.drag([0], (1, 2)), ("box: drag = (1, 2)", "three finite numbers")),
    ("a node", lambda box: box.fix([9999]), ("box: node 9999 of", "indices run from 0")),
    ("cut", lambda box: box.cut((0, 0, 0), (0, 0, 0)), ("box: cut: normal = (0, 0, 0)", "a direction, not zero")),
    ("paint", lambda box: box.paint([0], "bleu"), ("box: paint: color = 'bleu'", '"blue"?')),
    ("twice", lambda box: box.world.add(box), ("box: this body is in a world already",)),
    ("a later time", lambda box: box.world.at(-1, print), ("world.at(-1)", "give a later time")),
    ("removed", lambda box: box.world.remove(px.Ground()), ("world.remove(", "not in this world")),
]  # fmt: skip


@pytest.mark.parametrize("call, words", [entry[1:] for entry in ON_A_BODY], ids=[entry[0] for entry in ON_A_BODY])
def test_a_wrong_call_of_a_body_is_told_what_would_do(world, box, call, words):
    with pytest.raises(px.PhyxelError) as caught:
        call(box)
    holds(caught.value, words)


def holds(error: Exception, words: tuple[str, ...]) -> None:
    message = str(error)
    for word in words:
        assert word in message
    assert message.count("there are") + message.count("did you mean") <= 1, "choices are said once"
    assert len(message) < 300, "no array is written out"


def test_without_a_world_a_body_says_so():
    lone = px.Body(cloud(), nodes=64)
    with pytest.raises(px.PhyxelError, match=r"box: melt needs a world; call world.add\(body\) first"):
        lone.melt()


def test_an_unknown_argument_is_a_type_error_as_well():
    """Who catches what Python raises there catches it still."""
    with pytest.raises(TypeError):
        px.Material(yong=1)
    assert issubclass(CallError, px.PhyxelError)


def test_a_misspelt_name_of_the_package_is_an_attribute_error_with_the_near_miss():
    with pytest.raises(AttributeError, match=r'no "Boddy"; did you mean "Body"\?'):
        _ = px.Boddy


def test_quantities_with_units_are_taken(world, box):
    assert px.Material(young="2 GPa", viscosity="10 Pa s") == px.Material(young=2e9, viscosity=10.0)
    assert px.Membrane.silk().but(thickness="0.2 mm").thickness == pytest.approx(2e-4)
    box.change(young="3 MPa", over="0 s")
    assert box.material.young == 3e6
    assert np.ptp(px.Body(cloud(), nodes=64, size="20 cm").birth, axis=0).max() == pytest.approx(0.2)
    assert px.Sphere("5 cm", at=("1 m", 0, 0)) == px.Sphere(0.05, at=(1, 0, 0))
    spun = px.Body(cloud(), nodes=64, spin=(0, "60 rpm", 0)).velocities
    assert spun == pytest.approx(px.Body(cloud(), nodes=64, spin=(0, 2 * np.pi, 0)).velocities)
    wood = px.Material.orthotropic(("11 GPa", 8e8, 4.5e8), (0.45, 0.45, 0.38), ("40 MPa", 6.5e8, 7e8))
    assert wood == px.Material.orthotropic((1.1e10, 8e8, 4.5e8), (0.45, 0.45, 0.38), (4e7, 6.5e8, 7e8))


def test_the_tables_are_long_enough():
    assert len(CALLS) + len(ON_A_BODY) >= 40
