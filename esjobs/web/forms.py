"""Questions whose answer is one table, as forms: delivered work, energy, what would change."""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from dashboards.targets.html.profile import Form, FormField, Part, ProfilePage
from esjobs.core.arguments import split
from esjobs.core.errors import NoResultError, UsageError
from esjobs.core.text import visible
from esjobs.schema import delivered, what_if
from esjobs.web.answers import Reply
from esjobs.web.pages import notes_of, page_of, said, same, with_values
from esjobs.web.request import Handler, Parameter, Request, Route, conditions_in

_MOST_ROWS = 200


@dataclass(frozen=True)
class Entry:
    """A field of a form: ``option`` of the command, ``keyword`` of the function, empty for a position.

    ``read`` makes the value of a text and raises ValueError; ``needed``: without it nothing is asked.
    """

    name: str
    label: str
    hint: str = ""
    option: str = ""
    keyword: str = ""
    needed: bool = False
    read: Callable[[str], Any] = str


@dataclass(frozen=True)
class Question:
    """A form and what answers it: ``command`` in a shell, ``call`` of a session."""

    path: str
    title: str
    about: str
    command: str
    call: str
    entries: tuple[Entry, ...]
    hidden: tuple[str, ...] = ()


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _declarations(text: str) -> dict[str, float]:
    pairs = [each.rpartition("=") for each in text.split()]
    return {name: float(value) for name, _, value in pairs}


def _fields(text: str) -> list[str]:
    return list(split(text))


_WHERE = Entry("where", "Conditions", "state=failed ; efficiency<10%", "--where", "where", read=conditions_in)
_WINDOW = Entry("window", "Window", "2025-06, 7d, 2025-06-01/2025-06-08", "--window", "window")
_TASK = Entry("task", "Task", "22957682", "--task", "task")
_TYPE = Entry("type", "Processing type", "evgen", "--processing-type", "processing_type")
_JOBS = Entry("jobs", "Jobs", "5000", "--jobs", "jobs", read=_count)

QUESTIONS = (
    Question(
        "/delivered",
        "Delivered work",
        "Core-hours times the declared and the measured score per core, in HS06-hours or HS23-hours.",
        "esjobs delivered",
        "delivered.work",
        (
            Entry("by", "Group by", ", ".join(delivered.BY[:4]), "--by", "by", read=_fields),
            _WHERE,
            _WINDOW,
            Entry("vo", "VO of pledges", "atlas", "--vo", "vo"),
        ),
        delivered.NOT_SHOWN,
    ),
    Question(
        "/energy",
        "Energy and carbon",
        "Measured energy, else core-hours times the watts per core of the CPU model; carbon of it.",
        "esjobs energy",
        "delivered.energy",
        (Entry("by", "Group by", "site, cpu_model", "--by", "by", read=_fields), _WHERE, _WINDOW),
    ),
    Question(
        "/what-if/move",
        "Move work",
        "CPU time, wall time, memory and waiting of jobs of one queue at another one.",
        "esjobs what-if move",
        "what_if.move",
        (
            Entry("from", "From queue", "YEW-HEP", "--from", needed=True),
            Entry("to", "To queue", "BALSA-T2", "--to", needed=True),
            _TASK,
            _TYPE,
            _JOBS,
        ),
        what_if.NOT_SHOWN,
    ),
    Question(
        "/what-if/place",
        "Place free cores",
        "Queues by the work that free cores would deliver in them per wall hour.",
        "esjobs what-if place",
        "what_if.place_cores",
        (
            Entry("cores", "Free cores", "1000", "--cores", "cores", needed=True, read=_count),
            _TYPE,
            Entry("memory", "Memory per core, MB", "2000", "--memory", "memory_mb", read=_count),
        ),
        what_if.NOT_SHOWN,
    ),
    Question(
        "/what-if/finish",
        "Finish a task",
        "Queues by the chance to finish a task by the end of a day.",
        "esjobs what-if place",
        "what_if.finish",
        (
            replace(_TASK, keyword="", needed=True),
            Entry("due", "Last day", "2025-07-10", "--due", needed=True),
            _JOBS,
        ),
        what_if.NOT_SHOWN,
    ),
    Question(
        "/what-if/declare",
        "Declare other values",
        "Credit, share and rank of queues that would declare other scores per core.",
        "esjobs what-if declare",
        "what_if.declare",
        (Entry("values", "Values", "POPLAR-LCG2=12.5", needed=True, read=_declarations),),
        what_if.NOT_SHOWN,
    ),
    Question(
        "/what-if/drain",
        "Drain a site",
        "Work per day that a site, or each, would not deliver: mean of 28 days.",
        "esjobs what-if drain",
        "what_if.drain",
        (Entry("site", "Site", "POPLAR-LCG2"),),
        what_if.NOT_SHOWN,
    ),
    Question(
        "/similar",
        "Similar jobs",
        "Jobs whose time series are nearest to those of a job, in units of the spread over jobs.",
        "esjobs similar",
        "similar.jobs",
        (
            Entry("job", "Job", "4711", needed=True),
            Entry("source", "Source", "alpha", "--source", "source"),
            _WINDOW,
        ),
        ("source",),
    ),
)


