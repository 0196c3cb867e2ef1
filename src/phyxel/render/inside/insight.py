"""Pictures of what is inside bodies: on their surface, on slices, on iso-surfaces, and as a glowing fog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.body.inside import Inside
from phyxel.body.quantities import quantity
from phyxel.material.look import LOOKS
from phyxel.render.camera import make_view
from phyxel.render.cast import Actor
from phyxel.render.inside.haze import HazeLayer, Puffs, laid_over
from phyxel.render.inside.lattice import FieldLattice, Floats, LatticeValues, inverses, shape_of
from phyxel.render.inside.legend import Legend, Limits
from phyxel.render.inside.panes import Pane, PaneCut, Panes
from phyxel.render.inside.pen import PLASTER, over
from phyxel.render.shot import Shot
from phyxel.render.splat import averaged
from phyxel.surface.clipping import Ellipses, within
from phyxel.world import World

Pixels = NDArray[np.uint8]

PIXELS_PER_PLACE, PLACES = 20, (4_000, 40_000)
"""Pixels of a picture for each place of the lattices of all bodies together, and how many there are at least and at
most; fog is made of eight times as many."""
FEWEST = 500
"""Places of a small body among large ones."""
SPREAD = 0.6
"""Standard deviation of a puff over its distance to the next: their sum is even to 1.4 %."""
DENSE = 7.0
"""Extinction of the densest fog, over one by the cube root of the largest body's volume when it was first seen."""
CLEAR = 0.08
"""Share of the colour scale below which fog is clear, unless it is told."""
SURFEL_AREA = 0.6
"""Area that a surfel stands for, over the product of its half axes: they overlap."""
FILM, FILM_COLOR = 0.035, (0.45, 0.52, 0.62)
"""Optical depth and light of the glass that shows where the surface is; seen aslant it is thicker."""
FILM_SPREAD = 0.8
"""Standard deviation of a surfel's puff over its half axes."""
EDGE_ON = 0.12
"""Cosine below which it is not thicker any more."""
FILM_SHADE = (0.30, 0.33, 0.38)
"""Its light before a bright background."""
SHEET = (0.25, 0.9)
"""Optical depth of iso-surfaces from the lowest to the highest on the scale."""
ACROSS, OVERLAP = 2.0, 0.3
"""Radii of a surfel within which a slice may cut it, and by which one may stand out before a slice."""
MATTE = list(LOOKS).index("matte")
"""Row of the table of looks: gloss would be mistaken for values."""


