"""The start page: result of the latest run, guide to the pages, verdicts."""

from dataclasses import replace

from dashboards.pages.sites import IN_WORDS, STATEMENT
from dashboards.panels.age import LIGHT
from dashboards.spec import Page, Panel, stacked

WHERE = Panel(
    "ask-where",
    "Where to look",
    "markdown",
    "Ask",
    text=(
        ("Sites and queues", "Queues that deviate by more than {limit} from their declared score."),
        ("Site", "Queues of one site: by processing type, over time, by task. Select its name there."),
        ("CPU models", "Speed of the processors, against their reference scores."),
        ("Efficiency", "CPU time over allocated core time, and idle core-hours."),
        ("Users and projects", "Scores of their jobs, weighted by node-hours, down to single jobs."),
        ("Job issues", "Jobs that leave their allocation idle, with advice for their users."),
        ("Data quality", "Missing days and runs, dropped jobs, fits that did not converge."),
    ),
    hint="Every table is a data view: open a row below, or Discover.",
)

READING = Panel(
    "ask-reading",
    "How to read a speed factor",
    "markdown",
    "Ask",
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

ASK = Page(
    "ask",
    "Start here",
    "What was found, and can I trust it?",
    stacked(
        (
            9,
            (
                (replace(LIGHT, id="ask-light"), 24),
                (replace(STATEMENT, id="ask-conclusion", view=replace(STATEMENT.view, types="main")), 24),
            ),
        ),
        (20, ((WHERE, 20), (READING, 28))),
        (18, ((replace(IN_WORDS, id="ask-verdicts", view=replace(IN_WORDS.view, types="main")), 48),)),
    ),
)
