"""Signed requests to OpenSearch at AWS, against a stand-in that verifies the signatures."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from esjobs.core.errors import SettingsError, StoreError
from esjobs.settings import secret
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from tests.cli.running import job_file
from tests.elastic.stage import opened
from tests.messages import raised
from tests.servers.aws import Verifier, verifying
from tests.servers.certificates import Authority
from tests.servers.forwarding import ForwardingProxy
from tests.servers.plugin import server_params
from tests.servers.proxy import Proxy, Request
from tests.servers.server import Server

SERVER = pytest.mark.parametrize("server", server_params("opensearch3"), indirect=True)
KEYS = {"AKIDEXAMPLE": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
REGION = "eu-central-1"


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those of the environment, and no others of this machine."""
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))


def environment(secret: str | None = None) -> Mapping[str, str]:
    ((key, right),) = KEYS.items()
    return {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret or right}


def test_the_stand_in_knows_the_published_example() -> None:
    """The example of the documentation of AWS, for IAM, with the hash of the body as a header besides."""
    verifier = Verifier(KEYS, "here:1", REGION)
    stamp = (datetime.now(UTC) - timedelta(minutes=6)).strftime("%Y%m%dT%H%M%SZ")
    head = f"Credential=AKIDEXAMPLE/{stamp[:8]}/{REGION}/es/aws4_request, SignedHeaders=host, "
    late = {"authorization": f"AWS4-HMAC-SHA256 {head}Signature={'0' * 64}", "x-amz-date": stamp}
    assert verifier.fault(Request("GET", "/", "", {}, b"")) == "no signature"
    assert verifier.fault(Request("GET", "/", "", late, b"")) == "signed at another time"
    other = {"authorization": late["authorization"].replace("/es/", "/s3/"), "x-amz-date": stamp}
    assert verifier.fault(Request("GET", "/", "", other, b"")) == "signed for another place"


@SERVER
@pytest.mark.parametrize("token", [None, "a-session-token/with+signs="])
def test_every_request_of_a_run_is_signed(
    server: Server, index_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str | None
) -> None:
    if token is not None:
        monkeypatch.setenv("AWS_SESSION_TOKEN", token)
    with Proxy(server.url) as proxy:
        verifier = verifying(proxy, KEYS)
        with opened(proxy.url, index_prefix.rstrip("-"), aws_region=REGION) as session:
            session.ingest("jobs", job_file(tmp_path / "jobs.csv", n_queues=3, n_tasks=4, n_jobs=20))
            session.run()
            counted = session.query("queue").to_pandas()["jobs"].tolist()
            assert counted == [80, 80, 80]
        assert verifier.refused == []
        assert verifier.n_verified == len(proxy.seen) > 50
        # names with signs, several indices, texts beyond ASCII
        with opened(proxy.url, index_prefix.rstrip("-"), aws_region=REGION) as session:
            assert session.store.compare_and_set("ärger, with signs: 50%+/~", None, "ü€")
            assert session.store.value("ärger, with signs: 50%+/~") == "ü€"
        assert verifier.refused == []


@SERVER
def test_signed_requests_go_through_a_proxy(server: Server, tmp_path: Path) -> None:
    """TLS at the port of HTTPS, which is no part of the host that is signed."""
    ours = Authority.at(tmp_path / "ours")
    host = "search-jobs.eu-central-1.es.example.org"
    with (
        Proxy(server.url, tls=ours.server(host)) as guarded,
        ForwardingProxy(guarded.url, "ann:secret") as forwarding,
    ):
        verifier = verifying(guarded, KEYS, host)
        proxy = secret(f"http://ann:secret@{forwarding.place}")
        access = Access(f"https://{host}", aws_region=REGION, ca_file=ours.ca_file, proxy=proxy)
        connect(access).close()
        assert (verifier.refused, verifier.n_verified) == ([], 1)
        assert set(forwarding.asked) == {("CONNECT", f"{host}:443")}


@SERVER
def test_a_wrong_secret_is_refused_in_one_line(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = "not-the-secret-of-anybody"
    for name, value in environment(wrong).items():
        monkeypatch.setenv(name, value)
    with Proxy(server.url) as proxy:
        verifier = verifying(proxy, KEYS)
        with raised(StoreError) as caught:
            connect(Access(proxy.url, aws_region=REGION))
        assert verifier.refused == ["another signature"]
        with pytest.raises(StoreError):
            connect(Access(proxy.url, aws_region="us-east-1"))
        assert verifier.refused[-1] == "signed for another place"
    assert wrong not in str(caught.value)


def test_what_does_not_go_together_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with raised(SettingsError):
        connect(Access("https://search.example.org", aws_region=REGION), "elasticsearch")
    for name in environment():
        monkeypatch.delenv(name)
    with raised(SettingsError):
        connect(Access("https://search.example.org", aws_region=REGION))
