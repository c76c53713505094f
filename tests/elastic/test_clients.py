"""Every error that a client can raise leaves as one of ours, in one line."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import elastic_transport
import elasticsearch
import opensearchpy
import pytest

from esjobs.core.errors import BlockedError, StoreError
from esjobs.store.elastic.transport.access import Access, split_user
from esjobs.store.elastic.transport.cluster import RefusedError, UnreachableError, refusal
from esjobs.store.elastic.transport.elasticsearch_client import ElasticsearchCluster
from esjobs.store.elastic.transport.opensearch_client import OpenSearchCluster
from tests.messages import raised

pytestmark = pytest.mark.every_version

META = elastic_transport.ApiResponseMeta(
    status=418, http_version="1.1", headers=elastic_transport.HttpHeaders(), duration=0.0,
    node=elastic_transport.NodeConfig("http", "localhost", 1),
)  # fmt: skip
BODY = {"error": {"type": "some_exception", "reason": "two\nlines"}}


def classes(*modules: ModuleType) -> Iterator[type[Exception]]:
    """The exceptions of modules that are no warnings and their own."""
    found = {item for module in modules for item in vars(module).values() if isinstance(item, type)}
    for item in sorted(found, key=lambda each: each.__name__):
        if issubclass(item, Exception) and not issubclass(item, Warning):
            yield item


def elastic_errors() -> Iterator[Exception]:
    for item in classes(elasticsearch.exceptions, elastic_transport):
        if issubclass(item, elastic_transport.ApiError):
            yield item("teapot", META, BODY)
        elif issubclass(item, elasticsearch.UnsupportedProductError):
            yield item("no such product", META, BODY)
        else:
            yield item("broken")


def opensearch_errors() -> Iterator[Exception]:
    for item in classes(opensearchpy.exceptions):
        if issubclass(item, opensearchpy.exceptions.ConnectionError):
            yield item("N/A", "broken", OSError("broken"))
        elif issubclass(item, opensearchpy.exceptions.TransportError):
            yield item(418, "some_exception", BODY)
        else:
            yield item("broken")


def bare(kind: type[Any], raised: Exception) -> Any:
    """A connection whose client raises an error, whatever it is asked."""

    class Raises:
        transport: "Raises"

        def perform_request(self, *_: object, **__: object) -> object:
            raise raised

    cluster = object.__new__(kind)
    cluster.location = "http://localhost:1"
    cluster._client = Raises()
    cluster._client.transport = cluster._client
    cluster._be_patient(Access(cluster.location, retries=0))
    return cluster


@pytest.mark.parametrize("error", list(elastic_errors()), ids=lambda each: type(each).__name__)
def test_errors_of_elasticsearch_are_ours(error: Exception) -> None:
    with raised(StoreError):
        bare(ElasticsearchCluster, error).call("GET", "/x")


@pytest.mark.parametrize("error", list(opensearch_errors()), ids=lambda each: type(each).__name__)
def test_errors_of_opensearch_are_ours(error: Exception) -> None:
    with raised(StoreError):
        bare(OpenSearchCluster, error).bulk(b"{}\n")


def test_an_answer_is_classified_by_its_type() -> None:
    full = "index [x] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark];"
    for reason, disk in ((full, True), ("index [x] blocked by: [FORBIDDEN/8/index write (api)];", False)):
        error = {"error": {"type": "cluster_block_exception", "reason": reason}}
        blocked = refusal("here", "PUT", "/x", 429 if disk else 403, error)
        assert isinstance(blocked, BlockedError)
        assert ("is a disk full" in str(blocked)) is disk
        assert ("remove the block" in str(blocked)) is not disk
    inner = {
        "error": {
            "type": "search_phase_execution_exception",
            "root_cause": [{"type": "too_many_buckets_exception"}],
        }
    }
    many = refusal("here", "POST", "/x?y=z", 503, inner)
    assert isinstance(many, RefusedError)
    assert many.kind == "too_many_buckets_exception"
    assert "search.max_buckets" in str(many)
    assert "no JSON" in str(refusal("here", "GET", "/", 502, "<html>Bad gateway</html>"))
    assert "password" in str(refusal("here", "GET", "/", 401, {}))


def test_an_address_is_shown_without_its_password() -> None:
    assert split_user("http://u:p%40@[::1]:9200/es/") == ("http://[::1]:9200/es", "u", "p@")
    assert split_user("http://localhost:9200") == ("http://localhost:9200", None, None)


def test_nobody_at_home_is_said_in_one_line() -> None:
    with raised(UnreachableError):
        ElasticsearchCluster(Access("http://127.0.0.1:1", retries=0))
