"""What newcomers write wrong in scenes, and what they are told: place, what was given, what is taken, what to do."""

import warnings

import pytest

import phyxel as px

BODY = '[[body]]\nshape = "box"\nnodes = 64\npoints = 300\n'
GROUND = '[[collider]]\nkind = "ground"\n'


def body(line: str) -> str:
    return f"{BODY}{line}\n"


def event(line: str) -> str:
    return f"{BODY}[[event]]\nat = 1\n{line}\n"


def collider(lines: str) -> str:
    return f"{BODY}[[collider]]\n{lines}\n"


MISTAKES: list[tuple[str, str, tuple[str, ...]]] = [
    # brackets
    ("one body", BODY.replace("[[body]]", "[body]"), ("body: a scene needs", "[[body]], with two pairs of brackets")),
    ("no body", "seconds = 3\n", ("body: a scene needs at least one", "[[body]]")),
    ("body is a word", 'body = "bear"\n', ('body = "bear"', "[[body]]")),
    ("[event]", BODY + "[event]\nat = 1\n", ("event: write [[event]], with two pairs",)),
    ("[collider]", BODY + '[collider]\nkind = "ground"\n', ("collider: write [[collider]], with two pairs",)),
    ("[field]", BODY + '[field]\nkind = "wind"\n', ("field: write [[field]], with two pairs",)),
    ("[body.hold]", BODY + "[body.hold]\nlower = [0, 0, 0]\n", ("body[0].hold: write [[body.hold]]",)),
    ("[[camera]]", BODY + "[[camera]]\nfov = 30\n", ("camera: write [camera], with one pair", "only one")),
    ("[[output]]", BODY + "[[output]]\nwidth = 64\n", ("output: write [output], with one pair",)),
    ("[[event.hold]]", event("[[event.hold]]"), ("event[0].hold: write [event.hold], with one pair",)),
    # tables
    ("melt = 80", event("melt = 80"), ("event[0].melt = 80: give a table", "{ viscosity = 80 }")),
    ("melt = true", event("melt = true"), ("event[0].melt = true: give a table", "{ viscosity = 1.0 }")),
    ("material by name", body('material = "rubber"'), ('body[0].material = "rubber"', '{ preset = "rubber" }')),
    ("material by number", body("material = 1e6"), ("body[0].material = 1000000.0: give a table", "preset")),
    ("cut by numbers", event("cut = [0, 1, 0]"), ("event[0].cut = [0, 1, 0]: give a table", "{ at = [0, 0, 0] }")),
    ("camera by name", 'camera = "front"\n' + BODY, ('camera = "front": give a table', "{ eye = [0, 0, 0] }")),
    # keys
    ("misspelt", body("nods = 100"), ("body[0].nods: not known", 'did you mean "nodes"?')),
    ("another word", body("position = [0, 1, 0]"), ("body[0].position: not known", 'did you mean "at"?')),
    ("British", body('colour = "red"'), ("body[0].colour: not known", 'did you mean "color"?')),
    ("of the material", body("young = 1e5"), ("body[0].young: not known here", "a key of [body.material]")),
    ("density in the body", body("density = 900"), ("body[0].density: not known here", "[body.material]")),
    ("of the top", body("seconds = 2"), ("body[0].seconds: not known here", "top of the file, above the first table")),
    ("of a body", "nodes = 100\n" + BODY, ("nodes: not known here", "a key of [[body]]")),
    ("of another kind", collider('kind = "ground"\nradius = 1'), ("collider[0].radius: not known here", '"sphere"')),
    ("like nothing", body("xyzzy = 1"), ("body[0].xyzzy: not known; there are", "shape", "material")),
    ("variation", body('vary = { yong = { channel = "x", low = 1, high = 2 } }'), ("body[0].vary.yong", '"young"')),
    ("missing kind", BODY + "[[collider]]\nheight = 1\n", ("collider[0].kind: missing; there are ground, sphere",)),
    ("missing radius", collider('kind = "sphere"'), ("collider[0].radius: missing; write radius = 1.0",)),
    ("missing corner", collider('kind = "box"\nlower = [0, 0, 0]'), ("collider[0].upper: missing; write upper =",)),
    ("missing time", BODY + "[[event]]\nforce = [0, 1, 0]\n", ("event[0].at: missing; write at = 1.0",)),
    ("an event that does nothing", BODY + "[[event]]\nat = 1\n", ("event[0]: an event needs one of", "melt")),
    # words
    ("floor", collider('kind = "floor"'), ('collider[0].kind = "floor": not known', 'did you mean "ground"?')),
    ("ball", collider('kind = "ball"\nradius = 1'), ('collider[0].kind = "ball": not known', 'did you mean "sphere"?')),
    ("cube", '[[body]]\nshape = "cube"\n', ('shape = "cube": no built-in shape', 'did you mean "box"?')),
    ("preset", body('material = { preset = "ruber" }'), ('preset = "ruber": not known', 'did you mean "rubber"?')),
    ("model", body('model = "stiff"'), ('body[0].model = "stiff": not known; there are phyxel, galerkin',)),
    ("look", body('look = "shiny"'), ('body[0].look = "shiny": not known; there are gummy, wax, clay, stone, matte',)),
    ("mesh", BODY + '[output]\nmesh = "fbx"\n', ('output.mesh = "fbx": not known; there are obj, ply, usd',)),
    ("background", BODY + '[output]\nbackground = "stduio"\n', ('output.background = "stduio"', '"studio"?')),
    ("field", BODY + '[[field]]\nkind = "lava"\n', ('field[0].kind = "lava": not known; there are wind, attraction',)),
    ("links", body('model = "particles"\nlinks = "edgs"'), ('body[0].links = "edgs": not known', '"edges"?')),
    ("links by halves", body("links = 2.5"), ("body[0].links = 2.5", "'edges', 'weave'")),
    # colours
    ("bytes", body("color = [50, 120, 230]"), ("body[0].color = [50, 120, 230]", "0 to 1", "[0.196, 0.471, 0.902]")),
    ("colour name", body('color = "bleu"'), ('body[0].color = "bleu": not known', 'did you mean "blue"?', "#rrggbb")),
    ("short code", body('color = "#fff"'), ('body[0].color = "#fff": not known', '"#rrggbb"')),
    ("two of three", body("inside = [1, 0]"), ("body[0].inside = [1, 0]", "red, green and blue from 0 to 1")),
    ("paint", body('paint = [{ color = "grene" }]'), ('body[0].paint[0].color = "grene"', '"green"?')),
    # quantities
    ("dimension", body('material = { young = "2 kg/m³" }'), ("young", "a unit of a density", "a pressure", "GPa")),
    ("unit", body('size = "20 furlongs"'), ("body[0].size", "furlongs is not known", "km, m, cm")),
    ("capitals", body('material = { young = "2 gpa" }'), ("body[0].material.young", 'did you mean "GPa"?')),
    ("words for a time", 'seconds = "long"\n' + BODY, ('seconds = "long": give a time', "[s]")),
    ("of a variation", body('vary = { young = { channel = "x", low = "1 m", high = 2 } }'), ("vary", "a pressure")),
    ("two numbers", body("at = [1, 2]"), ("body[0].at = [1, 2]: give 3 numbers", "[0, 0, 0]")),
    ("four numbers", body("velocity = [1, 2, 3, 4]"), ("body[0].velocity = [1, 2, 3, 4]: give 3 numbers",)),
    ("one number", "gravity = -9.81\n" + BODY, ("gravity = -9.81: give 3 numbers",)),
    ("no end", "gravity = [0, nan, 0]\n" + BODY, ("gravity = [0, nan, 0]", "three finite numbers [m/s²]")),
    ("too few nodes", "[[body]]\nshape = 'box'\nnodes = 2\n", ("body[0].nodes = 2", "greater than or equal to 8")),
    ("negative", body("material = { density = -1 }"), ("material.density = -1", "above 0 kg/m³")),
    # names
    ("whose event", event('body = "bxo"\nforce = [0, 1, 0]'), ('event[0].body = "bxo": no such body', '"box"?')),
    ("whose hold", event('release = "left"'), ('event[0].release = "left": no hold has this name',)),
    ("whose file", '[[body]]\nfile = "scan.ply"\n', ('file = "scan.ply": no such file; looked for',)),
    # TOML
    ("no quotation marks", body("color = blue"), ("not valid TOML", "line 5", "color = blue", "quotation marks")),
    ("a bare unit", body("size = 20 cm"), ("not valid TOML", "line 5", "size = 20 cm", '"2 GPa"')),
    ("an open bracket", "[[body]\nshape = 'box'\n", ("not valid TOML", "line 1", "[[body]")),
]  # fmt: skip


