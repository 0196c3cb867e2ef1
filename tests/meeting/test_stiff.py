"""Many rigid bodies are looked at together as they would be two by two."""

import numpy as np

import phyxel as px
from phyxel.contact.touch import ColliderQuery
from phyxel.meeting.contacts import contacts_between, contacts_with_colliders, spread_out
from phyxel.meeting.stiff import StiffBodies, StiffOutlines, spread_out_each
from phyxel.meeting.table import ContactTable


def test_places_are_chosen_in_each_group_as_in_one_alone():
    rng = np.random.default_rng(0)
    group = np.sort(rng.integers(0, 9, 400))
    places, gap = rng.uniform(-1, 1, (400, 3)), rng.uniform(0, 0.03, 400)
    unit = np.array([0.5, 1.0, 9.0])[group % 3]  # of the largest, few are far enough apart
    found = spread_out_each(group, places, gap, unit)
    for one in range(9):
        own = np.flatnonzero(group == one)
        assert np.array_equal(found[group[found] == one], own[spread_out(places[own], gap[own], unit[own[0]], 12)])


def test_contacts_of_many_are_those_of_two_and_two():
    """Gaps and places to rounding of the differences that slopes are found by; but for places at the very edge of what
    counts, each is found either way."""
    world = px.World()
    world.add(px.Ground())
    for k, (shape, turn) in enumerate((("bar", 20), ("sphere", 0), ("torus", 35), ("box", 10), ("box", 50))):
        at = (0.04 * (-1) ** k, 0.07 + 0.12 * k, 0.01 * k)
        size = 0.2 + 0.02 * k
        cloud = px.load(shape, points=500)
        world.add(px.Body(cloud, model="rigid", size=size, at=at, place="center", rotate=(turn, 30, 2 * turn)))
    mover = world.movers[0]
    mover.set_down()
    meeting = mover.meeting()
    parties, first, margin = meeting.parties, 4 * np.arange(6), 0.01
    for one in parties:
        one.go()
    pairs = np.array([(a, b) for a in range(5) for b in range(a + 1, 5)])
    around = ColliderQuery(1.0)
    around.place(world.colliders, np.zeros(3), (0.0, 0.0), 0.0)
    alone = [one for a, b in pairs for one in contacts_between(parties, a, b, margin)]
    alone = ContactTable.of(alone + contacts_with_colliders(parties, range(5), around, 0.1), first)
    outlines = StiffOutlines([one.outline for one in parties], [one.model.space.nodes for one in parties])
    together = StiffBodies(outlines, parties, list(range(5)), first)
    both = [together.contacts(pairs, np.full(len(pairs), margin)), together.contacts_with_colliders(around, 0.1)]
    found = ContactTable.joined([one for one in both if one is not None])
    numbers = [{tuple(key): k for k, key in enumerate(one.key.tolist())} for one in (alone, found)]
    common = [[number[key] for key in numbers[0] if key in numbers[1]] for number in numbers]
    assert len(common[0]) > 20 and len(common[0]) > 0.9 * max(len(alone), len(found))
    one, other = (table.part(np.array(which)) for table, which in zip((alone, found), common, strict=True))
    x = np.concatenate([party.x for party in parties])
    assert np.abs(one.gap - other.gap).max() < 1e-4 * 0.02
    assert np.abs(one.place - other.place).max() < 1e-4
    between = one.other >= 0
    for table in (one, other):  # impulses act on both bodies at one place
        assert np.abs(table.apart(x, 0 * table.wall)[between]).max() < 1e-14
