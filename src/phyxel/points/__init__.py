"""What comes in: clouds, loading, built-in shapes."""

FEWEST_POINTS = 4
"""Of a cloud: three always lie in a plane."""
