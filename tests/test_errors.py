"""What is said that is no error."""

import threading
import warnings

import pytest

from phyxel.errors import PhyxelWarning, tell, told_to


def test_a_warning_names_the_line_of_the_user():
    with pytest.warns(PhyxelWarning, match="odd") as caught:
        tell("odd")
    assert caught[0].filename == __file__


def test_a_listener_hears_it_in_place_of_warnings_in_its_own_thread():
    heard, elsewhere = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("error", PhyxelWarning)
        with told_to(heard.append):
            tell("one")
            with told_to(elsewhere.append):
                tell("two")
            thread = threading.Thread(target=lambda: elsewhere.append("thread") if alone() else None)
            thread.start()
            thread.join()
            tell("three")
        with pytest.raises(PhyxelWarning):
            tell("four")
    assert heard == ["one", "three"] and elsewhere == ["two", "thread"]


def alone() -> bool:
    """Whether nobody listens here."""
    try:
        tell("somewhere else")
    except PhyxelWarning:
        return True
    return False
