"""Optional libraries, imported on use."""

from importlib import import_module
from typing import Any

from esjobs.core.errors import MissingExtraError


def require(module: str, *, extra: str) -> Any:
    """Import an optional library. Raises :class:`MissingExtraError` that names the extra."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise MissingExtraError(
            f"{module} is not installed; install it: pip install 'esjobs[{extra}]'"
        ) from None
