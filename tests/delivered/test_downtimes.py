"""Downtimes: every format, broken files, overlaps by hand-written SQL, pledges over the available time."""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import esjobs
from esjobs.api.session import Session
from esjobs.core.errors import InputError, SettingsError
from esjobs.core.window import Window
from esjobs.records.declared.downtimes import Outages, merged, outages
from esjobs.records.ingest.base import RowError
from esjobs.records.ingest.formats.downtimes import DOWNTIME_TABLE
from tests.conftest import memory_session
from tests.delivered.test_pledges import fill, rows, written
from tests.messages import compare_text

NESTED = """<?xml version="1.0" encoding="UTF-8"?>
<results page="1" last="1">
  <DOWNTIME ID="33" PRIMARY_KEY="12G0" CLASSIFICATION="SCHEDULED">
    <SEVERITY>OUTAGE</SEVERITY><DESCRIPTION>New switches &amp; cables</DESCRIPTION>
    <INSERT_DATE>1781000000</INSERT_DATE><START_DATE>1781049600</START_DATE><END_DATE>1781222400</END_DATE>
    <FORMATED_START_DATE>2026-06-10 00:00</FORMATED_START_DATE>
    <SERVICES>
      <SERVICE><PRIMARY_KEY>1G0</PRIMARY_KEY><HOSTNAME>ce1.site.tld</HOSTNAME>
        <SERVICE_TYPE>ARC-CE</SERVICE_TYPE><HOSTED_BY>Site-A</HOSTED_BY></SERVICE>
      <SERVICE><PRIMARY_KEY>2G0</PRIMARY_KEY><HOSTNAME>ce2.site.tld</HOSTNAME>
        <SERVICE_TYPE>ARC-CE</SERVICE_TYPE><HOSTED_BY>Site-A</HOSTED_BY></SERVICE>
      <SERVICE><HOSTNAME>se.site.tld</HOSTNAME><SERVICE_TYPE>SRM</SERVICE_TYPE>
        <HOSTED_BY>Site-A</HOSTED_BY></SERVICE>
    </SERVICES>
  </DOWNTIME>
  <DOWNTIME ID="34" PRIMARY_KEY="13G0" CLASSIFICATION="UNSCHEDULED"><SEVERITY>OUTAGE</SEVERITY></DOWNTIME>
</results>"""
FLAT = """<results><DOWNTIME ID="7" PRIMARY_KEY="7G0" CLASSIFICATION="SCHEDULED">
<PRIMARY_KEY>7G0</PRIMARY_KEY><HOSTNAME>ce.b.tld</HOSTNAME><SERVICE_TYPE>CREAM-CE</SERVICE_TYPE>
<HOSTED_BY>Site-B</HOSTED_BY><SEVERITY>WARNING</SEVERITY><INSERT_DATE>1781060000</INSERT_DATE>
<FORMATED_START_DATE>2026-06-10 00:00</FORMATED_START_DATE>
<FORMATED_END_DATE>2026-06-10 06:30</FORMATED_END_DATE></DOWNTIME></results>"""
ROW = {
    "id": 5,
    "rc_site": "Site-C",
    "severity": "OUTAGE",
    "classification": "SCHEDULED",
    "start_time": "2026-06-10T10:00:00",
    "end_time": "2026-06-10T22:00:00",
    "create_time": "2026-06-01T00:00:00",
    "description": "power",
    "affected_services": "ARC-CE, SRM",
}
CALENDAR = """BEGIN:VCALENDAR\r
VERSION:2.0\r
BEGIN:VEVENT\r
UID:one\r
DTSTART;TZID="Europe/Berlin":20260610T080000\r
DTEND;TZID=Europe/Berlin:20260610T120000\r
SUMMARY:Cooling\\, second\r
  half\r
LOCATION:Site-D\r
END:VEVENT\r
BEGIN:VEVENT\r
DTSTART:20260610T080000Z\r
DTEND:20260611T080000Z\r
RRULE:FREQ=WEEKLY\r
LOCATION:Site-D\r
END:VEVENT\r
BEGIN:VEVENT\r
DTSTART;VALUE=DATE:20260612\r
DTEND;VALUE=DATE:20260613\r
STATUS:CANCELLED\r
LOCATION:Site-D\r
END:VEVENT\r
BEGIN:VEVENT\r
DTSTART;TZID=Nowhere/City:20260612T000000\r
DTEND;VALUE=DATE:20260613\r
LOCATION:Site-D\r
END:VEVENT\r
BEGIN:VEVENT\r
DTSTART;VALUE=DATE:20260614\r
DTEND;VALUE=DATE:20260615\r
LOCATION:Site-D\r
END:VEVENT\r
END:VCALENDAR\r
"""
TABLE = """site,begin,until,severity,service,classification,declared_at
Site-A,2026-06-10,2026-06-12,,,SCHEDULED,2026-06-11
Site-A,2026-06-10T02:00:00+02:00,2026-06-11,warning,SRM,,
Site-A,2026-06-12,2026-06-11,,,,
Site-A,2026-06-12,,,,,
,2026-06-12,2026-06-13,,,,
Site-A,2026-06-12,2026-06-13,SEVERE,,,
Site-A,2026-06-12,0001-06-13,,,,
"""


