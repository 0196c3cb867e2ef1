"""How a body moves: one file per model, the same few verbs."""
