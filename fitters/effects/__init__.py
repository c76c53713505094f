"""Effects of two kinds on the same buckets: of a unit, and of what it is made of."""
