"""Secrets of the settings: read on use, and redacted from then on."""

import contextlib
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from esjobs.core.errors import SettingsError
from esjobs.core.redact import remember
from scheduler.notifications.settings import NotifySettings

_LARGEST = 64 << 10


def value_of(secret: SecretStr | None, file: Path | None, what: str) -> str | None:
    """Return a secret, or the first line of its file; None without either.

    It is redacted in messages and logs from now on. Raises :class:`SettingsError` with the file name.
    """
    if secret is not None:
        remember(secret.get_secret_value())
        return secret.get_secret_value()
    if file is None:
        return None
    try:
        with file.expanduser().open("rb") as stream:
            lines = stream.read(_LARGEST).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise SettingsError(
            f"cannot read {what} from {file}: {reason}; check the path and its permissions"
        ) from None
    if not lines or not lines[0].strip():
        raise SettingsError(f"cannot read {what} from {file}: its first line is empty")
    remember(lines[0].strip())
    return lines[0].strip()


def host_of(url: str) -> str:
    """Return the part of an address that may be shown.

    >>> host_of("https://me:secret@hooks.example:8443/services/T0/B0/xyz?token=1")
    'https://hooks.example:8443'
    """
    parts = urlsplit(url)
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
        with contextlib.suppress(SettingsError):
            value_of(secret, file, "a secret")
