"""Mattermost and Slack messages: a text and attachments, posted to an incoming webhook.

Names come from records and may contain anything: mentions, links and markup are escaped.
"""

import json
import re
from typing import Literal

from scheduler.notifications.digest import Digest, Line
from scheduler.notifications.notices import Kind

Form = Literal["mattermost", "slack"]

MOST_ATTACHMENTS = 20  # Chats show few, and take no long messages; Slack advises against more
_LONGEST = 700  # Characters; Slack folds longer texts
_MARKS = re.compile(r"([\\`*_{}\[\]()#+\-.!|>~<:$^=])")
_RED, _ORANGE, _GREEN, _GREY = "#b42318", "#c77700", "#2e7d32", "#5b6770"
_ALERTS = {"critical": _RED}
_COLOURS: dict[Kind, str] = {
    "opened": _ORANGE,
    "reopened": _ORANGE,
    "expired": _ORANGE,
    "closed": _GREEN,
    "candidate": _GREY,
}
_TITLES: dict[Kind, str] = {
    "opened": "confirmed",
    "reopened": "confirmed again",
    "closed": "no longer deviates",
    "candidate": "candidate, not confirmed",
    "acknowledged": "acknowledged",
    "expired": "acknowledgement ended",
    "answered": "answered",
    "declaration_changed": "declared value changed",
    "withdrawn": "candidate dropped",
    "vanished": "no comparable jobs",
    "returned": "comparable again",
}


def body_of(digest: Digest, text: str, form: Form) -> bytes:
    """Return the body to post."""
    lines = [(group.kind, line) for group in digest.groups for line in group.lines]
    # a test has its one sentence in the text already
    alerts = () if digest.is_test else digest.alerts
    attachments = [
        *(_attachment(_ALERTS.get(each.severity, _ORANGE), each.subject, each.text, form) for each in alerts),
        *(_flag(kind, line, form) for kind, line in lines),
    ]
    left_out = len(attachments) - MOST_ATTACHMENTS + sum(group.more for group in digest.groups)
    shown = attachments[:MOST_ATTACHMENTS]
    if left_out > 0:
        shown.append({"fallback": f"and {left_out} more", "text": f"and {left_out} more", "color": _GREY})
    content: dict[str, object] = {"text": plain(text, form), "attachments": shown}
    if form == "slack":
        content["mrkdwn"] = False
    return json.dumps(content, ensure_ascii=True).encode()


def _flag(kind: Kind, line: Line, form: Form) -> dict[str, object]:
    title = f"{line.name}: {_TITLES.get(kind, kind)}"
    fields = [
        ("Deviation", f"{line.speed} ({line.interval})"),
        ("Declared", line.declared),
        ("Processing type", line.work),
        ("Jobs of", line.window),
    ]
    return _attachment(_COLOURS.get(kind, _GREY), title, line.sentence, form) | {
        "fields": [{"short": True, "title": name, "value": plain(value, form)} for name, value in fields]
    }


def _attachment(colour: str, title: str, text: str, form: Form) -> dict[str, object]:
    made: dict[str, object] = {
        "color": colour,
        "fallback": plain(title, form),
        "title": plain(title, form),
        "text": plain(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…", form),
    }
    return made | ({"mrkdwn_in": []} if form == "slack" else {})


def plain(text: str, form: Form) -> str:
    r"""Escape a text for a chat.

    >>> plain("<!channel> @all", "slack"), plain("a_b @all", "mattermost") == "a\\_b @\u200ball"
    ('&lt;!channel&gt; @all', True)
    """
    if form == "slack":
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # U+200B, which has no width, after @ and ~: no name of a person or channel follows them
    return _MARKS.sub(r"\\\1", text).replace("@", "@\u200b").replace("\\~", "\\~\u200b")
