"""How bodies move by the element-free Galerkin method (G04)."""
