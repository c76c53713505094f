"""Pages for people: the descriptions of exported pages and reports, linked with each other."""

import hashlib
import shlex
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

import pyarrow as pa

from dashboards.pages import PAGES
from dashboards.spec import Page
from dashboards.targets.html.job import Around, job_style, nowhere
from dashboards.targets.html.pages.files import FIRST, Site, file_of
from dashboards.targets.html.profile import (
    Columns,
    Form,
    FormField,
    Part,
    ProfilePage,
    profile_style,
    render_profile,
    render_wall,
    wall_script,
)
from dashboards.targets.html.report import library
from esjobs.core.conditions import written
from esjobs.core.errors import NoJobsError, NoResultError, UsageError
from esjobs.core.numbers import count, many
from esjobs.core.text import visible
from esjobs.issues.one_job import Identity, JobStory
from esjobs.records.answer import Answer
from esjobs.render.html_pages import pages_of
from esjobs.render.job_page import job_html
from esjobs.render.job_pages import JobPages
from esjobs.render.person import person
from esjobs.render.person_page import person_page
from esjobs.render.profile.named import Named
from esjobs.render.profile.profile import profile
from esjobs.render.profile_page import columns_of, curve, profile_page
from esjobs.render.today_page import today_page, wall_page
from esjobs.schema.issues import SEVERITIES
from esjobs.schema.today import EVERYWHERE, REPORTED
from esjobs.today.incident import parts
from esjobs.today.sentences import window_of
from esjobs.today.states import Incident
from esjobs.web.answers import Reply
from esjobs.web.api import grouped
from esjobs.web.jobs import job_rows
from esjobs.web.request import AbsentError, Handler, Request

Lead = Callable[[str, str], str]  # Address of the rows behind a cell, by its heading; empty without any
_PAGE = 100
_OWN = (
    *(("Today", "/"), ("Jobs", "/jobs"), ("Ask", "/ask")),
    *(("Delivered", "/delivered"), ("What if", "/what-if/move"), ("Incident", "/incident")),
)
_OF__PEOPLE = "people"
_KEPT_SITES = 3
_LEAST_DAYS = 3
_OF_TASK = (
    "cpu_ratio: CPU time over the forecast from all other queues that ran it, with its 90 % interval. "
    "usual_efficiency: of other tasks of its kind at the queue."
)

# Headings of tables and terms, to what their cells are pages of
_LEADS = {
    **dict.fromkeys(("queue", "Queue"), "queue"),
    **dict.fromkeys(("site", "Site"), "site"),
    **dict.fromkeys(("CPU model", "cpu_model", "cpu model"), "cpu"),
    **dict.fromkeys(("job", "job_id", "Job"), "job"),
    **dict.fromkeys(("task", "task_id", "Task"), "task"),
    **dict.fromkeys(("user", "User"), "user"),
    **dict.fromkeys(("project", "Project"), "project"),
}
_PEOPLE = ("user", "project")
_BELONGS = {"queue": "Queue", "task_id": "Task", "user": "User", "project": "Project"}
_LISTS = ("user", "project", "detector", "user,detector", "user,job_name,detector", "job")
_SORTED = ("lost_node_h", "weighted_node_h", "idle_core_h", "idle_gpu_h", "n_jobs", "value_high", "last")
_NO_NAMES = ("", "-", "–", "others", "all", "all together", "not recorded", EVERYWHERE)


def today(request: Request) -> Reply:
    """Today, or the same for a wall."""
    store = request.session.store
    if "wall" not in request.values:
        return page_of(request, today_page(store, request.now, _incidents))
    return Reply(render_wall(wall_page(store, request.now), _profile_style()[0], _wall_script()[0]).encode())


def dashboard(request: Request) -> Reply:
    """A page of the dashboards."""
    name = request.parts["name"].removesuffix(".html")
    site = _site(request)
    file = FIRST if name == "index" else f"{name}.html"
    chosen = next((file_of(each, _DASHBOARDS) for each in _DASHBOARDS if each.id == name), file)
    if chosen not in site.pages:
        raise AbsentError(
            f"no page '{name:.60}'; pages: {', '.join(each.id for each in _shown_pages(request))}"
        )
    return Reply(site.pages[chosen].encode())


