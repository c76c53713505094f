"""Mails to users about their own jobs: who gets which, who none, and what is sent beside it."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from esjobs.core.errors import SettingsError, UsageError
from esjobs.issues.recurrence import Example, Recurrence
from esjobs.store.duck.store import DuckStore
from scheduler.notifications.job_issues import job_issue
from scheduler.notifications.notices import Notice
from scheduler.notifications.preview import preview
from scheduler.notifications.sample_message import try_recipients
from scheduler.notifications.settings import NotifySettings, Recipient
from scheduler.notifications.step import notify_night
from tests.scheduler.notifications.made_up import NIGHT, Clock, office, settings, states
from tests.scheduler.notifications.servers import MailServer

USERS: dict[str, Any] = {"name": "users", "role": "user", "channel": "mail", "address": "{user}@hpc.example"}
SUPPORT: dict[str, Any] = {
    "name": "desk",
    "role": "support",
    "channel": "mail",
    "address": "desk@hpc.example",
}
HINT = "Request fewer cores."


def found(*names: str, what: str = "user") -> list[Notice]:
    made = [
        Recurrence(
            *(what, name, NIGHT, "major", 1, (("cpu-idle", 1),), 200.0, 0.0),
            examples=(Example(f"job-of-{name}", "relax", "cpu-idle", HINT),),
        )
        for name in names
    ]
    return [job_issue(each, "major") for each in made]


def mailed(server: MailServer, *recipients: dict[str, Any]) -> NotifySettings:
    return settings(*recipients, mail=server.settings(security="none"))


def taken(server: MailServer) -> dict[str, str]:
    return {address: str(mail.get_body(("plain",)).get_content()) for address, mail in server.taken}  # type: ignore[union-attr]


def test_each_user_reads_of_their_own_jobs_and_support_of_all(
    store: DuckStore, server: MailServer, tmp_path: Path
) -> None:
    (tmp_path / "addresses.csv").write_text("eve,e.smith@uni.example\n")
    (tmp_path / "none.txt").write_text("dave\n")
    files = {"addresses": str(tmp_path / "addresses.csv"), "opt_out": str(tmp_path / "none.txt")}
    made = mailed(server, USERS | files, SUPPORT)
    alerts = [
        *found("ann", "bob", "dave", "eve", "o'hara\r\nBcc: x@y.example"),
        *found("phys", what="project"),
    ]
    for _ in range(2):
        notify_night(store, office(made, Clock()), NIGHT, alerts=alerts)
    mails = taken(server)
    assert set(mails) == {"ann@hpc.example", "bob@hpc.example", "e.smith@uni.example", "desk@hpc.example"}
    assert len(server.taken) == 4, "repeated, nothing is sent twice"
    assert "job-of-ann" in mails["ann@hpc.example"]
    assert HINT in mails["ann@hpc.example"]
    assert "job-of-bob" not in mails["ann@hpc.example"]
    assert all(
        f"job-of-{name}" in mails["desk@hpc.example"] for name in ("ann", "bob", "dave", "eve", "phys")
    )
    assert {name for name, _ in states(store)} == {"users@ann", "users@bob", "users@eve", "desk"}


def test_an_address_that_is_refused_is_told_to_operators_and_stops_nobody(
    store: DuckStore, server: MailServer
) -> None:
    server.refuse_address["ann@hpc.example"] = "550 no such user"
    notify_night(store, office(mailed(server, USERS), Clock()), NIGHT, alerts=found("ann", "bob"))
    assert set(taken(server)) == {"bob@hpc.example"}
    assert ("users@ann", "abandoned") in states(store)


def test_a_preview_has_a_file_for_each_user(store: DuckStore, server: MailServer, tmp_path: Path) -> None:
    made = mailed(server, USERS)
    rows = preview(store, office(made, Clock()), NIGHT, tmp_path / "out", found("ann", "bob"))
    assert [(row.recipient, row.address) for row in rows] == [
        ("users@ann", "ann@hpc.example"),
        ("users@bob", "bob@hpc.example"),
    ]
    assert (tmp_path / "out" / "users@ann.eml").exists()


def test_a_test_needs_one_user(store: DuckStore, server: MailServer) -> None:
    mailer = office(mailed(server, USERS), Clock())
    with pytest.raises(UsageError):
        try_recipients(lambda: store, mailer, ["users"])
    (tried,) = try_recipients(lambda: store, mailer, ["users@ann"])
    assert (tried.address, tried.outcome) == ("ann@hpc.example", "sent")


@pytest.mark.parametrize(
    "name",
    [
        "a\nBcc: x@y.example",
        "a,b",
        "<a>",
        "a@b@c",
        "@b",
        "a@",
        '"a"',
        "a b",
        "a%b",
        "a!b",
        "a|b",
        "a/b",
        "ä",
        "",
    ],
)
def test_names_that_no_address_has(name: str) -> None:
    made = Recipient.model_validate(USERS)
    assert made.of_user(name) is None
    assert list(made.of_users([name])) == ["characters that no address has"]


def test_users_without_mail_are_counted_by_reason(
    store: DuckStore, server: MailServer, tmp_path: Path
) -> None:
    (tmp_path / "none.txt").write_text("dave\n")
    made = mailed(server, USERS | {"opt_out": str(tmp_path / "none.txt")})
    alerts = found("ann@REALM", "o'hara", "dave", "a,b", "<c>")
    report = notify_night(store, office(made, Clock()), NIGHT, alerts=alerts)
    assert set(taken(server)) == {"ann@hpc.example", "o'hara@hpc.example"}
    assert report.counts == {
        "users without mail: characters that no address has": 2,
        "users without mail: opted out": 1,
    }
    rows = preview(store, office(made, Clock()), NIGHT, tmp_path / "out", alerts)
    assert {row.address for row in rows} == {"ann@hpc.example", "o'hara@hpc.example"}


@pytest.mark.parametrize(
    "wrong",
    [
        USERS | {"address": "all@hpc.example"},
        USERS | {"address": None},
        USERS | {"channel": "slack", "address": None, "url": "https://chat.example/x"},
        USERS | {"sites": ["A"]},
        SUPPORT | {"address": "{user}@hpc.example"},
        SUPPORT | {"opt_out": "none.txt"},
    ],
)
def test_settings_that_cannot_be_meant(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Recipient.model_validate(wrong)


def test_files_that_are_wrong(tmp_path: Path) -> None:
    table, unwanted = tmp_path / "addresses.csv", tmp_path / "none.txt"
    rows = ('\ufeff"ann";"a.smith@uni.example"', "bob;not an address", "Eva Maier;eva@uni.example")
    table.write_text("\n".join(rows), encoding="utf-8")
    unwanted.write_text("\ufeffDave,\n", encoding="utf-8")
    one = Recipient.model_validate(USERS | {"addresses": str(table), "opt_out": str(unwanted)})
    addresses = {
        "ann": "a.smith@uni.example",
        "ann@LOCAL": "a.smith@uni.example",
        "Eva Maier": "eva@uni.example",
        "eve": "eve@hpc.example",
        "eve@UNI.EXAMPLE": "eve@hpc.example",
        "o'hara": "o'hara@hpc.example",
        "bob": "not a valid address",
        **dict.fromkeys(("dave", "DAVE@LOCAL"), "opted out"),
        **dict.fromkeys(("a..b", ".x", ".."), "not a valid address"),
    }
    found = [each if isinstance(each, str) else each.address for each in one.of_users(list(addresses))]
    assert found == list(addresses.values())
    with pytest.raises(SettingsError):
        Recipient.model_validate(USERS | {"opt_out": str(tmp_path / "absent")}).of_user("ann")
