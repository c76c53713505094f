"""The commands about notifications, against a real mail server."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

import esjobs
from tests.cli.running import run, run_apart
from tests.scheduler.notifications.made_up import NIGHT, SECRET, TOKEN, event, events
from tests.scheduler.notifications.servers import MailServer, free_port, mail_server


@pytest.fixture
def server() -> Iterator[MailServer]:
    """A mail server that takes everything."""
    with mail_server() as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a confirmed deviation and a candidate."""
    with esjobs.open(f"duckdb:{tmp_path / 'jobs.duckdb'}") as session:
        events(session.store, event(), event("OTHER_\x1b[31mQ", "noticed"))
    return tmp_path / "jobs.duckdb"


@pytest.fixture
def config(tmp_path: Path, server: MailServer) -> Path:
    """Settings with a site, coordinators, and a chat that nobody listens to."""
    path = tmp_path / "esjobs.toml"
    path.write_text(
        f"""
        [notify]
        sites_from = 2020-01-01
        within_days = 100000
        give_up_days = 100000
        attempts = 1
        [notify.mail]
        host = "127.0.0.1"
        port = {server.port}
        security = "none"
        sender = "esjobs@grid.example"
        [[notify.recipients]]
        name = "cern"
        role = "site"
        channel = "mail"
        address = "cern@site.example"
        sites = ["CERN*"]
        [[notify.recipients]]
        name = "coordinators"
        role = "coordinator"
        channel = "mail"
        address = "coordinators@grid.example"
        [[notify.recipients]]
        name = "chat"
        role = "coordinator"
        channel = "slack"
        url = "http://localhost:{free_port()}/{TOKEN}?key={SECRET}"
        """,
        encoding="utf-8",
    )
    return path


def notify(config: Path, store: Path, *arguments: str) -> Result:
    done = run("--config", str(config), "--store", f"duckdb:{store}", "notify", *arguments)
    assert TOKEN not in done.output
    assert SECRET not in done.output
    assert "\x1b" not in done.output
    return done


def rows(done: Result) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_from_a_look_to_the_log(config: Path, store: Path, server: MailServer, tmp_path: Path) -> None:
    looked = notify(config, store, "preview", "--out", str(tmp_path / "out"))
    assert looked.exit_code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *(f"{name}.{end}" for name in ("cern", "coordinators") for end in ("eml", "txt", "html", "png")),
        "chat.json",
    }
    assert not server.taken

    sent = notify(config, store, "send")
    # the chat is not there: it waits, and the exit code says so
    assert sent.exit_code == 1
    assert "2 messages sent" in sent.stdout
    assert "chat: failed, http://localhost" in sent.stdout
    assert len(server.taken) == 2
    again = notify(config, store, "send", "--night", NIGHT.isoformat(), "--format", "json")
    assert json.loads(again.stdout)[0]["rows_out"] == 0
    assert len(server.taken) == 2

    logged = rows(notify(config, store, "log", "--format", "csv"))
    assert sorted((row["recipient"], row["state"], row["attempts"]) for row in logged) == [
        ("cern", "sent", "1"),
        ("chat", "failed", "2"),
        ("coordinators", "sent", "1"),
    ]
    assert rows(notify(config, store, "log", "--state", "abandoned", "--format", "csv")) == []
    table = notify(config, store, "log", "--recipient", "cern")
    assert "CERN-PROD_UCORE: jobs run 31 % slower than the declared corepower" in " ".join(
        table.stdout.split()
    )
    shown = run("--store", f"duckdb:{store}", "show", "notifications")
    assert shown.exit_code == 0
    examined = run("--config", str(config), "--store", f"duckdb:{store}", "doctor", "--format", "csv")
    assert 'notifications,failed,"3 recipients, 1 messages not yet delivered"' in examined.stdout


def test_a_test_says_what_failed(config: Path, store: Path, server: MailServer) -> None:
    good = notify(config, store, "test", "CERN")
    assert (good.exit_code, len(server.taken)) == (0, 1)
    tried = notify(config, store, "test", "--format", "csv")
    assert tried.exit_code == 1
    assert [(row["recipient"], row["outcome"]) for row in rows(tried)] == [
        ("cern", "sent"),
        ("coordinators", "sent"),
        ("chat", "failed"),
    ]
    unknown = notify(config, store, "test", "nobody")
    assert (unknown.exit_code, "use one of: cern, coordinators, chat" in unknown.output) == (2, True)


def test_a_test_before_the_first_night(config: Path, tmp_path: Path, server: MailServer) -> None:
    missing = tmp_path / "none.duckdb"
    tried = notify(config, missing, "test", "cern")
    assert (tried.exit_code, len(server.taken)) == (0, 1)
    assert not missing.exists()


def test_the_log_of_debugging_shows_no_secret(config: Path, store: Path, server: MailServer) -> None:
    del server
    place = f"duckdb:{store}"
    done = run_apart("--log-level", "debug", "--config", str(config), "--store", place, "notify", "send")
    assert done.returncode == 1
    assert "chat: failed" in done.stdout
    assert TOKEN not in done.stdout + done.stderr
    assert SECRET not in done.stdout + done.stderr


def test_without_recipients(store: Path) -> None:
    sent = run("--store", f"duckdb:{store}", "notify", "send")
    assert sent.exit_code == 0
    assert "0 messages sent" in sent.stdout


@pytest.mark.parametrize("command", ["notify preview", "dashboards export-html"])
def test_a_folder_that_nobody_named_is_asked_for(store: Path, command: str) -> None:
    done = run(*command.split(), store=store)
    assert done.exit_code == 2
    assert "Missing option '--out'" in done.output
