"""Every address of the web: pattern, method, handler, parameters, formats, and the least role."""

from esjobs.core.words import LEVELS
from esjobs.schema.issues import SEVERITIES
from esjobs.web import acts, api, forms, pages
from esjobs.web.request import Parameter, Route

_WHERE = Parameter("where", "Condition on jobs, as of esjobs query: FIELD=VALUE, efficiency<10%.", many=True)
_WINDOW = Parameter("window", "START/END in UTC, or a period: 2025-06, 7d, yesterday.")
_CURSOR = Parameter("cursor", "Where the rows go on: from 'next' of the answer before.")
_LIMIT = Parameter(
    "limit", f"Rows of an answer, at most {api.MOST_ROWS:,}.", type="integer", most=api.MOST_ROWS
)
_PAGED = (_LIMIT, _CURSOR)
_TABLE = tuple(
    Parameter(name, f"Rows with this {name}.", many=True) for name in ("type", "name", "site", "method")
)
_LEVEL = Parameter("level", "Rows with this level.", many=True, choices=tuple(LEVELS))
_ORDER = (
    Parameter("sort", "Column to sort by."),
    Parameter("order", "Order: ascending or descending.", choices=("ascending", "descending")),
    Parameter("top", "First groups; the rest is one row.", type="integer", most=api.MOST_ROWS),
)
_GROUPS = (
    Parameter("by", "Fields to group by.", many=True),
    Parameter("metric", "Metrics; jobs without any.", many=True),
    _WHERE,
    _WINDOW,
    Parameter("compare", "Another window, or previous."),
    *_ORDER,
)
_ISSUES = (
    Parameter("by", "Fields to group by, one or several between commas."),
    *(Parameter(name, f"Issues of this {name}.", many=True) for name in ("user", "project", "detector")),
    Parameter("severity", "Least severity.", choices=SEVERITIES),
    Parameter("sort", "Column to sort by, largest first."),
    _WINDOW,
)
_WALL = (Parameter("wall", "Present: one screen that renews itself."),)
_YES_NO = ("yes", "no")
_QUERY = (
    *_GROUPS,
    Parameter("min_jobs", "Least jobs of a group.", type="integer", most=api.MOST_MIN_JOBS),
    Parameter("total", "A row for all jobs.", choices=_YES_NO),
    Parameter("share", "Each group's share of the total.", choices=_YES_NO),
    Parameter("errors", "Standard errors.", choices=_YES_NO),
)
_ROWS = tuple(api.MEDIA)
_API = "/api/v1"


def _rows_of(name: str, shows: str) -> Route:
    return Route(f"{_API}/{name}", api.rows_of_table(name), shows, (_LEVEL, *_TABLE, *_PAGED), _ROWS)


def _groups_by(name: str, field: str, what: str) -> Route:
    shows = f"{what} with jobs, core-hours, efficiency and failures."
    return Route(f"{_API}/{name}", api.rows_of_groups(field), shows, (_WHERE, _WINDOW, *_PAGED), _ROWS)


# Addresses for people
PAGES: tuple[Route, ...] = (
    Route("/", pages.today, "Today: what the last night found and changed.", _WALL),
    Route("/pages/{folder}/{part}", pages.dashboard_part, "Scripts and rows of the dashboards."),
    Route("/pages/{name}", pages.dashboard, "A page of the dashboards."),
    Route("/favicon.ico", pages.icon, "Nothing.", role="nobody"),
    Route("/static/{name}", pages.static, "Style sheets, scripts.", role="nobody"),
    Route("/site/{name:any}", pages.profile_of("site"), "A site with all its queues."),
    Route("/incident", pages.incident, "Cost of an incident.", (Parameter("site", "Site."), _WINDOW)),
    Route("/queue/{name:any}", acts.queue, "A queue.", acts=True),
    Route("/cpu/{name:any}", pages.profile_of("cpu"), "A CPU model."),
    Route("/user/{name:any}", pages.person_of("user"), "A user.", role="support"),
    Route("/project/{name:any}", pages.person_of("project"), "A project.", role="support"),
    Route(
        "/job/{name:any}", pages.job, "A job.", (Parameter("source", "Source, where several have the id."),)
    ),
    Route("/task/{name:any}", pages.task, "A task."),
    *forms.routes(),
    Route("/jobs", pages.jobs, "Jobs, page by page.", (_WHERE, _WINDOW, _CURSOR)),
    Route("/issues", pages.issues, "Issues as a list of work.", _ISSUES, role="support"),
    Route("/ask", pages.ask, "A question to the jobs.", _GROUPS),
    Route("/health", api.health, "State of what is shown.", forms=("json",), role="nobody"),
)

# Addresses at which people enter something
ACTS: tuple[Route, ...] = (
    Route("/a/{token}", acts.answer_form, "A finding, and a form to answer.", role="nobody", private=True),
    Route(
        "/a/{token}",
        acts.answer,
        "An answer of a site.",
        (
            Parameter("said", "What it says.", choices=tuple(acts.SAID)),
            Parameter("value", "The corrected value per core."),
            Parameter("text", "Hardware list or reason."),
        ),
        role="nobody",
        method="POST",
        private=True,
    ),
    Route(
        "/acknowledge",
        acts.acknowledge,
        "An acknowledgement of the flags of a name.",
        (
            Parameter("level", "Level.", choices=tuple(LEVELS)),
            Parameter("name", "Queue, site or CPU model."),
            Parameter("until", "Day on which the flags open again."),
            Parameter("text", "Reason."),
        ),
        role="coordinator",
        method="POST",
        private=True,
    ),
)

# Addresses for programs
ROWS: tuple[Route, ...] = (
    _rows_of("flags", "Deviations with verdicts, of the latest run."),
    _rows_of("factors", "Speed factors, of the latest run."),
    Route(
        f"{_API}/incidents",
        api.rows_of_table("incidents"),
        "Incidents of sites: what, since when, cost, cause.",
        (Parameter("site", "Rows with this site.", many=True), *_PAGED),
        _ROWS,
    ),
    Route(
        f"{_API}/delivered",
        api.delivered,
        "Delivered work by declared and measured scores.",
        (
            Parameter("by", "site, queue, country, month and the like.", many=True),
            Parameter("vo", "VO of pledges."),
            _WHERE,
            _WINDOW,
            *_PAGED,
        ),
        _ROWS,
    ),
    Route(f"{_API}/nights", api.rows_of_table("nights"), "Nightly runs.", _PAGED, _ROWS),
    _groups_by("sites", "site", "Sites"),
    _groups_by("queues", "queue", "Queues"),
    _groups_by("cpu_models", "cpu_model", "CPU models"),
    Route(f"{_API}/jobs", api.jobs, "Jobs, latest end first.", (_WHERE, _WINDOW, *_PAGED), _ROWS),
    Route(f"{_API}/query", api.query, "Groups of jobs by any field.", (*_QUERY, *_PAGED), _ROWS),
    Route(f"{_API}/health", api.health, "State of what is shown.", forms=("json",), role="nobody"),
)
