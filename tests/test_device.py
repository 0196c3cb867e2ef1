"""The device layer: slices, programs, threads."""

import os
import subprocess
import sys

import numpy as np
import pytest
import warp as wp

import phyxel as px
from phyxel import device as dev
from phyxel import progress

wp.set_module_options(dev.KERNEL_OPTIONS)


@wp.kernel
def add_index(first: int, amount: wp.array(dtype=float), values: wp.array(dtype=float)):
    i = first + wp.tid()
    values[i] = values[i] + amount[0] + float(i)


@wp.kernel
def smooth(first: int, count: int, source: wp.array(dtype=float), target: wp.array(dtype=float)):
    i = first + wp.tid()
    target[i] = 0.5 * (source[wp.max(i - 1, 0)] + source[wp.min(i + 1, count - 1)])


@pytest.fixture
def cpu():
    return dev.pick("cpu")


def test_what_can_be_ended_is_launched_in_blocks_that_reach_every_index_once(cpu):
    count = 2 * dev.BLOCK + 77
    values = wp.zeros(count, dtype=float, device=cpu)
    amount = wp.full(1, 3.0, dtype=float, device=cpu)
    breaths = []
    with progress.ended_by(lambda: bool(breaths.append(None))):
        dev.launch(add_index, count, [amount, values], cpu)
    np.testing.assert_array_equal(values.numpy(), 3.0 + np.arange(count, dtype=np.float32))
    assert len(breaths) == 3
    with pytest.raises(progress.Ended), progress.ended_by(lambda: True):
        dev.launch(add_index, count, [amount, values], cpu)


@pytest.mark.parametrize("count", [0, 1, 7, 5000])
def test_a_launch_reaches_every_index_once(cpu, count):
    values, amount = wp.zeros(count, dtype=float, device=cpu), wp.full(1, 0.5, dtype=float, device=cpu)
    dev.launch(add_index, count, [amount, values], cpu)
    assert np.array_equal(values.numpy(), np.arange(count) + np.float32(0.5))


@pytest.mark.parametrize("times", [1, 3, 16, 37])
def test_a_program_runs_as_often_as_asked_and_sees_what_changed(cpu, times):
    n = 3000
    values, amount = wp.zeros(n, dtype=float, device=cpu), dev.Shared(1, float, cpu)
    program = dev.Program([dev.Launch(add_index, n, [amount.array, values])], cpu)
    for value in (1.0, -2.0):
        amount.host[0] = value
        amount.push()
        program.run(times)
    assert np.allclose(values.numpy(), times * (2 * np.arange(n) - 1.0), rtol=1e-6)


def test_launches_of_a_program_wait_for_each_other(cpu):
    """Every value depends on its neighbours' last values, across the threads' slices."""
    n, rounds = 4096, 200
    start = np.random.default_rng(0).random(n).astype(np.float32)
    one, other = wp.array(start, dtype=float, device=cpu), wp.zeros(n, dtype=float, device=cpu)
    dev.Program([dev.Launch(smooth, n, [n, one, other]), dev.Launch(smooth, n, [n, other, one])], cpu).run(rounds)
    expected = start
    for _ in range(2 * rounds):
        padded = np.concatenate([expected[:1], expected, expected[-1:]])
        expected = np.float32(0.5) * (padded[:-2] + padded[2:])
    assert np.array_equal(one.numpy(), expected)


def test_an_error_in_a_worker_thread_is_raised():
    def work(rank: int) -> None:
        if rank == 1:
            raise ValueError("worker")

    team = dev.Team(2)
    with pytest.raises(ValueError, match="worker"):
        team.run(work)
    seen: list[int] = []
    team.run(seen.append)
    assert sorted(seen) == [0, 1]


def test_an_unknown_device_is_named():
    with pytest.raises(px.PhyxelError, match="cpu"):
        dev.pick("quantum")


MOTION = """
import hashlib, phyxel as px
body = px.Body(px.load("bear", points=200), material=px.Material(young=1e5, damping=1e-3), nodes=1500, spin=(1, 2, 3))
world = px.World(device="cpu")
world.add(body)
world.add(px.Ground(height=-0.02))
world.advance(0.1)
from phyxel.movers.phyxel_bodies import phyxels_of
state = phyxels_of(world).model.state()
print(hashlib.sha256(b"".join(state[name].tobytes() for name in sorted(state))).hexdigest())
"""


def test_the_same_bits_on_any_number_of_threads():
    def digest(threads: int) -> str:
        environment = os.environ | {"PHYXEL_THREADS": str(threads)}
        done = subprocess.run(
            [sys.executable, "-c", MOTION], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert len({digest(threads) for threads in (1, 3)}) == 1


def test_import_is_light():
    """`import phyxel` loads no viewer, no pictures, no scene reader."""
    heavy = ["PIL", "av", "pydantic", "typer", "rich", "viser"]
    code = f"import sys, phyxel; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
