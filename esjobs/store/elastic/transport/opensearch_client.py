"""OpenSearch 2 and 3 through its official client, an extra. The only importer of ``opensearchpy``."""

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from esjobs.core.errors import SettingsError, StoreError
from esjobs.core.extras import require
from esjobs.core.redact import excerpt
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.cluster import Body, Cluster, no_json, refusal, unreachable
from esjobs.store.elastic.transport.patience import seconds_of
from esjobs.store.elastic.transport.tls import context

require("opensearchpy", extra="opensearch", needed_by="a store in OpenSearch")

import opensearchpy  # noqa: E402  only after it is known to be there

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


class _Connection(opensearchpy.Urllib3HttpConnection):
    """Keeps what an answer with an error asks to wait, which the client's errors leave out."""

    # Requests of several threads share a connection; each reads the headers of its own answer.
    _answer = threading.local()

    def get_response_headers(self, response: Any) -> Any:
        """The headers of an answer; the client asks for them just before it raises the error."""
        headers = super().get_response_headers(response)
        self._answer.retry_after = headers.get("retry-after")
        return headers

    def _raise_error(self, status_code: int, raw_data: str | bytes, content_type: str | None = None) -> None:
        try:
            super()._raise_error(status_code, raw_data, content_type)
        except opensearchpy.exceptions.TransportError as error:
            error.retry_after = self._answer.retry_after  # type: ignore[attr-defined]
            raise


class OpenSearchCluster(Cluster):
    """A connection to OpenSearch."""

    product = "opensearch"

    def __init__(self, access: Access) -> None:
        self.location = access.location
        if access.api_key is not None:
            raise SettingsError(
                f"{access.location} is OpenSearch, which has no API keys; set user and password, or token, "
                "in place of api_key"
            )
        tls = context(access)
        options: dict[str, Any] = {} if tls is None else {"ssl_context": tls}
        self._client = opensearchpy.OpenSearch(
            access.location,
            headers=access.headers(),
            timeout=access.timeout_s,
            max_retries=0,
            retry_on_timeout=False,
            retry_on_status=(),
            pool_maxsize=_CONNECTIONS,
            serializer=_Undecoded(),
            connection_class=_Connection,
            **options,
        )
        self._be_patient(access)
        self.version = str(self.call("GET", "/")["version"]["number"])

    def index_template(self, patterns: Sequence[str], layout: Body, priority: int) -> Body:
        """The template that gives indices of some patterns a layout."""
        return {"index_patterns": [*patterns], "template": dict(layout), "priority": priority}

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
            answer = self._client.transport.perform_request(
                method, path, params=dict(params), headers=headers, body=body
            )
            return answer if isinstance(answer, bytes | str) else b""
        except opensearchpy.exceptions.ConnectionError as error:
            tls, late = (
                isinstance(error, kind)
                for kind in (opensearchpy.exceptions.SSLError, opensearchpy.exceptions.ConnectionTimeout)
            )
            raise unreachable(self.location, str(error.error), tls=tls, late=late) from error
        except opensearchpy.exceptions.TransportError as error:
            wait_s = seconds_of(getattr(error, "retry_after", None))
            reason = error.error if error.info is None else error.info
            raise refusal(self.location, method, path, int(error.status_code), reason, wait_s) from error
        except opensearchpy.exceptions.SerializationError as error:
            raise no_json(self.location, str(error)) from error
        except _OTHERS as error:
            raise StoreError(f"{self.location}: {excerpt(str(error), 200)}; check the address") from error