@pytest.mark.parametrize("text, words", [entry[1:] for entry in MISTAKES], ids=[entry[0] for entry in MISTAKES])
def test_a_mistake_is_named_with_its_place_and_a_remedy(text, words):
    with pytest.raises(px.PhyxelError) as caught:
        px.Scene.parse(text, name="jelly").world()
    message = str(caught.value)
    assert message.startswith("jelly.toml: ")
    for word in words:
        assert word in message
    assert len(message.splitlines()) == 1, "one mistake is one line"
    assert message.count("there are") + message.count("did you mean") <= 1, "choices are said once"


def test_the_table_is_long_enough():
    assert len(MISTAKES) >= 40 and len({text for _, text, _ in MISTAKES}) == len(MISTAKES)


LATE = [
    ("seconds = 2\n" + BODY + "[[event]]\nat = 2.5\nforce = [0, 1, 0]\n", "event[0].at = 2.5", "seconds = 4"),
    (BODY + '[[field]]\nkind = "wind"\nvelocity = [1, 0, 0]\nduring = [7, 8]\n', "field[0].during", "seconds = 8"),
]


@pytest.mark.parametrize("text, place, remedy", LATE)
def test_what_would_happen_after_the_end_is_told_of(text, place, remedy):
    with pytest.warns(px.PhyxelWarning) as told:
        px.Scene.parse(text, name="jelly")
    (message,) = (str(one.message) for one in told)
    for word in ("jelly.toml", place, "after the end of the scene", remedy):
        assert word in message


