"""Servers that repeat what they were sent: no command shows a credential, in the log of debugging neither."""

import base64
import html
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from tests.cli.running import run, run_apart
from tests.servers.echo import Echo, echo

PASSWORD = "pw/With+odd&\"signs'<é>"  # noqa: S105  of a server of the tests
LOGIN = f"reader:{quote(PASSWORD, safe='')}"
KEY_ID, KEY = "VuaCfGcBCdbkQm-e5aOx", "ui2lp2axTNmsyakw9tvNnw"

FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "percent": lambda text: quote(text, safe=""),
    "form": quote_plus,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "inside": lambda text: base64.urlsafe_b64encode(f"x:{text}".encode()).decode().rstrip("="),
    "json": json.dumps,
    "html": html.escape,
}


@pytest.fixture(scope="module")
def server() -> Iterator[Echo]:
    with echo() as running:
        yield running


def gives_away(text: str, secret: str) -> list[str]:
    """The forms of a secret that a text has."""
    shown = {name: form(secret).strip('"').rstrip("=") for name, form in FORMS.items() if name != "inside"}
    return [name for name, form in shown.items() if form in text]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("status", [401, 500])
def test_no_login_of_a_cluster_is_shown(server: Echo, form: str, status: int) -> None:
    server.form, server.status = FORMS[form], status
    ended = run_apart(
        *("--store", f"http://{LOGIN}@{server.host}", "--log-level", "debug", "show", "factors"),
        ESJOBS_CLUSTER__RETRIES="0",
    )
    assert ended.returncode == 1
    assert "[hidden]" in ended.stderr
    assert gives_away(ended.stdout + ended.stderr, PASSWORD) == []
    assert gives_away(ended.stdout + ended.stderr, f"reader:{PASSWORD}") == []


@pytest.mark.parametrize("form", ["plain", "base64", "json"])
def test_no_key_of_a_cluster_is_shown(server: Echo, form: str) -> None:
    server.form, server.status = FORMS[form], 500
    key = base64.b64encode(f"{KEY_ID}:{KEY}".encode()).decode()
    ended = run_apart(
        *("--store", f"http://{server.host}", "--log-level", "debug", "--log", "json", "doctor"),
        ESJOBS_CLUSTER__RETRIES="0",
        ESJOBS_CLUSTER__API_KEY=key,
    )
    assert f"ApiKey {key}" in server.requests
    for secret in (key, KEY):
        assert gives_away(ended.stdout + ended.stderr, secret) == []


@pytest.mark.parametrize("form", FORMS)
def test_no_login_of_a_server_of_dashboards_is_shown(server: Echo, form: str, tmp_path: Path) -> None:
    server.status, server.media = 400, "application/json"
    inner = FORMS[form]
    server.form = lambda text: json.dumps({"message": inner(text)}) if text == PASSWORD else ""
    ended = run_apart(
        *("--store", f"duckdb:{tmp_path / 'x.duckdb'}", "--log-level", "debug"),
        *("dashboards", "import", "--url", f"http://{LOGIN}@{server.host}"),
    )
    assert ended.returncode != 0
    assert gives_away(ended.stdout + ended.stderr, PASSWORD) == []


def findings(config: Path) -> list[dict[str, str]]:
    """What doctor says of files with secrets."""
    ended = run("--config", str(config), "doctor", "--format", "json")
    return [row for row in json.loads(ended.stdout) if row["check"] == "secrets"]


HOOK = """
[[notify.recipients]]
name = "chat"
role = "operator"
channel = "mattermost"
"""


@pytest.mark.parametrize(
    ("text", "mode", "n_found"),
    [
        (HOOK + 'url = "https://hooks.example/T000"', 0o644, 1),
        (HOOK + 'url = "https://hooks.example/T000"', 0o640, 1),
        (HOOK + 'url = "https://hooks.example/T000"', 0o600, 0),
        (HOOK + 'url_file = "FOLDER/url"', 0o644, 1),
        (HOOK + 'url_file = "FOLDER/url"', 0o600, 0),
        ('[cluster]\nuser = "me"\npassword = "pw"', 0o604, 1),
        ('store = "http://me:pw@127.0.0.1:1"\n[cluster]\nretries = 0', 0o644, 1),
        ("[cluster]\nretries = 0", 0o644, 0),
    ],
)
def test_doctor_names_the_files_whose_secrets_others_may_read(
    tmp_path: Path, text: str, mode: int, n_found: int
) -> None:
    config, url = tmp_path / "esjobs.toml", tmp_path / "url"
    config.write_text(text.replace("FOLDER", str(tmp_path)))
    url.write_text("https://hooks.example/T000")
    for file in (config, url):
        file.chmod(mode)
    found = findings(config)
    of = url if "url_file" in text else config
    assert [row["what_to_do"] for row in found] == [f"chmod 600 {of}"] * n_found
    assert {row["state"] for row in found} <= {"warning"}
    assert all(f"{mode:o}" in row["value"] for row in found)
