"""Panels of words, in Markdown."""

from collections.abc import Iterable
from typing import Any

from dashboards.spec import FIXED_COLOURS, JOBS, JobsIndex, Page, Panel, lacking
from dashboards.targets.saved_objects.charts import Clicks, by_value, drawn
from dashboards.targets.saved_objects.objects import PREFIX, identity
from dashboards.targets.vegalite.charts import CHARTS
from esjobs.core.numbers import exact_percent
from esjobs.core.words import DEVIATION_LIMIT


def markdown(panel: Panel) -> dict[str, Any]:
    """An explanation: a paragraph for each of its terms."""
    parts = [f"**{term}.** {text}" if term else text for term, text in panel.text]
    words = "\n\n".join(parts).replace("{limit}", exact_percent(DEVIATION_LIMIT))
    return by_value("markdown", panel.title, _params(words))


def way(pages: Iterable[Page], here: Page, prefix: str = PREFIX) -> dict[str, Any]:
    """The way to every other page: addresses inside the server, whatever its path and its space."""
    links = [
        f"**{page.title}**"
        if page.id == here.id
        else f"[{page.title}](#/view/{identity('dashboard', page.id, prefix)})"
        for page in pages
    ]
    words = f"{here.question} {here.hint}".strip()
    return by_value("markdown", "", _params(f"{words}\n\n{' &nbsp;·&nbsp; '.join(links)}"))


def _params(words: str) -> dict[str, Any]:
    return {"fontSize": 10, "markdown": words, "openLinksInNewTab": False}


def shown_title(panel: Panel) -> str:
    """The title over a panel; a caption is one itself."""
    return "" if panel.kind == "caption" else panel.title


def left_out(panel: Panel, fields: list[str]) -> dict[str, Any]:
    """In the place of a panel that an index of jobs cannot answer."""
    listed = ", ".join(f"`{name}`" for name in fields)
    words = (
        f"The index of jobs has no field that can be summed for: {listed}. A field map with one field for "
        "each shows this panel (`esjobs fields check`)."
    )
    return by_value("markdown", panel.title, _params(words))


def is_plain(panel: Panel) -> bool:
    """True if servers draw a chart themselves: it has no errors, and needs sums alone."""
    return panel.kind == "coverage" or (
        panel.kind == "trend" and not panel.band and panel.entry("label").column in FIXED_COLOURS
    )


def drawn_alike(
    panel: Panel, method: str, prefix: str, jobs: JobsIndex, clicks: Clicks
) -> dict[str, Any] | None:
    """A panel that all products draw alike, a chart or a text, by value; None for the others."""
    if panel.view.table == JOBS.name and (fields := lacking(panel, jobs)):
        return left_out(panel, fields)
    if panel.kind in CHARTS and not is_plain(panel):
        return drawn(panel, method, prefix, jobs, clicks)
    return markdown(panel) if panel.kind == "markdown" else None
