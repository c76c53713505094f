"""Elasticsearch 8 and 9 through the official client. The only importer of ``elasticsearch``."""

import logging
from collections.abc import Mapping
from typing import Any

import elastic_transport
import elasticsearch

from esjobs.core.errors import StoreError
from esjobs.store.elastic.access import Access
from esjobs.store.elastic.cluster import Body, RefusedError, UnreachableError, refusal

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
        elif access.user is not None:
            password = access.password.get_secret_value() if access.password else ""
            options["basic_auth"] = (access.user, password)
        if access.location.startswith("https"):
            options |= {"verify_certs": access.verify, "ca_certs": access.ca_file}
            options |= {"client_cert": access.certificate, "client_key": access.key}
        self._client = elasticsearch.Elasticsearch(
            access.location,
            request_timeout=access.timeout_s,
            max_retries=access.retries,
            retry_on_timeout=False,
            retry_on_status=(429, 502, 503, 504),
            serializers={"application/json": elasticsearch.OrjsonSerializer()},
            **{name: value for name, value in options.items() if value is not None},
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
            raise _unreachable(self.location, error) from error
        return answer.body


def _unreachable(location: str, error: elastic_transport.TransportError) -> UnreachableError:
    reason = " ".join(str(error.message).split())[:200]
    if isinstance(error, elastic_transport.TlsError):
        return UnreachableError(f"{location} has no certificate to trust ({reason}); name a CA bundle")
    if isinstance(error, elastic_transport.ConnectionTimeout):
        return UnreachableError(
            f"{location} did not answer in time ({reason}); run it again, or raise the timeout"
        )
    if isinstance(error, elastic_transport.SerializationError):
        return UnreachableError(
            f"{location} answered with something that is no JSON ({reason}); check the address"
        )
    return UnreachableError(
        f"{location} cannot be reached ({reason}); check the address and that the cluster runs"
    )
