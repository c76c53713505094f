"""Entries of people on pages: answers of sites by a signed link, acknowledgements by coordinators."""

import logging
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from dashboards.targets.html.profile import Form, FormField, Part, ProfilePage
from esjobs.core.errors import UsageError
from esjobs.core.numbers import count, declared, many, speed, speed_range
from esjobs.core.query import In
from esjobs.core.text import visible
from esjobs.core.words import ALL_TYPES
from esjobs.flags.answering.links import Link, LinkError
from esjobs.publish.publication import read_table
from esjobs.records.entered_notes import require_ahead
from esjobs.render.profile_page import columns_of
from esjobs.schema.flags import FLAG_EVENTS, FLAG_NOTES, FLAG_STATES, STANDING_OPEN
from esjobs.schema.speed import FLAGS
from esjobs.schema.web import ACTS
from esjobs.speed.judging.checks import SEPARATOR
from esjobs.web.access import ForbiddenError
from esjobs.web.answers import Reply
from esjobs.web.pages import page_of, profile_content
from esjobs.web.request import AbsentError, Request

_log = logging.getLogger(__name__)

# Statements of a site, with the text of their notes
SAID: Mapping[str, str] = {
    "value": "We corrected the value to {}.",
    "hardware": "The hardware list is: {}",
    "wrong": "This is wrong, because: {}",
}
_LONGEST_TEXT, _LARGEST_VALUE = 2000, 10_000.0


def answer_form(request: Request) -> Reply:
    """The evidence of a finding, and forms to answer."""
    link = _link(request)
    flag = _flag(request, link.level, link.name, link.processing_type)
    kind = "" if link.processing_type == ALL_TYPES else f", {link.processing_type}"
    title = f"{visible(link.name)}{visible(kind)}"
    unit = f"{flag.get('benchmark') or 'score'} per core"
    hidden = [FormField("said", "", said, kind="hidden") for said in SAID]
    fields = (
        FormField("value", f"New value, {unit}", hint="11.2", kind="number", required=True),
        FormField("text", "CPU models, cores and SMT of the nodes", kind="area", required=True),
        FormField("text", "Reason", kind="area", required=True),
    )
    titles = ("We corrected the value", "Our hardware", "This is wrong")
    forms = [
        (title, Form(request.path, (said, field), "Send", post=True))
        for title, said, field in zip(titles, hidden, fields, strict=True)
    ]
    about = "Is this right, and what do you say? An answer changes nothing by itself; coordinators read it."
    parts = [*_sent(request, link), *_evidence(request, link, flag), _history(request, link)]
    return page_of(request, ProfilePage(title, about, parts, forms=forms))


def answer(request: Request) -> Reply:
    """Store the answer of a site."""
    link = _link(request)
    flag = _flag(request, link.level, link.name, link.processing_type)
    said, text = request.one("said") or "", _line(request.one("text") or "")
    if said not in SAID:
        raise UsageError(f"said must be one of {', '.join(SAID)}")
    if said == "value":
        text = f"{_number(request.one('value')):g} {flag.get('benchmark') or 'score'} per core"
    site = flag.get("site") or link.name
    entry = {
        "kind": "answer",
        "entered_by": f"holder of the link sent to {visible(site)}",
        "route": "/a/",
        "level": link.level,
        "processing_type": link.processing_type,
        "name": link.name,
        "text": SAID[said].format(_required(text)),
        "nonce": link.nonce,
    }
    _enter(request, entry, flag, entry["text"])
    # the browser fetches the page: a reload does not send the form again
    return Reply(b"", status=303, location=request.path)


def acknowledge(request: Request) -> Reply:
    """Store an acknowledgement of the open flags of a name."""
    level, name = request.one("level") or "queue", request.one("name") or ""
    flag = _flag(request, level, name, None)
    if flag.get("state") not in STANDING_OPEN:
        raise UsageError(f"no open flag of {visible(name):.60} to acknowledge")
    try:
        until = date.fromisoformat(request.one("until") or "")
    except ValueError:
        raise UsageError("until must be a day, as 2026-01-15") from None
    require_ahead(until, flag["night"])
    text = _required(_line(request.one("text") or ""))
    entry = {
        "kind": "ack",
        "entered_by": request.reader.name,
        "route": "/acknowledge",
        "level": level,
        "processing_type": None,
        "name": name,
        "until": until.isoformat(),
        "text": text,
    }
    _enter(request, entry, flag, f"acknowledged until {until}: {text}")
    return Reply(b"", status=303, location=f"/queue/{quote(name, safe='')}")


