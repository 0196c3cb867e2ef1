"""What comes in: clouds, loading, built-in shapes."""
