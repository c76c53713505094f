"""JSON over HTTP POST: webhooks and chats."""

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import requests
import urllib3

from esjobs.core.redact import excerpt, remember
from scheduler.notifications.channels.outcome import Again, DeliveryError
from scheduler.notifications.deadline import within
from scheduler.notifications.redact import host_of

_LONGEST = 300
_MOST_READ = 2000  # Bytes of an answer: enough for the line that quotes it, and no peer fills our memory
# Statuses that may pass within a minute; 509 and 52x: of proxies such as Cloudflare
_PASSING = frozenset({408, 409, 423, 425, 429, 500, 502, 503, 504, 507, 509, 520, 521, 522, 523, 524})
# Statuses of a wrong address or wrong credentials, which an operator has to correct
_OURS = frozenset({301, 302, 303, 307, 308, 401, 403, 404, 405, 407, 410})


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    timeout_s: float,
    ca_file: Path | None = None,
    proxy: str | None = None,
) -> None:
    """Post a body once; return on a 2xx status.

    Redirects are not followed: the signature is for one address. Passwords and proxies are not taken from the
    environment. Raises :class:`DeliveryError`, which shows only the host of the address.
    """
    where, wait_s = host_of(url), None
    remember(url, proxy)
    try:
        status, answer, wait_s = within(
            timeout_s, lambda: _post(url, body, headers, timeout_s, ca_file, proxy)
        )
    # those of requests are OSErrors
    except (OSError, urllib3.exceptions.HTTPError, UnicodeError) as error:
        reason, again = _broken(error)
    else:
        if 200 <= status < 300:
            return
        reason, again = _refused(status, excerpt(answer.decode("utf-8", "replace"), 120))
    raise DeliveryError(excerpt(f"{where}: {reason}", _LONGEST), again, wait_s=wait_s)


def _broken(error: Exception) -> tuple[str, Again]:
    # subclasses before their bases: SSLError and ProxyError are connection errors, which are OSError
    match error:
        case requests.exceptions.SSLError():
            return "certificate rejected; set notify.ca_file to the authority that signed it", "later"
        case requests.exceptions.InvalidURL() | requests.exceptions.InvalidSchema() | UnicodeError():
            return "invalid address; check url", "later"
        case requests.exceptions.Timeout() | TimeoutError():
            return "no response within notify.timeout_s", "now"
        case requests.exceptions.ProxyError():
            return "cannot connect through notify.proxy", "now"
        # of certificates, notify.ca_file
        case OSError(filename=str(name)):
            return f"cannot read {name}", "later"
        case _:
            return "cannot connect, or the server closed the connection", "now"


def _refused(status: int, said: str) -> tuple[str, Again]:
    text = f"answered {status}{f' ({said})' if said else ''}"
    # statuses of no class are those of proxies, too
    if status in _PASSING or status > 599:
        return text, "now"
    return (f"{text}; check url and credentials", "later") if status in _OURS else (text, "never")


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    # urllib3 logs the path of requests, which is the secret of a chat's webhook; the filter is for this
    # thread alone, so that the store's client keeps its log
    here, logger = threading.get_ident(), logging.getLogger("urllib3.connectionpool")

    def of_others(record: logging.LogRecord) -> bool:
        return record.thread != here

    logger.addFilter(of_others)
    try:
        yield
    finally:
        logger.removeFilter(of_others)


def _post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    timeout_s: float,
    ca_file: Path | None,
    proxy: str | None,
) -> tuple[int, bytes, float | None]:
    with _unlogged(), requests.Session() as session:
        # no .netrc, no proxy that somebody else set
        session.trust_env = False
        if ca_file is not None:
            session.verify = str(ca_file.expanduser())
        if proxy is not None:
            session.proxies = {"http": proxy, "https": proxy}
        response = session.post(
            url,
            data=body,
            headers={"content-type": "application/json", "user-agent": "esjobs", **headers},
            timeout=timeout_s,
            allow_redirects=False,
            stream=True,
        )
        with response:
            answer = response.raw.read(_MOST_READ, decode_content=True) or b""
            # seconds, or a date [RFC 9110], which is ignored
            retry_after = response.headers.get("retry-after", "").strip()
            is_number = retry_after.isascii() and retry_after.isdecimal()
            return response.status_code, answer, float(retry_after) if is_number else None
