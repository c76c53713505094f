"""Change points of factors over time."""
