"""What a body meets: colliders."""