def dashboard_part(request: Request) -> Reply:
    """Parts of a page of the dashboards: scripts, rows, its style sheet."""
    site = _SITES.get((_audience(request), request.parts["folder"])) or _site(request)
    text = site.parts.get(request.parts["part"]) if site.folder == request.parts["folder"] else None
    if text is None:
        raise AbsentError("this part belongs to an earlier state; load the page again")
    media = "text/css" if request.parts["part"].endswith(".css") else "text/javascript"
    return Reply(text.encode(), f"{media}; charset=utf-8", lasting=True)


def icon(_request: Request) -> Reply:
    """No icon, which browsers ask for."""
    return Reply(b"", "image/x-icon", lasting=True)


def static(request: Request) -> Reply:
    """A style sheet or a script."""
    for address, text in (_profile_style(), _job_style(), _wall_script(), _library()):
        if address == f"/static/{request.parts['name']}":
            media = "text/css" if address.endswith(".css") else "text/javascript"
            return Reply(text.encode(), f"{media}; charset=utf-8", lasting=True)
    raise AbsentError("this file belongs to an earlier version; load the page again")


def profile_of(level: str) -> Handler:
    """Return a handler of pages of sites or CPU models."""

    def handler(request: Request) -> Reply:
        return page_of(request, *profile_content(request, level))

    return handler


# Headings of tables about one name, to the field of its jobs that their cells choose
_PARTS = {"processing type": "processing_type", "application": "application"}


def rows_of(request: Request, field: str, name: str) -> Lead:
    """Return what leads from cells of the page of a name to the jobs behind their row."""
    one, run = written(field, "=", [name]), request.shown.run

    def lead(heading: str, cell: str) -> str:
        if cell in _NO_NAMES or "\\" in cell:
            return ""
        if heading == "day":
            return _address("/jobs", where=one, window=cell)
        if heading not in _PARTS:
            return ""
        where = f"{one} ; {written(_PARTS[heading], '=', [cell])}"
        return _address("/jobs", where=where, window=str(run.window) if run is not None else None)

    return lead


def profile_content(request: Request, level: str) -> tuple[ProfilePage, Lead]:
    """Return the content of the page of a site, a queue or a CPU model (``cpu``), and its way to the jobs."""
    try:
        found = profile(
            request.session.store, "cpu_model" if level == "cpu" else "queue", request.parts["name"]
        )
    except UsageError as error:
        raise AbsentError(str(error)) from error
    field, name = _jobs_of(found.named, level)
    links = [("Jobs", _address("/jobs", where=written(field, "=", [name])))]
    if level == "site":
        links += _incidents(found.incidents)
        links += [(f"Queue {visible(each)}", f"/queue/{quote(each, safe='')}") for each in found.named.names]
    elif level == "queue" and found.flags and found.flags[0]["site"]:
        site = found.flags[0]["site"]
        links.append((f"Site {visible(site)}", f"/site/{quote(site, safe='')}"))
    return replace(profile_page(found, request.now), links=links), rows_of(request, field, name)


def _jobs_of(found: Named, level: str) -> tuple[str, str]:
    """Return field and value of the jobs of a page: a name may be that of a site with several queues."""
    if level == "cpu":
        return "cpu_model", found.names[0]
    if found.of_site and found.site is not None and (level == "site" or len(found.names) > 1):
        return "site", found.site
    return "queue", found.names[0]


