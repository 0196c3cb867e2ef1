"""All that move the bodies of a world: a mover for each family of models, and one for each flock of phyxel bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phyxel.body import Body
from phyxel.body.protocols import Change
from phyxel.material import Mixture
from phyxel.models.kind import KINDS, ModelKind
from phyxel.movers.melting import is_fluid
from phyxel.movers.mover import Mover, MoverWorld
from phyxel.movers.phyxel_bodies import PhyxelBodies


class Movers:
    """The movers of a world.

    Phyxel bodies live in flocks, one for each integrator: stone is moved implicitly beside a melt that leap-frog moves,
    each at its own pace. Bodies of one flock share a model, those of two meet by `Encounters`.
    """

    def __init__(self, world: MoverWorld, moved: Callable[[], None]) -> None:
        """`moved` is to be called when bodies have come to another flock."""
        self._world, self._moved = world, moved
        self._made: dict[Callable[[Any], Any], list[Any]] = {}
        """by what makes them; several only where they are flocks"""

    @property
    def every(self) -> list[Mover]:
        """Those that have bodies, in the order of the table of models."""
        order = dict.fromkeys(kind.mover for kind in KINDS.values())
        return [mover for make in order for mover in self._made.get(make, []) if mover.bodies]

    @property
    def steps(self) -> int:
        """Substeps taken so far."""
        return sum(mover.steps for some in self._made.values() for mover in some)

    @property
    def integrator(self) -> str:
        """How the first of them step in time; of several flocks, one word after the other."""
        self.sort()
        words = [one.integrator for one in (self._flocks_with_bodies() or self.every[:1])]
        return ", ".join(words) or "implicit"

    def of(self, body: Body) -> Mover:
        """What moves a body."""
        movers: list[Mover] = self._made[body.kind.mover]
        return movers[0] if len(movers) == 1 else next(mover for mover in movers if body in mover.bodies)

    def newcomers(self, kind: ModelKind) -> Mover:
        """What is to move a body of a model that comes, made when the first of them does."""
        movers: list[Mover] = self._made.setdefault(kind.mover, [])
        if not movers:
            movers.append(kind.mover(self._world))
        if kind.mover is PhyxelBodies:
            return self._flock_of_melts() or movers[0]
        return movers[0]

    def changed(self, change: Change, body: Body, before: Mixture | None) -> None:
        """Something has happened to a body: tell what moves it."""
        if change is Change.MATERIAL and is_fluid(body):
            self._place({} if (home := self._flock_of_melts()) is None else {body: home})
        self.of(body).changed(change, body, before)

    # Flocks

    @property
    def _flocks(self) -> list[PhyxelBodies]:
        return self._made.get(PhyxelBodies, [])

    def _flocks_with_bodies(self) -> list[PhyxelBodies]:
        return [flock for flock in self._flocks if flock.bodies]

    def _flock_of_melts(self) -> PhyxelBodies | None:
        """That in which all is that has ever melted, if anything has: so it can flow together."""
        return next((flock for flock in self._flocks if flock.melting.bodies), None)

    def sort(self) -> None:
        """Let each phyxel body be in the flock of its integrator. What has melted stays where it is."""
        flocks = self._flocks_with_bodies()
        for flock in flocks:
            if not flock.chosen.known:
                flock.set_down()
                flock.write_surroundings()
        choices = {body: word for flock in flocks for body, word in flock.chosen.choices.items()}
        homes: dict[str, PhyxelBodies] = {}
        for flock in sorted(flocks, key=lambda one: not one.melting.bodies):
            homes.setdefault(choices[(flock.melting.bodies or flock.bodies)[0]], flock)
        for word in sorted(set(choices.values()) - homes.keys()):
            homes[word] = next((one for one in self._flocks if one not in homes.values()), None) or self._another()
        self._place({body: homes[word] for body, word in choices.items()})

    def gather(self) -> None:
        """Let all phyxel bodies be in one flock: rest is the same for all integrators."""
        if flocks := self._flocks_with_bodies():
            home = self._flock_of_melts() or flocks[0]
            self._place({body: home for flock in flocks for body in flock.bodies})

    def _another(self) -> PhyxelBodies:
        self._flocks.append(PhyxelBodies(self._world))
        return self._flocks[-1]

    def _place(self, homes: dict[Body, PhyxelBodies]) -> None:
        """Let bodies be in these flocks, behind those that are there."""
        lists = [[body for body in one.bodies if homes.get(body, one) is one] for one in self._flocks]
        for body, home in homes.items():
            own = lists[self._flocks.index(home)]
            own += [body] if body not in own else []
        self._become(lists)

    def _become(self, lists: list[list[Body]]) -> None:
        """Let the flocks have these bodies."""
        flocks = self._flocks
        changed = [(flock, bodies) for flock, bodies in zip(flocks, lists, strict=True) if flock.bodies != bodies]
        if not changed:
            return
        was = {body: (flock, own) for flock in flocks for body, own in flock.phyxels().items()}
        words = {body: word for one in flocks if one.chosen.known for body, word in one.chosen.choices.items()}
        for flock, bodies in changed:
            flock.become({body: was[body] for body in bodies})
        for flock, bodies in changed:
            flock.chosen.adopt({body: words[body] for body in bodies} if words.keys() >= set(bodies) else None)
        self._moved()

    # Checkpoints

    @property
    def names(self) -> list[list[str]]:
        """Those of the bodies of each flock."""
        return [[body.name for body in flock.bodies] for flock in self._flocks]

    def arrange(self, names: list[list[str]]) -> None:
        """Let flocks be what `names` were then; what they hold is to be overwritten."""
        while len(self._flocks) < len(names):
            self._another()
        known = {body.name: body for flock in self._flocks for body in flock.bodies}
        lists = [[known[name] for name in some] for some in names]
        lists += [[] for _ in self._flocks[len(lists) :]]
        here = {body: flock for flock, some in zip(self._flocks, lists, strict=True) for body in some}
        if any(here[body] is not flock for flock in self._flocks for body in flock.melting.bodies):
            for flock in self._flocks:
                flock.be_born_again()
        self._become(lists)
