"""How crumbs move: as rigid bodies."""
