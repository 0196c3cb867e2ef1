"""What was shown is kept: how much, and for how long."""

import pytest

from phyxel.view.hub import Hub, Recorder, Room
from tests.view.idle import SCENE, snapshot


def times(recorder):
    return [at for at, _ in recorder.take()]


def test_the_last_seconds_are_kept():
    recorder = Recorder(rolling=Room(2.0, 10_000))
    for k in range(600):
        recorder.add(snapshot(k), 7.0 + k / 60)
    kept = times(recorder)
    assert kept[0] == 0 and kept[-1] == pytest.approx(2.0, abs=0.04)  # one more would be too long ago
    assert len(kept) == pytest.approx(60, abs=2)  # at most 30 a second
    for k in range(40):
        recorder.add(snapshot(k, surfels=100), 20.0 + k / 10)
    assert len(times(recorder)) == 6  # 1600 bytes each


def test_a_recording_is_whole_until_it_is_full_and_then_waits_to_be_taken():
    recorder = Recorder(rolling=Room(1.0, 10_000), recorded=Room(3.0, 10**6))
    recorder.add(snapshot(0), 0.0)
    recorder.record(True)
    ends = [recorder.add(snapshot(k), 1 + k / 10) for k in range(60)]
    assert ends.index(False) == 31 and ends.count(False) == 1 and not recorder.on
    assert times(recorder)[-1] == pytest.approx(3.0)
    recorder.add(snapshot(1), 20.0)
    assert times(recorder) == [0.0]  # it rolls again
    recorder.record(True)
    recorder.add(snapshot(1), 21.0)
    recorder.record(False)
    recorder.add(snapshot(1), 90.0)
    assert times(recorder) == [0.0]


def test_the_hub_says_when_a_recording_ends():
    told = []
    hub = Hub(told.append)
    hub.recorder = Recorder(recorded=Room(0.0, 0))
    hub.tell(SCENE)
    hub.record(True)
    for k in range(2):
        hub.recorder.last_kept = -1.0
        hub.publish(snapshot(k), {})
    assert [one["recording"] for one in told if one["kind"] == "scene"] == [False, True, False]
    assert "save it" in told[-1]["text"]
