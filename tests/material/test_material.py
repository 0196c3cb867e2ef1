"""Materials in a few words."""

import pytest

import phyxel as px


@pytest.mark.parametrize(
    ("material", "words"),
    [
        (px.Material(), "young 1.00 MPa, poisson 0.4, density 1000 kg/m³"),
        (px.Material(young="2 GPa", damping=2e-3), "young 2.00 GPa, poisson 0.4, density 1000 kg/m³, damping 0.002 s"),
        (px.Material(viscosity=80.0), "young 1.00 MPa, poisson 0.4, density 1000 kg/m³, viscosity 80 Pa s"),
        (px.Material(strength=3e6), "young 1.00 MPa, poisson 0.4, density 1000 kg/m³, strength 3.00 MPa"),
        (px.Membrane(thickness=2e-3), "young 1.00 MPa, poisson 0.4, density 1000 kg/m³, thickness 0.002 m"),
    ],
)
def test_a_material_says_its_stiffness_and_density_and_what_is_unusual(material, words):
    assert str(material) == words


def test_an_anisotropic_material_has_no_single_stiffness():
    wood = px.Material.orthotropic((1.1e10, 8e8, 4.5e8), (0.45, 0.45, 0.38), (7e8, 6.5e8, 4e7), density=450.0)
    assert str(wood) == "anisotropic, density 450 kg/m³"
