"""Width of Student's t beside that of the normal distribution."""

from scipy import special


def student_width(sigmas: float, dof: float) -> float:
    """Factor by which an error must grow, so that ``sigmas`` of it have the probability of a normal one.

    ``dof``: degrees of freedom, at least 1.

    >>> round(student_width(2.0, 4.0), 2), round(student_width(2.0, 1e9), 2)
    (1.43, 1.0)
    """
    return float(special.stdtrit(max(dof, 1.0), float(special.ndtr(sigmas)))) / sigmas
