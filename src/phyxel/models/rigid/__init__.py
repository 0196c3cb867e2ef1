"""How rigid bodies move: those that users ask for, and crumbs."""
