"""What moves bodies: a table of the models there are, and a mover for each family of them."""
