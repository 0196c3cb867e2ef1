"""Bodies as others see them: where their surface is, how they move, what they are to touch."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from phyxel.contact.touch import ColliderQuery
from phyxel.meeting.outline import Outline
from phyxel.models.protocol import Tangible
from phyxel.rotation import cross

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


BULGE = 0.5
"""Spacings that a surface may lie outside the box around the places of its outline."""
FLATTEST = 1e-6
"""Change of volume below which a deformation is none."""


class SeenBody:
    """A body as others see it at a moment. Lengths in metres about the world's origin."""

    x: Floats
    """where what carries its surface is, shape (n, 3)"""

    def __init__(
        self,
        outline: Callable[[], Outline],
        unit: float,
        origin: Floats,
        mass: float,
        friction: float,
        restitution: float,
    ) -> None:
        self._outline_of = outline
        self.unit, self.origin, self.mass = unit, origin, mass
        self.friction, self.restitution = friction, restitution
        self.stiff = False
        """whether it never bends"""
        self.balls: float | None = None
        """radius of the balls it is met as [m], one for each thing that carries it; a melt has no other surface"""

    def see(self, x: Floats, margin: float) -> None:
        """What carries its surface is at x (n, 3); that may lie so far outside the box around these."""
        for seen in ("skin", "deformation", "normals", "tree", "box", "lower", "upper"):
            self.__dict__.pop(seen, None)
        self.x, self.margin = x, margin

    @cached_property
    def lower(self) -> Floats:
        """Lower corner of the box around all of it, shape (3,)."""
        return np.asarray(self.x.min(axis=0) - self.margin)

    @cached_property
    def upper(self) -> Floats:
        """Upper corner, shape (3,)."""
        return np.asarray(self.x.max(axis=0) + self.margin)

    @cached_property
    def outline(self) -> Outline:
        return self._outline_of()

    @cached_property
    def skin(self) -> Floats:
        """Where the places of the outline are, shape (m, 3)."""
        return np.asarray(self.outline.phi @ self.x)

    @cached_property
    def tree(self) -> cKDTree:
        """Of these places."""
        return cKDTree(self.skin)

    @cached_property
    def box(self) -> tuple[Floats, Floats]:
        """Corners of the box around all of its surface, which bulges little between places, shape (3,) each."""
        bulge = BULGE * self.unit
        return self.skin.min(axis=0) - bulge, self.skin.max(axis=0) + bulge

    @cached_property
    def deformation(self) -> Floats:
        """F at these places times the unit, shape (m, 3, 3)."""
        if self.stiff:  # the same everywhere
            F = np.stack([slope[:1] @ self.x for slope in self.outline.slopes], axis=2)
            return np.broadcast_to(F, (len(self.outline), 3, 3))
        return np.stack([slope @ self.x for slope in self.outline.slopes], axis=2)

    @cached_property
    def normals(self) -> Floats:
        """There in the present shape, F⁻ᵀ N, shape (m, 3)."""
        return self.turned_out(np.arange(len(self.outline)), self.outline.N)[0]

    def turned_out(self, near: Indices, normals: Floats) -> tuple[Floats, Floats]:
        """Normals (k, 3) of the reference shape beside places of the outline (k,) in the present one, (k, 3), and the
        length that F⁻ᵀ gave them, (k,)."""
        if not self.stiff:
            return turned_out(self.deformation[near], normals)
        return normals @ (self.deformation[0].T / self.unit), np.full(len(normals), 1 / self.unit)

    # Places of the outline (`contacts.Surface`)

    @property
    def knows_its_solid(self) -> bool:
        return self.stiff and self.outline.measure is not None

    def skin_at(self, points: Indices) -> Floats:
        return self.skin[points]

    def normals_at(self, points: Indices) -> Floats:
        return self.normals[points]

    def unit_at(self, points: Indices) -> float:
        return self.unit

    def measure_at(self, points: Indices, beside: Floats) -> tuple[Floats, Floats]:
        assert self.outline.measure is not None
        return self.outline.measure(self.outline.X[points] + beside)

    def pulled_back(self, places: Floats, near: Indices) -> Floats:
        """Where places (k, 3) are in the reference shape beside those of the outline they are near (k,), (k, 3)."""
        if self.stiff:
            return np.asarray(np.linalg.solve(self.deformation[0], (places - self.skin[near]).T).T)
        away, F = (places - self.skin[near])[:, :, None], self.deformation[near]
        # Beside a crack a place may be carried by too few nodes to tell how it is deformed.
        flat = np.abs(np.linalg.det(F)) < FLATTEST * self.unit**3
        F = np.where(flat[:, None, None], self.unit * np.eye(3), F)
        return np.asarray(np.linalg.solve(F, away)[:, :, 0])

    def carried(self, near: Indices, beside: Floats) -> Floats:
        """Where places are that lie beside some of the outline by (k, 3) in the reference shape, (k, 3)."""
        if self.stiff:
            return self.skin[near] + beside @ self.deformation[0].T
        return self.skin[near] + (self.deformation[near] @ beside[:, :, None])[:, :, 0]

    def measured(self, places: Floats, near: Indices) -> tuple[Floats, Floats, Floats]:
        """Signed distance of places (k, 3) from its surface [m], (k,), the normal there (k, 3), and how far beside the
        outline's places they are near, in the reference shape (k, 3)."""
        beside = self.pulled_back(places, near)
        if self.outline.measure is None:
            height = np.einsum("ka,ka->k", self.outline.N[near], beside)
            slope = self.outline.N[near]
        else:
            height, slope = self.outline.measure(self.outline.X[near] + beside)
        normal, steep = self.turned_out(near, slope)
        return height / np.maximum(steep, 1e-300), normal, beside


