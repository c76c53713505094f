"""Pages for people: the descriptions of exported pages and reports, linked with each other."""

import hashlib
import shlex
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from urllib.parse import quote, urlencode

import pyarrow as pa

from dashboards.pages import PAGES
from dashboards.spec import Page
from dashboards.targets.html.job import Around, job_style
from dashboards.targets.html.pages.files import FIRST, Site, file_of
from dashboards.targets.html.profile import Form, FormField, Part, ProfilePage, profile_style, render_profile
from esjobs.core.errors import UsageError
from esjobs.core.numbers import count
from esjobs.core.text import visible
from esjobs.issues.one_job import Identity, job_story
from esjobs.render.html_pages import pages_of
from esjobs.render.job_page import job_html
from esjobs.render.job_pages import JobPages
from esjobs.render.person import person
from esjobs.render.person_page import person_page
from esjobs.render.profile.profile import profile
from esjobs.render.profile_page import columns_of, profile_page
from esjobs.render.today_page import today_page
from esjobs.web.answers import Reply
from esjobs.web.api import asked_groups
from esjobs.web.asked import AbsentError, Asked, Handler
from esjobs.web.jobs import job_rows

_PAGE = 100
_OWN = (("Today", "/"), ("Jobs", "/jobs"), ("Ask", "/ask"))
_OF_PEOPLE = "people"
_KEPT_SITES = 3

# Headings of tables and terms, to what their cells are pages of
_LEADS = {
    **dict.fromkeys(("queue", "Queue"), "queue"),
    **dict.fromkeys(("site", "Site"), "site"),
    **dict.fromkeys(("CPU model", "cpu_model", "cpu model"), "cpu"),
    **dict.fromkeys(("job", "job_id", "Job"), "job"),
    **dict.fromkeys(("user", "User"), "user"),
    **dict.fromkeys(("project", "Project"), "project"),
}
_PEOPLE = ("user", "project")
_NO_NAMES = ("", "-", "–", "others", "all")


def today(asked: Asked) -> Reply:
    """Today."""
    return _page(asked, today_page(asked.session.store, asked.now))


def dashboard(asked: Asked) -> Reply:
    """A page of the dashboards."""
    name = asked.parts["name"].removesuffix(".html")
    site = _site(asked)
    file = FIRST if name == "index" else f"{name}.html"
    chosen = next((file_of(each, PAGES) for each in PAGES if each.id == name), file)
    if chosen not in site.pages:
        raise AbsentError(
            f"no page '{name:.60}'; pages: {', '.join(each.id for each in _shown_pages(asked))}"
        )
    return Reply(site.pages[chosen].encode())


def dashboard_part(asked: Asked) -> Reply:
    """What a page of the dashboards loads: scripts, rows, its style sheet."""
    site = _SITES.get(asked.parts["folder"]) or _site(asked)
    text = site.parts.get(asked.parts["part"]) if site.folder == asked.parts["folder"] else None
    if text is None:
        raise AbsentError("this part belongs to an earlier state; load the page again")
    media = "text/css" if asked.parts["part"].endswith(".css") else "text/javascript"
    return Reply(text.encode(), f"{media}; charset=utf-8", lasting=True)


def icon(_asked: Asked) -> Reply:
    """No icon, which browsers ask for."""
    return Reply(b"", "image/x-icon", lasting=True)


def static(asked: Asked) -> Reply:
    """A style sheet."""
    for address, text in (_profile_style(), _job_style()):
        if address == f"/static/{asked.parts['name']}":
            return Reply(text.encode(), "text/css; charset=utf-8", lasting=True)
    raise AbsentError("this style sheet belongs to an earlier version; load the page again")


def profile_of(level: str) -> Handler:
    """Return a handler of pages of sites, queues or CPU models."""
    field = {"site": "site", "queue": "queue", "cpu": "cpu_model"}[level]

    def handler(asked: Asked) -> Reply:
        name = asked.parts["name"]
        try:
            found = profile(asked.session.store, "cpu_model" if level == "cpu" else "queue", name)
        except UsageError as error:
            raise AbsentError(str(error)) from error
        links = [("Jobs", _address("/jobs", where=f"{field}={_quoted(name)}"))]
        if level == "site":
            links += [
                (f"Queue {visible(each)}", f"/queue/{quote(each, safe='')}") for each in found.named.names
            ]
        elif level == "queue" and found.flags and found.flags[0]["site"]:
            site = found.flags[0]["site"]
            links.append((f"Site {visible(site)}", f"/site/{quote(site, safe='')}"))
        return _page(asked, replace(profile_page(found, asked.now), links=links))

    return handler


