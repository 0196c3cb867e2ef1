"""How bodies move: a folder a model, and what several of them share."""
