"""The table of models: one row says all that others need to know of one."""

from __future__ import annotations

import warp as wp

from phyxel.body import Body
from phyxel.body.birth import field_space, rigid_space
from phyxel.material import Membrane
from phyxel.models.galerkin.model import GalerkinModel
from phyxel.models.kind import ModelKind, Scheme, register
from phyxel.models.modal.model import ModalModel
from phyxel.models.rigid.model import RigidModel
from phyxel.movers.field_bodies import FieldBodies
from phyxel.movers.phyxel_bodies import PhyxelBodies
from phyxel.movers.sheet_bodies import SheetBodies


def _galerkin(body: Body, device: wp.Device) -> GalerkinModel:
    return GalerkinModel(body.space, body.unit, body.start_velocities / body.unit, body.outermost, device)


def _modal(body: Body, device: wp.Device) -> ModalModel:
    return ModalModel(body.space, body.unit, body.start_velocities / body.unit, body.outermost, device, body.modes)


def _rigid(body: Body, device: wp.Device) -> RigidModel:
    thrown = body.thrown
    start = None if thrown is None else ((thrown.positions - body.origin) / body.unit, thrown.momentum, thrown.spin)
    return RigidModel(body.space, body.unit, body.start_velocities / body.unit, device, start)


ALL = frozenset({"phyxel", "galerkin", "modal", "rigid", "particles"})
"""Models whose bodies meet each other."""


register(
    ModelKind(
        name="phyxel",
        summary="does everything: dents, melts, cracks, meets other bodies",
        mover=PhyxelBodies,
        nodes="to the surface",
        carried_by="neighbours",
        integrators=("leapfrog", "implicit"),
        space=field_space,
        options=frozenset({"support", "refine", "scheme", "surface"}),
        crumbs="rigid",
        meets=ALL,
        across=3,
        schemes={
            "consistent": Scheme(
                "to the surface", across=4, support=1.8, hourglass=0.2, consistent=True, once_melted="m04"
            ),
            "m04": Scheme("inside", across=7, support=2.0, hourglass=0.1),
        },
    ),
    ModelKind(
        name="galerkin",
        summary="accurate: stress and strain at every point",
        mover=FieldBodies,
        make=_galerkin,
        nodes="to the surface",
        carried_by="shape functions",
        integrators=("implicit",),
        space=field_space,
        options=frozenset({"basis", "refine", "surface"}),
        cannot={"melt": "its nodes keep their neighbours"},
        crumbs="rigid",
        meets=ALL,
        across=3,
    ),
    ModelKind(
        name="modal",
        summary="in real time: the softest modes of vibration, bent as far as you like",
        mover=FieldBodies,
        make=_modal,
        nodes="to the surface",
        carried_by="shape functions",
        integrators=("implicit",),
        space=field_space,
        options=frozenset({"basis", "modes", "refine", "surface"}),
        cannot={
            "melt": "its modes are those of one shape",
            "yield": "its modes are those of an elastic body",
            "crack": "its modes are those of a whole body",
        },
        meets=ALL,
        across=3,
    ),
    ModelKind(
        name="particles",
        summary="a thin surface: skin, membranes, shells, cloth; any step is stable",
        mover=SheetBodies,
        nodes="points",
        carried_by="ring",
        integrators=("exact",),
        material=Membrane,
        usual=Membrane.latex,
        options=frozenset({"links", "warp", "meets_itself"}),
        cannot={"melt": "it has no inside", "crack": "it has no inside"},
        meets=ALL,
    ),
    ModelKind(
        name="rigid",
        summary="never bends: falls, spins, swings, lies; and crumbs of what broke",
        mover=FieldBodies,
        make=_rigid,
        nodes="to the surface",
        carried_by="shape functions",
        integrators=("exact",),
        space=rigid_space,
        cannot=dict.fromkeys(("melt", "yield", "crack"), "it never bends"),
        meets=ALL,
        bends=False,
    ),
)
