"""Where a cluster is and who asks: address, credentials, certificates, patience."""

from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit


class Secret(Protocol):
    """Something that does not show itself; pydantic's SecretStr is one."""

    def get_secret_value(self) -> str:
        """The value."""


@dataclass(frozen=True)
class Access:
    """What a client needs to talk to a cluster.

    ``location`` is the address without user and password. One of ``api_key``, ``token`` (bearer) and ``user``
    with ``password``; or none. Files: ``ca_file`` to trust, ``certificate`` and ``key`` of the client.
    ``timeout_s``: for one request; ``retries``: how often a request is repeated, with pauses.
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

    def login(self) -> tuple[str, str] | None:
        """User and password, where these are used."""
        if self.user is None:
            return None
        return self.user, self.password.get_secret_value() if self.password else ""

    def transport(self) -> dict[str, Any]:
        """What the clients of both products take alike: no repetitions and, for https, certificates."""
        options: dict[str, Any] = {"max_retries": 0, "retry_on_timeout": False, "retry_on_status": ()}
        if self.location.startswith("https"):
            options |= {"verify_certs": self.verify, "ca_certs": self.ca_file}
            options |= {"client_cert": self.certificate, "client_key": self.key}
        return {name: value for name, value in options.items() if value is not None}


def split_user(address: str) -> tuple[str, str | None, str | None]:
    """An address without its user and password, and these two.

    >>> split_user("https://reader:secret@es.example.org:9200/")
    ('https://es.example.org:9200', 'reader', 'secret')
    """
    parts = urlsplit(address)
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    place = f"{host}:{parts.port}" if parts.port else host
    return urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", "")), parts.username, parts.password
