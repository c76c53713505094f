"""Table of the outbox: messages to send, messages sent, times and recipients."""

from esjobs.core.tables import Table, column, columns

STATES = (
    *("queued", "collected", "withheld", "bundled", "duplicate", "repetition"),
    *("sent", "failed", "abandoned"),
)
"""States of a notification. ``collected`` waits for its weekly digest, ``withheld`` for the first day of
messages to sites; ``bundled`` went into another message. ``duplicate`` was sent as a change of another night,
``repetition`` repeats an earlier message about the queue or CPU model: neither is sent."""

DUPLICATE, REPETITION, WITHHELD = "duplicate", "repetition", "withheld"
WAITING = ("queued", "failed")
"""States of messages still to be sent."""

NOTIFICATIONS = Table(
    "notifications",
    "one row per message and recipient: queued before it is sent, marked after",
    "night",
    (
        # of recipient and facts, never of texts: new wording must not send everything again
        column("notification", "keyword", "hash of the recipient and the notices"),
        column("night", "day", "night of the message; of a test: the day", "UTC"),
        column("recipient", "keyword", "name of the recipient in the settings"),
        column("channel", "keyword", "mail, webhook, mattermost, slack"),
        column("state", "keyword", ", ".join(STATES), values=STATES),
        column("attempts", "integer", "completed delivery attempts"),
        column("first_at", "time", "time of queueing", "UTC"),
        column("sent_at", "time", "time of acceptance by the receiver", "UTC"),
        column("subject", "text", "subject of the message"),
        column("notices", "text", "ids of its notices, separated by spaces"),
        column("error", "text", "reason of the last failed delivery, without secrets"),
        column("address", "keyword", "mail address, or the host of an address"),
        column("tried_at", "time", "end of the last attempt", "UTC"),
        # of weekly digests: earlier notices wait for that day
        column("due", "day", "of a weekly digest: its day of sending", "UTC"),
        column("bundle", "keyword", "notification that contains it"),
        column("content", "text", "its notices as JSON"),
        column("follows", "text", "first messages about the same names"),
    ),
    entered=True,
    time="night",
    made_by="notify",
    shown=columns("night recipient channel address state attempts first_at sent_at subject error"),
    order=("-first_at", "recipient"),
)

TABLES = (NOTIFICATIONS,)
