"""Points become a solid: inside and outside, distance, volume, nodes."""
