"""How surfaces of particles move, each by its exact solution (W96)."""
