"""Requests to a Kibana or OpenSearch Dashboards server, and what a refusal means in a sentence."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

import requests
import urllib3

from esjobs.core.errors import DashboardsError, UsageError
from esjobs.core.redact import excerpt

# Bytes. An export of our objects is a few megabytes; what answers more is no such server.
_LARGEST_ANSWER = 64 << 20


@dataclass(frozen=True)
class Login:
    """Credentials of requests: headers and certificates, hidden in ``repr``.

    ``verify``: whether the server's certificate is checked, or the file to check it by; ``certificate``:
    files of the client's certificate and key.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    verify: bool | str = True
    certificate: tuple[str, str] | None = None


@dataclass(frozen=True)
class Answer:
    """A status, headers by lower-case name, and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON; None when it is none."""
        try:
            # no charset is asked: JSON says its own
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def message(self) -> str:
        """Return the server's reason for a refusal, in one line of at most 300 characters; may be empty."""
        found = self.json()
        text = found.get("message") if isinstance(found, dict) else None
        return excerpt(str(text or ""), 300)


class Client:
    """A server at an address, asked by one user.

    ``timeout_s`` is for a request as a whole: servers that send a byte now and then do not hold us for ever.
    The environment is not asked for proxies or passwords: what is sent where is what was given.

    Raises :class:`UsageError` for an address that is none.
    """

    def __init__(self, url: str, login: Login | None = None, *, timeout_s: float = 120.0) -> None:
        self.url = _address(url)
        self._timeout_s = timeout_s
        self._login = login or Login()
        self._session = requests.Session()
        # a .netrc would send somebody's password along
        self._session.trust_env = False
        self._session.verify = self._login.verify
        self._session.cert = self._login.certificate
        self._session.headers.update({"user-agent": "esjobs", "accept": "application/json, */*"})
        self._session.headers.update(self._login.headers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def ask(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        upload: tuple[str, bytes] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask once; the answer, whatever its status.

        ``upload``: name and content of a file, sent as the form field ``file``. Redirects are not followed,
        for a request that changes something would arrive as another one.

        Raises :class:`DashboardsError` when nothing that is an answer arrives.
        """
        deadline = time.monotonic() + self._timeout_s
        files = {"file": (upload[0], upload[1], "application/ndjson")} if upload is not None else None
        try:
            response = self._session.request(
                method,
                self.url + path,
                headers=headers,
                json=body,
                files=files,
                params=params,
                # seconds to connect, and between two bytes
                timeout=(min(10.0, self._timeout_s), self._timeout_s),
                allow_redirects=False,
                stream=True,
            )
            with response:
                content = self._body(response, deadline)
        except requests.exceptions.SSLError as error:
            raise DashboardsError(
                f"{self.url}: certificate rejected ({_cause(error)}); set cluster.ca_file to the authority "
                "that signed it"
            ) from None
        except (requests.exceptions.Timeout, urllib3.exceptions.ReadTimeoutError):
            raise self._late() from None
        except requests.exceptions.ConnectionError as error:
            # some timeouts arrive inside a plain connection error
            if "timed out" in str(error).lower():
                raise self._late() from None
            raise DashboardsError(
                f"{self.url} cannot be reached ({_cause(error)}); check the address and whether the server "
                "runs"
            ) from None
        except (
            requests.exceptions.RequestException,
            urllib3.exceptions.HTTPError,
            UnicodeError,
            OSError,
        ) as error:
            raise DashboardsError(
                f"{self.url}: the request failed ({_cause(error)}); check the address"
            ) from None
        if response.is_redirect or response.is_permanent_redirect:
            raise DashboardsError(
                f"{self.url} redirects to {_shown(response.headers.get('location', 'nowhere'))}; use the "
                "address of the server itself, with its base path and credentials"
            )
        return Answer(
            response.status_code, {name.lower(): value for name, value in response.headers.items()}, content
        )

    def _body(self, response: requests.Response, deadline: float) -> bytes:
        content = bytearray()
        while chunk := response.raw.read1(1 << 16, decode_content=True):  # what there is: servers may drip
            content += chunk
            if len(content) > _LARGEST_ANSWER:
                raise DashboardsError(
                    f"{self.url} returned more than {_LARGEST_ANSWER >> 20} MiB; check that this is the "
                    "address of Kibana or OpenSearch Dashboards"
                )
            if time.monotonic() > deadline:
                raise self._late()
        return bytes(content)

    def _late(self) -> DashboardsError:
        return DashboardsError(
            f"{self.url} did not answer within {self._timeout_s:g} s; retry when its load is lower"
        )

    def refusal(self, answer: Answer, what: str) -> DashboardsError:
        """The error of an answer that is a refusal; ``what`` failed, such as ``the import``."""
        said = answer.message()
        detail = f": {said}" if said else ""
        advice = _ADVICE.get(answer.status)
        # a login page of a proxy has any status, so its form decides
        if answer.json() is None and answer.body.lstrip()[:1] == b"<":
            return DashboardsError(
                f"{self.url}: {what} returned an HTML page (HTTP {answer.status}), perhaps the login of a "
                "proxy; use an address of the server's API, with credentials"
            )
        if advice is None:
            advice = (
                "the server is unhealthy; see its log, then retry"
                if answer.status >= 500
                else "check the address and the server's log"
            )
        return DashboardsError(f"{self.url}: {what} failed (HTTP {answer.status}{detail}); {advice}")


_ADVICE = {
    401: "add credentials: user and password in the address, or those of the cluster (ESJOBS_CLUSTER__...)",
    403: "this user has no permission; grant the role all rights on dashboards, visualizations, data views "
    "and saved objects (Saved Objects Management) of the space",
    404: "check the address and the base path of the server",
    413: "a proxy or the server limits the size of uploads; raise it to 25 MB",
    429: "the server is overloaded; retry later",
    502: "the proxy cannot reach the server; check whether it runs",
    503: "the server is not ready; retry in a minute",
    504: "the proxy timed out; retry",
}


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment:
        raise UsageError(
            f"'{_shown(url)}' is not an address of Kibana or OpenSearch Dashboards; expected "
            "http://HOST:5601 or https://HOST/PATH (--url)"
        )
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


def _shown(url: str) -> str:
    """An address as messages show it: no user, no password, no query."""
    head, at, tail = url.partition("://")
    rest = (tail if at else head).partition("?")[0]
    return f"{head}://{rest.rpartition('@')[2]}" if at else rest.rpartition("@")[2]


def _cause(error: BaseException) -> str:
    """The innermost reason, short: what wraps it repeats addresses and objects."""
    seen: BaseException = error
    # causes may go round in a circle
    for _ in range(10):
        inner = (
            seen.__cause__
            or seen.__context__
            or next(
                (
                    one
                    for one in (*seen.args, getattr(seen, "reason", None))
                    if isinstance(one, BaseException)
                ),
                None,
            )
        )
        if inner is None:
            break
        seen = inner
    return excerpt(str(seen), 200) or type(seen).__name__
