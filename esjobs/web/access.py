"""Readers and their roles: by a token, by the header of a trusted proxy, or nobody."""

import hashlib
import ipaddress
import secrets
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, get_args

from esjobs.core.clock import Clock, system_clock
from esjobs.core.errors import UsageError
from esjobs.flags.answering.settings import WebSettings

Role = Literal["nobody", "public", "site", "support", "coordinator", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)  # Roles; each may do what those before it may
# Peers whose acts are counted; those seen longest ago are forgotten
_MOST_PEERS = 4096
# Acts and links of a peer: so many at once, then one in so many seconds
_BURST, _EVERY_S = 30.0, 2.0
# Characters of a name of a proxy, which goes into the journal
_LONGEST_NAME = 200


TOKEN_PREFIX = "esj_"  # noqa: S105  a mark, no secret


class ForbiddenError(UsageError):
    """Act or page that a reader may not use."""


class UnauthorizedError(UsageError):
    """Token that is unknown or expired."""


class TooManyError(UsageError):
    """More acts of one peer than anybody needs."""


def new_token() -> str:
    """Return a token of a program, of 256 random bits."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def digest_of(token: str) -> str:
    """Return what settings hold of a token; it needs no salt, nobody can guess one."""
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(frozen=True)
class Reader:
    """A reader. ``sites``: sites and queues of role site."""

    role: Role
    name: str = ""
    sites: tuple[str, ...] = ()

    def may(self, role: Role) -> bool:
        """True if a role suffices."""
        return ROLES.index(self.role) >= ROLES.index(role)

    @property
    def scope(self) -> str:
        """Name of what the reader sees, part of every cached answer."""
        digest = hashlib.sha256("\0".join(self.sites).encode()).hexdigest()[:16] if self.sites else ""
        return f"{self.role}{digest}"


class Access:
    """Readers of an installation."""

    def __init__(self, settings: WebSettings, *, public: bool, clock: Clock = system_clock) -> None:
        self._settings = settings
        self._clock = clock
        # a digest is looked up: how long that takes says nothing of a secret of 256 bits
        self._tokens = {each.sha256: each for each in settings.tokens}
        self._networks = [ipaddress.ip_network(each) for each in settings.trusted_proxies]
        # on this machine alone everybody reads, as ever; who may enter something needs a name
        alone: Role = "nobody" if self._networks else "support"
        self._nobody = Reader("public" if public else alone)

    @property
    def has_login(self) -> bool:
        """True if a reader can be somebody."""
        return bool(self._networks or self._tokens)

    def reader(self, scope: Mapping[str, Any]) -> Reader:
        """Return the reader of a request; :class:`UnauthorizedError` for a token that is not ours.

        The headers count only where the connection itself comes from a trusted proxy; one that stands twice
        counts as none.
        """
        scheme, _, secret = _only(scope, "authorization").partition(" ")
        if scheme.lower() == "bearer" and secret.startswith(TOKEN_PREFIX):
            return self._program(secret)
        name = _only(scope, self._settings.user_header) if self._is_trusted(scope) else ""
        if not name or len(name) > _LONGEST_NAME:
            return self._nobody
        groups = {each.strip() for each in _only(scope, self._settings.groups_header).split(",")}
        grants = [each for each in self._settings.roles if each.group in groups]
        # somebody may be in several groups
        role = max((each.role for each in grants), key=ROLES.index, default=self._nobody.role)
        return _reader(role, name, chain.from_iterable(each.sites for each in grants))

    def _program(self, secret: str) -> Reader:
        token = self._tokens.get(digest_of(secret))
        if token is None or self._clock().date() > token.until:
            raise UnauthorizedError("this token is unknown or has expired")
        return _reader(token.role, token.name, token.sites)

    def peer(self, scope: Mapping[str, Any]) -> str:
        """Return the peer that limits count: behind a trusted proxy whom it names last."""
        address = _address(scope)
        if self._is_trusted(scope):
            # what stands before the last one is what the peer claims
            address = _only(scope, "x-forwarded-for").rpartition(",")[2].strip()[:64] or address
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return address
        # a home has 2^64 addresses
        return str(ipaddress.ip_network((parsed, 64), strict=False)) if parsed.version == 6 else address

    def _is_trusted(self, scope: Mapping[str, Any]) -> bool:
        try:
            peer = ipaddress.ip_address(_address(scope))
        except ValueError:
            return False
        # a socket for both families sees an IPv4 peer as ``::ffff:192.0.2.1``
        mapped = getattr(peer, "ipv4_mapped", None)
        return any((mapped or peer) in network for network in self._networks)


def _reader(role: Role, name: str, sites: Iterable[str]) -> Reader:
    """Return a reader; roles above that of a site see all sites."""
    return Reader(role, name, tuple(sorted({*sites})) if role == "site" else ())


class Limits:
    """Allowance of acts per peer; the peers seen last are remembered."""

    def __init__(self) -> None:
        self._peers: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, peer: str, now_s: float) -> None:
        """Count an act. Raises :class:`TooManyError` where the allowance is used up."""
        # put back at the end: the order is that of the last acts
        left, since = self._peers.pop(peer, (_BURST, now_s))
        left = min(_BURST, left + (now_s - since) / _EVERY_S)
        self._peers[peer] = (max(left - 1, 0.0), now_s)
        while len(self._peers) > _MOST_PEERS:
            self._peers.popitem(last=False)
        if left < 1:
            raise TooManyError("too many requests; try again in a minute")


def require_own_form(scope: Mapping[str, Any], base_url: str | None) -> None:
    """Raise :class:`ForbiddenError` for a form of another page.

    ``Sec-Fetch-Site`` decides where a browser sends it, else ``Origin``, which must be ``base_url``. A page
    behind a link sends neither over plain HTTP: there the token in the address is the proof.
    """
    site, origin = _only(scope, "sec-fetch-site"), _only(scope, "origin")
    is_link = scope["path"].startswith("/a/")
    is_own = origin == base_url or (is_link and origin in ("", "null"))
    if site != "same-origin" and (site or not is_own):
        raise ForbiddenError("this form was sent by another page; open the page here, and send it again")


def _address(scope: Mapping[str, Any]) -> str:
    client: Sequence[Any] | None = scope.get("client")
    return str(client[0]) if client else ""


def _only(scope: Mapping[str, Any], name: str) -> str:
    wanted = name.lower().encode()
    values = [value for each, value in scope["headers"] if each.lower() == wanted]
    return values[0].decode("latin-1").strip() if len(values) == 1 else ""
