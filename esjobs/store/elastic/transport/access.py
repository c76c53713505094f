"""Address and access to a cluster: credentials, certificates, timeouts."""

import base64
import contextlib
import re
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import unquote, urlsplit, urlunsplit

from esjobs.core.errors import SettingsError, UsageError
from esjobs.core.redact import remember


class Secret(Protocol):
    """Value that does not show itself, such as pydantic's SecretStr."""

    def get_secret_value(self) -> str:
        """Return the value."""


@dataclass(frozen=True)
class Access:
    """Address and credentials of a client.

    One of ``api_key``, ``token`` (bearer), ``user`` with ``password``, and ``aws_region`` (requests signed by
    AWS credentials), or none. ``others``: further addresses of the same cluster. ``timeout_s``: per request.
    Raises :class:`SettingsError` for contradicting, incomplete or unsendable credentials.
    """

    location: str
    api_key: Secret | None = None
    token: Secret | None = None
    user: str | None = None
    password: Secret | None = None
    ca_file: str | None = None
    certificate: str | None = None
    key: str | None = None
    verify: bool = True
    timeout_s: float = 60.0
    retries: int = 3
    others: tuple[str, ...] = ()
    proxy: Secret | None = None
    aws_region: str | None = None

    def __post_init__(self) -> None:
        # first of all: messages show no secret that is remembered
        self._remember()
        credentials = [
            name for name in ("api_key", "token", "user", "aws_region") if getattr(self, name) is not None
        ]
        if len(credentials) > 1:
            raise SettingsError(
                f"several credentials for {self.location}: {' and '.join(credentials)}; keep one of them"
            )
        for one, other in (("user", "password"), ("certificate", "key")):
            self._require_with(one, other)
            self._require_with(other, one)
        if self.certificate is not None and not self.location.startswith("https:"):
            raise SettingsError(
                f"{self.location} does not use TLS, so a certificate has no effect; use an address with "
                "https://, or omit certificate and key"
            )
        if self.user is not None and ":" in self.user:
            raise SettingsError(
                f"user {self.user!r} contains a colon, which cannot be sent; use a different user"
            )
        for name in ("api_key", "token"):
            self._require_sendable(name)

    def _require_with(self, name: str, other: str) -> None:
        if getattr(self, name) is not None and getattr(self, other) is None:
            raise SettingsError(
                f"{name} for {self.location} is set but {other} is not; set {other} "
                f"(ESJOBS_CLUSTER__{other.upper()})"
            )

    def _require_sendable(self, name: str) -> None:
        secret: Secret | None = getattr(self, name)
        if secret is not None and not _SENDABLE.fullmatch(secret.get_secret_value()):
            raise SettingsError(
                f"{name} is empty or contains a space, a line break or another invalid character; copy "
                "it again from the cluster"
            )

    def _remember(self) -> None:
        for secret in (self.api_key, self.token, self.password):
            if secret is not None:
                remember(secret.get_secret_value())
        if self.password is not None:
            remember(f"{self.user}:{self.password.get_secret_value()}")
        if self.api_key is not None:
            # the cluster calls it by its two halves
            with contextlib.suppress(ValueError):
                remember(base64.b64decode(self.api_key.get_secret_value(), validate=True).decode())

    @property
    def addresses(self) -> list[str]:
        """All addresses; messages and leases name the first."""
        return list(dict.fromkeys((self.location, *self.others)))

    @property
    def login(self) -> str:
        """The user, or the kind of the credentials."""
        kinds = {
            "api_key": "API key",
            "token": "token",
            "aws_region": "AWS credentials",
            "certificate": "client certificate",
        }
        found = [kind for name, kind in kinds.items() if getattr(self, name) is not None]
        return self.user or next(iter(found), "no login")

    def headers(self) -> dict[str, str]:
        """Return the authorization header; empty without credentials. Files are read again."""
        self._remember()
        if self.api_key is not None:
            return {"authorization": f"ApiKey {self.api_key.get_secret_value()}"}
        if self.token is not None:
            return {"authorization": f"Bearer {self.token.get_secret_value()}"}
        if self.user is not None and self.password is not None:
            pair = f"{self.user}:{self.password.get_secret_value()}"
            return {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        return {}


_SENDABLE = re.compile(r"[!-~]+")


def split_user(address: str) -> tuple[str, str | None, str | None]:
    """Split an address into location, user and password, percent-decoded.

    Raises :class:`UsageError`, which shows neither, if there is no host.

    >>> split_user("https://reader:s%40cret@es.example.org:9200/")
    ('https://es.example.org:9200', 'reader', 's@cret')
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    # https has a usual port at hosted clusters; http without one is mostly a slip
    if not host or (port is None and parts.scheme == "http"):
        raise UsageError(
            f"'{without_login(address)}' is not an address; expected http://HOST:9200 or https://HOST:9200. "
            "In a user or password write %2F for /, %3F for ?, %23 for #"
        )
    if ":" in host:
        host = f"[{host}]"
    authority = f"{host}:{port}" if port is not None else host
    return urlunsplit((parts.scheme, authority, parts.path.rstrip("/"), "", "")), *login_of(address)


def login_of(address: str) -> tuple[str | None, str | None]:
    """Return user and password of an address, percent-decoded; None if malformed.

    >>> login_of("https://reader:s%40cret@es.example.org:9200/"), login_of("http://[::1")
    (('reader', 's@cret'), (None, None))
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        return None, None
    user, password = (
        unquote(text) if text is not None else None for text in (parts.username, parts.password)
    )
    remember(parts.password, password)
    return user or None, password


def without_login(address: str) -> str:
    """Return an address, however malformed, without user and password.

    >>> without_login("https://reader:se/cret@es.example.org:9200"), without_login("reader:secret@es:9200")
    ('https://es.example.org:9200', 'es:9200')
    """
    # whatever stands before the last @ may be a secret
    scheme, found, rest = address.rpartition("://") if "@" not in address else address.partition("://")
    return f"{scheme}{found}{rest.rpartition('@')[2]}" if found else address.rpartition("@")[2]
