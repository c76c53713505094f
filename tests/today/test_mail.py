"""Incidents in the morning mail: who gets which, on which nights, in what words."""

from dataclasses import replace
from datetime import timedelta

import pytest

from esjobs.schema.today import EVERYWHERE
from scheduler.notifications.digest import digest_of
from scheduler.notifications.incident_notices import incident_notice, incident_notices
from scheduler.notifications.notices import Notice
from scheduler.notifications.rules import takes
from scheduler.notifications.settings import NotifySettings, Recipient
from scheduler.notifications.wording import Wording
from tests.conftest import memory_session
from tests.today.grid_jobs import BAD_FROM, BAD_SITE, DAYS, day, jobs_of, put
from tests.today.test_states import BAD, FIRST, QUIET, course, found

COORDINATOR = Recipient(name="ann", role="coordinator", channel="mail", address="ann@example.org")
OF_SITE = Recipient(name="bob", role="site", channel="mail", address="bob@example.org", sites=("EBONY",))
OF_OTHER = Recipient(name="eve", role="site", channel="mail", address="eve@example.org", sites=("OAK",))


def notices(*nights: tuple[bool, bool, float]) -> list[Notice | None]:
    incidents = course(found(each) for each in nights)
    return [None if one is None else incident_notice(one) for one in incidents]


def test_an_incident_is_new_still_open_on_some_nights_and_over() -> None:
    kinds = [one and one.kind for one in notices(*[BAD] * 15, QUIET, QUIET)]
    lasting = [number + 1 for number, kind in enumerate(kinds) if kind == "incident_lasting"]
    assert kinds[0] == "incident_opened"
    assert kinds[-1] == "incident_over"
    assert lasting == [2, 3, 7, 14]


def test_a_notice_is_the_same_however_often_it_is_made() -> None:
    first, second = (notices(BAD)[0] for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("recipient", "site", "wanted"),
    [
        (COORDINATOR, "EBONY", True),
        (OF_SITE, "EBONY", True),
        (OF_OTHER, "EBONY", False),
        (COORDINATOR, EVERYWHERE, True),
        (OF_SITE, EVERYWHERE, False),
    ],
)
def test_a_site_gets_its_own_incidents_only(recipient: Recipient, site: str, wanted: bool) -> None:
    (notice,) = notices(BAD)
    assert notice is not None
    assert takes(recipient, replace(notice, site=site, name=site)) is wanted


def test_a_mail_counts_and_has_a_line_each() -> None:
    new, over = notices(BAD)[0], notices(BAD, QUIET, QUIET)[-1]
    assert new is not None
    assert over is not None
    digest = digest_of("id", "ann", "coordinator", [new, over])
    wording = Wording(NotifySettings(), COORDINATOR)
    subject = wording.subject(digest)
    assert subject == f"[esjobs] Incidents: 1 new, 1 over: {FIRST} to {FIRST + timedelta(days=2)}"
    text = wording.texts(digest, subject, None).text
    assert "New: EBONY: efficiency 47 % instead of 86 %" in " ".join(text.split())
    assert "Over: EBONY: over" not in text
    assert "Over: EBONY: efficiency" in " ".join(text.split())


def test_a_quiet_night_has_no_notice() -> None:
    with memory_session() as session:
        put(session.store, jobs_of(range(DAYS)))
        session.flags.today.update()
        assert incident_notices(session.store, day(BAD_FROM - 1)) == []
        (notice,) = incident_notices(session.store, day(BAD_FROM))
        assert notice.site == BAD_SITE


def test_an_older_night_reports_the_end_of_an_incident_that_is_over() -> None:
    with memory_session() as session:
        put(session.store, jobs_of(range(DAYS + 3)))
        session.flags.today.update()
        nights = {number: incident_notices(session.store, day(number)) for number in range(DAYS + 3)}
        assert [number for number, notices in nights.items() if notices] == [10, 11, 12, 14]
        assert {one.kind for notices in nights.values() for one in notices} == {"incident_over"}
        assert len({one.id for notices in nights.values() for one in notices}) == 1
