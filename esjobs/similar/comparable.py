"""Which jobs can be compared by their series at all."""

from esjobs.similar.prepared import N_SAMPLES

LEAST_S = 1800.0
"""Jobs with shorter series say too little about themselves."""
BAND = N_SAMPLES // 10
"""How many samples a path of dynamic time warping may be off the diagonal."""
DURATION = (0.5, 2.0)
"""A job of another duration may take that part of the time of the one asked for."""


def node_class(nodes: int) -> int:
    """1, 2, 3 to 4, 5 to 8, ... nodes as 0, 1, 2, 3, ..."""
    return (nodes - 1).bit_length()
