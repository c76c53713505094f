"""The first page: what is new, what stands open, how to read a speed factor."""

from dataclasses import replace

from dashboards.pages.site import EFFICIENCY_DAYS, FAILED_DAYS
from dashboards.pages.sites import IN_WORDS, OPEN, STATEMENT
from dashboards.panels.age import LIGHT
from dashboards.panels.columns import NAME, OF_SITE
from dashboards.panels.today import INCIDENTS
from dashboards.spec import Choice, Entry, Page, Panel, Tile, View, Where, stacked

OPEN_INCIDENTS = replace(
    INCIDENTS,
    id="today-incidents",
    kind="rows",
    empty="Nights are judged by esjobs serve, or by: esjobs today --update",
    optional=False,
    few=("site", "since", "cost_core_h", "state", "sentence"),
)

HOW_MANY = Panel(
    "today-how-many",
    "Incidents",
    "caption",
    "Today",
    INCIDENTS.view,
    tiles=(Tile("open incidents, most costly first.", one="open incident."),),
    empty="No open incident in this selection. Incidents are of sites: a filter by queue hides them.",
)

NIGHTS = Panel(
    "today-nights",
    "Deviations by queue and night: orange slower, blue faster; light from 10 %, dark from 20 %",
    "nights",
    "Today",
    View("flag_history", where=(Where("deviation"),), level="queue", sort=("-night", "name")),
    "Queues ever flagged, largest deviation first. Hollow: not confirmed.",
    fields=(
        NAME,
        OF_SITE,
        Entry("night", "Night", "time", "x"),
        Entry("deviation", "Deviation", "percent", "y"),
        Entry("deviation_low", "from", "percent"),
        Entry("deviation_high", "to (90 %)", "percent"),
        Entry("state", "State", "name"),
        Entry("confirmed", "Confirmed", "yesno"),
    ),
    most=(20,),
    empty="No judged night in this period; run: esjobs flags update",
)

EVENTS = Panel(
    "today-events",
    "What has changed?",
    "rows",
    "Today",
    View("flag_events", level="queue", sort=("-night", "name"), most=200),
    fields=(
        Entry("night", "Night", "time", "label"),
        replace(NAME, role="detail"),
        Entry("kind", "Event", "name"),
        Entry("deviation", "Deviation", "percent"),
        OF_SITE,
        Entry("sentence", "In words", "sentence"),
    ),
    few=("night", "name", "kind", "deviation"),
    empty="No flag has changed in this period.",
)

OPEN_FLAGS = replace(
    OPEN,
    id="today-open",
    view=replace(OPEN.view, types="main"),
    few=("name", "nights", "deviation"),
)

READING = Panel(
    "today-reading",
    "How to read a speed factor",
    "markdown",
    "Today",
    text=(
        (
            "",
            "1. A speed factor k is the speed of a queue's cores relative to the mean of all queues that "
            "ran the same tasks: k = 1.2 is 20 % faster.",
        ),
        (
            "",
            "2. Only factors of one component, linked by common tasks, can be compared.",
        ),
        (
            "",
            "3. The deviation compares k with the line through the declared values of all other sites: "
            "positive is faster than declared, negative slower.",
        ),
        (
            "",
            "4. A queue deviates when it is 95 % sure to be off by more than {limit}, given how the others "
            "declare. A deviation is confirmed, and cleared to send, when it passes every check.",
        ),
        (
            "",
            "5. Candidates, undecided and undeclared queues are not accused: more common tasks, or a "
            "declared value, would decide.",
        ),
    ),
)

# Sites have judged days, queues have none: on a server they stand below the incidents
_OF_SITE = (
    replace(
        EFFICIENCY_DAYS, id="today-days-efficiency", title="CPU efficiency of a site against expectation"
    ),
    replace(FAILED_DAYS, id="today-days-failed", title="Failed jobs of a site against expectation"),
)

TODAY = Page(
    "today",
    "Today",
    "What is new, and must I act?",
    stacked(
        (
            8,
            (
                (replace(LIGHT, id="today-light"), 24),
                (replace(STATEMENT, id="today-conclusion", view=replace(STATEMENT.view, types="main")), 24),
            ),
        ),
        (3, ((HOW_MANY, 48),)),
        (10, ((OPEN_INCIDENTS, 48),)),
        (14, ((NIGHTS, 48),)),
        (14, ((EVENTS, 24), (OPEN_FLAGS, 24))),
        (18, ((replace(IN_WORDS, id="today-verdicts", view=replace(IN_WORDS.view, types="main")), 48),)),
        (20, ((READING, 48),)),
    ),
    choices=(Choice("flag_states", "site", "Site"),),
    leads_to="site",
    # the line above all panels says on a server whether the data is current
    beyond=("today-light", "today-verdicts", READING.id),
    served=stacked((13, tuple((panel, 24) for panel in _OF_SITE))),
)