def routes() -> Iterator[Route]:
    """Yield the address of each question."""
    for each in QUESTIONS:
        parameters = tuple(Parameter(entry.name, f"{entry.label}.") for entry in each.entries)
        yield Route(each.path, _handler(each), f"{each.title}.", parameters)


def _handler(question: Question) -> Handler:
    def handler(request: Request) -> Reply:
        form = Form(question.path, [_field(entry, request) for entry in question.entries], "Show")
        page = ProfilePage(question.title, question.about, [], _others(question), form)
        if not _complete(question, request):
            return page_of(request, page)
        try:
            return page_of(request, replace(page, parts=_answer(question, request)))
        except UsageError as error:
            return replace(page_of(request, replace(page, parts=[said(str(error))])), status=400)
        except NoResultError as error:
            return page_of(request, replace(page, parts=[said(str(error))]))

    return handler


def _field(entry: Entry, request: Request) -> FormField:
    return FormField(entry.name, entry.label, request.one(entry.name) or "", entry.hint)


def _others(question: Question) -> list[tuple[str, str]]:
    return [(each.title, each.path) for each in QUESTIONS if each is not question]


def _complete(question: Question, request: Request) -> bool:
    needed = [entry for entry in question.entries if entry.needed]
    return all(request.one(entry.name) for entry in needed)


def _answer(question: Question, request: Request) -> list[Part]:
    positions, keywords = _arguments(question, request)
    answer = attrgetter(question.call)(request.session)(*positions, **keywords)
    rows = answer.rows.slice(0, _MOST_ROWS)
    notes = notes_of(answer)
    if answer.rows.num_rows > _MOST_ROWS:
        notes.append(f"The first {_MOST_ROWS} of {answer.rows.num_rows} rows.")
    table = with_values(rows, question.hidden) if rows.num_rows else None
    return [
        Part(visible(answer.title[:1].upper() + answer.title[1:]) or "Answer", "", notes, [], table),
        same(_command(question, request), _python(question, positions, keywords)),
    ]


def _arguments(question: Question, request: Request) -> tuple[list[Any], dict[str, Any]]:
    positions: list[Any] = []
    keywords: dict[str, Any] = {}
    for entry in question.entries:
        text = request.one(entry.name)
        if text is None:
            continue
        try:
            value = entry.read(text)
        except ValueError:
            raise UsageError(f"{entry.label}: cannot read '{text:.60}'; write it like {entry.hint}") from None
        if entry.keyword:
            keywords[entry.keyword] = value
        else:
            positions.append(value)
    return positions, keywords


def _command(question: Question, request: Request) -> str:
    words = [question.command]
    for entry in question.entries:
        text = request.one(entry.name)
        if text is not None:
            several = entry.read(text) if entry.read is conditions_in else [text]
            if not entry.option:
                several = text.split()
            words += [f"{entry.option} {shlex.quote(each)}".strip() for each in several]
    return " ".join(words)


def _python(question: Question, positions: list[Any], keywords: dict[str, Any]) -> str:
    arguments = [repr(value) for value in positions] + [
        f"{name}={value!r}" for name, value in keywords.items()
    ]
    return f"session.{question.call}({', '.join(arguments)})"
