"""What is seen of a body: surfels."""
