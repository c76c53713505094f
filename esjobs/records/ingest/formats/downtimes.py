"""Declared downtimes of services: GOCDB's XML, CRIC's JSON, calendars, and tables in text.

A row for each service of a downtime; a time without a zone is UTC. GOCDB answers ``get_downtime`` and
``get_downtime_nested_services`` [GOCDB/gocdb: PI/GetDowntime.php]; CRIC lists downtimes by site and number,
by number, or without either.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET
from zoneinfo import ZoneInfo

from esjobs.core.errors import InputError
from esjobs.core.window import format_time
from esjobs.records.ingest.base import FIRST_YEAR, LAST_YEAR, RowError
from esjobs.records.ingest.formats.entered_tables import (
    BAD_TEXT,
    MISSING,
    OUT_OF_RANGE,
    EnteredRow,
    EnteredTables,
    document,
    name_in,
    require_cells,
    require_columns,
    table_rows,
    time_in,
)
from esjobs.schema.delivered import DOWNTIMES, SEVERITIES

BACKWARDS, NO_DOWNTIME = "ends before it starts", "no downtime"
RECURRING, CANCELLED = "recurring", "cancelled"
EXPECTED = "downtimes of CRIC or GOCDB, a calendar, or a table with columns site, begin, until"
_MOST_TEXT = 1000
_REFUSED = "\0refused"  # Reason beside the facts, a name that no column has
_SECONDS = re.compile(r"\d{9,11}")
_CLASSES = {"SCHEDULED": True, "UNSCHEDULED": False}
_TIMES = {"begin": "start_time", "until": "end_time", "declared_at": "create_time"}


def _rows(text: str, path: Path, _: Mapping[str, Any]) -> Iterator[EnteredRow]:
    start = text.lstrip()[:15].upper()
    if start.startswith("<"):
        found = _gocdb(text, path)
    elif start.startswith(("{", "[")):
        found = _cric(document(text, path, EXPECTED))
    elif start.startswith("BEGIN:VCALENDAR"):
        found = _events(text, path)
    else:
        header, rows = table_rows(text, path)
        require_columns(header, ("site", "begin", "until"), path, "downtimes")
        found = rows
    for number, facts in found:
        yield EnteredRow(number, DOWNTIMES, str(facts)[:_MOST_TEXT], partial(_downtime, facts))


def _downtime(facts: Mapping[str, Any]) -> dict[str, Any]:
    require_cells(facts)
    if reason := facts.get(_REFUSED):
        raise RowError(reason, "", "accepted: single events that take place, with their times")
    severity = (name_in(facts, "severity") or SEVERITIES[0]).upper()
    if severity not in SEVERITIES:
        raise RowError(BAD_TEXT, "severity", f"'{severity[:60]}'; accepted: {' or '.join(SEVERITIES)}")
    begin, until, declared_at = (_time(facts, name) for name in _TIMES)
    if begin is None or until is None:
        raise RowError(MISSING, "begin", "no start or no end; accepted: 2026-04-01T08:00:00Z")
    if until <= begin:
        raise RowError(BACKWARDS, "until", f"until is {format_time(until)}; begin is {format_time(begin)}")
    scheduled = _CLASSES.get((name_in(facts, "classification") or "").upper())
    # declared after the fact counts as unscheduled
    late = declared_at is not None and declared_at > begin
    return {
        "site": name_in(facts, "site", required=True),
        "service": name_in(facts, "service"),
        "severity": severity,
        "scheduled": False if late else scheduled,
        "begin": begin,
        "until": until,
        "downtime": name_in(facts, "downtime") or format_time(begin),
        "endpoint": name_in(facts, "endpoint"),
        "declared_at": declared_at,
        "text": _text(facts, "text"),
        "url": _text(facts, "url"),
    }


def _text(facts: Mapping[str, Any], name: str) -> str | None:
    value = facts.get(name)
    return (value.replace("\0", "").strip()[:_MOST_TEXT] or None) if isinstance(value, str) else None


def _time(facts: Mapping[str, Any], name: str) -> datetime | None:
    value = facts.get(name)
    if isinstance(value, datetime):
        moment: datetime | None = value
    elif _SECONDS.fullmatch(str(value).strip()):
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(str(value)))
    else:
        moment = time_in(facts, name)
    if moment is not None and not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise RowError(OUT_OF_RANGE, name, f"year {moment.year}; accepted: {FIRST_YEAR} to {LAST_YEAR}")
    return moment and moment.astimezone(UTC)


# -- GOCDB -----------------------------------------------------------------------------------------------


def _gocdb(text: str, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        # entities of a few lines expand to gigabytes, or read files
        raise InputError(f"{path} defines entities, which are not read; expected {EXPECTED}")
    try:
        root = ET.fromstring(text)  # noqa: S314  without definitions of entities
    except (ET.ParseError, ValueError) as error:
        raise InputError(f"{path}: not XML ({error}); expected {EXPECTED}") from error
    for number, downtime in enumerate(root.iter("DOWNTIME"), 1):
        # nested: services of one downtime; else a row for each service
        for service in downtime.findall("SERVICES/SERVICE") or [downtime]:
            yield number, _of_gocdb(downtime, service)


def _of_gocdb(downtime: ET.Element, service: ET.Element) -> dict[str, Any]:
    names = {"begin": "START_DATE", "until": "END_DATE", "declared_at": "INSERT_DATE"}
    names |= {"severity": "SEVERITY", "text": "DESCRIPTION", "url": "GOCDB_PORTAL_URL"}
    facts: dict[str, Any] = {name: downtime.findtext(tag) for name, tag in names.items()}
    return facts | {
        "site": service.findtext("HOSTED_BY") or downtime.findtext("SITENAME"),
        "service": service.findtext("SERVICE_TYPE"),
        "endpoint": service.findtext("HOSTNAME"),
        "begin": facts["begin"] or downtime.findtext("FORMATED_START_DATE"),
        "until": facts["until"] or downtime.findtext("FORMATED_END_DATE"),
        "downtime": downtime.get("PRIMARY_KEY") or downtime.get("ID"),
        "classification": downtime.get("CLASSIFICATION"),
    }


# -- CRIC ------------------------------------------------------------------------------------------------


def _cric(content: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, (site, row) in enumerate(_of_sites(content), 1):
        if not isinstance(row, dict):
            yield number, {_REFUSED: NO_DOWNTIME, "text": row}
            continue
        facts = {name: row.get(column) for name, column in _TIMES.items()}
        facts |= {name: row.get(name) for name in ("severity", "classification")}
        number_in_cric = row.get("id") or row.get("pid")
        facts |= {
            "site": row.get("rc_site") or site,
            "downtime": None if number_in_cric is None else str(number_in_cric),
            "text": row.get("description"),
            "url": row.get("info_url"),
        }
        for service in _services(row.get("affected_services") or row.get("services")):
            yield number, {**facts, "service": service}


def _of_sites(content: Any) -> Iterator[tuple[str | None, Any]]:
    """Yield rows with the site above them: of a list, by number, or by site and number."""
    if isinstance(content, list):
        yield from ((None, row) for row in content)
        return
    for name, below in content.items():
        several = isinstance(below, dict) and below and all(isinstance(each, dict) for each in below.values())
        rows = list(below.values()) if several else below if isinstance(below, list) else None
        yield from [(None, below)] if rows is None else [(name, row) for row in rows]


def _services(value: Any) -> list[Any]:
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    return [each.get("name") if isinstance(each, dict) else each for each in listed] or [None]


# -- calendars -------------------------------------------------------------------------------------------

_LINE = re.compile(r"([A-Za-z-]+)((?:;[^:;\"]*(?:\"[^\"]*\")?)*):(.*)")
_ICAL = {"LOCATION": "site", "SUMMARY": "text", "UID": "downtime", "URL": "url"}
_ICAL |= {"DTSTART": "begin", "DTEND": "until"}
_ESCAPED = re.compile(r"\\(.)")


def _events(text: str, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the events of a calendar [RFC 5545], whose location is a site."""
    # a long line goes on in one that begins with a blank
    unfolded = re.sub(r"\r?\n[ \t]", "", text)
    number, event = 0, None
    for line in map(_LINE.fullmatch, map(str.strip, unfolded.splitlines())):
        name, parameters, value = ("", "", "") if line is None else line.groups()
        name, ends = name.upper(), value.upper() == "VEVENT"
        if name == "BEGIN" and ends:
            number, event = number + 1, dict[str, Any]()
        elif name == "END" and ends and event is not None:
            yield number, event
            event = None
        elif event is not None:
            _add(event, name, parameters, value)
    if event is not None or "END:VCALENDAR" not in unfolded.upper():
        raise InputError(f"{path}: the calendar has no end; download it again")


def _add(event: dict[str, Any], name: str, parameters: str, value: str) -> None:
    text = _ESCAPED.sub(lambda found: "\n" if found[1] in "nN" else found[1], value)
    if name in _ICAL:
        event[_ICAL[name]] = _with_zone(value, parameters) if name.startswith("DT") else text
    elif name in ("RRULE", "RDATE", "RECURRENCE-ID"):
        event[_REFUSED] = RECURRING
    elif name == "STATUS" and value.upper() == "CANCELLED":
        event[_REFUSED] = CANCELLED


def _with_zone(value: str, parameters: str) -> datetime | str:
    zone = re.search(r"TZID=\"?([^;\"]+)", parameters, re.IGNORECASE)
    if zone is None:
        return value
    try:
        moment = datetime.fromisoformat(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone[1]))
    except (ValueError, OSError, KeyError):
        # the row is refused: its zone is not one of the database
        return f"{value} {zone[1]}"


DOWNTIME_TABLE = EnteredTables("downtimes", "downtimes", (DOWNTIMES,), _rows)
"""The format ``downtimes``."""
