"""Secrets of the settings: read where they are needed, and taken out of everything that is told."""

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlsplit

from esjobs.core.errors import SettingsError
from scheduler.notifications.settings import NotifySettings


class Secret(Protocol):
    """Something that does not show itself; pydantic's SecretStr is one."""

    def get_secret_value(self) -> str:
        """The value."""


HIDDEN = "[hidden]"
_LARGEST = 64 << 10


def value_of(secret: Secret | None, file: Path | None, what: str) -> str | None:
    """A secret, or the first line of the file that has it; None when neither is given.

    Raises :class:`SettingsError` that names the file.
    """
    if secret is not None:
        return secret.get_secret_value()
    if file is None:
        return None
    try:
        with file.expanduser().open("rb") as stream:
            lines = stream.read(_LARGEST).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(f"cannot read {what} from {file}: {reason}; check its name and rights") from None
    if not lines or not lines[0].strip():
        raise SettingsError(f"cannot read {what} from {file}: its first line is empty")
    return lines[0].strip()


def host_of(url: str) -> str:
    """What may be shown of an address.

    >>> host_of("https://me:secret@hooks.example:8443/services/T0/B0/xyz?token=1")
    'https://hooks.example:8443'
    """
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")


def without(text: str, secrets: Iterable[str]) -> str:
    """A text in which no secret is left, as it is, quoted for an address, or as a login is sent.

    >>> without("535 no hunter2 here", ["hunter2"])
    '535 no [hidden] here'
    """
    forms = set().union(*map(_forms, secrets))
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    return text


def _forms(secret: str) -> set[str]:
    forms = {secret, quote(secret, safe=""), quote(secret), base64.b64encode(secret.encode()).decode()}
    # of an address its path alone gives everything away
    if "://" in secret:
        rest = secret.partition("://")[2].partition("/")[2]
        path, _, query = rest.partition("?")
        forms |= {part for part in (rest, path, query, login_of(secret)) if len(part) > 3}
        forms |= {part for part in path.split("/") if len(part) >= 8}
    return {form for form in forms if len(form) > 2}


def login_of(url: str) -> str:
    """The password of an address, which may be malformed; empty when there is none.

    >>> login_of("https://me:secret@hooks.example/x"), login_of("http://[::1")
    ('secret', '')
    """
    authority = url.partition("://")[2].partition("/")[0]
    return authority.rpartition("@")[0].partition(":")[2]


def secrets_of(settings: NotifySettings) -> tuple[str, ...]:
    """Every secret of the settings; what cannot be read is none."""
    mail = settings.mail
    given: list[tuple[Secret | None, Path | None]] = [(settings.proxy, None)]
    if mail is not None:
        given.append((mail.password, mail.password_file))
    for recipient in settings.recipients:
        given += [(recipient.url, recipient.url_file), (recipient.secret, recipient.secret_file)]
    known = []
    for secret, file in given:
        try:
            value = value_of(secret, file, "a secret")
        except SettingsError:
            continue
        if value is not None:
            known.append(value)
    if mail is not None and mail.user is not None and known:
        known += [f"\0{mail.user}\0{secret}" for secret in known]
    return tuple(known)
