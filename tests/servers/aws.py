"""A stand-in for OpenSearch at AWS: verifies the signature of every request, then asks a real server.

Rules: AWS documentation, "Signature Version 4 signing process". The canonical request is built from what
arrived, with the raw path encoded once more, as for all services but S3.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, quote

from tests.servers.proxy import Action, Forward, Proxy, Reply, Request, answers

_SAFE = "-_.~"
_LONGEST_SKEW = timedelta(minutes=5)
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, "
    r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})"
)


@dataclass
class Verifier:
    """Keys that are known, by their ids, and the place for which requests must be signed."""

    keys: Mapping[str, str]
    host: str
    region: str = "eu-central-1"
    service: str = "es"
    refused: list[str] = field(default_factory=list)
    n_verified: int = 0

    def fault(self, request: Request) -> str | None:
        """Return what is wrong with the signature of a request; None if nothing is."""
        headers = {name.lower(): value for name, value in request.headers.items()} | {"host": self.host}
        found = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
        if found is None:
            return "no signature"
        key, day, region, service, signed, signature = found.groups()
        if key not in self.keys:
            return "unknown key"
        if (region, service) != (self.region, self.service):
            return "signed for another place"
        stamp = headers["x-amz-date"]
        at = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if abs(datetime.now(UTC) - at) > _LONGEST_SKEW or stamp[:8] != day:
            return "signed at another time"
        digest = hashlib.sha256(request.body).hexdigest()
        if headers.get("x-amz-content-sha256") != digest:
            return "another body"
        names = signed.split(";")
        if not {"host", "x-amz-date", "x-amz-content-sha256"} <= set(names):
            return "too few headers are signed"
        pairs = parse_qsl(request.query, keep_blank_values=True)
        canonical = "\n".join(
            (
                request.method,
                "/".join(quote(part, safe=_SAFE) for part in request.path.split("/")),
                "&".join(sorted(f"{quote(a, safe=_SAFE)}={quote(b, safe=_SAFE)}" for a, b in pairs)),
                *(f"{name}:{' '.join(headers[name].split())}" for name in names),
                "",
                signed,
                digest,
            )
        )
        scope = f"{day}/{region}/{service}/aws4_request"
        hashed = hashlib.sha256(canonical.encode()).hexdigest()
        secret = f"AWS4{self.keys[key]}".encode()
        for part in (day, region, service, "aws4_request"):
            secret = hmac.digest(secret, part.encode(), "sha256")
        wanted = hmac.digest(secret, f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashed}".encode(), "sha256")
        return None if hmac.compare_digest(wanted.hex(), signature) else "another signature"


def verifying(proxy: Proxy, keys: Mapping[str, str], host: str | None = None) -> Verifier:
    """Make a proxy refuse every request whose signature is wrong; ``host``: the name it is called by."""
    verifier = Verifier(keys, host or proxy.url.partition("://")[2])
    forbidden: Action = answers(403, {"error": {"type": "signature", "reason": "does not match"}})

    def act(request: Request, forward: Forward) -> Reply | None:
        fault = verifier.fault(request)
        if fault is None:
            verifier.n_verified += 1
            return forward(request)
        verifier.refused.append(fault)
        return forbidden(request, forward)

    proxy.on(lambda _: True, act, times=None)
    return verifier
