"""The error tree of the fits.

    FitError (a ValueError)
    ├── InputError       a column cannot be read: wrong length, text in a number, no rows
    ├── SettingError     an option has a value that the function does not know
    └── UnknownNameError a unit, task or component that is not in the result was asked for

What is wrong with single rows is no error: such rows are dropped and counted by reason, and what cannot be
fitted has a status and a reason in the result.
"""


class FitError(ValueError):
    """Root of every error this package raises on purpose; a ValueError.

    >>> issubclass(FitError, ValueError)
    True
    """


class InputError(FitError):
    """Error of a column that cannot be used; names the column and what is accepted."""


class SettingError(FitError):
    """Error of an option with an unknown value; lists the accepted ones."""


class UnknownNameError(FitError):
    """Error of a name that the result does not contain."""


def require_option(name: str, value: str, accepted: tuple[str, ...]) -> None:
    """Raise `SettingError` unless `value` is one of `accepted`.

    >>> require_option("objective", "paper", ("paper", "gamma"))
    >>> require_option("objective", "papre", ("paper", "gamma"))
    Traceback (most recent call last):
    ...
    fitters.errors.SettingError: objective is 'papre'; use one of: 'paper', 'gamma'
    """
    if value not in accepted:
        listed = ", ".join(repr(item) for item in accepted)
        raise SettingError(f"{name} is {value!r}; use one of: {listed}")
