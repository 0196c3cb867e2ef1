"""MuJoCo's flex on the bar: tetrahedra, one body a node (see ``peers.py`` for the job).

Settings: ``integrator="Euler"`` with no damping, every kind of contact off, and a step of 1.5 ms at 1225 nodes and
E = 1e5, scaled with the spacing over the speed of sound: 2 ms blows up there, 1.5 ms holds. MuJoCo's other choice for
a flex, ``integrator="discrete"`` (implicit), takes larger steps but is no faster while it keeps the swing: at E = 1e7
and 1225 nodes it costs the same at 2 ms and already eats a sixth of the swing in half a second. One thread: MuJoCo
shares out islands of contacts, and there are none here.
"""

import math

import numpy as np

STEP = 1.5e-3  # s, at the spacing and modulus below
SPACING, YOUNG = 1 / 24, 1e5

SCENE = """<mujoco>
  <option timestep="{dt!r}" gravity="0 -9.81 0" integrator="Euler">
    <flag contact="disable" autoreset="disable"/>
  </option>
  <size memory="4G"/>
  <worldbody>
    <flexcomp name="bar" type="grid" dim="3" count="{nx} {ny} {ny}" spacing="{h!r} {h!r} {h!r}" pos="0.5 0 0"
              mass="62.5" radius="0.001">
      <elasticity young="{young!r}" poisson="0.3" damping="0"/>
      <contact selfcollide="none" contype="0" conaffinity="0"/>
      <edge equality="false"/>
      <pin id="{pins}"/>
    </flexcomp>
  </worldbody>
</mujoco>"""


class MujocoBar:
    """The bar in MuJoCo."""

    def __init__(self, cells: int, young: float, frame: float) -> None:
        import mujoco

        h = 0.25 / cells
        self.dt = frame / math.ceil(frame / (STEP * h / SPACING * math.sqrt(YOUNG / young)))
        pins = " ".join(str(i) for i in range((cells + 1) ** 2))  # the nodes are numbered along x last: the face x = 0
        scene = SCENE.format(dt=self.dt, nx=4 * cells + 1, ny=cells + 1, h=h, young=young, pins=pins)
        self.model = mujoco.MjModel.from_xml_string(scene)
        self.data = mujoco.MjData(self.model)
        self.step = mujoco.mj_step
        mujoco.mj_forward(self.model, self.data)
        self.rest = self.data.flexvert_xpos.copy()
        self.end, self.held = self.rest[:, 0] > 1 - h / 2, self.rest[:, 0] < h / 2
        self.nodes = len(self.rest)
        self.tool = f"MuJoCo {mujoco.__version__} flex (tetrahedra)"
        self.note = f"Euler, step {self.dt * 1e3:.3g} ms"

    def advance(self, steps: int) -> None:
        self.step(self.model, self.data, steps)

    def tip(self) -> float:
        return float((self.data.flexvert_xpos - self.rest)[self.end, 1].mean())

    def drift(self) -> float:
        return float(np.abs((self.data.flexvert_xpos - self.rest)[self.held]).max())


def build(nodes: int, young: float, frame: float) -> MujocoBar:
    """The bar with as near to ``nodes`` nodes as a cubic lattice allows."""
    cells = min(range(1, 200), key=lambda n: abs((4 * n + 1) * (n + 1) ** 2 - nodes))
    return MujocoBar(cells, young, frame)
