"""Delivery errors, and whether to retry."""

from typing import Literal

from esjobs.core.errors import EsjobsError

# ``now``: after a pause; ``later``: the next night, when settings or server may have been repaired;
# ``never``: the receiver rejects this message
Again = Literal["now", "later", "never"]


class DeliveryError(EsjobsError):
    """Failed delivery; one line without secrets. ``wait_s``: requested by the receiver, or None."""

    def __init__(self, reason: str, again: Again, *, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.again = again
        self.wait_s = wait_s
