"""Forward proxies: of the settings, else of the environment."""

import ipaddress
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3

from esjobs.core.errors import SettingsError
from esjobs.core.redact import remember
from esjobs.store.elastic.transport.access import Access, without_login


@dataclass(frozen=True)
class ForwardProxy:
    """Address of a proxy, with the headers that log in to it."""

    address: str
    headers: dict[str, str]


def proxy_of(access: Access, location: str) -> ForwardProxy | None:
    """Return the proxy to a location: ``cluster.proxy``, else of the environment (``HTTPS_PROXY``).

    ``NO_PROXY`` and addresses of this machine bypass the proxy of the environment. Raises
    :class:`SettingsError` for another kind of proxy.
    """
    if access.proxy is not None:
        return _parsed(access.proxy.get_secret_value(), "cluster.proxy")
    parts = urlsplit(location)
    host = parts.hostname or ""
    if _is_loopback(host) or proxy_bypass(host):
        return None
    found = getproxies()
    address = found.get(parts.scheme) or found.get("all")
    return None if not address else _parsed(address, f"{parts.scheme.upper()}_PROXY")


def _parsed(address: str, setting: str) -> ForwardProxy:
    remember(address)
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.scheme not in ("http", "https") or not host:
        raise SettingsError(
            f"{setting} '{without_login(address)}' is not supported; use http://HOST:PORT or "
            "http://USER:PASSWORD@HOST:PORT"
        )
    headers = {}
    if parts.username is not None:
        user, password = unquote(parts.username), unquote(parts.password or "")
        remember(parts.password, password)
        headers = dict(urllib3.make_headers(proxy_basic_auth=f"{user}:{password}"))
    place = f"[{host}]" if ":" in host else host
    return ForwardProxy(f"{parts.scheme}://{place}" + (f":{port}" if port else ""), headers)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class ProxiedPool:
    """Connections to one host through a proxy, in place of the pool of a client."""

    def __init__(
        self,
        proxy: ForwardProxy,
        location: tuple[str, str, int],
        tls: ssl.SSLContext | None,
        *,
        maxsize: int,
        timeout_s: float | None,
    ) -> None:
        self._scheme, self._host, self._port = location
        self._manager = urllib3.ProxyManager(
            proxy.address,
            proxy_headers=urllib3.HTTPHeaderDict(proxy.headers),
            ssl_context=tls,
            maxsize=maxsize,
            block=True,
            timeout=urllib3.Timeout(total=timeout_s),
        )

    def urlopen(self, method: str, url: str, body: bytes | None = None, **options: Any) -> Any:
        """Send a request: through a tunnel with TLS, else with the whole address."""
        pool = self._manager.connection_from_host(self._host, self._port, self._scheme)
        # a proxy of plain requests gets the whole address
        if self._scheme == "http":
            url = f"http://{self._host}:{self._port}{url}"
            options["assert_same_host"] = False
        return pool.urlopen(method, url, body, **options)

    def close(self) -> None:
        """Close all connections."""
        self._manager.clear()
