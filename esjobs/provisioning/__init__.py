"""How well a centre provides its resources: waiting, losses, an index, effects."""
