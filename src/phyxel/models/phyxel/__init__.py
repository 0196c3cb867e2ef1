"""How bodies of phyxels move (M04): every node for itself, by the nodes around it."""
