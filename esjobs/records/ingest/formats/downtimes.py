"""Declared downtimes of services: GOCDB's XML, CRIC's JSON, calendars, and tables in text.

A row for each service of a downtime; a time without a zone is UTC. GOCDB answers ``get_downtime`` and
``get_downtime_nested_services`` [GOCDB/gocdb: PI/GetDowntime.php]; CRIC lists downtimes by site and number,
by number, or without either.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET
from zoneinfo import ZoneInfo

from esjobs.core.errors import InputError
from esjobs.core.tables import columns
from esjobs.core.window import format_time
from esjobs.records.ingest.base import FIRST_YEAR, LAST_YEAR, RowError
from esjobs.records.ingest.formats import entered_tables as tables
from esjobs.schema.delivered import DOWNTIMES, OUTAGE, SEVERITIES

EXPECTED = "downtimes of CRIC or GOCDB, a calendar, or a table with columns site, begin, until"
_MOST_TEXT = 1000
_SECONDS = re.compile(r"\d{9,11}")
_CLASSES = {"SCHEDULED": True, "UNSCHEDULED": False}
# Our columns, and their names in GOCDB, CRIC and calendars: the first that is there counts
_NAMES = {
    "site": columns("site hosted_by sitename rc_site location"),
    "service": columns("service service_type"),
    "endpoint": columns("hostname endpoint"),
    "severity": ("severity",),
    "classification": ("classification",),
    "begin": columns("begin start_date formated_start_date start_time dtstart"),
    "until": columns("until end_date formated_end_date end_time dtend"),
    "declared_at": columns("declared_at insert_date create_time"),
    "downtime": columns("downtime primary_key uid id pid"),
    "text": columns("text summary description"),
    "url": columns("url info_url gocdb_portal_url"),
}
_RECURRING = ("rrule", "rdate", "recurrence-id")
Found = Iterator[tuple[int, Mapping[str, Any]]]


def _rows(text: str, path: Path, _: Mapping[str, Any]) -> Iterator[tables.EnteredRow]:
    start = text.lstrip()[:15].upper()
    if start.startswith("<"):
        found = _gocdb(text, path)
    elif start.startswith(("{", "[")):
        found = _cric(tables.document(text, path, EXPECTED))
    elif start.startswith("BEGIN:VCALENDAR"):
        found = _events(text, path)
    else:
        header, found = tables.table_rows(text, path)
        tables.require_columns(header, ("site", "begin", "until"), path, "downtimes")
    for number, row in found:
        yield tables.EnteredRow(number, DOWNTIMES, str(row)[:_MOST_TEXT], partial(_downtime, row))


def _downtime(row: Mapping[str, Any]) -> dict[str, Any]:
    tables.require_cells(row)
    # their dates would have to be computed; sites announce single ones
    if any(row.get(name) for name in _RECURRING):
        raise RowError("recurring", "rrule", "accepted: single events")
    if str(row.get("status")).upper() == "CANCELLED":
        raise RowError("cancelled", "status", "accepted: events that take place")
    facts = {name: next(filter(None, map(row.get, of)), None) for name, of in _NAMES.items()}
    begin, until, declared_at = (_time(facts, name) for name in ("begin", "until", "declared_at"))
    if begin is None or until is None:
        raise RowError(tables.MISSING, "begin", "no start or no end; accepted: 2026-04-01T08:00:00Z")
    if until <= begin:
        detail = f"until is {format_time(until)}; begin is {format_time(begin)}"
        raise RowError("ends before it starts", "until", detail)
    return _typed(facts, begin) | {"begin": begin, "until": until, "declared_at": declared_at}


def _typed(facts: Mapping[str, Any], begin: datetime) -> dict[str, Any]:
    # a calendar has no severity: an entry without one is an outage
    severity = (tables.name_in(facts, "severity") or OUTAGE).upper()
    if severity not in SEVERITIES:
        detail = f"'{severity[:60]}'; accepted: {' or '.join(SEVERITIES)}"
        raise RowError(tables.BAD_TEXT, "severity", detail)
    # declared after the fact counts as unscheduled
    declared_at, number = _time(facts, "declared_at"), facts["downtime"]
    late = declared_at is not None and declared_at > begin
    return {
        "site": tables.name_in(facts, "site", required=True),
        **{name: tables.name_in(facts, name) for name in ("service", "endpoint")},
        **{name: _text(facts[name]) for name in ("text", "url")},
        "severity": severity,
        "scheduled": False if late else _CLASSES.get(str(facts["classification"]).upper()),
        "downtime": format_time(begin) if number is None else _text(str(number)),
    }


def _text(value: Any) -> str | None:
    return (value.replace("\0", "").strip()[:_MOST_TEXT] or None) if isinstance(value, str) else None


def _time(facts: Mapping[str, Any], name: str) -> datetime | None:
    value = facts.get(name)
    if isinstance(value, datetime):
        moment: datetime | None = value
    # GOCDB's Unix times; nine digits begin in 1973
    elif _SECONDS.fullmatch(str(value).strip()):
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(str(value)))
    else:
        moment = tables.time_in(facts, name)
    if moment is not None and not FIRST_YEAR <= moment.year <= LAST_YEAR:
        detail = f"year {moment.year}; accepted: {FIRST_YEAR} to {LAST_YEAR}"
        raise RowError(tables.OUT_OF_RANGE, name, detail)
    return moment and moment.astimezone(UTC)


def _gocdb(text: str, path: Path) -> Found:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        # entities of a few lines expand to gigabytes, or read files
        raise InputError(f"{path} defines entities, which are not read; expected {EXPECTED}")
    try:
        root = ET.fromstring(text)  # noqa: S314  without definitions of entities
    except (ET.ParseError, ValueError) as error:
        raise InputError(f"{path}: not XML ({error}); expected {EXPECTED}") from error
    for number, downtime in enumerate(root.iter("DOWNTIME"), 1):
        # services are nested, or each has a downtime of its own
        for service in downtime.findall("SERVICES/SERVICE") or [downtime]:
            # a service has a number, too: that of the downtime counts
            found = {each.tag: each.text for each in (*service, *downtime)} | downtime.attrib
            yield number, {name.lower(): value for name, value in found.items()}


def _cric(content: Any) -> Found:
    for number, (site, row) in enumerate(_of_sites(content), 1):
        facts = {"location": site, **row} if isinstance(row, dict) else {"text": row}
        value = facts.get("affected_services") or facts.get("services")
        listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
        for each in listed or [None]:
            yield number, {**facts, "service": each.get("name") if isinstance(each, dict) else each}


def _of_sites(content: Any) -> Iterator[tuple[str | None, Any]]:
    """Yield rows with the site above them: of a list, by number, or by site and number."""
    named: Iterable[tuple[str | None, Any]] = [(None, content)]
    for name, below in named if isinstance(content, list) else content.items():
        # a dictionary of dictionaries is a site with downtimes by number, else a downtime
        several = isinstance(below, dict) and below and all(isinstance(each, dict) for each in below.values())
        rows = list(below.values()) if several else below
        yield from ((name, row) for row in rows) if isinstance(rows, list) else [(None, below)]


_LINE = re.compile(r"([A-Za-z-]+)((?:;[^:;\"]*(?:\"[^\"]*\")?)*):(.*)")
_ZONE = re.compile(r"TZID=\"?([^;\"]+)", re.IGNORECASE)
_ESCAPED = re.compile(r"\\(.)")


def _events(text: str, path: Path) -> Found:
    """Yield the events of a calendar [RFC 5545], whose location is a site."""
    # a long line goes on in one that begins with a blank
    unfolded = re.sub(r"\r?\n[ \t]", "", text)
    number, event = 0, None
    for name, value in _properties(unfolded):
        if name in ("begin", "end") and str(value).upper() == "VEVENT":
            if event is not None:
                yield number, event
            number, event = (number + 1, dict[str, Any]()) if name == "begin" else (number, None)
        elif event is not None:
            event[name] = value
    if event is not None or "END:VCALENDAR" not in unfolded.upper():
        raise InputError(f"{path}: the calendar has no end; download it again")


def _properties(text: str) -> Iterator[tuple[str, Any]]:
    for line in filter(None, (_LINE.fullmatch(each.strip()) for each in text.splitlines())):
        zone = _ZONE.search(line[2])
        plain = _ESCAPED.sub(lambda found: "\n" if found[1] in "nN" else found[1], line[3])
        yield line[1].lower(), plain if zone is None else _with_zone(plain, zone[1])


def _with_zone(value: str, zone: str) -> datetime | str:
    try:
        moment = datetime.fromisoformat(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone))
    except (ValueError, OSError, KeyError):
        # the row is refused: its zone is not one of the database
        return f"{value} {zone}"


DOWNTIME_TABLE = tables.EnteredTables("downtimes", "downtimes", (DOWNTIMES,), _rows)
"""The format ``downtimes``."""