class Insight:
    """Draws what is inside the bodies of a world."""

    def __init__(self, shot: Shot, inside: Inside) -> None:
        self.inside, self._shot = inside, shot
        self._quantity = quantity(inside.field)
        self._limits = Limits(self._quantity, inside.range)
        self._lattices: dict[Body, tuple[object, FieldLattice]] = {}
        self._panes: dict[Body, tuple[object, list[Pane]]] = {}
        self._haze: HazeLayer | None = None
        self._size = 0.0
        """cube root of the volume of the largest body when it was first seen [m]: pieces are as dense"""
        self._bar: tuple[object, Floats] | None = None

    # What there is to be seen

    def watch(self, world: World) -> list[LatticeValues]:
        """Look at the bodies as they are now, and widen the scale of colours to their values."""
        sights = [lattice.look(self._quantity) for lattice in self._lattices_in(world)]
        for sight in sights:
            self._limits.see(sight.values[sight.lattice.inside])
        return sights

    def _lattices_in(self, world: World) -> list[FieldLattice]:
        for body in world.bodies:
            body.needs_solid("to be seen inside")
        volumes = [float(body.volumes.sum()) for body in world.bodies]
        total, self._size = sum(volumes), self._size or float(np.cbrt(max(volumes)))
        camera = self._shot.camera
        places = float(np.clip(camera.width * camera.height / PIXELS_PER_PLACE, *PLACES))

        def lattice(body: Body) -> FieldLattice:
            volume = float(body.volumes.sum())
            return FieldLattice(body, (volume / max(places * volume / total, FEWEST)) ** (1 / 3))

        self._lattices = {body: self._kept(self._lattices.get(body), body, lattice) for body in world.bodies}
        self._panes = {body: panes for body, panes in self._panes.items() if body in self._lattices}
        return [lattice for _, lattice in self._lattices.values()]

    def _panes_of(self, body: Body) -> list[Pane]:
        def panes(body: Body) -> list[Pane]:
            return [Pane(body, plane) for plane in self.inside.slice]

        self._panes[body] = self._kept(self._panes.get(body), body, panes)
        return self._panes[body][1]

    @staticmethod
    def _kept(known: tuple[object, Any] | None, body: Body, make: Any) -> tuple[object, Any]:
        """The lattice of the reference shape that a body has now."""
        shape = shape_of(body)
        return known if known is not None and known[0] == shape else (shape, make(body))

    # Pictures

    def draw(self, world: World, supersample: int = 1) -> Pixels:
        """A picture of the world as it is now, with a colour bar, (height, width, 4) bytes."""
        sights = self.watch(world)
        legend = self._limits.legend()
        modes = {"surface": self._on_surface, "slice": self._sliced, "iso": self._iso, "volume": self._fog}
        picture = modes[self.inside.mode](world, sights, legend, supersample)
        if supersample > 1:
            picture = averaged(picture, supersample)
        return self._with_bar(picture, legend)

    def _on_surface(self, world: World, sights: Sequence[LatticeValues], legend: Legend, fine: int) -> Pixels:
        actors = []
        for sight in sights:
            actor = self._actor(sight, world)
            values = sight.traced(sight.lattice.body.surface.positions)[1]
            actors.append(actor._replace(color=self._vectors(legend.colors(values))))
        return self._solid(world, actors, fine)

    def _sliced(self, world: World, sights: Sequence[LatticeValues], legend: Legend, fine: int) -> Pixels:
        cuts = [self._cut(sight, world) for sight in sights]
        halves, films = [], []
        for sight, cut in zip(sights, cuts, strict=True):
            left = cut.left(sight.traced(sight.lattice.body.surface.positions)[0])
            halves.append(self._half(sight, cut, left, world))
            films.append(self._film(sight.lattice.body, world, FILM_SHADE, left < 0))
        picture = self._solid(world, halves, fine, [self._actor(sight, world) for sight in sights])
        grid, front = self._shot.renderer.solid
        panes = self._placed_panes(world, cuts, grid, fine)
        narrow = max(float(np.abs(half.axis_a.numpy()).max(initial=0)) for half in halves)
        front = panes.painted_on(picture, front, legend, OVERLAP * narrow)
        return self._through(picture, Puffs.joined(films), front, fine)

    def _half(self, sight: LatticeValues, cut: PaneCut, left: Floats, world: World) -> Actor:
        """What is left of a body's surface that is cut; `left` is how far behind its surfels are [m], shape (m,)."""
        surface = sight.lattice.body.surface
        a, b = (axis.numpy().astype(np.float64) for axis in (surface.axis_a, surface.axis_b))
        discs = Ellipses(surface.positions, a, b, np.arange(len(surface)))
        beside = np.abs(left) < ACROSS * discs.longest
        parted = within(discs.some(beside), lambda x: cut.left(sight.traced(x)[0]))
        discs = discs.some((left > 0) & ~beside).joined(parted)
        plaster = np.broadcast_to(PLASTER, discs.points.shape)
        x, a, b, color = map(self._vectors, (discs.points - surface.origin, discs.axis_a, discs.axis_b, plaster))
        return self._actor(sight, world)._replace(position=x, axis_a=a, axis_b=b, color=color)

    def _cut(self, sight: LatticeValues, world: World) -> PaneCut:
        panes = self._panes_of(sight.lattice.body)
        return PaneCut(panes, [self._side(pane, sight, world) for pane in panes])

    def _placed_panes(self, world: World, cuts: Sequence[PaneCut], grid: Any, fine: int) -> Panes:
        panes = [pane for cut in cuts for pane in cut.panes]
        looks = [pane.look(self._quantity) for pane in panes]
        starts = np.cumsum([0, *(len(x) for x, _ in looks)])[:-1]
        x, values = (np.concatenate(parts) for parts in zip(*looks, strict=True))
        distances = np.concatenate([cut.distance(pane) for cut in cuts for pane in cut.panes])
        return Panes(
            self._placed(x, world),
            np.concatenate([pane.triangles + start for pane, start in zip(panes, starts, strict=True)]),
            np.stack([values, distances, np.repeat(np.arange(len(panes)), [len(pane.X) for pane in panes])], axis=1),
            self._shot.seen_from.scaled(fine),
            grid,
            self._shot.renderer.device,
        )

    def _side(self, pane: Pane, sight: LatticeValues, world: World) -> float:
        """1 or -1: on which side of a pane, bent as it is, the eye is."""
        near = np.argsort(np.abs(sight.lattice.X @ pane.normal - pane.place))[: max(len(sight.x) // 50, 8)]
        normals = np.swapaxes(inverses(sight.J[near]), 1, 2) @ pane.normal
        to_eye = np.asarray(self._shot.seen_from.eye) - self._placed(sight.x[near], world)
        return float(np.sign(np.sum(to_eye * (normals @ self._shot.turn(world).T)))) or 1.0

    def _iso(self, world: World, sights: Sequence[LatticeValues], legend: Legend, fine: int) -> Pixels:
        bodies = [sight.lattice.body for sight in sights]
        puffs = [self._film(body, world, FILM_COLOR) for body in bodies]
        levels = [tick for tick in legend.ticks if legend.low < tick < legend.high]
        puffs += [self._sheet(sight, level, world, legend) for sight in sights for level in levels]
        return self._glowing(world, sights, Puffs.joined(puffs), fine)

    def _sheet(self, sight: LatticeValues, level: float, world: World, legend: Legend) -> Puffs:
        """The surface on which the quantity has a value: a surfel wherever it crosses an edge of the lattice. On a
        surface with normal n there are (|n_x| + |n_y| + |n_z|)/h² such places in an area of 1."""
        h = sight.lattice.spacing
        found = [_crossings(sight, level, axis) for axis in range(3)]
        one, other, share = (np.concatenate(parts) for parts in zip(*found, strict=True))
        x, slope = (field[one] + share[:, None] * (field[other] - field[one]) for field in (sight.x, sight.slopes))
        J = sight.J[one] + share[:, None, None] * (sight.J[other] - sight.J[one])
        normal = slope / np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-300)
        area = h * h / np.maximum(np.abs(normal).sum(axis=1), 1.0)
        flat = SPREAD * h * (np.eye(3) - normal[:, :, None] * normal[:, None, :])
        turned = np.einsum("nba,nb->na", inverses(J), normal) @ self._shot.turn(world).T
        stretch = np.abs(np.linalg.det(J)) * np.linalg.norm(turned, axis=1)  # of areas, by Nanson
        color = self.inside.brightness * _lit(legend, np.array(level), turned)
        thick = SHEET[0] + (SHEET[1] - SHEET[0]) * float(legend.share(np.array(level)))
        return Puffs(self._placed(x, world), self._shot.turn(world) @ J @ flat, thick * area * stretch, color)

    def _fog(self, world: World, sights: Sequence[LatticeValues], legend: Legend, fine: int) -> Pixels:
        puffs = [self._film(sight.lattice.body, world, FILM_COLOR) for sight in sights]
        puffs += [self._cloud(sight, world, legend) for sight in sights]
        return self._glowing(world, sights, Puffs.joined(puffs), fine)

    def _cloud(self, sight: LatticeValues, world: World, legend: Legend) -> Puffs:
        """Fog in a body: its extinction rises between two values of the quantity."""
        lattice = sight.lattice
        owner, offset, volume = lattice.parts
        values = sight.values[owner] + np.einsum("na,na->n", sight.slopes[owner], offset)
        clear, dense = self.inside.opacity or self._thresholds(legend)
        share = np.clip((values - clear) / (dense - clear), 0, 1)
        kept = share > 1e-3
        owner, offset = owner[kept], offset[kept]
        J, turn = sight.J[owner], self._shot.turn(world)
        x = sight.x[owner] + np.einsum("nab,nb->na", J, offset)
        extinction = DENSE / self._size * share[kept]
        weights = extinction * volume[kept] * np.abs(np.linalg.det(sight.J))[owner]
        colors = self.inside.brightness * legend.light(values[kept])
        return Puffs(self._placed(x, world), 0.5 * SPREAD * lattice.spacing * (turn @ J), weights, colors)

    def _thresholds(self, legend: Legend) -> tuple[float, float]:
        """Values from which fog is seen and at which it is densest, unless they are given."""
        clear = legend.low + CLEAR * (legend.high - legend.low)
        return (legend.high - (clear - legend.low), legend.low) if legend.quantity.inward else (clear, legend.high)

    def _film(self, body: Body, world: World, color: Sequence[float], which: Any = slice(None)) -> Puffs:
        """A body's surface as thin glass."""
        surface, turn = body.surface, self._shot.turn(world)
        a, b = (axis.numpy()[which] for axis in (surface.axis_a, surface.axis_b))
        axes = FILM_SPREAD * np.stack([a, b, np.zeros_like(a)], axis=2)
        normal = np.cross(a, b)
        area = np.maximum(np.linalg.norm(normal, axis=1), 1e-300)
        x = self._placed(surface.positions[which], world)
        to_eye = np.asarray(self._shot.seen_from.eye) - x
        facing = np.abs(np.sum(normal @ turn.T * to_eye, axis=1)) / (area * np.linalg.norm(to_eye, axis=1))
        thick = FILM * np.minimum(1, facing / EDGE_ON)
        colors = np.broadcast_to(np.asarray(color) ** 2.2, a.shape)
        return Puffs(x, turn @ axes, thick * SURFEL_AREA * area, colors)

    # Layers

    def _solid(self, world: World, actors: Sequence[Actor], fine: int, unseen: Sequence[Actor] = ()) -> Pixels:
        return self._shot.drawn(world, actors, fine, unseen, average=False)

    def _glowing(self, world: World, sights: Sequence[LatticeValues], puffs: Puffs, fine: int) -> Pixels:
        """Puffs among the colliders, over the shadows of the bodies they are in."""
        picture = self._solid(world, [], fine, [self._actor(sight, world) for sight in sights])
        return self._through(picture, puffs, self._shot.renderer.solid[1], fine)

    def _through(self, picture: Pixels, puffs: Puffs, front: wp.array, fine: int) -> Pixels:
        grid, device = self._shot.renderer.solid[0], self._shot.renderer.device
        if self._haze is None or (self._haze.grid.width, self._haze.grid.height) != (grid.width, grid.height):
            self._haze = HazeLayer(grid, device)
        return laid_over(picture, self._haze.draw(puffs, make_view(self._shot.seen_from.scaled(fine)), front))

    def _with_bar(self, picture: Pixels, legend: Legend) -> Pixels:
        height, width = picture.shape[:2]
        dark = bool(picture[..., :3].mean() < 110)
        key = (legend, picture.shape, dark)
        if self._bar is None or self._bar[0] != key:
            self._bar = key, legend.bar(width, height, dark)
        bar = self._bar[1]
        columns = slice(int(np.flatnonzero(bar[..., 3].any(axis=0)).min()), width)
        picture = picture.copy()
        picture[:, columns] = np.rint(255 * over(picture[:, columns] / 255.0, bar[:, columns]))
        return picture

    # Small things

    def _actor(self, sight: LatticeValues, world: World) -> Actor:
        return self._shot.actor(sight.lattice.body, world)._replace(row=MATTE)

    def _vectors(self, values: Floats) -> wp.array:
        return wp.array(np.asarray(values, np.float32), dtype=wp.vec3, device=self._shot.renderer.device)

    def _placed(self, x: Floats, world: World) -> Floats:
        """Positions (n, 3) of the world [m] as the camera counts them."""
        return (x - self._shot.base) @ self._shot.turn(world).T


def _crossings(sight: LatticeValues, level: float, axis: int) -> tuple[NDArray[Any], NDArray[Any], Floats]:
    """Edges of the lattice along an axis on which the quantity has a value: their ends, and how far along, inside."""
    one, other = sight.lattice.pairs(axis)
    before, after = sight.values[one] - level, sight.values[other] - level
    crossed = (before < 0) != (after < 0)
    one, other, before, after = one[crossed], other[crossed], before[crossed], after[crossed]
    share = before / (before - after)
    distance = sight.lattice.distance
    inside = distance[one] + share * (distance[other] - distance[one]) < 0
    return one[inside], other[inside], share[inside]


def _lit(legend: Legend, value: Floats, normals: Floats) -> Floats:
    """Linear light of a surface in the colour of a value, with normals (n, 3) of any length, seen from both sides."""
    toward = np.array([-0.4, 0.75, 0.5]) / np.linalg.norm([-0.4, 0.75, 0.5])
    facing = np.abs(normals @ toward) / np.maximum(np.linalg.norm(normals, axis=1), 1e-300)
    return (0.35 + 0.75 * facing[:, None]) * legend.light(value) + 0.25 * facing[:, None] ** 24
