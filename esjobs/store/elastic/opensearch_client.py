"""OpenSearch 2 and 3 through its official client, an extra. The only importer of ``opensearchpy``."""

import logging
from collections.abc import Mapping
from typing import Any

from esjobs.core.errors import MissingExtraError, StoreError
from esjobs.store.elastic.access import Access
from esjobs.store.elastic.cluster import Body, UnreachableError, refusal

try:
    import opensearchpy
except ImportError as error:
    raise MissingExtraError(
        "OpenSearch needs a package that is not installed; run: pip install 'esjobs[opensearch]'"
    ) from error

# What it warns of comes back as an error, or was mended by asking again.
logging.getLogger("opensearch").setLevel(logging.CRITICAL)

_OTHERS = (
    opensearchpy.exceptions.OpenSearchException,
    opensearchpy.exceptions.OpenSearchDslException,
    opensearchpy.exceptions.ImproperlyConfigured,
)

_LINES = {"content-type": "application/x-ndjson"}


class OpenSearchCluster:
    """A connection to OpenSearch."""

    product = "opensearch"

    def __init__(self, access: Access) -> None:
        self.location = access.location
        options: dict[str, Any] = {}
        if access.token is not None:
            options["headers"] = {"authorization": f"Bearer {access.token.get_secret_value()}"}
        elif access.user is not None:
            password = access.password.get_secret_value() if access.password else ""
            options["http_auth"] = (access.user, password)
        if access.location.startswith("https"):
            options |= {"verify_certs": access.verify, "ca_certs": access.ca_file}
            options |= {"client_cert": access.certificate, "client_key": access.key}
        self._client = opensearchpy.OpenSearch(
            access.location,
            timeout=access.timeout_s,
            max_retries=access.retries,
            retry_on_timeout=False,
            retry_on_status=(429, 502, 503, 504),
            **{name: value for name, value in options.items() if value is not None},
        )
        self.version = str(self.call("GET", "/")["version"]["number"])

    def call(
        self, method: str, path: str, body: Body | None = None, *, params: Mapping[str, Any] | None = None
    ) -> Any:
        """One request with a JSON body and a JSON answer."""
        return self._perform(method, path, None, body, params)

    def bulk(self, lines: bytes, *, params: Mapping[str, Any] | None = None) -> Any:
        """One ``_bulk`` request of newline-delimited JSON."""
        return self._perform("POST", "/_bulk", _LINES, lines, params)

    def close(self) -> None:
        """Release the connections."""
        self._client.close()

    def _perform(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None,
        body: Any,
        params: Mapping[str, Any] | None,
    ) -> Any:
        try:
            return self._client.transport.perform_request(
                method, path, params=dict(params or {}), headers=headers, body=body
            )
        except opensearchpy.exceptions.ConnectionError as error:
            raise _unreachable(self.location, error) from error
        except opensearchpy.exceptions.TransportError as error:
            raise refusal(self.location, method, path, int(error.status_code), error.info) from error
        except _OTHERS as error:
            raise StoreError(
                f"{self.location}: {' '.join(str(error).split())[:200]}; check the address"
            ) from error


def _unreachable(location: str, error: Exception) -> UnreachableError:
    reason = " ".join(str(error).split())[:200]
    if isinstance(error, opensearchpy.exceptions.SSLError):
        return UnreachableError(f"{location} has no certificate to trust ({reason}); name a CA bundle")
    if isinstance(error, opensearchpy.exceptions.ConnectionTimeout):
        return UnreachableError(
            f"{location} did not answer in time ({reason}); run it again, or raise the timeout"
        )
    return UnreachableError(
        f"{location} cannot be reached ({reason}); check the address and that the cluster runs"
    )
