"""A site answers by a signed link: from the mail to the page, the journal, the night and the coordinators."""

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import esjobs
from esjobs.entry import load
from esjobs.flags.answering.journal import MOST_OF_LINK, Journal
from esjobs.flags.answering.links import LinkError, Links, keys_in, links_of
from esjobs.flags.answering.night import enter, enter_night
from esjobs.flags.answering.settings import WebSettings
from esjobs.publish.publication import read_table
from esjobs.records.night import NightWork, Schedule
from esjobs.schema.flags import FLAG_EVENTS, FLAG_NOTES
from esjobs.schema.web import ACTS
from esjobs.settings import Settings
from esjobs.web.server import web_of
from scheduler.notifications.notifier import notifier
from scheduler.notifications.settings import NotifySettings
from tests.flags.verdict_nights import LONG, VerdictNights, night, verdict
from tests.scheduler.notifications.made_up import coordinator, site
from tests.servers.plugin import server_params
from tests.servers.server import Server
from tests.web.client import Client

NOW = datetime(2025, 1, 11, 9, tzinfo=UTC)
BASE = "https://grid.example"
OLD, NEW = "k" * 40, "n" * 40
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    '=HYPERLINK("http://evil.example")',
    "a\x00b\x1b[31mred\x07",
    "\u202egnp.exe\u200b",
    "{{ 7*7 }} {% raw %} ${x} %s {0} {name}",
    "x\r\nBcc: all@grid.example\r\n\r\n",
)


@dataclass
class Stage:
    """An installation with one open flag, at a fixed time."""

    settings: Settings
    folder: Path

    @property
    def journal(self) -> Journal:
        path = self.settings.section(WebSettings).journal_of(self.settings.location)
        assert path is not None
        return Journal(path)

    @property
    def links(self) -> Links:
        links = links_of(self.settings.section(WebSettings), self.settings.location)
        assert links is not None
        return links

    def open(self) -> Any:
        return esjobs.open(settings=self.settings, clock=lambda: NOW)

    def link(self, nonce: str = "1") -> str:
        return self.links.address("queue", "all", "A", [nonce], NOW).removeprefix(BASE)

    def client(self) -> Client:
        web = web_of(self.settings, public=False, clock=lambda: NOW)
        return Client(web.application({"localhost", "grid.example"}))

    def night(self, session: Any, number: int) -> tuple[str, ...]:
        """The steps of a night that concern answers."""
        nights = VerdictNights(session.store)
        rows = [verdict("A", -0.35)]
        nights.publish(number, rows, rows)
        work = NightWork(session._context, night(number), Schedule((3, LONG), LONG, 3))
        account = enter_night(work)
        nights.watch(number)
        return account.notes


def prepared(folder: Path, store: str, **more: str) -> Stage:
    """An installation with keys and an address, whatever is in its store."""
    key = folder / "keys"
    key.write_text(f"{OLD}\n{NEW}\n")
    config = folder / "esjobs.toml"
    lines = [f"{name} = {value}" for name, value in more.items()]
    config.write_text(f'[web]\nbase_url = "{BASE}"\nkey_file = "{key}"\n' + "\n".join(lines))
    return Stage(load(config, store), folder)


def staged(folder: Path, store: str, **more: str) -> Stage:
    made = prepared(folder, store, **more)
    with made.open() as session:
        session.store.set_up()
        nights = VerdictNights(session.store)
        for number in range(LONG + 1):
            rows = [verdict("A", -0.35)]
            nights.publish(number, rows, rows)
            nights.watch(number)
    return made