def person_of(kind: str) -> Handler:
    """Return a handler of pages of users or projects."""

    def handler(asked: Asked) -> Reply:
        name = asked.parts["name"]
        try:
            page = person_page(person(asked.session.store, kind, name, None))
        except UsageError as error:
            raise AbsentError(str(error)) from error
        return _page(
            asked, replace(page, links=[("Jobs", _address("/jobs", where=f"{kind}={_quoted(name)}"))])
        )

    return handler


def job(asked: Asked) -> Reply:
    """One job."""
    story = job_story(asked.session.store, asked.parts["name"], asked.one("source"))
    story = replace(story, monitoring=asked.session.noise.sentences())
    return Reply(job_html(story, _around(asked, _job_style()[0])).encode())


def jobs(asked: Asked) -> Reply:
    """A list of jobs, page by page."""
    where = asked.conditions
    found = job_rows(asked, _PAGE)
    total = asked.session.query((), ("jobs",), where=where, window=asked.one("window")).rows
    n_jobs = total.column("jobs")[0].as_py() or 0
    about = "Those that ended last first."
    links = [("First page", asked.address(cursor=""))] if asked.one("cursor") else []
    links += [("Next page", found.next)] if found.next else []
    rows = found.rows.drop_columns(["source"])
    table = columns_of(rows) if rows.num_rows else None
    said = [] if rows.num_rows else ["No job matches."]
    form = Form("/jobs", (_where_field(asked), _window_field(asked)), "Show jobs")
    title = f"{count(n_jobs)} job{'s' * (n_jobs != 1)}"
    parts = [Part("Jobs", about, said, [], table), _same(_jobs_command(asked), _jobs_python(asked))]
    return _page(asked, ProfilePage(title, _conditions(asked), parts, links, form))


def ask(asked: Asked) -> Reply:
    """A question to the jobs as a form, with its answer."""
    fields = (
        FormField("by", "Group by", ", ".join(asked.many("by")), "queue, week"),
        FormField("metric", "Metrics", ", ".join(asked.many("metric")), "jobs, efficiency, core_h"),
        _where_field(asked),
        _window_field(asked),
        FormField("sort", "Sort by", asked.one("sort") or "", "efficiency"),
        FormField("order", "Order", asked.one("order") or "", options=("", "ascending", "descending")),
        FormField("top", "First groups", asked.one("top") or "", "20"),
    )
    form = Form("/ask", fields, "Ask")
    about = "Groups of stored jobs by any field; the fields and metrics are those of esjobs fields."
    if not any(asked.values.values()):
        return _page(asked, ProfilePage("Ask", about, [], (), form))
    try:
        answer = asked_groups(asked)
    except UsageError as error:
        return replace(_page(asked, ProfilePage("Ask", about, [_said(str(error))], (), form)), status=400)
    groups = answer.details
    notes = [visible(note) for note in answer.notes] or ["Every job that matches counts."]
    table = columns_of(groups.read) if groups.read.num_rows else None
    parts = [Part("Answer", "", notes, [], table), _same(_command(asked), _python(asked))]
    return _page(asked, ProfilePage("Ask", visible(answer.title) or about, parts, (), form))


def problem_page(asked_ways: bool, title: str, sentence: str) -> str:
    """Return the page of an error."""
    around = Around(_profile_style()[0], "", _OWN if asked_ways else ())
    return render_profile(ProfilePage(title, visible(sentence), []), around)


def _page(asked: Asked, page: ProfilePage) -> Reply:
    return Reply(render_profile(page, _around(asked, _profile_style()[0])).encode())


def _around(asked: Asked, style: str) -> Around:
    dashboards = [(each.title, f"/pages/{file_of(each, PAGES)}") for each in _shown_pages(asked)]
    return Around(style, "", (*_OWN, *dashboards), _leader(asked))