def queue(request: Request) -> Reply:
    """A queue, with what people have entered about it."""
    page, lead = profile_content(request, "queue")
    parts, forms = _acts(request, request.parts["name"])
    shown = replace(page, parts=[*page.parts, *parts], forms=forms)
    return page_of(request, shown, lead)


def _acts(request: Request, name: str) -> tuple[list[Part], list[tuple[str, Form]]]:
    """Return the answers and acts about a queue, and the form of an acknowledgement, for who may see them."""
    if not request.reader.may("support"):
        return [], []
    of_name = [In("level", ("queue",)), In("name", (name,))]
    rows = _answers(request, name, of_name)
    parts = [_table("Answers", ("time", "kind", "text", ""), rows)] if rows else []
    if not request.reader.may("coordinator"):
        return parts, []
    if acts := read_table(request.session.store, ACTS, of_name).to_pylist():
        acts.sort(key=lambda each: str(each["entered_at"]))
        acted = [
            (f"{each['entered_at']:{_MINUTE}}", each["entered_by"], each["before"], each["after"])
            for each in acts
        ]
        parts.append(_table("Acts", ("time", "who", "before", "after"), acted))
    states = _states(request, "queue", name, None)
    is_open = any(each["state"] in STANDING_OPEN for each in states)
    return parts, [("Acknowledge", _acknowledgement(name))] if is_open and request.reader.name else []


def _answers(request: Request, name: str, of_name: Sequence[In]) -> list[tuple[str, ...]]:
    """Return what was entered about a queue, before the next night, too."""
    notes = read_table(request.session.store, FLAG_NOTES, of_name).to_pylist()
    waiting = _waiting(request, [each for each in _journal(request) if each.get("name") == name])
    return [
        *((f"{each['entered_at']:{_MINUTE}}", each["kind"], each["text"], "") for each in notes),
        *((_minute(each), each["kind"], each["text"], "enters the next night") for each in waiting),
    ]


_MINUTE = "%Y-%m-%d %H:%M"


def _minute(entry: Mapping[str, Any]) -> str:
    """Return the time of an entry of the journal, which is a text there."""
    return str(entry["at"])[:16].replace("T", " ")


def _acknowledgement(name: str) -> Form:
    fields = (
        FormField("level", "", "queue", kind="hidden"),
        FormField("name", "", name, kind="hidden"),
        FormField("until", "Until", kind="date", required=True),
        FormField("text", "Reason", kind="area", required=True),
    )
    return Form("/acknowledge", fields, "Acknowledge", post=True)


def _enter(request: Request, entry: dict[str, Any], flag: Mapping[str, Any], after: str) -> None:
    if request.acting.journal is None:
        raise ForbiddenError("nothing can be entered here; the operator can allow it: web.journal")
    # finds the entry of the journal for a line of the log, which names nobody
    number = secrets.token_hex(8)
    corepower = flag.get("corepower")
    before = f"{flag.get('state')}, declared {'-' if corepower is None else declared(corepower)}"
    more = {"before": before, "after": after, "at": request.now.isoformat(), "request": number}
    identity = request.acting.journal.append({**entry, **more})
    _log.info("%s entered as %s (request %s)", entry["kind"], identity, number)


def _link(request: Request) -> Link:
    if request.acting.links is None:
        raise AbsentError("This address leads nowhere.")
    try:
        return request.acting.links.read(request.parts["token"], request.now)
    except LinkError as error:
        raise AbsentError(str(error)) from None


def _states(request: Request, level: str, name: str, kind: str | None) -> list[dict[str, Any]]:
    where = [In("level", (level,)), In("name", (name,))]
    where += [] if kind is None else [In("processing_type", (kind,))]
    rows: list[dict[str, Any]] = read_table(request.session.store, FLAG_STATES, where).to_pylist()
    # the first one is that which decides: open, and of all types
    order = {state: index for index, state in enumerate(("open", "acknowledged", "new", "resolved"))}
    return sorted(rows, key=lambda row: (order[row["state"]], row["processing_type"] != ALL_TYPES))


def _flag(request: Request, level: str, name: str, kind: str | None) -> dict[str, Any]:
    rows = _states(request, level, name, kind)
    if not rows:
        raise AbsentError(f"no flag of {visible(name):.60}; reply to the mail instead")
    return rows[0]


