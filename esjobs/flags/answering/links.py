"""Signed links by which a site answers about one flag.

A token is ``PAYLOAD.SIGNATURE`` in base64 for addresses. The payload is JSON: purpose, flag, expiry, nonce;
it names no person. The signature is HMAC-SHA256 (RFC 2104) of the encoded payload.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path

from esjobs.core.errors import SettingsError, UsageError
from esjobs.core.identity import content_id
from esjobs.core.redact import remember
from esjobs.flags.answering.settings import WebSettings

PURPOSE = "answer"
_SHORTEST_KEY = 32
_LONGEST_TOKEN = 2000


class LinkError(UsageError):
    """Link that is not ours, was changed, has another purpose, or has expired."""


@dataclass(frozen=True)
class Link:
    """Content of a link: a flag, its expiry in seconds of Unix time, and a name of its own."""

    purpose: str
    level: str
    processing_type: str
    name: str
    expires: int
    nonce: str


@dataclass(frozen=True)
class Links:
    """Maker and reader of links; ``keys``: the last one signs, all of them verify."""

    base_url: str
    keys: Sequence[bytes]
    days: int

    def address(
        self, level: str, processing_type: str, name: str, about: Sequence[str], now: datetime
    ) -> str:
        """Return the address of the form about a flag; ``about``: message and notice that it is sent with."""
        expires = int((now + timedelta(days=self.days)).timestamp())
        link = Link(PURPOSE, level, processing_type, name, expires, content_id({"about": list(about)}, 16))
        payload = _encoded(json.dumps(asdict(link), separators=(",", ":")).encode())
        return f"{self.base_url}/a/{payload}.{_signature(self.keys[-1], payload)}"

    def read(self, token: str, now: datetime) -> Link:
        """Return the content of a token. Raises :class:`LinkError`."""
        payload, _, signature = token[:_LONGEST_TOKEN].partition(".")
        made = [_signature(key, payload) for key in self.keys]
        # every key is tried, so that the time says nothing
        if not sum(hmac.compare_digest(each.encode(), signature.encode()) for each in made):
            raise LinkError("this link is not valid; copy it from the mail again, in full")
        try:
            link = Link(**json.loads(base64.urlsafe_b64decode(payload + "==")))
        except (ValueError, TypeError):
            raise LinkError("this link is of another version; use that of a newer mail") from None
        if link.purpose != PURPOSE:
            raise LinkError("this link is for something else")
        if link.expires <= now.timestamp():
            raise LinkError("this link has expired; reply to the mail instead")
        return link


def links_of(settings: WebSettings, location: str) -> Links | None:
    """Return the links of an installation; None without an address, a key or a journal.

    Raises :class:`SettingsError` for a file that holds no usable key.
    """
    if settings.base_url is None or settings.key_file is None or settings.journal_of(location) is None:
        return None
    return Links(settings.base_url, keys_in(settings.key_file), settings.link_days)


def keys_in(file: Path) -> tuple[bytes, ...]:
    """Return the keys of a file, oldest first. Raises :class:`SettingsError`."""
    try:
        lines = file.expanduser().read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise SettingsError(f"cannot read the keys in {file}: {reason}; check web.key_file") from None
    for line in lines:
        remember(line)
    if not lines or min(map(len, lines)) < _SHORTEST_KEY:
        raise SettingsError(
            f"{file} requires keys of at least {_SHORTEST_KEY} characters, one a line; make one: openssl "
            "rand -hex 32"
        )
    return tuple(line.encode() for line in lines)


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _signature(key: bytes, payload: str) -> str:
    return _encoded(hmac.digest(key, f"esjobs link\0{payload}".encode(), hashlib.sha256))
