"""Setting types shared by several capabilities."""

from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from esjobs.core.rules import LARGEST


def no_flag(value: object) -> object:
    """Refuse truth values, which Python accepts as numbers."""
    if isinstance(value, bool):
        raise PydanticCustomError("flag", "expected a number")
    return value


Number = Annotated[int, BeforeValidator(no_flag), Field(ge=0, le=LARGEST)]
"""Zero or more, below a limit that only typing errors exceed."""
Count = Annotated[int, BeforeValidator(no_flag), Field(ge=1, le=LARGEST)]
"""At least one, with the same limit."""
