"""Looking without sending, trying out, and the log."""

import json
from datetime import timedelta
from email import message_from_bytes
from email.policy import default
from pathlib import Path

from esjobs.core.errors import InputError, NoResultError, StoreError, UsageError
from esjobs.schema.flags import FLAG_NOTES, FLAG_STATES
from esjobs.store.base import JobStore
from esjobs.store.duck.store import DuckStore
from scheduler.notifications.notifier import Notifier
from tests.messages import raised
from tests.scheduler.notifications.made_up import (
    NIGHT,
    NOW,
    Clock,
    coordinator,
    event,
    events,
    office,
    operator,
    outbox,
    publish,
    settings,
    site,
)
from tests.scheduler.notifications.servers import Listener, MailServer


def test_a_preview_is_what_is_sent(store: DuckStore, server: MailServer, tmp_path: Path) -> None:
    made = settings(
        site(),
        operator(),
        coordinator("hook", channel="webhook", address=None, url="https://h.example/x", secret="s"),  # noqa: S106
        mail=server.settings(security="none"),
    )
    events(store, event(), event("OTHER_Q", "noticed"))
    notifier = Notifier(lambda: store, office(made))
    rows = notifier.preview(NIGHT, tmp_path / "out").to_pylist()
    assert [(row["recipient"], row["notices"], row["files"]) for row in rows] == [
        ("cern", 1, "cern.eml, cern.txt, cern.html, cern.png"),
        ("hook", 2, "hook.json"),
    ]
    assert not server.taken
    assert outbox(store) == []
    seen = message_from_bytes((tmp_path / "out" / "cern.eml").read_bytes(), policy=default)
    assert 'src="cern.png"' in (tmp_path / "out" / "cern.html").read_text(encoding="utf-8")
    assert len(json.loads((tmp_path / "out" / "hook.json").read_bytes())["notices"]) == 2
    notifier.send(NIGHT)
    [(_, mail)] = server.taken
    for name in ("Message-ID", "Subject", "From", "To", "Date"):
        assert mail[name] == seen[name]
    (tmp_path / "file").write_text("", encoding="utf-8")
    with raised(InputError):
        notifier.preview(NIGHT, tmp_path / "file")


def test_a_test_message(store: DuckStore, server: MailServer, hook: Listener) -> None:
    chat = coordinator("chat", channel="slack", address=None, url=f"{hook.url}/a/b", sites=["CRN*"])
    made = settings(site(sites=["cern*", "CRN-*"]), chat, mail=server.settings(security="none"))
    row = {"level": "queue", "name": "CERN-PROD_Q", "site": "CERN-PROD", "state": "open"}
    publish(store, FLAG_STATES, NIGHT, [row])
    notifier = Notifier(lambda: store, office(made))
    hook.answers.append((404, {}, b"no_service"))
    first, second = notifier.test().to_pylist()
    assert (first["outcome"], first["error"]) == ("sent", "")
    assert "CRN-*" in first["notes"]
    assert (second["outcome"], "404 (no_service)" in second["error"]) == ("failed", True)
    assert "http://" in second["notes"]
    [(_, mail)] = server.taken
    assert mail["Subject"] == "[esjobs] Test message for cern"
    assert [(row["recipient"], row["state"]) for row in outbox(store)] == [
        ("cern", "sent"),
        ("chat", "abandoned"),
    ]
    # a test that failed is neither tried again nor told of
    notifier.send(NIGHT)
    assert len(hook.posted) == 1
    assert [row["recipient"] for row in notifier.test(["CERN"]).to_pylist()] == ["cern"]
    with raised(UsageError):
        notifier.test(["x"])
    with raised(UsageError):
        Notifier(lambda: store, office(settings())).test()


def test_a_test_message_needs_no_store(server: MailServer) -> None:
    def none() -> JobStore:
        raise StoreError("no store at /nowhere")

    made = settings(site(), mail=server.settings(security="none"))
    [row] = Notifier(none, office(made)).test().to_pylist()
    assert (row["outcome"], "no store at /nowhere" in row["notes"]) == ("sent", True)
    assert len(server.taken) == 1


def test_the_log_has_what_sites_answered(store: DuckStore, server: MailServer) -> None:
    made = settings(site(), coordinator(), mail=server.settings(security="none"))
    clock = Clock()
    notifier = Notifier(lambda: store, office(made, clock))
    events(store, event())
    notifier.send()
    for number, (hours, text) in enumerate([(-5, "before"), (5, "we swapped the nodes")]):
        at = NOW + timedelta(hours=hours)
        note = {"note_id": f"n{number}", "name": "CERN-PROD_UCORE", "kind": "answer", "entered_by": "Ana"}
        batches = pa_rows({**note, "text": text, "entered_at": at})
        store.publish([store.replace(FLAG_NOTES, f"n{number}", batches)])
    rows = notifier.log().to_pylist()
    assert {row["answers"] for row in rows} == {"CERN-PROD_UCORE (2026-11-22): Ana: we swapped the nodes"}
    assert [row["recipient"] for row in notifier.log(recipients=["cern"]).to_pylist()] == ["cern"]
    assert notifier.log(states=["failed"]).num_rows == 0
    assert notifier.log(first=NIGHT, last=NIGHT).num_rows == 2
    assert notifier.log(first=NIGHT + timedelta(days=1)).num_rows == 0


def pa_rows(row: dict[str, object]) -> list[object]:
    from esjobs.publish.publication import rows_table

    return list(rows_table(FLAG_NOTES, [row]).to_batches())


def test_nothing_to_tell_yet(store: DuckStore) -> None:
    with raised(NoResultError):
        Notifier(lambda: store, office(settings(site()))).send()
