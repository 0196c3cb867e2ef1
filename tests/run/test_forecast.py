"""How long a run will still take, and what is said of it."""

import pytest

from phyxel.run.forecast import Forecast, time_text
from phyxel.scene import Scene

SCENE = '[[body]]\nshape = "box"\nnodes = 400\nmodel = "{model}"\n'


def said(milliseconds, frames=1000, model="phyxel", first=0):
    """What is said of frames that take so many milliseconds by stage; and the forecast at their end."""
    forecast = Forecast(Scene.parse(SCENE.format(model=model)).content, frames)
    lines = []
    for frame, (physics, surface, picture) in enumerate(milliseconds, first):
        spent = {"physics": physics, "surface": surface, "picture": picture, "files": 1.0}
        lines += [(frame, line) for line in forecast.hear({"frame": frame, "milliseconds": spent})]
    return lines, forecast


EVEN = (100.0, 50.0, 49.0)
"""200 ms with files"""


def test_even_frames_are_told_once_and_right():
    """The first frames compile and tell nothing; then 200 ms × the frames that are left."""
    lines, forecast = said([(0, 900, 900), (60_000, 50, 49)] + [EVEN] * 30)
    assert len(lines) == 1 and lines[0][0] == 4
    assert "about 4 min left" in lines[0][1] and "physics 100 ms, surface 50 ms, picture 49 ms" in lines[0][1]
    assert forecast.left == pytest.approx(0.2 * (1000 - 32), rel=1e-9)


def test_one_slow_frame_changes_nothing_and_slow_ones_are_told_anew():
    lines, forecast = said([EVEN] * 10 + [(9000, 50, 49)] + [EVEN] * 5)
    assert len(lines) == 1 and forecast.left == pytest.approx(0.2 * (1000 - 16), rel=1e-9)
    lines, forecast = said([EVEN] * 10 + [(3000.0, 50, 49)] * 10)
    assert len(lines) == 3 and "almost all of it is physics" in lines[-1][1]
    assert forecast.left == pytest.approx(3.1 * (1000 - 20), rel=1e-9)


@pytest.mark.parametrize(
    ("spent", "stage", "remedy"),
    [
        ((900, 50, 49), "physics", '--nodes 200), or model = "modal"'),
        ((50, 900, 49), "surface", "points"),
        ((50, 49, 900), "picture", "--no-video"),
    ],
)
def test_what_would_help_if_one_stage_takes_almost_all(spent, stage, remedy):
    lines, _ = said([spent] * 40)
    hints = [line for _, line in lines if "almost all" in line]
    assert len(hints) == 1 and stage in hints[0] and remedy in hints[0]
    assert "modal" not in " ".join(line for _, line in said([spent] * 40, model="modal")[0])


def test_quick_runs_say_nothing_and_a_resumed_one_counts_what_is_left():
    assert said([EVEN] * 20, frames=60)[0] == []
    _, forecast = said([EVEN] * 10, frames=1000, first=900)
    assert forecast.left == pytest.approx(0.2 * (1000 - 910), rel=1e-9)
    assert said([EVEN] * 4)[1].left is None


def test_times_as_people_say_them():
    assert [time_text(t) for t in (0.0421, 3.21, 42.4, 200, 9000)] == ["42 ms", "3.2 s", "42 s", "4 min", "2.5 h"]
