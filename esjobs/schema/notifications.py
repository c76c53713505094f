"""The outbox: what is to be sent, what was sent, when and to whom."""

from esjobs.core.tables import Table, column, columns

STATES = ("queued", "collected", "withheld", "bundled", "known", "same", "sent", "failed", "given up")
"""Of a notification; ``collected`` waits for its weekly digest, ``withheld`` for the day from which sites are
written to, ``bundled`` went into another message. ``known`` was sent before as a change of another night,
``same`` repeats what was sent of the queue or CPU model: neither is sent."""

ALREADY_SENT, SAME, WITHHELD = "known", "same", "withheld"
WAITING = ("queued", "failed")
"""States of what is still to be sent."""

NOTIFICATIONS = Table(
    "notifications",
    "a message to one recipient: queued before it is sent, marked after",
    "night",
    (
        column("notification", "keyword", "id: hash of the recipient and the notices; names the message"),
        column("night", "day", "night that it is about; of a test: the day", "UTC"),
        column("recipient", "keyword", "its name in the settings"),
        column("channel", "keyword", "mail, webhook, mattermost, slack"),
        column("state", "keyword", ", ".join(STATES), values=STATES),
        column("attempts", "integer", "attempts to deliver it that ended"),
        column("first_at", "time", "when it was queued", "UTC"),
        column("sent_at", "time", "when the receiver accepted it", "UTC"),
        column("subject", "text", "its subject"),
        column("notices", "text", "ids of what it tells, separated by spaces"),
        column("error", "text", "why it was not delivered, the last time; no secret is in it"),
        column("address", "keyword", "mail address, or the host of an address"),
        column("tried_at", "time", "when the last attempt ended", "UTC"),
        column("due", "day", "of a weekly digest: the day on which it is sent", "UTC"),
        column("bundle", "keyword", "the notification that it went into"),
        column("content", "text", "what it tells, as JSON: from this it is made again after a restart"),
        column(
            "follows", "text", "first messages about the same names, separated by spaces; null of a first one"
        ),
    ),
    entered=True,
    time="night",
    made_by="notify",
    shown=columns("night recipient channel address state attempts first_at sent_at subject error"),
    order=("-first_at", "recipient"),
)

TABLES = (NOTIFICATIONS,)