def _incidents(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield links to the pages of incidents of sites that cost core-hours."""
    for row in rows:
        window = window_of(Incident(**row))
        if window is not None and row["state"] in REPORTED:
            address = _address("/incident", site=row["site"], window=str(window))
            yield f"Incident of {row['since']} at {visible(row['site'])}", address


def incident(request: Request) -> Reply:
    """The cost of an incident at a site."""
    site = request.one("site") or ""
    form = Form("/incident", (FormField("site", "Site", site, ""), _window_field(request)), "Show")
    found = request.session.flags.today.incident(site, window=request.one("window")) if site else ()
    shown = [Part(visible(site), visible(row["sentence"]), [], [], columns_of(parts(row))) for row in found]
    about = (
        "Core-hours beyond what the same work usually takes; without a window, of the newest incident. Today "
        "adds up what each night could know, so that its number differs."
    )
    return page_of(request, ProfilePage("Incident", about, shown, (), form))


def task(request: Request) -> Reply:
    """One task."""
    name = request.parts["name"]
    try:
        story = request.session.what_if.task(name)
    except NoResultError as error:
        raise AbsentError("Tasks have pages once there are speed factors.") from error
    except UsageError as error:
        raise AbsentError(str(error)) from error
    days = request.session.what_if.progress(name).rows.to_pylist()
    drawn = {"jobs": "Jobs", "failed": "Failed jobs", "core_h": "Core-hours", "efficiency": "CPU efficiency"}
    points = {
        title: [(f"{row['day']:%Y-%m-%d}", float(row[column])) for row in days if row[column] is not None]
        for column, title in drawn.items()
    }
    curves = [
        curve(title, values, "day", "the task")
        for title, values in points.items()
        if len(values) >= _LEAST_DAYS
    ]
    parts = [
        Part("Queues", _OF_TASK, notes_of(story), [], columns_of(story.rows)),
        Part("Days", "", [], curves, None),
    ]
    links = [("Jobs", _address("/jobs", where=written("task_id", "=", [name])))]
    return page_of(request, ProfilePage(f"Task {visible(name)}", "", parts, links))


def person_of(kind: str) -> Handler:
    """Return a handler of pages of users or projects."""

    def handler(request: Request) -> Reply:
        name = request.parts["name"]
        try:
            page = person_page(person(request.session.store, kind, name, None))
        except UsageError as error:
            raise AbsentError(str(error)) from error
        links = [("Jobs", _address("/jobs", where=written(kind, "=", [name])))]
        return page_of(request, replace(page, links=links), rows_of(request, kind, request.parts["name"]))

    return handler


def job(request: Request) -> Reply:
    """One job."""
    story = request.session.job(request.parts["name"], source=request.one("source")).content
    return Reply(job_html(story, _around(request, _job_style()[0]), _of_job(request, story)).encode())


def _of_job(request: Request, story: JobStory) -> list[tuple[str, str]]:
    """Return the ways from a job to what it belongs to."""
    record, lead = story.record, _leader(request)
    links = [
        (f"{title} {visible(record[name])}", lead(name, record[name]))
        for name, title in _BELONGS.items()
        if name in record
    ]
    if story.runs:
        same_name = [written(name, "=", [record[name]]) for name in ("user", "job_name") if name in record]
        links.append(
            (f"Jobs named {visible(record['job_name'])}", _address("/jobs", where=" ; ".join(same_name)))
        )
    if story.plots:
        links.append(("Similar jobs", _address("/similar", job=story.job_id, source=story.source)))
    return [(title, address) for title, address in links if address]


def jobs(request: Request) -> Reply:
    """A list of jobs, page by page."""
    found = job_rows(request, _PAGE)
    n_jobs = _n_jobs(request)
    about = "Those that ended last first."
    links = [("First page", request.address(cursor=""))] if request.one("cursor") else []
    links += [("Next page", found.next)] if found.next else []
    rows = found.rows.drop_columns(["source"])
    table = columns_of(rows) if rows.num_rows else None
    said = [] if rows.num_rows else ["No job matches."]
    form = Form("/jobs", (_where_field(request), _window_field(request)), "Show jobs")
    title = f"{count(n_jobs)} job{'s' * (n_jobs != 1)}"
    command = " ".join(["esjobs jobs", *_options(request, "where", "window")])
    elsewhere = same(command, f"session.jobs({', '.join(_keywords(request))})")
    parts = [Part("Jobs", about, said, [], table), elsewhere]
    return page_of(request, ProfilePage(title, _conditions(request), parts, links, form))


def _n_jobs(request: Request) -> int:
    try:
        counted = request.session.query((), ("jobs",), where=request.conditions, window=request.one("window"))
    except NoJobsError:
        return 0
    return int(counted.rows.column("jobs")[0].as_py())


def issues(request: Request) -> Reply:
    """Issues as a list of work: users, projects, rules or jobs by what their jobs lost."""
    by, sort = request.one("by") or "user", request.one("sort") or ""
    least = request.one("severity") or "minor"
    chosen = {name: request.many(name) for name in (*_PEOPLE, "detector") if request.many(name)}
    fields = (
        FormField("by", "List", by, options=_LISTS),
        *(FormField(name, name, ", ".join(chosen.get(name, ()))) for name in (*_PEOPLE, "detector")),
        FormField("severity", "Least severity", least, options=SEVERITIES),
        FormField("sort", "Sort by", sort, options=("", *_SORTED)),
        _window_field(request),
    )
    form = Form("/issues", fields, "Show")
    try:
        rows = request.session.issues.work_list(
            by.split(","), window=request.one("window"), where=chosen, least=least
        ).rows
    except NoResultError as error:
        return page_of(request, ProfilePage("Issues", "", [said(str(error))], (), form))
    rows = rows.sort_by([(sort, "descending")]) if sort in rows.column_names else rows
    about = "Most lost node-hours first; n_jobs counts jobs. Names lead to their jobs."
    shown = with_values(rows.slice(0, _PAGE), ("source",))
    parts = [Part(many(rows.num_rows, "row"), "", [], [], shown)]
    return page_of(request, ProfilePage("Issues", about, parts, (), form))


def ask(request: Request) -> Reply:
    """A question to the jobs as a form, with its answer."""
    fields = (
        FormField("by", "Group by", ", ".join(request.many("by")), "queue, week"),
        FormField("metric", "Metrics", ", ".join(request.many("metric")), "jobs, efficiency, core_h"),
        _where_field(request),
        _window_field(request),
        FormField("compare", "Compare with", request.one("compare") or "", "previous, 2025-05"),
        FormField("sort", "Sort by", request.one("sort") or "", "efficiency"),
        FormField("order", "Order", request.one("order") or "", options=("", "ascending", "descending")),
        FormField("top", "First groups", request.one("top") or "", "20"),
    )
    form = Form("/ask", fields, "Ask")
    about = "Groups of stored jobs by any field; the fields and metrics are those of esjobs fields."
    if not any(request.values.values()):
        return page_of(request, ProfilePage("Ask", about, [], (), form))
    try:
        answer = grouped(request)
    except UsageError as error:
        return replace(page_of(request, ProfilePage("Ask", about, [said(str(error))], (), form)), status=400)
    groups = answer.details
    notes = notes_of(answer) or ["Every job that matches counts."]
    table = columns_of(groups.read) if groups.read.num_rows else None
    parts = [Part("Answer", "", notes, [], table), same(_command(request), _python(request))]
    return page_of(request, ProfilePage("Ask", visible(answer.title) or about, parts, (), form))


def problem_page(title: str, sentence: str) -> str:
    """Return the page of an error."""
    around = Around(_profile_style()[0], "", _OWN)
    return render_profile(ProfilePage(title, visible(sentence), []), around)


def page_of(request: Request, page: ProfilePage, rows: Lead = nowhere) -> Reply:
    """Return a page with the ways to all others; ``rows``: to the rows behind a cell, by its heading."""
    around = _around(request, _profile_style()[0])
    general = around.lead

    def lead(heading: str, cell: str) -> str:
        return rows(heading, cell) or general(heading, cell)

    return Reply(render_profile(page, replace(around, lead=lead)).encode())


def _around(request: Request, style: str) -> Around:
    if not request.reader.may("public"):
        return Around(style, "", ())
    dashboards = [(each.title, f"/pages/{each.id}.html") for each in _shown_pages(request)]
    work = () if request.hides_people else (("Work", "/issues"),)
    return Around(style, "", (*_OWN, *work, *dashboards), _leader(request))


def _leader(request: Request) -> Callable[[str, str], str]:
    def lead(heading: str, cell: str) -> str:
        kind = _LEADS.get(heading)
        hidden = request.hides_people and kind in _PEOPLE
        # a task is compared by speed factors with all sites, of which a site sees its own
        hidden |= kind == "task" and (request.reader.role == "site" or request.shown.run is None)
        # names with escapes are not what is stored
        if kind is None or hidden or cell in _NO_NAMES or "\\" in cell:
            return ""
        return f"/{kind}/{quote(cell, safe='')}"

    return lead


# the web has a Today of its own
_DASHBOARDS = PAGES[1:]


def _shown_pages(request: Request) -> tuple[Page, ...]:
    return tuple(each for each in _DASHBOARDS if not (request.hides_people and each.id == _OF__PEOPLE))


_SITES: OrderedDict[tuple[str, str], Site] = OrderedDict()


def _site(request: Request) -> Site:
    """The dashboards of what is shown; those of states before stay for readers who have them open."""

    def make() -> Site:
        site = pages_of(
            request.session.store,
            of_jobs=JobPages(_Addresses()),
            now=request.now,
            pages=_shown_pages(request),
            ways=_OWN,
            library=_library()[0],
        )
        _SITES[_audience(request), site.folder] = site
        while len(_SITES) > _KEPT_SITES:
            _SITES.popitem(last=False)
        return site

    return request.shown.once(f"dashboards {_audience(request)}", make)


def _audience(request: Request) -> str:
    """Name of those who see the same rows."""
    return request.reader.scope if request.reader.role == "site" else str(request.hides_people)


class _Addresses(Mapping[Identity, str]):
    """Addresses of pages of jobs, of every job."""

    def __getitem__(self, job: Identity) -> str:
        source, job_id = job
        return _address(f"/job/{quote(job_id, safe='')}", source=source)

    def __iter__(self) -> Iterator[Identity]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True


@cache
def _profile_style() -> tuple[str, str]:
    return _named("page", profile_style())


@cache
def _job_style() -> tuple[str, str]:
    return _named("job", job_style())


@cache
def _wall_script() -> tuple[str, str]:
    return _named("wall", wall_script(), "js")


@cache
def _library() -> tuple[str, str]:
    # lasts over nights, as the parts of pages do not
    return _named("vega", library(), "js")


def _named(name: str, text: str, suffix: str = "css") -> tuple[str, str]:
    return f"/static/{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.{suffix}", text


def _address(path: str, **values: str | None) -> str:
    query = urlencode([(name, value) for name, value in values.items() if value])
    return f"{path}?{query}" if query else path


def _where_field(request: Request) -> FormField:
    return FormField("where", "Conditions", " ; ".join(request.conditions), "state=failed ; efficiency<10%")


def _window_field(request: Request) -> FormField:
    return FormField("window", "Window", request.one("window") or "", "2025-06, 7d, 2025-06-01/2025-06-08")


def _conditions(request: Request) -> str:
    said = filter(None, (*request.conditions, request.one("window")))
    return visible("; ".join(said)) or "All stored jobs."


def notes_of(answer: Answer) -> list[str]:
    """Return the notes of an answer as sentences of a page."""
    return [visible(note[:1].upper() + note[1:]) for note in answer.notes]


def said(sentence: str) -> Part:
    """Return a sentence in the place of an answer."""
    return Part("Answer", "", [visible(sentence)], [], None)


def with_values(rows: pa.Table, hidden: Collection[str]) -> Columns:
    """Return rows as a table of a page, without columns that are hidden or have no value."""
    empty = [name for name in rows.column_names if rows[name].null_count == rows.num_rows]
    return columns_of(rows.drop_columns([name for name in rows.column_names if name in (*hidden, *empty)]))


def same(command: str, python: str) -> Part:
    """Return what gives the same answer elsewhere."""
    cells = pa.table({"with": ["command line", "Python"], "write": [command, python]})
    return Part("The same elsewhere", "", [], [], columns_of(cells))


def _options(request: Request, *names: str) -> list[str]:
    return [f"--{name} {shlex.quote(each)}" for name in names for each in _values(request, name)]


def _values(request: Request, name: str) -> tuple[str, ...]:
    return request.conditions if name == "where" else request.many(name)


def _command(request: Request) -> str:
    order = {"ascending": ["--asc"], "descending": ["--desc"]}.get(request.one("order") or "", [])
    return " ".join(
        [
            "esjobs query",
            *_options(request, "by", "metric", "where", "window", "compare", "sort", "top"),
            *order,
        ]
    )


def _python(request: Request) -> str:
    order = {"ascending": ["descending=False"], "descending": ["descending=True"]}
    first = [repr(list(request.many("by"))), repr(list(request.many("metric") or ("jobs",)))]
    keywords = [
        *_keywords(request),
        *_one_keyword(request, "compare"),
        *_one_keyword(request, "sort"),
        *order.get(request.one("order") or "", []),
    ]
    top = [f"top={request.one('top')}"] if request.one("top") else []
    return f"session.query({', '.join([*first, *keywords, *top])})"


def _keywords(request: Request) -> list[str]:
    where = [f"where={list(request.conditions)!r}"] if request.conditions else []
    return [*where, *_one_keyword(request, "window")]


def _one_keyword(request: Request, name: str) -> list[str]:
    return [f"{name}={request.one(name)!r}"] if request.one(name) else []
