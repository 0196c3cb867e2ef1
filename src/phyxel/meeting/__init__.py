"""How bodies meet: what of them can be touched, where they touch, and the impulses they exchange there."""
