"""How phyxel bodies push each other and themselves."""
