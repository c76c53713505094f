"""TLS policy of both products: trusted and presented certificates, and remedies.

The clients' defaults differ from the system's, and name no file on errors.
"""

import re
import ssl
import warnings
from pathlib import Path

from esjobs.core.errors import SettingsError
from esjobs.store.elastic.transport.access import Access

_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
_KEY = b"PRIVATE KEY-----"


def context(access: Access) -> ssl.SSLContext | None:
    """Return the TLS context of a cluster; None for http.

    Raises :class:`SettingsError`, naming the file, if one is unreadable.
    """
    if not access.location.startswith("https:"):
        return None
    if access.ca_file is not None:
        _require("ca_file", access.ca_file, _CERTIFICATE, "certificate")
    try:
        tls = ssl.create_default_context(cafile=access.ca_file)
    except ssl.SSLError as error:
        raise _unusable("ca_file", access.ca_file, error) from error
    if not access.verify:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
        # for each connection of the clients, and the user who set this knows
        warnings.filterwarnings("ignore", "Unverified HTTPS request")
    if access.certificate is not None and access.key is not None:
        _require("certificate", access.certificate, _CERTIFICATE, "certificate")
        _require("key", access.key, _KEY, "private key")
        _show(tls, access.certificate, access.key)
    return tls


def _show(tls: ssl.SSLContext, certificate: str, key: str) -> None:
    def ask() -> str:  # or OpenSSL would ask the terminal
        raise SettingsError(f"key {key} has a passphrase; use a key file without one that only you can read")

    try:
        tls.load_cert_chain(certificate, key, ask)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise SettingsError(
                f"key {key} does not belong to certificate {certificate}; use the matching key"
            ) from error
        raise _unusable("certificate or key", f"{certificate}, {key}", error) from error


def _require(name: str, file: str, mark: bytes, what: str) -> None:
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise SettingsError(
            f"{name} {file} cannot be read: {error.strerror}; use a different file"
        ) from error
    # OpenSSL's own error for a wrong file names neither file nor kind
    if mark not in content:
        raise SettingsError(f"{name} {file} contains no {what} in PEM (-----BEGIN ...); use a different file")


def _unusable(name: str, file: str | None, error: ssl.SSLError) -> SettingsError:
    return SettingsError(f"{name} {file} cannot be used: {error.reason or error}; use a different file")


# Patterns of what OpenSSL says, the first that fits, and what to do
_WAYS_OUT = (
    ("mismatch|doesn't match", "its certificate has a different name; use the address in the certificate"),
    ("has expired|not yet valid", "renew its certificate, or correct the system clock"),
    ("certificate verify failed", "set cluster.ca_file to the authority that signed it"),
    (
        "alert certificate required",
        "the server requires a certificate; set cluster.certificate and cluster.key",
    ),
    (
        "alert (unknown ca|bad certificate|certificate|handshake failure)",
        "the server rejects or requires a client certificate; check cluster.certificate and cluster.key",
    ),
    (
        "wrong version number|unknown protocol|http request|record layer",
        "check whether the address needs http://",
    ),
)


def way_out(reason: str) -> str:
    """Return the remedy for a TLS failure.

    >>> way_out("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1010)")
    'check whether the address needs http://'
    """
    # Which of the two spellings of a reason comes through depends on the client and on OpenSSL.
    words = reason.replace("_", " ")
    ways = (way for pattern, way in _WAYS_OUT if re.search(pattern, words, re.IGNORECASE))
    return next(ways, "check the address and the certificates")