def at(day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2026, 6, day, hour, minute, tzinfo=UTC)


def test_gocdb(session: Session, tmp_path: Path) -> None:
    report = session.ingest("downtimes", written(tmp_path, NESTED, "d.xml"))
    assert (report.rows_in, report.rows_out, report.dropped) == (4, 3, {"missing value": 1})
    first = next(row for row in rows(session, "downtimes") if row["endpoint"] == "ce1.site.tld")
    assert (first["site"], first["service"], first["severity"], first["scheduled"]) == (
        *("Site-A", "ARC-CE", "OUTAGE"),
        True,
    )
    assert (first["begin"], first["until"], first["downtime"]) == (at(10), at(12), "12G0")
    assert first["text"] == "New switches & cables"
    session.ingest("downtimes", written(tmp_path, FLAT, "flat.xml"))
    (other,) = (row for row in rows(session, "downtimes") if row["site"] == "Site-B")
    assert (other["begin"], other["until"], other["scheduled"]) == (at(10), at(10, 6, 30), False)
    found = outages(session.store)
    assert found is not None
    assert found.of == {"site-a": ((at(10), at(12)),)}


@pytest.mark.parametrize(
    "content", [[ROW], {"5": ROW}, {"Site-C": {"5": {**ROW, "rc_site": None}}}, {"Site-C": [ROW]}]
)
def test_cric(session: Session, tmp_path: Path, content: object) -> None:
    report = session.ingest("downtimes", written(tmp_path, content))
    assert (report.rows_in, report.rows_out) == (2, 2)
    assert {(row["site"], row["service"], row["downtime"]) for row in rows(session, "downtimes")} == {
        ("Site-C", "ARC-CE", "5"),
        ("Site-C", "SRM", "5"),
    }
    found = outages(session.store)
    assert found is not None
    assert found.covers("SITE-c", at(10).date())


@pytest.mark.parametrize("services", [None, [], ["ARC-CE"], [{"name": "ARC-CE"}], "ARC-CE"])
def test_services_of_cric(session: Session, tmp_path: Path, services: object) -> None:
    session.ingest("downtimes", written(tmp_path, [{**ROW, "affected_services": None, "services": services}]))
    found = outages(session.store)
    assert found is not None
    assert found.available("Site-C", Window(at(10), at(11))) == 0.5


def test_calendar(session: Session, tmp_path: Path) -> None:
    report = session.ingest("downtimes", written(tmp_path, CALENDAR, "d.ics"))
    assert (report.rows_in, report.rows_out) == (5, 2)
    assert report.dropped == {"recurring": 1, "cancelled": 1, "bad time": 1}
    last, first = rows(session, "downtimes")
    if first["begin"] > last["begin"]:
        first, last = last, first
    assert (first["begin"], first["until"], first["text"]) == (at(10, 6), at(10, 10), "Cooling, second half")
    assert (last["begin"], last["until"]) == (at(14), at(15))


def test_table(session: Session, tmp_path: Path) -> None:
    report = session.ingest("downtimes", written(tmp_path, TABLE, "d.csv"))
    assert (report.rows_in, report.rows_out) == (7, 2)
    assert report.dropped == {
        "ends before it starts": 1,
        "missing value": 2,
        "bad text": 1,
        "out of range": 1,
    }
    late = next(row for row in rows(session, "downtimes") if row["severity"] == "OUTAGE")
    assert late["scheduled"] is False
    found = outages(session.store)
    assert found is not None
    assert found.of == {"site-a": ((at(10), at(12)),)}


def test_what_a_newer_file_lacks_is_withdrawn_unless_it_was_over(tmp_path: Path) -> None:
    now = datetime(2026, 6, 10, tzinfo=UTC)
    with memory_session() as opened:
        session = Session(opened.store, opened.settings, clock=lambda: now)
        text = "site,begin,until\nA,2026-06-01,2026-06-02\nA,2026-06-09,2026-06-12\nA,2026-06-20,2026-06-21\n"
        session.ingest("downtimes", written(tmp_path, text, "d.csv"))
        now += timedelta(days=1)
        session.ingest("downtimes", written(tmp_path, "site,begin,until\nB,2026-06-20,2026-06-21\n", "d.csv"))
        found = outages(session.store)
        assert found is not None
        assert found.of["a"] == ((at(1), at(2)), (at(9), at(11)))
        assert len(rows(session, "downtimes")) == 4


@pytest.mark.parametrize(
    "content",
    [
        "<results><DOWNTIME>",
        '<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]><results>&d;</results>',
        '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><results><DOWNTIME>&b;</DOWNTIME></results>',
        "<results/>",
        "<a>" * 50_000,
        "<results>\x01</results>",
        "{",
        "[]",
        "[1, [], null]",
        '{"a": {"b": 5}}',
        '[{"services": 5, "start_time": 1e99, "end_time": true, "rc_site": {}}]',
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:2026",
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;TZID=../../etc:x\nDTEND:y\nEND:VEVENT\nEND:VCALENDAR",
        "BEGIN:VCALENDAR\n" + ";" * 100_000 + "\nEND:VCALENDAR",
        "site,begin\nA,2026-01-01\n",
        "site,begin,until\nA,2026-01-01,2026-01-02,x\n",
    ],
)
def test_broken_files_end_in_one_line_or_in_refused_rows(
    session: Session, tmp_path: Path, content: str
) -> None:
    try:
        report = session.ingest("downtimes", written(tmp_path, content, "d"))
    except InputError as error:
        compare_text(str(error))
        return
    assert report.rows_out == 0
    assert sum(report.dropped.values()) == report.rows_in > 0


