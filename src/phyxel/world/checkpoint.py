"""Checkpoints: the state of a world in a file, to go on from with the same bits."""

from __future__ import annotations

import hashlib
import os
import zipfile
from typing import TYPE_CHECKING

import numpy as np

from phyxel.body.protocols import Change
from phyxel.errors import CheckpointError
from phyxel.files import whole_file
from phyxel.state import State, prefixed, unprefixed
from phyxel.world.breaking import Break, divide

if TYPE_CHECKING:
    from phyxel.body.holds import Handle
    from phyxel.world.world import World

FORMAT = 9
FLOCKS = ("flock0", "flock1")
"""The bodies of each flock of phyxel bodies."""
OF_HOLDS = ("nodes", "points", "taken", "moved")
"""What is kept of a hold."""


def save(world: World, path: str | os.PathLike[str], note: str) -> None:
    """Write the state of a world to `path` (.npz)."""
    with whole_file(path) as file:
        np.savez(file, **taken(world, note))  # type: ignore[arg-type]


def taken(world: World, note: str = "") -> State:
    """The state of a world, for `put_back`."""
    content: State = {
        "fingerprint": np.array(fingerprint(world) + note),
        "clock": np.array([world.time, world.past_events]),
        "gravity": world.gravity,
        "materials": np.array(_materials(world)),
        "surroundings": np.array(_surroundings(world), str),
        "holds": np.array(_holds(world)).reshape(-1, 2),
    }
    for h, handle in enumerate(_handles(world)):
        content |= {f"hold{h}.{name}": getattr(handle, name) for name in OF_HOLDS}
    for k, one in enumerate(world.breaks):
        content |= prefixed(f"break{k}.", one.state())
    for body in world.bodies:
        content |= prefixed(f"fracture.{body.name}.", {} if body.fracture is None else body.fracture.state())
    for k, mover in enumerate(world.movers):
        content |= prefixed(f"mover{k}.", mover.state())
    for k, names in enumerate(world.moving.names):
        content[f"flock{k}"] = np.array(names, str)
    content |= prefixed("encounters.", world.encounters.state())
    content |= prefixed("attachments.", world.attachments.state())
    return {name: np.array(array) for name, array in content.items()}  # what movers give may be their own memory


def restore(world: World, path: str | os.PathLike[str], note: str) -> None:
    """Go to the state that `save` wrote, in a world built from the same scene."""
    put_back(world, _read(path), note, path)


def put_back(world: World, content: State, note: str = "", path: str | os.PathLike[str] = "state") -> None:
    """Go to a state that was `taken` of a world built from the same scene; `path` is what it is called."""
    if str(content.get("fingerprint")) != fingerprint(world) + note:
        raise CheckpointError(f"{path}: a checkpoint of another scene; build the world it was saved from")
    time, events = content["clock"].tolist()
    if events < world.past_events:
        raise CheckpointError(f"{path}: lies before an event that has happened here; build the world anew")
    _break_apart(world, content, path)
    world.replay(int(events))
    if content["holds"].tolist() != _holds(world):
        raise CheckpointError(f"{path}: other holds than this world has; build the world it was saved from")
    if content["surroundings"].tolist() != _surroundings(world):
        raise CheckpointError(
            f"{path}: other colliders, fields or ties than this world has; build that it was saved from"
        )
    world.set_clock(time)
    if content["materials"].tolist() != _materials(world):
        raise CheckpointError(
            f"{path}: bodies had been changed, melted or made solid by a script; do the same to them before you "
            "restore, or let it happen by world.at"
        )
    world.gravity = content["gravity"]
    for h, handle in enumerate(_handles(world)):
        for name in OF_HOLDS:
            setattr(handle, name, content[f"hold{h}.{name}"])
    for body in world.bodies:
        if body.has_melted and body.handles:
            world.changed(Change.HOLDS, body)
    for body in world.bodies:
        if body.fracture is not None:
            body.fracture.restore(unprefixed(f"fracture.{body.name}.", content))
    world.moving.arrange([content[f"flock{k}"].tolist() for k in range(sum(name in content for name in FLOCKS))])
    for k, mover in enumerate(world.movers):
        mover.restore(unprefixed(f"mover{k}.", content))
    world.encounters.restore(unprefixed("encounters.", content))
    world.attachments.restore(unprefixed("attachments.", content))
    world.revision += 1


def _break_apart(world: World, content: State, path: str | os.PathLike[str]) -> None:
    """Let the same bodies fall apart as had then, each after as many events."""
    breaks: list[Break] = []
    while found := unprefixed(f"break{len(breaks)}.", content):
        breaks.append(Break.restored(found))
    known = len(world.breaks)
    if known > len(breaks) or not all(map(Break.same, world.breaks, breaks)):
        raise CheckpointError(f"{path}: bodies have fallen apart here that had not then; build the world anew")
    for one in breaks[known:]:
        world.replay(max(one.events, world.past_events))
        body = next(body for body in world.bodies if body.name == one.name)
        assert body.fracture is not None
        body.fracture.restore(one.cracks)
        world.changed(Change.CRACK, body)
        divide(world, one)


def _read(path: str | os.PathLike[str]) -> State:
    try:
        with open(path, "rb") as opened, zipfile.ZipFile(opened), np.load(opened, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise CheckpointError(f"{path}: not a readable checkpoint ({error})") from error


def fingerprint(world: World) -> str:
    """What a world is built of at first, as a hash: a checkpoint fits only a world with the same."""
    digest = hashlib.sha256(f"{FORMAT} {world.first_gravity.tolist()}".encode())
    for body in world.bodies:
        if body.name == body.whole and not body.comes_by_event:
            digest.update(body.name.encode() + body.certificate + str((body.friction, body.restitution)).encode())
    return digest.hexdigest()


def _materials(world: World) -> list[str]:
    """What each body is made of now, as a hash."""
    return [hashlib.sha256(body.mixture.signature()).hexdigest() for body in world.bodies]


def _surroundings(world: World) -> list[str]:
    """Colliders, fields and ties that are there now: they may come and go with events."""
    labels = [*(field.label for field in world.fields), *(tie.label for tie in world.attachments.every)]
    return [*(one.signature() for one in world.colliders), *labels]


def _handles(world: World) -> list[Handle]:
    return [handle for body in world.bodies for handle in body.handles]


def _holds(world: World) -> list[list[int]]:
    """Which body each hold is on, and how many of its points it has; of what flows it had others than it would find
    now, where nothing has moved yet."""
    return [
        [world.bodies.index(handle.body), -1 if handle.body.has_melted else len(handle.points)]
        for handle in _handles(world)
    ]