class Party(SeenBody):
    """One body that has a model of its own, in a step."""

    def __init__(
        self,
        model: Tangible,
        outline: Callable[[], Outline],
        unit: float,
        origin: Floats,
        mass: float,
        friction: float,
        restitution: float,
        young: float,
        damping: float,
    ) -> None:
        super().__init__(outline, unit, origin, mass, friction, restitution)
        self.model, self.young, self.stiff = model, young, math.isinf(young)
        self.damping = damping
        """how late its stress is [s]"""
        self.family = ""
        """of a piece, the name of what it was part of"""
        self.around: ColliderQuery | None = None
        """colliders that it meets together with other bodies; none if its model sees to them"""
        self.before, self.speed = model.u, model.v
        """coefficients of displacement and velocity when the step began, in the body's units, shape (n, 3)"""
        self.energy = 0.0
        """elastic and kinetic, when the step began [J]"""
        self._look(self.before)

    def _look(self, u: Floats) -> None:
        self.see(self.origin + self.unit * (self.model.space.nodes + u), self.unit * self.model.margin)

    def go(self) -> None:
        """A step was taken: look at where it has led."""
        u = self.model.u
        self._look(u)
        self.way = self.unit * (u - self.before)

    def push(self, rows: csr_array, places: Floats, impulses: Floats, dt: float) -> None:
        """Let impulses (k, 3) [N s] at points with φ in `rows` (k, n), which were at `places` (k, 3) when it began, act
        within the last step of dt [s]."""
        there = (places - self.origin) / self.unit
        self.model.push(rows, there, impulses / self.unit**2, self.before, dt)

    def travelled(self, rows: csr_array) -> Floats:
        """How far such points have gone in the step [m], shape (k, 3)."""
        return np.asarray(rows @ (self.unit * (self.model.u - self.before)))

    def response(self, rows: csr_array, dt: float) -> Floats:
        """A root of what unit impulses at such points do to their velocities [kg^-½], shape (3k, r)."""
        return self.model.response(rows, dt) / np.sqrt(self.unit)


def turned_out(F: Floats, normals: Floats) -> tuple[Floats, Floats]:
    """F⁻ᵀ N of normals (k, 3), made of length 1, and the length it had, (k,); none where F is singular."""
    cofactors = np.stack([cross(F[:, :, (a + 1) % 3], F[:, :, (a + 2) % 3]) for a in range(3)], axis=2)
    turned = (cofactors @ normals[:, :, None])[:, :, 0]
    length = np.linalg.norm(turned, axis=1)
    volume = np.einsum("ka,ka->k", F[:, :, 0], cofactors[:, :, 0])
    return turned / np.maximum(length, 1e-300)[:, None], length / np.maximum(np.abs(volume), 1e-300)
