"""Pictures of what is inside bodies."""
