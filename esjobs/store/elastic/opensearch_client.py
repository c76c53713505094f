"""OpenSearch 2 and 3 through its official client, an extra. The only importer of ``opensearchpy``."""

import logging
from collections.abc import Mapping
from typing import Any

from esjobs.core.errors import MissingExtraError, StoreError
from esjobs.store.elastic.access import Access
from esjobs.store.elastic.cluster import Cluster, refusal, unreachable

try:
    import opensearchpy
except ImportError as error:
    raise MissingExtraError(
        "OpenSearch needs a package that is not installed; run: pip install 'esjobs[opensearch]'"
    ) from error

# What it warns of comes back as an error, or was mended by asking again.
logging.getLogger("opensearch").setLevel(logging.CRITICAL)

_CONNECTIONS = 4
"""Kept open; by default one, and every other request under way would begin with a new one."""

_OTHERS = (
    opensearchpy.exceptions.OpenSearchException,
    opensearchpy.exceptions.OpenSearchDslException,
    opensearchpy.exceptions.ImproperlyConfigured,
)


class _Undecoded(opensearchpy.JSONSerializer):
    """Answers as they come; whoever asked decodes them. Bodies are bytes already."""

    def loads(self, s: str) -> str:
        """The answer itself."""
        return s


class OpenSearchCluster(Cluster):
    """A connection to OpenSearch."""

    product = "opensearch"

    def __init__(self, access: Access) -> None:
        self.location = access.location
        options: dict[str, Any] = {}
        if access.token is not None:
            options["headers"] = {"authorization": f"Bearer {access.token.get_secret_value()}"}
        elif (login := access.login()) is not None:
            options["http_auth"] = login
        self._client = opensearchpy.OpenSearch(
            access.location,
            timeout=access.timeout_s,
            pool_maxsize=_CONNECTIONS,
            serializer=_Undecoded(),
            **access.transport(),
            **options,
        )
        self.version = str(self.call("GET", "/")["version"]["number"])

    def close(self) -> None:
        """Release the connections."""
        self._client.close()

    def _send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        params: Mapping[str, Any],
    ) -> bytes | str:
        try:
            found = self._client.transport.perform_request(
                method, path, params=dict(params), headers=headers, body=body
            )
            return found if isinstance(found, bytes | str) else b""
        except opensearchpy.exceptions.ConnectionError as error:
            tls, late = (
                isinstance(error, kind)
                for kind in (opensearchpy.exceptions.SSLError, opensearchpy.exceptions.ConnectionTimeout)
            )
            raise unreachable(self.location, str(error), tls=tls, late=late) from error
        except opensearchpy.exceptions.TransportError as error:
            raise refusal(self.location, method, path, int(error.status_code), error.info) from error
        except _OTHERS as error:
            raise StoreError(
                f"{self.location}: {' '.join(str(error).split())[:200]}; check the address"
            ) from error
