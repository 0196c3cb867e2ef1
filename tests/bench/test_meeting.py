"""How rows of the benchmark of bodies that meet are measured; not how fast."""

import phyxel as px
from phyxel.bench.meeting import ROWS, MeetingRow, measured


def worlds(count):
    made = [px.World() for _ in range(count)]
    for world in made:
        world.add(px.Body(px.load("sphere", points=200), model="rigid", at=(0, 1, 0)))
    return made


def test_a_row_alone_is_a_time_and_one_beside_others_a_ratio():
    row = MeetingRow("ball", lambda setting: [], "s/frame", 1.0, settles=0.01)
    alone = measured(row, worlds(1))
    assert alone.name == "meeting-ball"
    assert alone.details["bodies"] == 1 and alone.details["cpu"] > 0
    beside = measured(row, worlds(3))
    assert beside.details["ms"] > 0
    assert 0.05 < beside.value < 5  # one of three that are alike, over the two others: a half


def test_rows_have_names_of_their_own():
    assert len({row.name for row in ROWS}) == len(ROWS)
