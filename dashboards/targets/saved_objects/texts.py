"""Panels of words, in Markdown."""

from collections.abc import Iterable
from typing import Any

from dashboards.spec import Page, Panel
from dashboards.targets.saved_objects.charts import by_value, drawn
from dashboards.targets.saved_objects.objects import PREFIX, identity
from dashboards.targets.vegalite.charts import CHARTS
from esjobs.core.words import DEVIATION_LIMIT


def markdown(panel: Panel) -> dict[str, Any]:
    """An explanation: a paragraph for each of its terms."""
    parts = [f"**{term}.** {text}" if term else text for term, text in panel.text]
    words = "\n\n".join(parts).replace("{limit}", f"{100 * DEVIATION_LIMIT:.0f} %")
    return by_value("markdown", panel.title, _params(words))


def way(pages: Iterable[Page], here: Page, prefix: str = PREFIX) -> dict[str, Any]:
    """The way to every other page: addresses inside the server, whatever its path and its space."""
    links = [
        f"**{page.title}**"
        if page.id == here.id
        else f"[{page.title}](#/view/{identity('dashboard', page.id, prefix)})"
        for page in pages
    ]
    return by_value("markdown", "", _params(f"{here.question}\n\n{' &nbsp;·&nbsp; '.join(links)}"))


def _params(words: str) -> dict[str, Any]:
    return {"fontSize": 12, "markdown": words, "openLinksInNewTab": False}


def drawn_alike(panel: Panel, method: str, prefix: str = PREFIX) -> dict[str, Any] | None:
    """A panel that all products draw alike, a chart or a text, by value; None for the others."""
    if panel.kind in CHARTS:
        return drawn(panel, method, prefix)
    return markdown(panel) if panel.kind == "markdown" else None
