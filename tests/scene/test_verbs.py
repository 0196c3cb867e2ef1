"""Verbs of events."""

from phyxel.scene.event_tables import EventPart
from phyxel.scene.verbs import TO_BODY, TO_WORLD


def test_every_key_of_an_event_that_does_something_is_a_verb() -> None:
    assert {*TO_BODY, *TO_WORLD} == set(EventPart.model_fields) - {"at", "body", "over"}
    assert not set(TO_BODY) & set(TO_WORLD)
