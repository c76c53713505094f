"""A cluster behind TLS: whose certificate is believed, and what is said when it is not."""

import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from esjobs.core.errors import EsjobsError, SettingsError
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.cluster import UnreachableError
from esjobs.store.elastic.transport.connect import connect
from esjobs.store.elastic.transport.tls import context
from tests.cli.running import job_file, run_apart
from tests.elastic.stage import opened
from tests.messages import raised
from tests.servers.certificates import Authority, Pair
from tests.servers.plugin import server_params
from tests.servers.proxy import Proxy
from tests.servers.server import Server

pytestmark = pytest.mark.every_version

BOTH = pytest.mark.parametrize("server", server_params("elasticsearch8", "opensearch3"), indirect=True)
CLIENT = "esjobs@example.org"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who issued the cluster's certificate."""
    return Authority(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that the cluster has nothing to do with."""
    return Authority(tmp_path_factory.mktemp("others"))


def shown(pair: Pair) -> dict[str, str]:
    """The settings of a client's certificate."""
    return {"certificate": pair.certificate, "key": pair.key}


def refused(url: str, **given: str) -> None:
    """Connecting fails in one line that matches."""
    with raised(UnreachableError) as caught:
        connect(Access(url, **given))  # type: ignore[arg-type]
    assert not caught.value.passing or "cannot be reached" in str(caught.value)


@BOTH
def test_a_ca_bundle_makes_a_cluster_believed(
    server: Server, index_prefix: str, ours: Authority, tmp_path: Path
) -> None:
    prefix, files = index_prefix.rstrip("-"), {"ca_file": ours.ca_file}
    with Proxy(server.url, tls=ours.server()) as proxy, opened(proxy.url, prefix, **files) as session:
        session.ingest("jobs", job_file(tmp_path / "jobs.csv", n_queues=2, n_tasks=1, n_jobs=5))
        assert session.query("queue").to_pandas()["jobs"].tolist() == [5, 5]
        assert proxy.url.startswith("https:")
        assert proxy.seen


@BOTH
def test_a_certificate_that_proves_nothing_is_refused(
    server: Server, ours: Authority, others: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Proxy(server.url, tls=ours.server()) as proxy:
        refused(proxy.url)
        refused(proxy.url, ca_file=others.ca_file)
        # what the system, or a package with certificates, trusts is not trusted beside the bundle
        monkeypatch.setenv("SSL_CERT_FILE", ours.ca_file)
        monkeypatch.setattr("elastic_transport._node._http_urllib3.DEFAULT_CA_CERTS", ours.ca_file)
        refused(proxy.url, ca_file=others.ca_file)
        connect(Access(proxy.url)).close()
        assert len(proxy.seen) <= 2
    for name in ("es.example.org", "127.0.0.2"):
        with Proxy(server.url, tls=ours.server(name)) as proxy:
            refused(proxy.url, ca_file=ours.ca_file)
            assert not proxy.seen
    with Proxy(server.url, tls=ours.server("127.0.0.1"), host="localhost") as proxy:
        refused(proxy.url, ca_file=ours.ca_file)


@BOTH
def test_nothing_is_checked_and_nothing_is_said_where_that_was_asked_for(
    server: Server, index_prefix: str, ours: Authority
) -> None:
    with Proxy(server.url, tls=ours.server("es.example.org")) as proxy:
        given = {"ESJOBS_CLUSTER__VERIFY": "false", "ESJOBS_CLUSTER__PREFIX": index_prefix.rstrip("-")}
        done = run_apart("--store", proxy.url, "doctor", "--format", "csv", **given)
        assert proxy.seen
    assert done.returncode == 0, done.stdout
    assert done.stderr == ""


@BOTH
@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_cluster_that_demands_a_certificate_gets_ours(
    server: Server, ours: Authority, others: Authority, newest: ssl.TLSVersion
) -> None:
    tls = ours.server(demands=others.ca_file)
    tls.maximum_version = newest
    with Proxy(server.url, tls=tls) as proxy:
        refused(proxy.url, ca_file=ours.ca_file)
        refused(proxy.url, ca_file=ours.ca_file, **shown(ours.issue(CLIENT)))
        assert not proxy.seen
        known = shown(others.issue(CLIENT))
        connect(Access(proxy.url, ca_file=ours.ca_file, **known)).close()  # type: ignore[arg-type]


@BOTH
def test_http_where_tls_is_spoken_and_the_reverse_are_told(server: Server, ours: Authority) -> None:
    refused(server.url.replace("http:", "https:"))
    with Proxy(server.url, tls=ours.server()) as proxy:
        refused(proxy.url.replace("https:", "http:"))
        assert not proxy.seen


def test_files_that_cannot_be_used_are_named(ours: Authority, others: Authority, tmp_path: Path) -> None:
    pair = ours.issue(CLIENT)
    empty, spoilt, absent = (tmp_path / name for name in ("empty.pem", "spoilt.pem", "absent.pem"))
    empty.touch()
    marks = "-----BEGIN {0}-----\nxyz\n-----END {0}-----\n"
    spoilt.write_text("".join(marks.format(mark) for mark in ("CERTIFICATE", "PRIVATE KEY")))
    for name in ("ca_file", "certificate", "key"):
        for file in (empty, absent, tmp_path, spoilt):
            unusable({**shown(pair), name: str(file)})
    unusable({**shown(pair), "key": others.issue(CLIENT).key})
    key = serialization.load_pem_private_key(Path(pair.key).read_bytes(), None)
    locked = tmp_path / "locked.key"
    made = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    locked.write_bytes(key.private_bytes(*made, serialization.BestAvailableEncryption(b"sesame")))
    unusable({**shown(pair), "key": str(locked)})


def unusable(files: Mapping[str, str]) -> None:
    """These files are refused before anything is asked, in one line that matches."""
    with raised(SettingsError):
        context(Access("https://localhost:1", **files))  # type: ignore[arg-type]
    with raised(EsjobsError), opened("https://localhost:1", "esjobs", **files):
        pass
