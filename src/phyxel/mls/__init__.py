"""The shared heart: weights, neighbourhoods, moment matrices."""
