"""The report of one run as a single HTML file that needs nothing else: no server, no network, no fonts.

The page is safe to open whatever the job records contain: text is escaped by the template, data stands in a
block of JSON that cannot end early, Vega evaluates no code (its expressions are interpreted), and a content
security policy admits exactly the page's own scripts and no connection at all.
"""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any

from markupsafe import Markup

from dashboards.spec import LOOKS
from dashboards.targets.html.cells import moment
from dashboards.targets.html.compose import Composer, ReportData
from dashboards.targets.html.files import environment, inside_page, read
from dashboards.targets.html.job import nowhere
from dashboards.targets.html.parts import BooksPart, Section
from dashboards.targets.html.profile import widths_css
from dashboards.targets.html.theme import SHAPES, age_macro, look_names, palette_css, series_css
from dashboards.view.rows import Row
from esjobs.core.numbers import count
from esjobs.core.text import visible

__all__ = ["ReportData", "render"]

_HEADING = "Speed factors of queues against their declared corepower"
_METHODS = {
    "gamma": "gamma (quasi-likelihood, robust, start-up time per job corrected)",
    "paper": "paper (the published method without corrections)",
}


def render(data: ReportData) -> str:
    """The whole report as HTML. The same data gives the same text, to the byte.

    About 0.7 MB, most of it Vega, plus 2 kB per queue, and 60 kB per processing type of many queues.
    """
    composer = Composer(data)
    sections = composer.sections()
    scripts = [library(), read("shared.js"), read("report.js")]
    style = palette_css() + series_css() + read("report.css") + read("profile.css") + widths_css()
    made = environment()
    made.filters["count"] = count
    made.filters["slug"] = lambda key: key.replace(" ", "-")
    made.globals["lead"] = nowhere
    page = made.from_string(
        age_macro() + read("led.jinja") + read("profile_part.jinja") + read("report.html.jinja")
    ).render(
        sections=sections,
        facts=_facts(composer),
        age=data.age,
        on_request=_on_request(sections),
        heading=_HEADING,
        looks=LOOKS,
        shapes=SHAPES,
        names=look_names(),
        policy=policy(scripts),
        style=Markup(style),  # noqa: S704 - our own files
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - our own files
        charts=Markup(inside_page(composer.charts.packed())),  # noqa: S704 - escaped there
    )
    return page.lstrip()


def _facts(composer: Composer) -> list[tuple[str, str]]:
    """Window, run and restriction, as the header says them; from whichever table holds them."""
    facts = []
    rows = [row for name in ("fits", "factors", "flags", "runs") for row in composer.tables[name]]
    start, end = _first_present(rows, "window_start"), _first_present(rows, "window_end")
    if start is not None and end is not None:
        facts.append(("Window", f"{moment(start)} to {moment(end)}, end not included, UTC"))
    for term, column in (("Run", "run"), ("esjobs", "program_version")):
        value = _first_present(rows, column)
        if value is not None:
            facts.append((term, visible(str(value))))
    if composer.data.restriction:
        facts.append(("Restricted to", visible(", ".join(composer.data.restriction))))
    method = str(composer.method)
    facts.append(("Method", _METHODS.get(method, visible(method))))
    if not composer.is_headline:
        left_out = "its report also shows start-up times, residuals and the shift between methods"
        facts.append(("Headline of the run", f"{visible(str(composer.data.headline))}; {left_out}"))
    return facts


def _first_present(rows: Sequence[Row], column: str) -> Any:
    return next((row[column] for row in rows if row[column] is not None), None)


def _on_request(sections: Sequence[Section]) -> list[str]:
    """Describe the parts that only a complete print has."""
    titles: list[str] = []
    for section in sections:
        if section.on_request:
            titles.append(section.title)
            continue
        for block in section.blocks:
            if block.panel.on_request:
                titles.append(block.panel.title)
            elif any(part.kind == "type" for part in block.parts):
                titles.append("Individual processing types")
            elif any(isinstance(part, BooksPart) and len(part.books.days) > 1 for part in block.parts):
                titles.append("Accounting by day")
    return titles


@cache
def library() -> str:
    """Return Vega, Vega-Lite and what draws with them as one script that can stand inside a page."""
    text = read("library/vega.js") + read("embed.js")
    # both end or change a script inside a page, whatever quotes they stand in
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def policy(scripts: list[str]) -> str:
    """Only these scripts, by their digest; styles; nothing from anywhere."""
    # the very text between the tags is hashed, so nothing may change it after this
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    sources = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )
