"""Secrets of the settings: read on use, and redacted from then on."""

import contextlib
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from esjobs.core.errors import SettingsError
from esjobs.core.redact import remember
from esjobs.core.secret_file import SecretFile
from scheduler.notifications.settings import NotifySettings


def value_of(secret: SecretStr | None, file: Path | None, what: str) -> str | None:
    """Return a secret, or the first line of its file; None without either.

    It is redacted in messages and logs from now on. Raises :class:`SettingsError` with the file name.
    """
    if secret is not None:
        remember(secret.get_secret_value())
        return secret.get_secret_value()
    if file is None:
        return None
    return SecretFile(what, file).get_secret_value()


def host_of(url: str) -> str:
    """Return the part of an address that may be shown.

    >>> host_of("https://me:secret@hooks.example:8443/services/T0/B0/xyz?token=1")
    'https://hooks.example:8443'
    """
    parts = urlsplit(url)
    # urlsplit takes the brackets off an IPv6 address
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")


def remember_all(settings: NotifySettings) -> None:
    """Redact every secret of the settings: a receiver may repeat that of another."""
    mail = settings.mail
    pairs: list[tuple[SecretStr | None, Path | None]] = [(settings.proxy, None)]
    if mail is not None:
        pairs.append((mail.password, mail.password_file))
    for recipient in settings.recipients:
        pairs += [(recipient.url, recipient.url_file), (recipient.secret, recipient.secret_file)]
    for secret, file in pairs:
        # a file that cannot be read is reported by the delivery that needs it
        with contextlib.suppress(SettingsError):
            value_of(secret, file, "a secret")
