"""Secrets planted in every setting: none is in a log, the store, a preview, a message, or what is printed."""

import base64
import html
import json
import logging
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from esjobs.store.duck.store import DuckStore
from scheduler.notifications.notifier import Notifier
from scheduler.notifications.settings import NotifySettings
from tests.scheduler.notifications.conftest import TABLES
from tests.scheduler.notifications.made_up import (
    NIGHT,
    SECRET,
    TOKEN,
    coordinator,
    event,
    events,
    office,
    settings,
    site,
)
from tests.scheduler.notifications.servers import PASSWORD, USER, Listener, MailServer, listener, mail_server
from tests.servers.certificates import Authority
from tests.servers.echo import echo

PLANTED = (SECRET, TOKEN, PASSWORD, quote(SECRET, safe=""))


def hidden(text: str) -> bool:
    """Whether a text gives nothing away."""
    return not any(secret in text for secret in PLANTED)


def in_base64(text: str) -> str:
    """Base64, as a login is sent."""
    return base64.b64encode(text.encode()).decode()


def planted(server: MailServer, hook: Listener, ca_file: str) -> NotifySettings:
    """Recipients whose settings are full of secrets."""
    url = hook.url.replace("://", f"://user:{SECRET}@")
    return settings(
        site(),
        coordinator("chat", channel="mattermost", address=None, url=f"{url}/hooks/{TOKEN}?key={SECRET}"),
        coordinator("slack", channel="slack", address=None, url=f"{url}/services/{TOKEN}"),
        coordinator("hook", channel="webhook", address=None, url=f"{url}/{TOKEN}", secret=SECRET),
        mail=server.settings(user=USER, password=PASSWORD, ca_file=ca_file),
        ca_file=ca_file,
        attempts=1,
    )


@pytest.mark.parametrize("goes", ["well", "wrong"])
def test_no_secret_is_written(
    tmp_path: Path, authority: Authority, caplog: pytest.LogCaptureFixture, goes: str
) -> None:
    caplog.set_level(logging.DEBUG)
    said = f"I was told {SECRET} and {TOKEN}, {PASSWORD}"
    with mail_server(starttls=authority.server(), login=True) as server, listener(authority.server()) as hook:
        made = planted(server, hook, authority.ca_file)
        if goes == "wrong":
            hook.answers += [(status, {}, said.encode()) for status in (500, 400, 403, 500, 400, 403)]
            server.answers += [f"554 {said}", f"554 {said}"]
        store = DuckStore(tmp_path / "jobs.duckdb", tables=TABLES)
        events(store, event(), event("OTHER_Q", "noticed"))
        notifier = Notifier(lambda: store, office(made))
        notifier.preview(NIGHT, tmp_path / "preview")
        told = [repr(made), repr(notifier.send(NIGHT)), *notifier.send(NIGHT).notes]
        told += [str(notifier.test().to_pylist()), str(notifier.log().to_pylist())]
        store.close()
    arrived = (len(server.taken), len(hook.posted))
    assert arrived == ((2, 6) if goes == "well" else (0, 8))
    for text in told:
        assert hidden(text)
    for _, mail in server.taken:
        assert hidden(mail.as_string())
    for posted in hook.posted:
        assert hidden(posted.body.decode())
        assert (
            SECRET not in posted.headers["webhook-signature"]
            if "webhook-signature" in posted.headers
            else True
        )
    # the log of mail servers of the tests is not ours
    assert hidden("\n".join(r.getMessage() for r in caplog.records if not r.name.startswith("mail")))
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".pem"]
    assert len(written) > 5
    for path in written:
        content = path.read_bytes()
        assert not any(secret.encode() in content for secret in PLANTED), path


@pytest.mark.parametrize("form", [str, quote, json.dumps, html.escape, in_base64])
def test_what_a_receiver_repeats_of_its_address_is_hidden(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, form: Callable[[str], str]
) -> None:
    caplog.set_level(logging.DEBUG)
    word = "pass/w+rd&of'<hook>"
    with echo() as server:
        server.form = form
        url = f"http://hook:{quote(word, safe='')}@{server.host}/{TOKEN}"
        made = settings(
            coordinator("hook", channel="webhook", address=None, url=url, secret=SECRET), attempts=1
        )
        store = DuckStore(tmp_path / "jobs.duckdb", tables=TABLES)
        notifier = Notifier(lambda: store, office(made))
        told = [str(notifier.test().to_pylist()), str(notifier.log().to_pylist()), caplog.text]
        store.close()
        [sent] = server.requests
    assert sent == f"Basic {in_base64(f'hook:{word}')}"
    told.append((tmp_path / "jobs.duckdb").read_bytes().decode("latin-1"))
    assert "answered 500" in told[0]
    for text in told:
        for secret in (word, f"hook:{word}", TOKEN, SECRET):
            assert form(secret).strip('"').rstrip("=") not in text
