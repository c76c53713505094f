"""Ways to a cluster: several addresses, proxies, secrets in files that change."""

import base64
from datetime import timedelta
from pathlib import Path

import pytest

from esjobs import Settings
from esjobs import open as open_session
from esjobs.cli.secret_files import exposed
from esjobs.core.errors import SettingsError, StoreError
from esjobs.core.secret_file import SecretFile
from esjobs.settings import ClusterSettings
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.cluster import Cluster, UnreachableError
from esjobs.store.elastic.transport.connect import connect
from tests.messages import raised
from tests.scheduler.rows import visible_rows
from tests.scheduler.stage import FIRST, Hands, Stage, days, settings_of, staged
from tests.servers.certificates import Authority
from tests.servers.forwarding import ForwardingProxy
from tests.servers.plugin import server_params
from tests.servers.proxy import Forward, Proxy, Reply, Request, answers, path, reset_after, reset_before
from tests.servers.server import Server

pytestmark = pytest.mark.every_version

BOTH = pytest.mark.parametrize("server", server_params("elasticsearch8", "opensearch3"), indirect=True)
NOBODY = "http://127.0.0.1:1"
RESULTS = ("factors", "flags", "lines", "fit_summaries", "latest_runs", "nights")
ELSEWHERE = "cluster.example.org"
PASSWORD = "s%40cret-of-the-proxy"  # noqa: S105


class Text:
    def __init__(self, text: str) -> None:
        self.text = text

    def get_secret_value(self) -> str:
        return self.text


def asked(cluster: Cluster, times: int = 6) -> int:
    """Ask a few times; every answer must be there."""
    return sum(cluster.call("GET", "/_cluster/health")["number_of_nodes"] for _ in range(times))


@BOTH
def test_the_first_address_dies_in_a_night(server: Server, index_prefix: str, tmp_path: Path) -> None:
    """It loses an answer, and nobody hears of it again; no request is repeated by esjobs itself."""
    hands = Hands()
    with Proxy(server.url) as one, Proxy(server.url) as two:
        plain = settings_of(one.url)
        others = {"prefix": index_prefix, "retries": 0, "addresses": (two.url, NOBODY)}
        settings = plain.model_copy(update={"cluster": plain.cluster.model_copy(update=others)})
        with open_session(settings=settings, clock=hands.clock) as session:
            stage = Stage(session, hands)
            stage.live(FIRST)
            assert min(len(one.seen), len(two.seen)) > 20
            last = one.on(lambda _: True, reset_after(), skip=60)
            one.on(lambda _: last.hits > 0, reset_before(), times=None)
            (row,) = stage.live(FIRST + timedelta(days=1))
            assert (row["state"], row["attempt"], last.hits) == ("done", 1, 1)
            assert not [each for each in hands.pauses if each >= 100]
            found = visible_rows(session.store)
            # messages, and the lease, name the first
            assert session.store.capabilities().location == one.url
    with staged(tmp_path) as embedded:
        embedded.live(*days(FIRST, 2))
        expected = visible_rows(embedded.store)
    assert all(expected[name] for name in RESULTS)
    assert {name: found[name] for name in RESULTS} == {name: expected[name] for name in RESULTS}


def test_no_address_answers() -> None:
    with raised(UnreachableError):
        connect(Access(NOBODY, others=("http://127.0.0.1:2",), retries=0))


@BOTH
def test_addresses_of_two_clusters_are_refused(server: Server) -> None:
    with Proxy(server.url) as other:
        other.on(path("/_cluster/state/version"), answers(200, {"cluster_uuid": "other"}), times=None)
        with raised(SettingsError):
            connect(Access(server.url, others=(other.url,)))
    connect(Access(server.url, others=(NOBODY,))).close()


def test_further_addresses_are_checked() -> None:
    for wrong in ("https://b.example.org:9200", "http://ann:secret@b.example.org:9200"):
        settings = Settings(
            store="http://a.example.org:9200", cluster=ClusterSettings.model_validate({"addresses": (wrong,)})
        )
        with raised(SettingsError) as caught, open_session(settings=settings) as session:
            session.store.span()
        assert "secret" not in str(caught.value)


