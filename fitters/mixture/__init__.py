"""Tasks with more than one kind of work."""
