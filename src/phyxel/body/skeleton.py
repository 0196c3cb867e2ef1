"""Skeletons: bones that turn about their joints by keyframes, and take along what of a body is attached to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phyxel.body.holds import Keyframes, turn_of, way_of
from phyxel.errors import PhyxelError, did_you_mean, knows_its_arguments
from phyxel.region import Vector, as_vector

Floats = NDArray[np.float64]
Course = Keyframes | Callable[[float], Vector]


@knows_its_arguments
@dataclass(frozen=True)
class Bone:
    """A bone with a `name` that turns about its joint, in the frame of its `parent`, another bone's name.

    `joint` [m] is where it turns, in the reference shape of the attached body. `path` says how far it has turned from
    the rest pose (degrees about x, y, z, in this order): keyframes, a list of (time [s], three numbers), from rest at
    0 s on, or a function of time. `to` says in the same way how far the joint goes [m]; for a bone without a parent.

    >>> arm = px.Bone("arm", joint=(0.1, 0.3, 0), path=[(0.5, (0, 0, 60)), (1.0, (0, 0, 0))])
    >>> hand = px.Bone("hand", joint=(0.1, 0.2, 0.1), parent="arm", path=lambda time: (20 * time, 0, 0))
    """

    name: str
    joint: Vector
    parent: str | None = None
    path: Course | None = None
    to: Course | None = None

    @property
    def moves(self) -> bool:
        """Whether it has a motion of its own."""
        return self.path is not None or self.to is not None


@knows_its_arguments
class Skeleton:
    """`bones`, each in the frame of its parent. `body.attach(where, skeleton, "hand")` lets one take a body along.

    >>> arm = px.Bone("arm", joint=(0, 1, 0), path=[(1.0, (0, 0, 90))])
    >>> px.Skeleton([arm, px.Bone("hand", joint=(1, 1, 0), parent="arm")]).joint("hand", time=1.0).round(6)
    array([0., 2., 0.])
    """

    def __init__(self, bones: Sequence[Bone]) -> None:
        self.bones = {bone.name: bone for bone in bones}
        if len(self.bones) < len(bones):
            names = [bone.name for bone in bones]
            twice = next(name for name in names if names.count(name) > 1)
            raise PhyxelError(f'skeleton: two bones are named "{twice}"; give each a name of its own')
        self._joints = {bone.name: as_vector(f"{_label(bone)}: joint", bone.joint, "m") for bone in bones}
        self._turns = {bone.name: turn_of(f"{_label(bone)}: path", bone.path, 0.0) for bone in bones}
        self._ways = {
            bone.name: way_of(f"{_label(bone)}: to", (0.0, 0.0, 0.0) if bone.to is None else bone.to, 0.0)
            for bone in bones
        }
        for bone in bones:
            if bone.parent is not None and bone.to is not None:
                raise PhyxelError(
                    f'{_label(bone)}: to: only a bone without a parent moves; "{bone.parent}" takes it along'
                )
            self._line(bone.name)

    def _bone(self, name: str) -> Bone:
        if name not in self.bones:
            raise PhyxelError(f'skeleton: no bone is named "{name}"{did_you_mean(name, list(self.bones))}')
        return self.bones[name]

    def _line(self, name: str) -> list[Bone]:
        """A bone, its parent, and so on up to one that has none."""
        line = [self._bone(name)]
        while (parent := line[-1].parent) is not None:
            if parent not in self.bones:
                hint = did_you_mean(parent, list(self.bones))
                raise PhyxelError(f'{_label(line[-1])}: parent = "{parent}": no such bone{hint}')
            line.append(self.bones[parent])
            if parent in [bone.name for bone in line[:-1]]:
                around = " -> ".join(bone.name for bone in line)
                raise PhyxelError(f"skeleton: {around}: a bone is its own ancestor; let one of them have no parent")
        return line

    def moves(self, name: str) -> bool:
        """Whether a bone ever goes anywhere."""
        return any(bone.moves for bone in self._line(name))

    def pose(self, name: str, time: float) -> tuple[Floats, Floats]:
        """What a bone takes points to at a time [s], x = R X + t: R, 3 × 3, and t [m], shape (3,).

        Below a parent with (R', t'), a bone that turns by Q about its joint j has R = R' Q and t = t' + R' (j − Q j)
        (physics 16.4).
        """
        rotation, shift = np.eye(3), np.zeros(3)
        for bone in reversed(self._line(name)):
            joint, turn = self._joints[bone.name], self._turns[bone.name](time)
            shift = shift + rotation @ (joint - turn @ joint + self._ways[bone.name](time))
            rotation = rotation @ turn
        return rotation, shift

    def joint(self, name: str, time: float) -> Floats:
        """Where the joint of a bone is at a time [s], in m, shape (3,)."""
        rotation, shift = self.pose(name, time)
        return rotation @ self._joints[name] + shift

    def motion(self, name: str, start: float) -> tuple[Floats, Callable[[float], Floats], Callable[[float], Floats]]:
        """What a bone does to points that it takes hold of at `start` [s]: where its joint is then [m], how far that
        goes [m] and how the points turn about it, 3 × 3, at a time [s]."""
        about = self.joint(name, start)
        taken = self.pose(name, start)[0]
        return about, lambda time: self.joint(name, time) - about, lambda time: self.pose(name, time)[0] @ taken.T


def _label(bone: Bone) -> str:
    return f'skeleton: bone "{bone.name}"'
