"""What moves bodies: the table of models there are, and a mover for each family of them."""
