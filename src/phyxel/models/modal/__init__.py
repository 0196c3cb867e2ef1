"""How bodies move by their softest modes, warped (G05)."""
