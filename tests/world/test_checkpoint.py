"""Checkpoints: a world goes on from one with the same bits, and from nothing else."""

import numpy as np
import pytest

import phyxel as px
from phyxel.errors import CheckpointError
from tests.world.boxes import DAMPED, box
from tests.worlds import bits, left_end, world_of


def eventful() -> px.World:
    """Two bodies, a drag, and an event that changes a material and lets go."""
    held, free = box(material=DAMPED), box(name="free", at=(2, 0.3, 0), velocity=(0, 0, 1), spin=(1, 2, 3))
    world = world_of(held, free, px.Ground())
    handle = held.drag(left_end, lambda t: (0.3 * t, 0, 0))

    def happen(_world):
        held.release(handle)
        held.material = DAMPED.but(young=5e4)
        free.force = (10, 0, 0)

    world.at(0.15, happen)
    return world


@pytest.mark.parametrize("when", [0.0, 0.1, 0.15, 0.2])
def test_a_restored_world_goes_on_with_the_same_bits(when, tmp_path):
    path = tmp_path / "state.npz"
    straight = eventful()
    straight.advance(when)
    straight.save(path)
    restored = eventful()
    restored.restore(path)
    assert restored.time == straight.time
    assert bits(restored) == bits(straight)
    for world in (straight, restored):
        for _ in range(4):
            world.advance(1 / 30)
    assert bits(restored) == bits(straight)
    assert np.array_equal(restored.bodies[0].positions, straight.bodies[0].positions)
    assert [path.name for path in tmp_path.iterdir()] == ["state.npz"]


def test_a_world_of_all_kinds_goes_on_with_the_same_bits(tmp_path):
    """A box of each model, and a cloth on top: what each is foreseen to bear is part of the state."""

    def mixed() -> px.World:
        soft = px.Material(young=1e5, density=1000.0, damping=5e-3)
        models = ("rigid", "phyxel", "modal", "galerkin")
        about = {"material": soft, "size": 0.2, "place": "center"}
        cloud, places = px.load("box", points=300), ((0, 0.1, 0), (0, 0.302, 0), (0.15, 0.52, 0), (-0.12, 0.52, 0))
        boxes = [
            px.Body(cloud, model=model, at=at, name=model, **about, **({} if model == "rigid" else {"nodes": 27}))
            for model, at in zip(models, places, strict=True)
        ]
        cloth = px.Body(px.load("cloth", points=36), model="particles", size=0.3, at=(0, 0.63, 0), place="center")
        return world_of(px.Ground(), *boxes, cloth)

    straight, restored = mixed(), mixed()
    straight.advance(0.06)
    straight.save(tmp_path / "state.npz")
    restored.restore(tmp_path / "state.npz")
    for world in (straight, restored):
        world.advance(0.03)
    assert bits(restored) == bits(straight)


def test_going_back_to_before_an_event_undoes_it_or_is_refused(tmp_path):
    path = tmp_path / "state.npz"
    body = box()
    world = world_of(body)
    body.fix(left_end)
    world.at(0.15, lambda w: setattr(body, "material", DAMPED.but(young=1e6)))
    world.advance(0.1)
    world.save(path)
    world.advance(0.1)
    after = bits(world)
    try:
        world.restore(path)
    except CheckpointError:
        return
    world.advance(0.1)
    assert bits(world) == after


def test_saving_changes_nothing(tmp_path):
    saved, plain = eventful(), eventful()
    for _ in range(4):
        saved.save(tmp_path / "state.npz")
        for world in (saved, plain):
            world.advance(0.03)
    assert bits(saved) == bits(plain)


OTHERS = {
    "gravity": lambda: world_of(box(), gravity=(0, -1, 0)),
    "nodes": lambda: world_of(box(nodes=125)),
    "place": lambda: world_of(box(at=(0, 1, 0))),
    "bodies": lambda: world_of(box(), box()),
    "name": lambda: world_of(box(name="other")),
    "ground": lambda: world_of(box(), px.Ground()),
    "material": lambda: world_of(box(material=px.Material.steel())),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_checkpoint_of_another_world_is_refused(other, tmp_path):
    world = world_of(box())
    world.advance(0.01)
    world.save(tmp_path / "state.npz")
    stranger = OTHERS[other]()
    before = bits(stranger)
    with pytest.raises(CheckpointError, match="another"):
        stranger.restore(tmp_path / "state.npz")
    assert stranger.time == 0 and bits(stranger) == before


@pytest.mark.parametrize("content", ["missing", "empty", "text", "cut", "array", "archive"])
def test_what_is_no_checkpoint_is_refused(content, tmp_path):
    world = world_of(box())
    path = tmp_path / "state.npz"
    world.save(path)
    whole = path.read_bytes()
    if content == "array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    elif content == "archive":
        np.savez(path, a=np.zeros(3))
    elif content == "missing":
        path.unlink()
    else:
        path.write_bytes({"empty": b"", "text": b"not a checkpoint", "cut": whole[: len(whole) // 2]}[content])
    with pytest.raises(CheckpointError, match=r"state\.npz"):
        world.restore(path)
    assert world.time == 0


def test_a_checkpoint_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(px.PhyxelError, match="cannot be written"):
        world_of(box()).save(tmp_path / "file" / "state.npz")


def test_two_runs_have_the_same_bits():
    ends = []
    for _ in range(2):
        world = eventful()
        for _ in world.play(seconds=0.2, fps=60):
            pass
        ends.append(bits(world))
    assert ends[0] == ends[1]
