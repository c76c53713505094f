"""Optional libraries, imported on use."""

from importlib import import_module
from typing import Any

from esjobs.core.errors import MissingExtraError

PACKAGES = {
    "altair": "altair",
    "botocore": "botocore",
    "elftools": "pyelftools",
    "gensim": "gensim",
    "opensearchpy": "opensearch-py",
    "PIL": "pillow",
    "starlette": "starlette",
    "uvicorn": "uvicorn",
}
"""Optional libraries and the packages that have them."""


def require(module: str, *, extra: str, needed_by: str) -> Any:
    """Import and return a module of an optional library.

    Raises :class:`MissingExtraError` that names what needs it and the extra to install.
    """
    library = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        # a library that is there but lacks one of its own: a broken installation, not an extra
        if error.name is None or error.name.partition(".")[0] != library:
            raise
        missing = f"{needed_by} requires {PACKAGES[library]}, which is not installed"
        raise MissingExtraError(f"{missing}; run: pip install 'esjobs[{extra}]'") from None
