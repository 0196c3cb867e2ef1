"""Ties of a scene: what they make, and what is said of wrong ones."""

import pytest

import phyxel as px
from phyxel.errors import SceneError

BODIES = """
[[body]]
name = "below"
shape = "box"
points = 2000
model = "rigid"
size = 0.2
at = [0.0, 0.0, 0.0]

[[body]]
name = "above"
shape = "box"
points = 2000
model = "rigid"
size = 0.2
at = [0.0, 0.2, 0.0]

[[attach]]
body = "above"
"""


def test_a_tie_is_made_and_removed():
    scene = px.Scene.parse(
        f'{BODIES}to = "below"\nstrength = "20 kPa"\nname = "glue"\n[[event]]\nat = 0.02\nremove = "glue"\n', name="x"
    )
    world = scene.world()
    (glue,) = world.attachments.every
    assert glue.strength == 2e4
    assert glue.area == pytest.approx(0.04, rel=0.03)
    world.advance(0.03)
    assert not world.attachments.every


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('to = "belo"', r'attach\[0\]: to = "belo": no such body; did you mean "below"'),
        ('to = "below"\nstrength = "-1 Pa"', r"attach\[0\].strength"),
        ('to = "below"\nstrength = "1 kg"', r"attach\[0\].strength .* the unit kg is not known"),
        ('to = "below"\nstrenght = 1', r'attach\[0\].strenght: not known; did you mean "strength"'),
        ("", r"attach\[0\].to: missing"),
        ('to = "above"', r"attach\[0\]: .* hangs together by itself"),
        ('to = "below"\nlower = [0, 0.39, 0]', r"attach\[0\]: .* move them together, or give another place"),
        ('to = "below"\nname = "a"\n[[collider]]\nkind = "ground"\nname = "a"', 'a tie and a field or collider.*"a"'),
    ],
)
def test_what_is_wrong_is_said_with_its_place(keys, said):
    with pytest.raises(SceneError, match=said):
        px.Scene.parse(f"{BODIES}{keys}\n", name="x").world()
