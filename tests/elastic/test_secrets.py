"""Credentials reach the cluster in one header, and nobody else."""

import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from pydantic import ValidationError

import esjobs
from esjobs import Settings
from esjobs.api.factory import open_store
from esjobs.core.errors import EsjobsError, SettingsError, UsageError
from esjobs.entry import load
from esjobs.settings import ClusterSettings
from tests.cli.running import run_apart
from tests.messages import raised
from tests.servers.plugin import server_params
from tests.servers.proxy import Proxy, Request, answers
from tests.servers.server import Server

pytestmark = pytest.mark.every_version

BOTH = pytest.mark.parametrize("server", server_params("elasticsearch8", "opensearch3"), indirect=True)
SECRET = "xyzzy/plugh:w@rd-ü€"  # noqa: S105
TOKEN = "dG9rZW46b2YtZXNqb2Jz"  # noqa: S105


def basic(user: str, password: str) -> str:
    """What stands in the header for a user."""
    return base64.b64encode(f"{user}:{password}".encode()).decode()


BASIC = basic("alice", SECRET)
HIDDEN = ("xyzzy", "plugh", "w@rd", BASIC, TOKEN)
"""What no message may contain."""


def address(url: str) -> str:
    """An address with user and password."""
    return url.replace("//", f"//alice:{quote(SECRET, safe='')}@")


def sent(proxy: Proxy) -> set[str | None]:
    """Every header with credentials that has come by."""
    found = [{name.lower(): value for name, value in each.headers.items()} for _, each in proxy.seen]
    return {headers.get("authorization") for headers in found}


def written(path: Path, **cluster: str) -> Path:
    """A configuration file."""
    lines = [f'{name} = "{value}"' for name, value in cluster.items()]
    path.write_text("\n".join(["[cluster]", *lines]), encoding="utf-8")
    return path


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """Between us and the server."""
    with Proxy(server.url) as running:
        yield running