def _leader(asked: Asked) -> Callable[[str, str], str]:
    def lead(heading: str, cell: str) -> str:
        kind = _LEADS.get(heading)
        hidden = asked.hides_people and kind in _PEOPLE
        # names with escapes are not what is stored
        if kind is None or hidden or cell in _NO_NAMES or "\\" in cell:
            return ""
        return f"/{kind}/{quote(cell, safe='')}"

    return lead


def _shown_pages(asked: Asked) -> tuple[Page, ...]:
    return tuple(each for each in PAGES if not (asked.hides_people and each.id == _OF_PEOPLE))


_SITES: OrderedDict[str, Site] = OrderedDict()


def _site(asked: Asked) -> Site:
    """The dashboards of what is shown; those of states before stay for readers who have them open."""

    def make() -> Site:
        site = pages_of(
            asked.session.store,
            of_jobs=JobPages(_Addresses()),
            now=asked.now,
            pages=_shown_pages(asked),
            ways=_OWN,
        )
        _SITES[site.folder] = site
        while len(_SITES) > _KEPT_SITES:
            _SITES.popitem(last=False)
        return site

    return asked.shown.once("dashboards", make)


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
    return _named_style("page", profile_style())


@cache
def _job_style() -> tuple[str, str]:
    return _named_style("job", job_style())


def _named_style(name: str, text: str) -> tuple[str, str]:
    return f"/static/{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.css", text


def _address(path: str, **values: str | None) -> str:
    query = urlencode([(name, value) for name, value in values.items() if value])
    return f"{path}?{query}" if query else path


def _quoted(name: str) -> str:
    """A value of a condition as it is."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _where_field(asked: Asked) -> FormField:
    return FormField("where", "Conditions", " ; ".join(asked.conditions), "state=failed ; efficiency<10%")


def _window_field(asked: Asked) -> FormField:
    return FormField("window", "Window", asked.one("window") or "", "2025-06, 7d, 2025-06-01/2025-06-08")


def _conditions(asked: Asked) -> str:
    said = [*asked.conditions, *([asked.one("window") or ""] if asked.one("window") else [])]
    return visible("; ".join(said)) or "All stored jobs."


def _said(sentence: str) -> Part:
    return Part("Answer", "", [visible(sentence)], [], None)


def _same(command: str, python: str) -> Part:
    cells = pa.table({"with": ["command line", "Python"], "write": [command, python]})
    return Part("The same elsewhere", "", [], [], columns_of(cells))


def _options(asked: Asked, *names: str) -> list[str]:
    return [f"--{name} {shlex.quote(each)}" for name in names for each in _values(asked, name)]


def _values(asked: Asked, name: str) -> tuple[str, ...]:
    return asked.conditions if name == "where" else asked.many(name)


def _jobs_command(asked: Asked) -> str:
    return " ".join(["esjobs jobs", *_options(asked, "where", "window")])


def _command(asked: Asked) -> str:
    order = {"ascending": ["--asc"], "descending": ["--desc"]}.get(asked.one("order") or "", [])
    return " ".join(
        ["esjobs query", *_options(asked, "by", "metric", "where", "window", "sort", "top"), *order]
    )


def _jobs_python(asked: Asked) -> str:
    return f"session.jobs({', '.join(_keywords(asked, ('where',)))})"


def _python(asked: Asked) -> str:
    order = {"ascending": ["descending=False"], "descending": ["descending=True"]}
    first = [repr(list(asked.many("by"))), repr(list(asked.many("metric") or ("jobs",)))]
    keywords = [
        *_keywords(asked, ("where",)),
        *_one_keyword(asked, "sort"),
        *order.get(asked.one("order") or "", []),
    ]
    top = [f"top={asked.one('top')}"] if asked.one("top") else []
    return f"session.query({', '.join([*first, *keywords, *top])})"


def _keywords(asked: Asked, names: Iterable[str]) -> list[str]:
    lists = [f"{name}={list(_values(asked, name))!r}" for name in names if _values(asked, name)]
    return [*lists, *_one_keyword(asked, "window")]


def _one_keyword(asked: Asked, name: str) -> list[str]:
    return [f"{name}={asked.one(name)!r}"] if asked.one(name) else []
