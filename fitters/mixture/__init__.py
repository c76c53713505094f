"""Tasks that hold more than one kind of work."""