@BOTH
def test_credentials_reach_the_cluster_with_every_request(
    server: Server, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(config: Path | None, url: str = proxy.url) -> set[str | None]:
        proxy.seen.clear()
        with esjobs.open(url, config=config) as session:
            assert session.store.span().jobs == 0
            for shown in (session.store, session.settings, vars(session.store), session.settings.cluster):
                assert hidden(repr(shown))
        return sent(proxy)

    by_file = written(tmp_path / "user.toml", prefix="nobody", user="alice", password=SECRET)
    assert asked(by_file) == {f"Basic {BASIC}"}
    assert asked(written(tmp_path / "token.toml", prefix="nobody", token=TOKEN)) == {f"Bearer {TOKEN}"}
    nobody = written(tmp_path / "nobody.toml", prefix="nobody")
    assert asked(nobody, address(proxy.url)) == {f"Basic {BASIC}"}
    if server.product.vendor.name == "elasticsearch":
        key = written(tmp_path / "key.toml", prefix="nobody", api_key=TOKEN)
        assert asked(key) == {f"ApiKey {TOKEN}"}
    monkeypatch.setenv("ESJOBS_CLUSTER__USER", "alice")
    monkeypatch.setenv("ESJOBS_CLUSTER__PASSWORD", SECRET)
    assert asked(nobody) == {f"Basic {BASIC}"}
    monkeypatch.delenv("ESJOBS_CLUSTER__USER")
    assert asked(nobody, proxy.url.replace("//", "//alice@")) == {f"Basic {BASIC}"}
    monkeypatch.delenv("ESJOBS_CLUSTER__PASSWORD")
    assert asked(nobody) == {None}


def hidden(text: str) -> bool:
    """Whether a text gives nothing away."""
    return not any(secret in text for secret in HIDDEN)


def debugged(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """What the program and every library in it say, the log of debugging included."""
    done = run_apart("--log-level", "debug", *arguments, **environment)
    assert "DEBUG" in done.stderr
    return done


@BOTH
def test_credentials_that_are_refused_are_not_shown(server: Server, proxy: Proxy) -> None:
    refusal = answers(401, {"error": {"type": "security_exception", "reason": "who?"}, "status": 401})
    proxy.on(lambda request: not hidden(repr(request.headers)), refusal, times=None)
    for url, given in (
        (proxy.url, {"user": "alice", "password": SECRET}),
        (address(proxy.url), {}),
        (proxy.url, {"token": TOKEN}),
        (proxy.url, {"api_key": TOKEN}),
    ):
        environment = {f"ESJOBS_CLUSTER__{name.upper()}": value for name, value in given.items()}
        done = debugged("doctor", "--format", "csv", **environment, ESJOBS_STORE=url)
        assert done.returncode == 1
        assert "401 security_exception" in done.stdout
        assert hidden(done.stdout + done.stderr)


@BOTH
def test_credentials_that_are_accepted_are_not_shown(server: Server, proxy: Proxy) -> None:
    done = debugged("--store", address(proxy.url), "doctor", ESJOBS_CLUSTER__PREFIX="nobody")
    assert done.returncode == 0
    assert hidden(done.stdout + done.stderr)
    assert sent(proxy) == {f"Basic {BASIC}"}


@pytest.mark.parametrize("server", server_params("opensearch3"), indirect=True)
def test_opensearch_is_not_asked_with_an_api_key(server: Server, proxy: Proxy) -> None:
    for product in (None, "opensearch"):
        settings = Settings(
            store=proxy.url,
            cluster=ClusterSettings.model_validate({"api_key": TOKEN, "product": product}),
        )
        with raised(SettingsError) as caught:
            open_store(settings)
        assert hidden(str(caught.value))
    assert None not in sent(proxy)


@BOTH
def test_credentials_do_not_follow_to_another_place(server: Server, proxy: Proxy) -> None:
    def everything(_: Request) -> bool:
        return True

    with Proxy(server.url) as elsewhere:
        proxy.on(everything, answers(302, {}, {"location": f"{elsewhere.url}/"}), times=None)
        with raised(EsjobsError):
            open_store(Settings(store=address(proxy.url)))
        assert not elsewhere.seen


@pytest.mark.parametrize(
    "given",
    [
        {"api_key": TOKEN, "user": "alice", "password": SECRET},
        {"api_key": TOKEN, "token": TOKEN},
        {"token": TOKEN, "user": "alice", "password": SECRET},
        {"password": SECRET},
        {"user": "alice"},
        {"certificate": "a.pem"},
        {"key": "a.key"},
        {"user": "alice:", "password": SECRET},
        {"api_key": f"{TOKEN}\n"},
        {"token": f"{TOKEN} {TOKEN}"},
        {"token": ""},
    ],
)
def test_credentials_that_make_no_sense_are_told_before_anything_is_asked(given: dict[str, str]) -> None:
    settings = Settings(store="https://localhost:1", cluster=ClusterSettings.model_validate(given))
    with raised(SettingsError) as caught:
        open_store(settings)
    assert hidden(str(caught.value))


def test_a_certificate_is_not_left_out_in_silence() -> None:
    given = ClusterSettings.model_validate({"certificate": "a.pem", "key": "a.key"})
    with raised(SettingsError):
        open_store(Settings(store="http://localhost:1", cluster=given))


def test_a_user_is_named_in_one_place() -> None:
    for given in ({"user": "bob"}, {"password": SECRET}):
        settings = Settings(
            store=address("https://localhost:1"), cluster=ClusterSettings.model_validate(given)
        )
        with raised(SettingsError) as caught:
            open_store(settings)
        assert hidden(str(caught.value))


@pytest.mark.parametrize(
    "store",
    [
        f"https://alice:{SECRET}@localhost:9200",
        f"https://alice:{SECRET}@localhost:port",
        f"http://alice:{quote(SECRET, safe='')}@localhost",
        f"https://alice:{SECRET}@",
        f"htps://alice:{SECRET}@localhost:9200",
        f"https:alice:{SECRET}@localhost:9200",
        f"alice:{SECRET}@localhost:9200",
    ],
)
def test_an_address_that_is_none_is_shown_without_its_password(store: str) -> None:
    settings = load(store=store)
    assert hidden(repr(settings))
    assert hidden(str(settings))
    with raised(UsageError) as caught:
        open_store(settings)
    assert hidden(str(caught.value))


def test_a_secret_of_a_wrong_type_is_not_shown() -> None:
    for given in ({"password": [SECRET]}, {"api_key": {"id": TOKEN}}):
        with pytest.raises(ValidationError) as caught:
            ClusterSettings.model_validate(given)
        assert hidden(str(caught.value))
        with pytest.raises(ValidationError) as caught:
            Settings.model_validate({"cluster": given})
        assert hidden(str(caught.value))
