"""Width of Student's t relative to the normal distribution."""

from scipy import special


def student_width(sigmas: float, dof: float) -> float:
    """Return the quantile of Student's t at ``sigmas`` normal errors, over these; ``dof`` is at least 1.

    >>> round(student_width(2.0, 4.0), 2), round(student_width(2.0, 1e9), 2)
    (1.43, 1.0)
    """
    return float(special.stdtrit(max(dof, 1.0), float(special.ndtr(sigmas)))) / sigmas
