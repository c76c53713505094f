"""The landing page: what is where, how to read a speed factor, rows to ask on from."""

from dataclasses import replace

from dashboards.pages.sites import IN_WORDS, STATEMENT
from dashboards.panels.age import LIGHT
from dashboards.spec import Page, Panel, stacked

WHERE = Panel(
    "ask-where",
    "What is where",
    "markdown",
    "Ask",
    text=(
        ("Sites", "Which queues deviate by more than {limit} from what they declare, confirmed or not."),
        ("One site", "Its queues, by kind of work, over time, task by task. Choose its name there."),
        ("CPU models", "How fast the processors are, against their reference scores."),
        ("Efficiency", "CPU time over the cores that were held, and core-hours without CPU time."),
        ("Projects and users", "Scores of their jobs, weighted by node-hours, down to the single job."),
        ("Job issues", "Which jobs waste what they hold, how badly, and what to tell their users."),
        ("Trust", "Days and runs that are missing, jobs that were dropped, fits that did not close."),
    ),
    hint="Every table is a data view: open a row below, or Discover.",
)

READING = Panel(
    "ask-reading",
    "How to read a speed factor, in five sentences",
    "markdown",
    "Ask",
    text=(
        (
            "",
            "1. A speed factor k says how fast jobs ran on the cores of a queue, against the mean of all "
            "queues that ran the same tasks: k = 1.2 is 20 % faster.",
        ),
        (
            "",
            "2. Only ratios of factors of one component mean anything, for these are linked by common tasks.",
        ),
        (
            "",
            "3. The deviation compares k with what the declared corepower promises on the line of all other "
            "sites: above 0 ran faster than declared, below 0 slower.",
        ),
        (
            "",
            "4. A queue deviates when its 90 % interval lies beyond {limit}; it is confirmed, and may be "
            "sent, when that is also significant over all tests and survives every tried change.",
        ),
        (
            "",
            "5. Candidates, undecided and undeclared queues are no accusation: more common tasks, or a "
            "declared value, would decide.",
        ),
    ),
)

ASK = Page(
    "ask",
    "Ask",
    "Start here: what is where, may the numbers be used, and how is a speed factor read?",
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