@pytest.fixture(scope="module")
def flagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one open flag, to be copied."""
    folder = tmp_path_factory.mktemp("flagged")
    staged(folder, f"duckdb:{folder / 'jobs.duckdb'}")
    return folder / "jobs.duckdb"


@pytest.fixture
def stage(flagged: Path, tmp_path: Path) -> Stage:
    return prepared(tmp_path, f"duckdb:{shutil.copy(flagged, tmp_path / 'jobs.duckdb')}")


def mails(stage: Stage, session: Any, day: date, *recipients: dict[str, Any]) -> dict[str, str]:
    """The text of the messages of a night by recipient, as the preview writes them."""
    server = {"host": "127.0.0.1", "port": 1, "security": "none", "sender": "esjobs@grid.example"}
    notify = NotifySettings.model_validate(
        {"mail": server, "sites_from": "2020-01-01", "recipients": recipients}
    )
    context = replace(session._context, settings=stage.settings.model_copy(update={"notify": notify}))
    out = stage.folder / f"out {day}"
    notifier(context).preview(day, out)
    names = [str(each["name"]) for each in recipients]
    return {
        name: "".join((out / f"{name}.{kind}").read_text() for kind in ("txt", "html"))
        for name in names
        if (out / f"{name}.txt").exists()
    }


def test_from_the_mail_to_the_coordinators(stage: Stage) -> None:
    with stage.open() as session:
        events = read_table(session.store, FLAG_EVENTS).to_pylist()
        (opened,) = [each["night"] for each in events if each["kind"] == "opened"]
        sent = mails(stage, session, opened, site(sites=["A"]), coordinator())
    addresses = set(re.findall(rf"{BASE}(/a/[\w.-]+)", sent["cern"]))
    assert len(addresses) == 1
    assert "/a/" not in sent["coordinators"]
    (where,) = addresses
    with stage.client() as client:
        page = client.get(where)
        assert page.status == 200
        assert "35 % slower" in page.text
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["referrer-policy"] == "no-referrer"
        assert stage.journal.read() == []
        done = client.send(where, {"said": "wrong", "text": "The nodes\nwere <b>drained</b>"})
        assert (done.status, done.headers["location"]) == (303, where)
        assert client.send(where, {"said": "wrong", "text": "The nodes\nwere <b>drained</b>"}).status == 303
        shown = client.get(where).text
        assert "The nodes; were &lt;b&gt;drained&lt;/b&gt;" in shown
    (entry,) = stage.journal.read()
    assert "token" not in entry
    assert where.partition("/a/")[2] not in json.dumps(entry)
    with stage.open() as session:
        assert stage.night(session, LONG + 1) == ()
        (note,) = read_table(session.store, FLAG_NOTES).to_pylist()
        assert (note["kind"], note["name"], note["entered_by"]) == (
            "answer",
            "A",
            "holder of the link sent to A",
        )
        events = read_table(session.store, FLAG_EVENTS).to_pylist()
        assert max((each["night"], each["kind"]) for each in events) == (night(LONG + 1), "answered")
        (flag,) = session.flags.open().rows.to_pylist()
        assert (flag["answered_on"], flag["answer"]) == (NOW.date(), note["text"])
        sent = mails(stage, session, night(LONG + 1), site(sites=["A"]), coordinator())
        assert "The nodes; were <b>drained</b>" in " ".join(
            sent["coordinators"].partition("<!DOCTYPE")[0].split()
        )
        assert "The nodes; were &lt;b&gt;drained&lt;/b&gt;" in sent["coordinators"]
        (act,) = read_table(session.store, ACTS).to_pylist()
        assert (act["before"], act["after"], act["request"]) == (
            "open, declared 10.40",
            note["text"],
            entry["request"],
        )
        # the same journal again, and the same night again, change nothing
        before = [
            sorted(map(str, read_table(session.store, each).to_pylist())) for each in (FLAG_EVENTS, ACTS)
        ]
        stage.night(session, LONG + 1)
        after = [
            sorted(map(str, read_table(session.store, each).to_pylist())) for each in (FLAG_EVENTS, ACTS)
        ]
    assert before == after


@pytest.mark.parametrize("server", server_params("elasticsearch8"), indirect=True)
def test_an_answer_on_a_cluster(
    server: Server, index_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESJOBS_CLUSTER__PREFIX", index_prefix.strip("-"))
    stage = staged(tmp_path, server.start().url, journal=f'"{tmp_path / "journal"}"')
    with stage.client() as client:
        assert client.get(stage.link()).status == 200
        assert client.send(stage.link(), {"said": "value", "value": "7,1"}).status == 303
    with stage.open() as session:
        stage.night(session, LONG + 1)
        stage.night(session, LONG + 1)
        (note,) = read_table(session.store, FLAG_NOTES).to_pylist()
        assert note["text"] == "We corrected the value to 7.1 HS06 per core."
        events = read_table(session.store, FLAG_EVENTS).to_pylist()
        assert sum(each["kind"] == "answered" for each in events) == 1
        assert read_table(session.store, ACTS).num_rows == 1


def test_a_cluster_without_a_journal_has_no_links(tmp_path: Path) -> None:
    key = tmp_path / "keys"
    key.write_text(NEW)
    settings = WebSettings(base_url=BASE, key_file=key)
    assert links_of(settings, "https://cluster.example:9200") is None
    assert links_of(settings.model_copy(update={"key_file": None}), "duckdb:/x") is None
    assert links_of(settings.model_copy(update={"base_url": None}), "duckdb:/x") is None


def test_several_answers_reach_the_coordinators_and_the_page_says_so(stage: Stage) -> None:
    with stage.client() as client:
        for kind, text in (("hardware", "2 x EPYC 7302"), ("wrong", "SMT was off")):
            assert client.send(stage.link(), {"said": kind, "text": text}).status == 303
        assert client.get(stage.link()).text.count("(the next night passes it on)") == 2
    with stage.open() as session:
        stage.night(session, LONG + 1)
        sent = mails(stage, session, night(LONG + 1), coordinator())["coordinators"]
    text = " ".join(sent.partition("<!DOCTYPE")[0].split())
    texts = ("(1) ", "(2) ", "The hardware list is: 2 x EPYC 7302", "This is wrong, because: SMT was off")
    assert [each for each in texts if each not in text] == []
    with stage.client() as client:
        page = client.get(stage.link()).text
    assert ("next night" in page, page.count("(passed on)")) == (False, 2)


def test_an_answer_in_a_night_without_verdicts_waits_for_the_next(stage: Stage) -> None:
    with stage.client() as client:
        assert client.send(stage.link(), {"said": "hardware", "text": "EPYC 7302"}).status == 303
    with stage.open() as session:
        work = NightWork(session._context, night(LONG + 1), Schedule((3, LONG), LONG, 3))
        assert enter_night(work).rows_out == 1
        stage.night(session, LONG + 2)
        events = read_table(session.store, FLAG_EVENTS).to_pylist()
        assert [each["night"] for each in events if each["kind"] == "answered"] == [night(LONG + 2)]
        # a night that is run again enters nothing: its flags may be final
        stage.journal.append({"kind": "answer", "at": NOW.isoformat(), "name": "A"})
        assert enter_night(work).rows_out == 0


def test_tokens_that_are_not_ours(stage: Stage) -> None:
    token = stage.link().removeprefix("/a/")
    links = stage.links
    payload, _, signature = token.partition(".")
    assert links.read(token, NOW).name == "A"
    old = replace(links, keys=links.keys[:1])
    assert links.read(old.address("queue", "all", "A", [], NOW).rpartition("/")[2], NOW).name == "A"
    foreign = replace(links, keys=(b"x" * 40,)).address("queue", "all", "A", [], NOW).rpartition("/")[2]
    other = Links(BASE, links.keys, 60)
    bad = {
        "forged": foreign,
        "altered": "e" + payload[1:-1] + ("A" if payload[-1] != "A" else "B") + f".{signature}",
        "cut": token[:-1],
        "longer": f"{token}A",
        "unsigned": f"{payload}.",
        "no": "nothing",
        "spaces": f" {token}",
        "letters": "é" * 20,
    }
    for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_":
        if last != token[-1]:
            bad[f"end {last}"] = token[:-1] + last
    for text in bad.values():
        with pytest.raises(LinkError):
            links.read(text, NOW)
    with pytest.raises(LinkError, match="expired"):
        links.read(token, NOW + timedelta(days=60))
    assert other.read(token, NOW + timedelta(days=59)).name == "A"
    with stage.client() as client:
        for name, text in list(bad.items())[:5]:
            assert client.get(f"/a/{text}").status == 404, name
            assert client.send(f"/a/{text}", {"said": "wrong", "text": "x"}).status == 404, name
    assert stage.journal.read() == []


def test_a_token_for_something_else(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("esjobs.flags.answering.links.PURPOSE", "login")
    token = stage.link().removeprefix("/a/")
    monkeypatch.undo()
    with pytest.raises(LinkError, match="something else"):
        stage.links.read(token, NOW)


def test_keys(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    for text in ("", "short", f"{NEW}\nshort"):
        file.write_text(text)
        with pytest.raises(esjobs.SettingsError, match="openssl"):
            keys_in(file)
    with pytest.raises(esjobs.SettingsError, match="check web"):
        keys_in(tmp_path / "absent")


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"said": "value"}, 400),
        ({"said": "value", "value": "-1"}, 400),
        ({"said": "value", "value": "nan"}, 400),
        ({"said": "value", "value": "1e9"}, 400),
        ({"said": "wrong", "text": " \n "}, 400),
        ({"said": "nothing", "text": "x"}, 400),
        ({"text": "x"}, 400),
        ({"said": "wrong", "text": "x" * 2001}, 400),
        ({"said": "wrong", "text": "x" * 70_000}, 413),
        ({"said": "wrong", "text": "x", "more": "1"}, 400),
        ({"said": "wrong", "text": "x" * 2000}, 303),
        ({"said": "value", "value": "11.2"}, 303),
    ],
)
def test_what_the_form_takes(stage: Stage, fields: dict[str, str], status: int) -> None:
    with stage.client() as client:
        assert client.send(stage.link(), fields).status == status
    assert len(stage.journal.read()) == (status == 303)


def test_bodies_that_are_no_forms(stage: Stage) -> None:
    where = stage.link()
    with stage.client() as client:
        for body, kind in (
            ("{}", "application/json"),
            ("said=wrong&text=%ff", "application/x-www-form-urlencoded"),
            ("said=wrong&text=é", "application/x-www-form-urlencoded"),
            ("&".join(f"a{number}=1" for number in range(30)), "application/x-www-form-urlencoded"),
            ("said=wrong&said=wrong&text=x", "application/x-www-form-urlencoded"),
        ):
            got = client.get(where, "POST", body, content_type=kind, sec_fetch_site="same-origin")
            assert got.status == 400, body
        assert client.get(where, "PUT").status == 405
        assert client.get("/queue/A", "POST", "a=1").headers["allow"] == "GET, HEAD"
    assert stage.journal.read() == []


def test_hostile_texts_stay_texts(stage: Stage) -> None:
    with stage.client() as client:
        for number, text in enumerate(HOSTILE):
            where = stage.link(str(number))
            assert client.send(where, {"said": "wrong", "text": text}).status == 303, text
            page = client.get(where).text
            assert "<img" not in page
            assert not re.search("[\x00-\x08\x0b-\x1f\u202e\u200b]", page)
    with stage.open() as session:
        stage.night(session, LONG + 1)
        sent = mails(stage, session, night(LONG + 1), coordinator())["coordinators"]
        assert "<img src=x" not in sent.partition("<!DOCTYPE")[2]
        assert not re.search("[\x00-\x08\x0b-\x1f\u202e\u200b]", sent.replace("\r\n", "\n"))
        assert read_table(session.store, FLAG_NOTES).num_rows == len(HOSTILE)
        out = io.StringIO()
        from esjobs.render.rows import csv_text

        csv_text(session.tables.read("flag_notes").rows, out, spreadsheet=True)
    cells = [cell for row in csv.reader(io.StringIO(out.getvalue())) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]


def test_too_many_answers(stage: Stage) -> None:
    for number in range(MOST_OF_LINK):
        stage.journal.append({"kind": "answer", "nonce": "n", "text": f"{number}"})
    with pytest.raises(esjobs.UsageError, match="20 times"):
        stage.journal.append({"kind": "answer", "nonce": "n", "text": "one more"})
    assert len(stage.journal.read()) == MOST_OF_LINK
    with stage.client() as client:
        found = [client.get(stage.link()).status for _ in range(40)]
        client.peer = "192.0.2.7"
        assert client.get(stage.link()).status == 200
    assert found[0] == 200
    assert found[-1] == 429


def test_a_line_that_a_crash_has_cut(stage: Stage) -> None:
    stage.journal.append({"kind": "answer", "text": "first"})
    with stage.journal.path.open("ab") as file:
        file.write(b'{"id": "12')
    stage.journal.append({"kind": "answer", "text": "second"})
    assert [each["text"] for each in stage.journal.read()] == ["first", "second"]


VICTIM = """
import os, signal, sys
from pathlib import Path
from esjobs.store.duck.store import DuckStore
from datetime import datetime, UTC
import esjobs
from esjobs.entry import load
from esjobs.flags.answering.journal import Journal
from esjobs.flags.answering.night import enter
from tests.flags.verdict_nights import night, LONG
config, store, journal, when = sys.argv[1:]
inner = getattr(DuckStore, when)
def killed(*args, **kwargs):
    found = inner(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)
