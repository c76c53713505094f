"""Elasticsearch 8 and 9 through the official client. The only importer of ``elasticsearch``."""

import logging
from collections.abc import Mapping
from typing import Any

import elastic_transport
import elasticsearch

from esjobs.core.errors import StoreError
from esjobs.store.elastic.access import Access
from esjobs.store.elastic.cluster import Body, RefusedError, UnreachableError, refusal, unreachable

# What it warns of comes back as an error, or was mended by asking again.
logging.getLogger("elastic_transport").setLevel(logging.ERROR)

_JSON = {"accept": "application/json", "content-type": "application/json"}
_LINES = {"accept": "application/json", "content-type": "application/x-ndjson"}


class OtherProductError(StoreError):
    """What answers is no Elasticsearch."""


class ElasticsearchCluster:
    """A connection to Elasticsearch. Raises :class:`OtherProductError` when something else answers."""

    product = "elasticsearch"

    def __init__(self, access: Access) -> None:
        self.location = access.location
        options: dict[str, Any] = {}
        if access.api_key is not None:
            options["api_key"] = access.api_key.get_secret_value()
        elif access.token is not None:
            options["bearer_auth"] = access.token.get_secret_value()
        elif (login := access.login()) is not None:
            options["basic_auth"] = login
        self._client = elasticsearch.Elasticsearch(
            access.location,
            request_timeout=access.timeout_s,
            serializers={"application/json": elasticsearch.OrjsonSerializer()},
            **access.transport(),
            **options,
        )
        self.version = self._version()

    def call(
        self, method: str, path: str, body: Body | None = None, *, params: Mapping[str, Any] | None = None
    ) -> Any:
        """One request with a JSON body and a JSON answer."""
        return self._perform(
            method, path, _JSON if body is not None else {"accept": "application/json"}, body, params
        )

    def bulk(self, lines: bytes, *, params: Mapping[str, Any] | None = None) -> Any:
        """One ``_bulk`` request of newline-delimited JSON."""
        return self._perform("POST", "/_bulk", _LINES, lines, params)

    def close(self) -> None:
        """Release the connections."""
        self._client.close()

    def _version(self) -> str:
        # Minimal distributions have no root page, and the page of the node needs the right to monitor.
        try:
            nodes = self.call("GET", "/_nodes/_local")["nodes"]
            return str(next(iter(nodes.values()))["version"])
        except RefusedError:
            return str(self.call("GET", "/")["version"]["number"])

    def _perform(
        self, method: str, path: str, headers: Mapping[str, str], body: Any, params: Mapping[str, Any] | None
    ) -> Any:
        try:
            answer = self._client.perform_request(method, path, params=params, headers=headers, body=body)
        except elasticsearch.UnsupportedProductError as error:
            raise OtherProductError(
                f"{self.location} is no Elasticsearch; name the address of a cluster"
            ) from error
        except elastic_transport.ApiError as error:
            raise refusal(self.location, method, path, error.meta.status, error.body) from error
        except elastic_transport.TransportError as error:
            if isinstance(error, elastic_transport.SerializationError):
                raise UnreachableError(
                    f"{self.location} answered with something that is no JSON "
                    f"({' '.join(str(error.message).split())[:200]}); check the address"
                ) from error
            tls, late = (
                isinstance(error, kind)
                for kind in (elastic_transport.TlsError, elastic_transport.ConnectionTimeout)
            )
            raise unreachable(self.location, str(error.message), tls=tls, late=late) from error
        return answer.body
