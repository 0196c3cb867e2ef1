"""pyPBD's XPBD-FEM on the bar: five tetrahedra to a cube, mirrored from cube to cube (see ``peers.py`` for the job).

Settings: the library's own, steps of 5 ms with five substeps and one iteration each, at every size. That is generous:
it is stable, but the finer the bar, the less of it is solved in one pass (at 8281 nodes and E = 1e5 the lowest tip is
−1.069 m with these substeps of 1 ms, −1.040 with 0.5 and −1.026 with 0.25). At E = 1e7 nothing stable and affordable is
right, and the bar hangs like a soft one: at 1225 nodes the mean tip is −0.65 m with 1 ms, −0.19 with 0.1 ms and −0.06
with 0.025 ms, and 20 iterations a substep blow up. Both cores, by OpenMP. Its threads wait spinning, some 40 times a
substep, and on a machine busy with something else that made a run up to 40 times as long: they spin briefly here.
"""

import os
from importlib.metadata import version

import numpy as np

STEP = 5e-3  # s
SUBSTEPS = 5
XPBD_FEM = 3  # the number of this method in addSolidConstraints

# a cube's four corner tetrahedra and the one they leave
CUBE = np.array(
    [
        [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[1, 1, 0], [0, 1, 0], [1, 0, 0], [1, 1, 1]],
        [[1, 0, 1], [1, 0, 0], [0, 0, 1], [1, 1, 1]],
        [[0, 1, 1], [0, 0, 1], [0, 1, 0], [1, 1, 1]],
        [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]],
    ]
)


def lattice(*shape: int) -> np.ndarray:
    """All index triples of a box of this shape, the last index fastest."""
    return np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1).reshape(-1, 3)


def tetrahedra(cells: int) -> np.ndarray:
    """Corner indices of the tetrahedra of a bar this many cubes high, all of positive volume."""
    mirrored = CUBE * [-1, 1, 1] + [1, 0, 0]
    mirrored[:, [0, 1]] = mirrored[:, [1, 0]]
    cubes = lattice(4 * cells, cells, cells)
    odd = (cubes.sum(axis=1) % 2 == 1)[:, None, None, None]
    corners = np.where(odd, mirrored, CUBE) + cubes[:, None, None, :]
    return (corners @ np.array([(cells + 1) ** 2, cells + 1, 1])).reshape(-1, 4)


def lumped_masses(rest: np.ndarray, tets: np.ndarray) -> np.ndarray:
    """A quarter of each tetrahedron's mass to each of its corners."""
    a, b, c, d = np.moveaxis(rest[tets], 1, 0)
    volume = np.einsum("ij,ij->i", np.cross(b - a, c - a), d - a) / 6
    return np.bincount(tets.ravel(), np.repeat(volume * 1000 / 4, 4))


class PypbdBar:
    """The bar in pyPBD."""

    def __init__(self, cells: int, young: float) -> None:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # read as the tool is loaded
        import pypbd as pbd

        h = 0.25 / cells
        rest, tets = lattice(4 * cells + 1, cells + 1, cells + 1) * h, tetrahedra(cells)
        self.rest, self.end, self.held = rest, rest[:, 0] > 1 - h / 2, rest[:, 0] < h / 2
        simulation = pbd.Simulation.getCurrent()
        simulation.initDefault()  # gravity is -9.81 along y
        self.model, self.stepper = simulation.getModel(), simulation.getTimeStep()
        body = self.model.addTetModel(list(rest), tets.ravel().tolist(), testMesh=False, generateCollisionObject=False)
        particles = self.model.getParticles()
        for i, mass in enumerate(np.where(self.held, 0, lumped_masses(rest, tets))):
            particles.setMass(i, float(mass))  # a node without mass is held
        self.model.addSolidConstraints(body, XPBD_FEM, young, 0.3, 1.0, False, False)
        controller = pbd.TimeStepController
        self.stepper.setValueUInt(controller.NUM_SUB_STEPS, SUBSTEPS)
        self.stepper.setValueUInt(controller.MAX_ITERATIONS, 1)
        self.stepper.setValueUInt(controller.MAX_ITERATIONS_V, 0)
        pbd.TimeManager.getCurrent().setTimeStepSize(STEP)
        self.now = np.array(particles.getVertices(), copy=False)  # a view of the tool's own memory
        self.dt, self.nodes = STEP, len(rest)
        self.tool = f"pyPBD {version('pyPBD')} XPBD-FEM (tetrahedra)"
        self.note = f"substep {STEP / SUBSTEPS * 1e3:.3g} ms, 1 iteration"

    def advance(self, steps: int) -> None:
        for _ in range(steps):
            self.stepper.step(self.model)

    def tip(self) -> float:
        return float((self.now - self.rest)[self.end, 1].mean())

    def drift(self) -> float:
        return float(np.abs((self.now - self.rest)[self.held]).max())


def build(nodes: int, young: float, frame: float) -> PypbdBar:
    """The bar with as near to ``nodes`` nodes as a cubic lattice allows; ``frame`` is a multiple of the step."""
    cells = min(range(1, 200), key=lambda n: abs((4 * n + 1) * (n + 1) ** 2 - nodes))
    return PypbdBar(cells, young)
