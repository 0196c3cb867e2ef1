"""MLS-MPM in Taichi on the bar, written as Taichi's own examples write it (see ``peers.py`` for the job).

Settings: quadratic B-splines, APIC transfers, 27 particles to a grid cell, 32-bit floats, all cores. With the usual
eight, the soft bar tears off at its root from 8k particles on; 27 hold it together to 62500, and are faster. A
neo-Hookean body, because the co-rotated one of the examples needs a singular value decomposition a particle and takes
twice as long for the same swing. The step is 0.3 of a grid cell over the speed of sound. The held end is the grid nodes
up to one particle spacing from x = 0, with the grid placed so that a plane of nodes lies there: clamping only x = 0
instead lets soft particles slide out of it, and clamping the particles themselves tears them off. The end face is read
from the last two layers of particles, drawn on to x = 1.
"""

import math
from typing import Any

import numpy as np

COURANT = 0.3
CELL = 3.0  # spacings to a grid cell
SOFT = (-0.4, -1.4, -0.1), (1.2, 0.5, 0.35)  # m, the box that a soft bar swings through
STIFF = (-0.15, -0.2, -0.1), (1.15, 0.4, 0.35)


class TaichiBar:
    """The bar as particles in Taichi."""

    def __init__(self, cells: int, young: float, frame: float) -> None:
        import taichi as ti

        ti.init(arch=ti.cpu, default_fp=ti.f32, offline_cache=False, log_level=ti.ERROR)
        h = 0.25 / cells
        dx = CELL * h
        mu, lam = young / 2.6, young * 0.3 / (1.3 * 0.4)
        self.dt = frame / math.ceil(frame / (COURANT * dx / math.sqrt((lam + 2 * mu) / 1000)))
        index = np.stack(np.meshgrid(*map(np.arange, (4 * cells, cells, cells)), indexing="ij"), axis=-1)
        self.rest = (index.reshape(-1, 3) + 0.5) * h
        self.origin, shape, clamped = _grid(young, h, dx)
        self.cell, self.shape = dx, np.array(shape) - 1
        self.layer, self.nodes = cells * cells, len(self.rest)
        self.sync = ti.sync
        self.x = ti.Vector.field(3, ti.f32, self.nodes)
        self.x.from_numpy((self.rest - self.origin).astype(np.float32))
        self.step = _kernel(ti, self.x, shape, clamped, h, dx, self.dt, mu, lam)
        self.tool = f"Taichi {'.'.join(map(str, ti.__version__))} MLS-MPM"
        self.note = f"neo-Hookean, step {self.dt * 1e3:.3g} ms, grid {'x'.join(map(str, shape))}"

    def advance(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
        self.sync()

    def moved(self) -> np.ndarray:
        return self.x.to_numpy() + self.origin - self.rest

    def tip(self) -> float:
        at = self.x.to_numpy() / self.cell
        if not np.all((at > 1) & (at < self.shape)):
            return math.nan  # a particle has left the grid: torn off, or blown up
        y = self.moved()[:, 1]
        return float(1.5 * y[-self.layer :].mean() - 0.5 * y[-2 * self.layer : -self.layer].mean())

    def drift(self) -> float:
        return float(np.abs(self.moved()[: self.layer]).max())


def _grid(young: float, h: float, dx: float) -> tuple[np.ndarray, tuple[int, ...], int]:
    """Where the grid begins, how many nodes it has, and the last plane of nodes that is held: the one at x = h."""
    low, high = (np.array(corner) for corner in (SOFT if young < 1e6 else STIFF))
    origin = np.floor((low - [h, 0, 0]) / dx) * dx + [h, 0, 0]
    shape = np.ceil((high - origin) / dx).astype(int) + 3
    return origin, tuple(int(n) for n in shape), round((h - origin[0]) / dx)


def _kernel(
    ti: Any, x: Any, shape: tuple[int, ...], clamped: int, h: float, dx: float, dt: float, mu: float, lam: float
) -> Any:
    """One step, as one kernel of four loops: clear the grid, particles to grid, grid, grid to particles."""
    count = x.shape[0]
    v = ti.Vector.field(3, ti.f32, count)
    affine = ti.Matrix.field(3, 3, ti.f32, count)
    deformation = ti.Matrix.field(3, 3, ti.f32, count)
    deformation.from_numpy(np.tile(np.eye(3, dtype=np.float32), (count, 1, 1)))
    grid = ti.Vector.field(4, ti.f32, shape)  # momentum and mass, then velocity
    volume, mass, inv = h**3, 1000 * h**3, 1 / dx
    fall = 9.81 * dt
    one = ti.Matrix([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])

    @ti.func
    def weights(at):  # type: ignore[no-untyped-def]
        base = ti.cast(at * inv - 0.5, ti.i32)
        f = at * inv - base
        return base, f, ti.Matrix.rows([0.5 * (1.5 - f) ** 2, 0.75 - (f - 1) ** 2, 0.5 * (f - 0.5) ** 2])

    @ti.kernel
    def step():  # type: ignore[no-untyped-def]
        for node in ti.grouped(grid):
            grid[node] = ti.Vector([0.0, 0.0, 0.0, 0.0])
        for p in x:
            base, f, w = weights(x[p])
            F = deformation[p]
            stress = mu * (F @ F.transpose() - one) + lam * ti.log(F.determinant()) * one
            carried = mass * affine[p] - (dt * volume * 4 * inv * inv) * stress
            for i, j, k in ti.static(ti.ndrange(3, 3, 3)):
                offset = ti.Vector([i, j, k])
                momentum = mass * v[p] + carried @ ((offset - f) * dx)
                share = w[i, 0] * w[j, 1] * w[k, 2]
                grid[base + offset] += share * ti.Vector([momentum[0], momentum[1], momentum[2], mass])
        for node in ti.grouped(grid):
            if grid[node][3] > 0:
                velocity = grid[node] / grid[node][3]
                velocity[1] -= fall
                if node[0] <= clamped:
                    velocity = ti.Vector([0.0, 0.0, 0.0, 0.0])
                grid[node] = velocity
        for p in x:
            base, f, w = weights(x[p])
            velocity, gradient = ti.Vector([0.0, 0.0, 0.0]), ti.Matrix.zero(ti.f32, 3, 3)
            for i, j, k in ti.static(ti.ndrange(3, 3, 3)):
                offset = ti.Vector([i, j, k])
                here = grid[base + offset]
                part = w[i, 0] * w[j, 1] * w[k, 2] * ti.Vector([here[0], here[1], here[2]])
                velocity += part
                gradient += 4 * inv * part.outer_product(offset - f)
            v[p], affine[p] = velocity, gradient
            x[p] += dt * velocity
            deformation[p] = (one + dt * gradient) @ deformation[p]

    return step


def build(nodes: int, young: float, frame: float) -> TaichiBar:
    """The bar with as near to ``nodes`` particles, one in the middle of each cube, as its shape allows."""
    cells = min(range(1, 200), key=lambda n: abs(4 * n**3 - nodes))
    return TaichiBar(cells, young, frame)
