"""OpenSearch 2 and 3 through its official client, an extra. The only importer of ``opensearchpy``."""

import contextlib
import logging
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from esjobs.core.errors import SettingsError, StoreError
from esjobs.core.extras import require
from esjobs.core.redact import excerpt, remember
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.cluster import Body, Cluster, Request, no_json, refusal, unreachable
from esjobs.store.elastic.transport.proxies import ProxiedPool, proxy_of
from esjobs.store.elastic.transport.retry import seconds_of
from esjobs.store.elastic.transport.tls import context

require("opensearchpy", extra="opensearch", needed_by="a store in OpenSearch")

import opensearchpy  # noqa: E402  only after it is known to be there

# What it warns of comes back as an error, or was resolved by a retry.
logging.getLogger("opensearch").setLevel(logging.CRITICAL)

# Kept open; by default one, and every other request under way would begin with a new one
_CONNECTIONS = 4

_OTHERS = (
    opensearchpy.exceptions.OpenSearchException,
    opensearchpy.exceptions.OpenSearchDslException,
    opensearchpy.exceptions.ImproperlyConfigured,
)


class _Undecoded(opensearchpy.JSONSerializer):
    """Serializer that leaves answers undecoded."""

    def loads(self, s: str) -> str:
        return s


class _Connection(opensearchpy.Urllib3HttpConnection):
    """Connection that keeps ``Retry-After``, which the client's errors omit."""

    # Requests of several threads share a connection; each reads the headers of its own answer.
    _answer = threading.local()

    def __init__(self, access: Access, **options: Any) -> None:
        super().__init__(**options)
        proxy = proxy_of(access, self.host)
        if proxy is not None:
            location = ("https" if self.use_ssl else "http", self.hostname, self.port)
            tls = options.get("ssl_context")
            self.pool = ProxiedPool(proxy, location, tls, maxsize=_CONNECTIONS, timeout_s=self.timeout)

    def get_response_headers(self, response: Any) -> Any:
        """Return the headers of an answer; called just before the client raises."""
        headers = super().get_response_headers(response)
        self._answer.retry_after = headers.get("retry-after")
        return headers

    def _raise_error(self, status_code: int, raw_data: str | bytes, content_type: str | None = None) -> None:
        try:
            super()._raise_error(status_code, raw_data, content_type)
        except opensearchpy.exceptions.TransportError as error:
            error.retry_after = self._answer.retry_after  # type: ignore[attr-defined]
            raise


def _signer(location: str, region: str) -> Any:
    session = require("botocore.session", extra="aws", needed_by="cluster.aws_region")
    credentials = session.Session().get_credentials()
    if credentials is None:
        raise SettingsError(
            f"no AWS credentials found for {location} (cluster.aws_region); set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or use a role of the machine"
        )
    frozen = credentials.get_frozen_credentials()
    remember(frozen.secret_key, frozen.token)
    return opensearchpy.Urllib3AWSV4SignerAuth(credentials, region)


class OpenSearchCluster(Cluster):
    """Connection to OpenSearch."""

    product = "opensearch"

    def __init__(self, access: Access) -> None:
        self.location = access.location
        if access.api_key is not None:
            raise SettingsError(
                f"{access.location} is OpenSearch, which has no API keys; replace api_key by user and "
                "password, or token"
            )
        tls = context(access)
        options: dict[str, Any] = {} if tls is None else {"ssl_context": tls}
        if access.aws_region is not None:
            options["http_auth"] = _signer(access.location, access.aws_region)
        self._client = opensearchpy.OpenSearch(
            access.addresses,
            access=access,
            timeout=access.timeout_s,
            # the next address, at once; our own retries wait, and honour Retry-After
            max_retries=len(access.addresses) - 1,
            retry_on_timeout=False,
            retry_on_status=(),
            pool_maxsize=_CONNECTIONS,
            serializer=_Undecoded(),
            connection_class=_Connection,
            **options,
        )
        self._be_patient(access)
        self.version = str(self.call("GET", "/")["version"]["number"])
        self._require_one_cluster()

    def _account(self) -> str:
        return str(self.call("GET", "/_plugins/_security/api/account")["user_name"])

    def index_template(self, patterns: Sequence[str], layout: Body, priority: int) -> Body:
        return {"index_patterns": [*patterns], "template": dict(layout), "priority": priority}

    def close(self) -> None:
        self._client.close()

    def _of_each_address(self, path: str, timeout_s: float) -> Iterator[tuple[str, bytes | str]]:
        for connection in self._client.transport.connection_pool.connections:
            with contextlib.suppress(opensearchpy.exceptions.TransportError):
                _, _, answer = connection.perform_request(
                    "GET", path, headers=self._authorization, timeout=timeout_s
                )
                yield connection.host, answer

    def _send(self, request: Request) -> bytes | str:
        method, path, body, headers, params = request
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
            raise unreachable(self._all_addresses(), str(error.error), tls=tls, late=late) from error
        except opensearchpy.exceptions.TransportError as error:
            wait_s = seconds_of(getattr(error, "retry_after", None))
            reason = error.error if error.info is None else error.info
            raise refusal(self.location, method, path, int(error.status_code), reason, wait_s) from error
        except opensearchpy.exceptions.SerializationError as error:
            raise no_json(self.location, str(error)) from error
        except _OTHERS as error:
            raise StoreError(f"{self.location}: {excerpt(str(error), 200)}; check the address") from error
