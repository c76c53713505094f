"""Generic webhook: JSON, signed as in https://www.standardwebhooks.com, for which libraries exist."""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence
from datetime import datetime

from esjobs.core.errors import SettingsError
from esjobs.core.redact import remember
from scheduler.notifications.notices import Notice
from scheduler.notifications.outbox import Entry

VERSION = 1  # Of the body; fields may be added to a version
_PREFIX = "whsec_"


def body_of(entry: Entry, notices: Sequence[Notice], text: str) -> bytes:
    """Return the body: byte-equal at every attempt."""
    content = {
        "version": VERSION,
        "type": "esjobs.test" if all(notice.kind == "test" for notice in notices) else "esjobs.notification",
        "id": entry.notification,
        "recipient": entry.recipient,
        "night": entry.night.isoformat(),
        "created_at": entry.first_at.isoformat(),
        "subject": entry.subject,
        "text": text,
        # without the HTML page: it is for people
        "notices": [
            {name: value for name, value in notice.plain().items() if name != "page"} for notice in notices
        ],
    }
    # sorted and ASCII: the signature is over these very bytes
    return json.dumps(content, sort_keys=True, ensure_ascii=True).encode()


def key_of(secret: str) -> bytes:
    """Return the key of a secret in the settings; :class:`SettingsError` for invalid base64.

    >>> key_of("whsec_c2VjcmV0"), key_of("secret")
    (b'secret', b'secret')
    """
    if not secret.startswith(_PREFIX):
        return secret.encode()
    encoded = secret.removeprefix(_PREFIX)
    remember(encoded)
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error:
        raise SettingsError(
            "the secret of a webhook begins with whsec_, but the rest is not base64"
        ) from None


def signed(name: str, now: datetime, body: bytes, secret: str) -> dict[str, str]:
    """Return the headers of a body: id, time (Unix seconds) and HMAC-SHA256 over ``id.time.body``."""
    timestamp = str(int(now.timestamp()))
    digest = hmac.new(key_of(secret), f"{name}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": name,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
        "idempotency-key": name,
    }