with esjobs.open(settings=load(Path(config), store)) as session:
    setattr(DuckStore, when, killed)
    enter(session.store, Journal(Path(journal)).read(), night(LONG + 1))
"""


@pytest.mark.parametrize("when", ["replace", "publish"])
def test_killed_between_journal_and_store(stage: Stage, when: str) -> None:
    with stage.client() as client:
        for text in ("one", "two"):
            assert client.send(stage.link(), {"said": "wrong", "text": text}).status == 303
    config, store, journal = stage.folder / "esjobs.toml", stage.settings.store, stage.journal.path
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", VICTIM, str(config), store, str(journal), when],
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    with stage.open() as session:
        assert read_table(session.store, FLAG_NOTES).num_rows == (2 if when == "publish" else 0)
        stage.night(session, LONG + 1)
        notes = read_table(session.store, FLAG_NOTES).to_pylist()
        assert sorted(note["text"][-3:] for note in notes) == ["one", "two"]
        assert read_table(session.store, ACTS).num_rows == 2
        assert enter(session.store, stage.journal.read(), night(LONG + 1)) == (0, ())


def test_no_log_line_has_the_token(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    where = stage.link()
    with stage.client() as client:
        client.get(where)
        client.send(where, {"said": "wrong", "text": "x"})
        client.send(where, {"said": "none"})
    assert where.removeprefix("/a/")[:40] not in caplog.text
    assert "answer entered as" in caplog.text


def test_forms_of_other_pages(stage: Stage) -> None:
    where, fields = stage.link(), {"said": "wrong", "text": "x"}
    with stage.client() as client:
        for headers in (
            {"sec_fetch_site": "cross-site"},
            {"sec_fetch_site": "same-site", "origin": BASE},
            {"sec_fetch_site": "none"},
            {"sec_fetch_site": "", "origin": "https://evil.example"},
        ):
            assert client.send(where, fields, **headers).status == 403, headers
        assert stage.journal.read() == []
        for headers in ({"sec_fetch_site": "", "origin": "null"}, {"sec_fetch_site": "", "origin": BASE}):
            assert client.send(where, fields, **headers).status == 303, headers
