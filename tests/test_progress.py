"""Who hears of long work."""

import sys
import threading

import pytest

from phyxel import progress


class Terminal:
    """Standard error that somebody reads, or nobody."""

    def __init__(self, is_read: bool) -> None:
        self._is_read, self.text = is_read, ""

    def isatty(self) -> bool:
        return self._is_read

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass


def work() -> None:
    for done in range(4):
        progress.tell("kneading", done, 3)


def test_who_listens_hears_every_step_in_place_of_who_did_before() -> None:
    outer: list[tuple[str, int, int]] = []
    inner: list[tuple[str, int, int]] = []
    with progress.heard_by(lambda *told: outer.append(told)):
        work()
        with progress.heard_by(lambda *told: inner.append(told)):
            work()
        work()
    every = [("kneading", done, 3) for done in range(4)]
    assert inner == every
    assert outer == every * 2


def test_an_error_ends_the_listening(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, int, int]] = []
    with pytest.raises(ZeroDivisionError), progress.heard_by(lambda *told: heard.append(told)):
        _ = 1 / 0
    monkeypatch.setattr(sys, "stderr", Terminal(is_read=False))
    work()
    assert heard == []


@pytest.mark.parametrize("at_terminal", [True, False])
def test_people_read_one_line_and_files_none(at_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(at_terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    work()
    assert terminal.text == ("phyxel: kneading ...\n" if at_terminal else "")


def test_work_ends_at_its_next_breath_on_its_own_thread_alone() -> None:
    """Each thread has its own patience; inside another, the inner one counts, and afterwards the outer one again."""
    enough, done = threading.Event(), threading.Event()

    def elsewhere() -> None:
        work()
        done.set()

    with progress.ended_by(enough.is_set):
        work()
        enough.set()
        with progress.ended_by(lambda: False):
            work()
        other = threading.Thread(target=elsewhere)
        other.start()
        other.join()
        assert done.is_set() and progress.can_be_ended()
        with pytest.raises(progress.Ended):
            work()
    work()
    assert not progress.can_be_ended()


def test_faults_that_are_caught_are_not_mistaken_for_the_end() -> None:
    with pytest.raises(progress.Ended), progress.ended_by(lambda: True):
        try:
            progress.breathe()
        except Exception:
            pytest.fail("what catches faults must not go on")