@BOTH
def test_a_proxy_forwards_requests(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host is known to the proxy alone."""
    location = f"http://{ELSEWHERE}:9200"
    with ForwardingProxy(server.url, f"ann:{PASSWORD.replace('%40', '@')}") as proxy:
        address = f"http://ann:{PASSWORD}@{proxy.place}"
        cluster = connect(Access(location, proxy=Text(address)))
        assert asked(cluster) == 6
        cluster.close()
        assert {host for _, host in proxy.asked} == {f"{ELSEWHERE}:9200"}
        n_asked = len(proxy.asked)
        monkeypatch.setenv("http_proxy", address)
        monkeypatch.setenv("no_proxy", "example.net")
        connect(Access(location)).close()
        assert len(proxy.asked) > n_asked
        # this machine is asked without it, and so is what NO_PROXY names
        n_asked = len(proxy.asked)
        connect(Access(server.url)).close()
        monkeypatch.setenv("no_proxy", "example.org")
        with pytest.raises(UnreachableError):
            connect(Access(location))
        assert len(proxy.asked) == n_asked
        with raised(StoreError) as caught:
            connect(Access(location, proxy=Text(f"http://ann:wrong-password@{proxy.place}")))
        assert "wrong-password" not in str(caught.value)
    with raised(SettingsError):
        connect(Access(location, proxy=Text("socks5://ann:wrong-password@proxy.example.org:1080")))


@BOTH
def test_a_proxy_gives_a_tunnel_to_tls(server: Server, tmp_path: Path) -> None:
    ours = Authority.at(tmp_path / "ours")
    with (
        Proxy(server.url, tls=ours.server(ELSEWHERE)) as guarded,
        ForwardingProxy(guarded.url, "ann:secret") as proxy,
    ):
        given = Access(
            f"https://{ELSEWHERE}", ca_file=ours.ca_file, proxy=Text(f"http://ann:secret@{proxy.place}")
        )
        cluster = connect(given)
        assert asked(cluster) == 6
        cluster.close()
        assert set(proxy.asked) == {("CONNECT", f"{ELSEWHERE}:443")}
        with raised(UnreachableError):
            connect(Access(f"https://{ELSEWHERE}", proxy=Text(f"http://ann:secret@{proxy.place}"), retries=0))


@BOTH
def test_a_secret_in_a_file_is_read_again_when_it_is_refused(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("old password\n")
    valid = "old password"

    def guard(request: Request, forward: Forward) -> Reply | None:
        login = f"Basic {base64.b64encode(f'ann:{valid}'.encode()).decode()}"
        if {name.lower(): value for name, value in request.headers.items()}.get("authorization") == login:
            return forward(request)
        return answers(401, {"error": {"type": "security_exception", "reason": "no"}})(request, forward)

    with Proxy(server.url) as proxy:
        proxy.on(lambda _: True, guard, times=None)
        cluster = connect(Access(proxy.url, user="ann", password=SecretFile("the password", file)))
        valid = "new password"
        file.write_text("new password\n")
        n_seen = len(proxy.seen)
        assert asked(cluster, 2) == 2
        assert len(proxy.seen) == n_seen + 3
        valid = "another one"
        n_seen = len(proxy.seen)
        with raised(StoreError):
            cluster.call("GET", "/")
        # the file is as it was: nothing to try
        assert len(proxy.seen) == n_seen + 1
        cluster.close()


def test_files_of_secrets_are_checked(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "blank").write_text("\nsecret")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "good").write_text("secret")
    bad = ("none", "empty", "blank", "binary", "")
    tries: list[dict[str, object]] = [{"user": "ann", "password_file": tmp_path / name} for name in bad]
    tries += [
        {"user": "ann", "password": "x", "password_file": tmp_path / "good"},
        {"api_key": "x", "api_key_file": tmp_path / "good"},
        {"password_file": tmp_path / "good"},
    ]
    for given in tries:
        settings = Settings(store=NOBODY, cluster=ClusterSettings.model_validate(given))
        with raised(SettingsError), open_session(settings=settings) as session:
            session.store.span()


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\na second line"])
def test_the_end_of_the_line_is_not_part_of_a_secret(tmp_path: Path, end: str) -> None:
    file = tmp_path / "password"
    file.write_bytes(f" blanks inside {end}".encode())
    assert SecretFile("the password", file).get_secret_value() == " blanks inside "


def test_a_secret_that_others_may_read_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret")
    file.chmod(0o640)
    settings = Settings(
        store=NOBODY, cluster=ClusterSettings.model_validate({"user": "ann", "password_file": file})
    )
    assert list(exposed(None, settings)) == [(file, 0o640)]
    file.chmod(0o600)
    assert list(exposed(None, settings)) == []
