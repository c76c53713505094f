"""Elasticsearch 8 and 9 through the official client. The only importer of ``elasticsearch``."""

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import elastic_transport
import elasticsearch

from esjobs.core.errors import StoreError
from esjobs.core.fields import FieldType
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.cluster import (
    Body,
    Cluster,
    RefusedError,
    Request,
    no_json,
    refusal,
    unreachable,
)
from esjobs.store.elastic.transport.proxies import ProxiedPool, proxy_of
from esjobs.store.elastic.transport.retry import seconds_of
from esjobs.store.elastic.transport.tls import context

# What it warns of comes back as an error, or was resolved by a retry.
logging.getLogger("elastic_transport").setLevel(logging.ERROR)

# plain JSON: the client's own media type is refused by servers of another major version
_ACCEPT = {"accept": "application/json"}


class _Undecoded(elastic_transport.Serializer):
    """Serializer that leaves bodies undecoded."""

    mimetype = "application/json"

    def loads(self, data: bytes) -> bytes:
        return data

    def dumps(self, data: bytes) -> bytes:
        return data


def _node_class(access: Access) -> type[elastic_transport.BaseNode]:
    class Node(elastic_transport.Urllib3HttpNode):
        """Node with our TLS context, where the default adds certificates, and with our proxy."""

        def __init__(self, config: elastic_transport.NodeConfig) -> None:
            super().__init__(config)
            pool: Any = self.pool
            # both would replace what the context of the settings says
            pool.cert_reqs = pool.ca_certs = None
            proxy = proxy_of(access, self.base_url)
            if proxy is not None:
                self.pool = ProxiedPool(  # type: ignore[assignment]
                    proxy,
                    (config.scheme, config.host, config.port),
                    config.ssl_context,
                    maxsize=config.connections_per_node,
                    timeout_s=config.request_timeout,
                )

    return Node


class OtherProductError(StoreError):
    """Address of something other than Elasticsearch."""


class ElasticsearchCluster(Cluster):
    """Connection to Elasticsearch. Raises :class:`OtherProductError` if something else answers."""

    product = "elasticsearch"

    def __init__(self, access: Access) -> None:
        self.location = access.location
        tls = context(access)
        self._retries = access.retries
        self._options: dict[str, Any] = {
            "node_class": _node_class(access),
            "request_timeout": access.timeout_s,
            **({} if tls is None else {"ssl_context": tls}),
        }
        self._client = elasticsearch.Elasticsearch(
            access.addresses,
            # the next address, at once; our own retries wait, and honour Retry-After
            max_retries=len(access.addresses) - 1,
            retry_on_timeout=False,
            retry_on_status=(),
            serializers={_Undecoded.mimetype: _Undecoded()},
            **self._options,
        )
        self._decoding: elasticsearch.Elasticsearch | None = None
        self._be_patient(access)
        self.version = self._version()
        self._require_one_cluster()

    def index_template(self, patterns: Sequence[str], layout: Body, priority: int) -> Body:
        """Return the body of an index template, made by the DSL of the client."""
        from elasticsearch import dsl  # takes half a second, and only setting up needs it

        index = dsl.Index(patterns[0])
        index.settings(**layout["settings"])
        mapping = index.get_or_create_mapping()
        for name, value in layout["mappings"].items():
            if name != "properties":
                mapping.meta(name, value)
        for name, kind in layout["mappings"]["properties"].items():
            mapping.field(name, dict(kind))
        return {"index_patterns": [*patterns], "template": index.to_dict(), "priority": priority}

    def _account(self) -> str:
        answer = self.call("GET", "/_security/_authenticate")
        key = answer.get("api_key")
        return f"{answer['username']}, API key {key['name']}" if key else str(answer["username"])

    def search(self, name: str, index: str, columns: Mapping[str, FieldType]) -> Any:
        """Return a search with typed hits, on a decoding connection of its own."""
        from esjobs.store.elastic.transport.elasticsearch_documents import search  # takes half a second

        if self._decoding is None:
            self._decoding = elasticsearch.Elasticsearch(
                self._access.addresses,
                headers=self._access.headers(),
                max_retries=self._retries,
                retry_on_timeout=True,
                **self._options,
            )
        return search(self._decoding, name, index, columns)

    def close(self) -> None:
        self._client.close()
        if self._decoding is not None:
            self._decoding.close()

    def _version(self) -> str:
        # Minimal distributions have no root page, and the page of the node needs the right to monitor.
        try:
            nodes = self.call("GET", "/_nodes/_local")["nodes"]
            return str(next(iter(nodes.values()))["version"])
        except RefusedError as refused:
            try:
                return str(self.call("GET", "/")["version"]["number"])
            except RefusedError:
                raise refused from None

    def _of_each_address(self, path: str, timeout_s: float) -> Iterator[tuple[str, bytes | str]]:
        headers = elastic_transport.HttpHeaders({**_ACCEPT, **self._authorization})
        for node in self._client.transport.node_pool.all():
            with contextlib.suppress(elastic_transport.TransportError):
                answer = node.perform_request("GET", path, headers=headers, request_timeout=timeout_s)
                yield node.base_url, answer.body

    def _send(self, request: Request) -> bytes | str:
        method, path, body, headers, params = request
        try:
            answer = self._client.perform_request(
                method, path, params=params, headers=_ACCEPT | dict(headers), body=body
            )
        except elasticsearch.UnsupportedProductError as error:
            raise OtherProductError(
                f"{self.location} is not Elasticsearch; use the address of a cluster"
            ) from error
        except elastic_transport.ApiError as error:
            wait_s = seconds_of(error.meta.headers.get("retry-after"))
            raise refusal(self.location, method, path, error.meta.status, error.body, wait_s) from error
        except elastic_transport.TransportError as error:
            if isinstance(error, elastic_transport.SerializationError):
                raise no_json(self.location, str(error.message)) from error
            tls, late = (
                isinstance(error, kind)
                for kind in (elastic_transport.TlsError, elastic_transport.ConnectionTimeout)
            )
            raise unreachable(self._all_addresses(), str(error.message), tls=tls, late=late) from error
        content = answer.body
        return content if isinstance(content, bytes | str) else b""