@given(
    text=st.sampled_from([NESTED, FLAT, CALENDAR, json.dumps({"Site-C": {"5": ROW}}), TABLE]),
    cut=st.floats(0, 1),
    inserted=st.text(max_size=3),
)
def test_truncated_and_altered_files(text: str, cut: float, inserted: str) -> None:
    """Rows out and refused ones, or one line that names the file."""
    length = int(cut * len(text))
    for broken in (text[:length], text[:length] + inserted + text[length:]):
        with suppress(InputError):
            for row in DOWNTIME_TABLE.rows(broken, Path("d"), {}):
                with suppress(RowError):
                    typed = row.typed()
                    assert typed["begin"] < typed["until"]


@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(1, 40)), max_size=8),
    st.integers(0, 90),
    st.integers(1, 60),
)
def test_overlaps_count_once(spans: list[tuple[int, int]], first: int, length: int) -> None:
    """Hours of the window that some interval has, by SQL."""
    start = at(1)
    intervals = [(start + timedelta(hours=a), start + timedelta(hours=a + n)) for a, n in spans]
    window = Window(start + timedelta(hours=first), start + timedelta(hours=first + length))
    values = ", ".join(f"({a}, {a + n})" for a, n in spans) or "(0, 0)"
    row = duckdb.execute(
        f"SELECT count(DISTINCT h) FROM (SELECT unnest(range({first}, {first + length})) h) "  # noqa: S608
        f"JOIN (VALUES {values}) t(a, b) ON h >= a AND h < b"
    ).fetchone()
    assert row is not None
    found = Outages({"a": merged(intervals)}).available("A", window)
    assert found == pytest.approx(1 - row[0] / length)


# -- settings --------------------------------------------------------------------------------------------


def test_own_services(tmp_path: Path) -> None:
    own = written(tmp_path, 'compute = ["SRM"]', "services.toml")
    config = written(tmp_path, f'[delivered]\nservices = "{own}"\n', "esjobs.toml")
    with esjobs.open("duckdb::memory:", config=config) as session:
        session.ingest("downtimes", written(tmp_path, TABLE.replace("warning", "OUTAGE"), "d.csv"))
        found = outages(session.store)
    assert found is not None
    assert found.of == {"site-a": ((at(10), at(12)),)}
    for text in ("compute = 5", "compute = []", "x"):
        written(tmp_path, text, "services.toml")
        with pytest.raises(SettingsError), esjobs.open("duckdb::memory:", config=config):
            pass


# -- pledges ---------------------------------------------------------------------------------------------


def by_federation(session: Session, *by: str, **more: Any) -> dict[Any, dict[str, Any]]:
    answer = session.delivered.work(by or "federation", window="2026-04-01/2026-05-01", **more)
    return {tuple(row[name] for name in by) if by else row["federation"]: row for row in answer}


def test_pledges_over_the_available_time(session: Session, tmp_path: Path) -> None:
    fill(session, tmp_path)
    before = by_federation(session)
    assert before["East"]["available_share"] is before["East"]["of_available_percent"] is None
    notes = session.delivered.work("federation").notes
    assert sum("esjobs ingest downtimes" in note for note in notes) == 1
    text = """site,begin,until,service,severity
SITE-A,2026-04-10,2026-04-16,ARC-CE,
site-a,2026-04-13,2026-04-19,CE,
Site-B,2026-04-10,2026-04-16,SRM,
Site-B,2026-04-10,2026-04-16,,WARNING
Site-C,2026-03-01,2026-06-01,,
"""
    session.ingest("downtimes", written(tmp_path, text, "d.csv"))
    after = by_federation(session)
    stored = 33  # Days from 31 March to 2 May
    size_a = (3600.5 * 4 + 7200.25 * 8) / (1 - 9 / stored)
    size_b = 100.0 + 36000.0 * 16
    share = (size_a * (1 - 9 / 30) + size_b) / (size_a + size_b)
    assert after["East"]["available_share"] == pytest.approx(share)
    assert after["East"]["of_available_percent"] == pytest.approx(
        after["East"]["declared_h"] / (after["East"]["pledge_h"] * share) * 100
    )
    assert after["West"]["available_share"] == 0.0
    assert after["West"]["of_available_percent"] is None
    assert after["North"]["available_share"] is None
    for federation, row in before.items():
        assert row["of_pledge_percent"] == after[federation]["of_pledge_percent"]
    of_sites = by_federation(session, "federation", "site")
    assert of_sites["East", "Site-A"]["available_share"] == pytest.approx(1 - 9 / 30)
