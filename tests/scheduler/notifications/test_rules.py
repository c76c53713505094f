"""Who is told what, and which settings are refused."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from esjobs.core.errors import SettingsError
from esjobs.entry import load
from scheduler.notifications.notices import INCIDENT_KINDS, KINDS, Notice
from scheduler.notifications.rules import matches, takes, without_match
from scheduler.notifications.settings import NotifySettings, Recipient
from tests.messages import raised
from tests.scheduler.notifications.made_up import (
    NIGHT,
    SECRET,
    TOKEN,
    coordinator,
    notice,
    operator,
    settings,
    site,
)


def one(given: dict[str, Any]) -> Recipient:
    return settings(given).recipients[0]


@examples(
    kind=st.sampled_from(KINDS),
    level=st.sampled_from([None, "queue", "cpu_model"]),
    confirmed=st.sampled_from([None, False, True]),
    from_state=st.sampled_from([None, "new", "open", "acknowledged", "resolved"]),
    queue=st.sampled_from([None, "CERN-PROD_Q", "OTHER_Q"]),
    of=st.sampled_from([None, "CERN-PROD", "OTHER"]),
)
def test_a_site_gets_confirmed_changes_of_its_own_queues_only(
    kind: Any, level: Any, confirmed: Any, from_state: Any, queue: Any, of: Any
) -> None:
    told = Notice(
        "i", kind, "critical", "s", "t", NIGHT,
        level=level, confirmed=confirmed, from_state=from_state, name=queue, site=of,
    )  # fmt: skip
    if takes(one(site()), told):
        assert "CERN" in f"{queue}{of}"
        if kind in INCIDENT_KINDS:
            return
        assert level == "queue"
        assert kind in ("opened", "reopened", "closed")
        assert from_state in ("open", "acknowledged") if kind == "closed" else confirmed is True


def test_roles() -> None:
    everyone = [one(site()), one(coordinator()), one(operator())]

    def told(it: Notice) -> list[str]:
        return [recipient.name for recipient in everyone if takes(recipient, it)]

    assert told(notice()) == ["cern", "coordinators"]
    assert told(notice("OTHER_Q")) == ["coordinators"]
    assert told(notice(kind="closed")) == ["cern", "coordinators"]
    # a candidate that came to an end: its site never heard of it
    assert told(notice(kind="closed", from_state="new")) == ["coordinators"]
    assert told(notice(kind="noticed")) == ["coordinators"]
    assert told(notice(confirmed=False)) == ["coordinators"]
    assert told(notice(level="cpu_model", site=None, name="CERN-PROD 7702")) == ["coordinators"]
    failed = Notice("i", "night_failed", "critical", "s", "t", NIGHT)
    assert told(failed) == ["operators"]


def test_severity_and_kinds_narrow() -> None:
    far = notice(deviation=-0.7, deviation_low=-0.8, deviation_high=-0.6)
    assert [notice().severity, far.severity, notice(kind="closed").severity] == [
        "warning",
        "critical",
        "info",
    ]
    critical = one(site(severity="critical"))
    assert [takes(critical, it) for it in (notice(), far)] == [False, True]
    ended = one(site(kinds=["closed"]))
    assert [takes(ended, it) for it in (notice(), notice(kind="closed"))] == [False, True]
    both = one(operator(kinds=["night_failed", "opened"], sites=["CERN-*"]))
    assert [takes(both, it) for it in (notice(), notice("OTHER_Q"))] == [True, False]


def test_patterns() -> None:
    assert matches(["cern-prod"], "CERN-PROD", "x")
    assert matches(["*_MCORE"], None, "A_mcore")
    assert not matches(["CERN"], "CERN-PROD", "CERN-PROD_Q")
    assert not matches(["A?"], None, None)
    names = [("CERN-PROD", "CERN-PROD_Q"), (None, "OTHER")]
    assert without_match(one(site(sites=["cern-*", "CRN-*", "oth??"])), names) == ("CRN-*",)


REFUSED = [
    [site(sites=[])],
    [site(kinds=["candidate"])],
    [site(address=None)],
    [site(address="nobody")],
    [site(address="a@b\nBcc: c@d")],
    [site(url=f"https://h/{TOKEN}")],
    [site(), site("CERN")],
    [site(color="red")],
    [site(severity="high")],
    [coordinator(channel="slack", address=None)],
    [coordinator(channel="slack", address=None, url=f"hooks.example/{TOKEN}")],
    [coordinator(channel="webhook", address=None, url=f"https://h/{TOKEN}")],
    [coordinator(channel="slack", address=None, url=f"https://h/{TOKEN}", secret=SECRET)],
    [site(name="two words")],
]


def written(tmp_path: Path, recipients: list[dict[str, Any]], mail: str = "") -> Path:
    lines = ["[notify.mail]", 'host = "localhost"', 'sender = "a@b.example"', mail]
    for recipient in recipients:
        lines.append("[[notify.recipients]]")
        for key, value in recipient.items():
            if value is not None:
                text = str(value).replace("\n", "\\n") if isinstance(value, str) else None
                lines.append(f'{key} = "{text}"' if text is not None else f"{key} = {value}")
    path = tmp_path / "esjobs.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("recipients", REFUSED)
def test_settings_that_make_no_sense(tmp_path: Path, recipients: list[dict[str, Any]]) -> None:
    with raised(SettingsError) as caught:
        load(written(tmp_path, recipients))
    text = str(caught.value)
    assert "notify" in text
    assert TOKEN not in text
    assert SECRET not in text


@pytest.mark.parametrize(
    "mail",
    [
        f'pasword = "{SECRET}"',
        f'user = "{SECRET}"',
        f'password = "{SECRET}"',
        f'user = "u"\npassword = "{SECRET}"\nsecurity = "none"',
        f'user = "u"\npassword = "{SECRET}"\npassword_file = "{SECRET}"',
        f'user = "u"\npassword = ["{SECRET}"]',
        f'port = "{SECRET}"',
        f'reply_to = "{SECRET}"',
    ],
)
def test_no_value_of_a_refused_setting_is_shown(tmp_path: Path, mail: str) -> None:
    with raised(SettingsError) as caught:
        load(written(tmp_path, [site()], mail))
    assert SECRET not in str(caught.value)


def test_a_password_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESJOBS_NOTIFY__MAIL__PASSWORD", SECRET)
    made = load(written(tmp_path, [site()], 'user = "u"'))
    mail = made.section(NotifySettings).mail
    assert mail is not None
    assert mail.password is not None
    assert mail.password.get_secret_value() == SECRET
    assert SECRET not in repr(made)
    monkeypatch.setenv("ESJOBS_NOTIFY__MALE__PASSWORD", SECRET)
    with raised(SettingsError) as caught:
        load(written(tmp_path, [site()], 'user = "u"'))
    assert SECRET not in str(caught.value)


def test_no_recipient_needs_no_server() -> None:
    assert load().section(NotifySettings).recipients == ()