def _evidence(request: Request, link: Link, flag: Mapping[str, Any]) -> list[Part]:
    facts = [("state", f"{flag['state']} since {flag['since']}")]
    if flag["deviation"] is not None:
        facts.append(("jobs run", f"{speed(flag['deviation'])} than declared"))
    if flag["deviation_low"] is not None and flag["deviation_high"] is not None:
        facts.append(("90 % interval", speed_range(flag["deviation_low"], flag["deviation_high"])))
    unit = f" {flag['benchmark'] or ''} per core".replace("  ", " ")
    facts += [
        (title, f"{declared(flag[name])}{unit}")
        for title, name in (("declared", "corepower"), ("measured", "proposed_corepower"))
        if flag[name] is not None
    ]
    verdict = _verdict(request, link)
    if verdict.get("n_jobs") is not None:
        facts.append(("based on", f"{many(verdict['n_jobs'], 'job')} of {count(verdict['n_tasks'])} tasks"))
    parts = [_table("Finding", ("", " "), facts)]
    checks = verdict.get("checks")
    if checks:
        lines = [visible(each) for each in checks.split(SEPARATOR)]
        parts.append(Part("Checked", "Deviation under each check.", lines, [], None))
    return parts


def _verdict(request: Request, link: Link) -> Mapping[str, Any]:
    run = request.shown.run
    if run is None:
        return {}
    where = [In("run", (run.run,)), In("level", (link.level,)), In("name", (link.name,))]
    where.append(In("processing_type", (link.processing_type,)))
    rows = read_table(request.session.store, FLAGS, where).to_pylist()
    return next((row for row in rows if row["method"] == run.headline), {})


def _history(request: Request, link: Link) -> Part:
    where = [In("level", (link.level,)), In("name", (link.name,))]
    where.append(In("processing_type", (link.processing_type,)))
    # no texts: these may name people
    names = ("night", "position", "kind", "deviation", "deviation_low", "deviation_high")
    rows = read_table(request.session.store, FLAG_EVENTS, where, names).to_pylist()
    rows.sort(key=lambda row: (row["night"], row["position"]))
    shown = [(str(row["night"]), row["kind"].replace("_", " "), _spanned(row)) for row in rows]
    return _table("History", ("night", "event", "deviation"), shown)


def _spanned(row: Mapping[str, Any]) -> str:
    if row["deviation"] is None or row["deviation_low"] is None or row["deviation_high"] is None:
        return "-"
    return f"{speed(row['deviation'])} ({speed_range(row['deviation_low'], row['deviation_high'])})"


def _sent(request: Request, link: Link) -> list[Part]:
    mine = [each for each in _journal(request) if each.get("nonce") == link.nonce]
    waiting = {each["id"] for each in _waiting(request, mine)}
    said = [
        f"{_minute(each)} UTC: {visible(each['text'])} "
        f"({'the next night passes it on' if each['id'] in waiting else 'passed on'})"
        for each in mine
    ]
    return [Part("Thank you, received", "", said, [], None)] if said else []


def _waiting(request: Request, entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries that no night has entered yet."""
    if not entries:
        return []
    where = [In("act", tuple(each["id"] for each in entries))]
    entered = set(read_table(request.session.store, ACTS, where, ["act"]).column("act").to_pylist())
    return [each for each in entries if each["id"] not in entered]


def _journal(request: Request) -> list[dict[str, Any]]:
    return [] if request.acting.journal is None else request.acting.journal.read()


def _table(title: str, headings: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Part:
    columns = {
        heading: [visible(str(row[position] or "-")) for row in rows]
        for position, heading in enumerate(headings)
    }
    return Part(title, "", [] if rows else ["None."], [], columns_of(pa.table(columns)) if rows else None)


def _line(text: str) -> str:
    """A text on one line; the ends of lines become semicolons."""
    return "; ".join(filter(None, (" ".join(line.split()) for line in text.splitlines())))


def _required(text: str) -> str:
    if not text:
        raise UsageError("the text is missing; go back and fill it in")
    if len(text) > _LONGEST_TEXT:
        raise UsageError(f"the text has {len(text):,} characters; at most {_LONGEST_TEXT:,} are accepted")
    # halves of pairs, which no file in UTF-8 can hold
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UsageError("the text is not valid UTF-8; type it again")
    return text


def _number(text: str | None) -> float:
    try:
        # people of many countries type a decimal comma
        value = float((text or "").replace(",", "."))
    except ValueError:
        value = math.nan
    if not 0 < value <= _LARGEST_VALUE:
        raise UsageError(f"the value must be a number above 0, at most {count(_LARGEST_VALUE)}, as 11.2")
    return value
