"""How a body parts: cracks as level sets, their fronts, what they hide, and the rules by which they start and run."""
