"""What can go wrong with a delivery, and whether trying again makes sense."""

from typing import Literal

from esjobs.core.errors import EsjobsError

Again = Literal["now", "later", "never"]
"""``now``: after a pause; ``later``: the next night, when somebody has mended the settings or the server;
``never``: the receiver does not want this message."""


class DeliveryError(EsjobsError):
    """A message was not delivered; says why in a line without secrets.

    ``wait_s``: how long the receiver asked to wait; None when it did not say.
    """

    def __init__(self, reason: str, again: Again, *, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.again = again
        self.wait_s = wait_s