def test_a_scene_played_for_a_shorter_time_is_not_told_of():
    """`--seconds` is not written, and what comes later is meant to be left out."""
    scene = px.Scene.parse(event("force = [0, 1, 0]"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scene.changed(seconds=0.5).seconds == 0.5


RIGHT = [
    ('seconds = "2 min"\n' + BODY, lambda scene: scene.seconds == 120),
    (body('size = "20 cm"'), lambda scene: scene.content.body[0].size == 0.2),
    (body('at = ["1 mm", "-2 cm", 3]'), lambda scene: scene.content.body[0].at == (1e-3, -0.02, 3)),
    (body('spin = [0, "60 rpm", 0]'), lambda scene: scene.content.body[0].spin[1] == pytest.approx(6.283185307)),
    (body('rotate = [0, "0.5 turns", 0]'), lambda scene: scene.content.body[0].rotate == (0, 180, 0)),
    (event('melt = { viscosity = "50 P" }'), lambda scene: scene.content.event[0].melt.viscosity == pytest.approx(5)),
    (body('color = "#ff8000"'), lambda scene: scene.content.body[0].color == pytest.approx((1, 128 / 255, 0))),
    (BODY + '[output]\nbackground = "navy"\n', lambda scene: scene.content.output.background == (0, 0, 128 / 255)),
    (BODY + '[output]\nbackground = "dark"\n', lambda scene: scene.content.output.background == "dark"),
    (
        body('vary = { young = { channel = "x", low = "1 MPa", high = "2 GPa" } }'),
        lambda scene: scene.content.body[0].vary["young"].high == 2e9,
    ),
]  # fmt: skip


@pytest.mark.parametrize("text, holds", RIGHT, ids=[text.splitlines()[-1] for text, _ in RIGHT])
def test_quantities_with_units_and_colours_by_name_are_taken(text, holds):
    assert holds(px.Scene.parse(text))


def test_a_material_with_units_is_the_same_as_without():
    scene = px.Scene.parse(
        body('material = { young = "2 GPa", density = "1.2 g/cm³", damping = "1 ms", poisson = "30 %" }')
    )
    (made,) = scene.world().bodies
    assert made.material == px.Material(young=2e9, density=1200.0, damping=1e-3, poisson=0.3)
