"""The picture of an answer to a question as a single HTML file that needs nothing else."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from dashboards.targets.html.files import inside_page
from dashboards.targets.html.report import library, policy
from dashboards.targets.html.theme import palette_css

_SCRIPT = """"use strict";
const specification = JSON.parse(document.getElementById("specification").textContent);
const place = document.getElementById("chart");
vegaEmbed(place, specification).catch((error) => {
  place.textContent = "The chart could not be drawn: " + error.message;
});
"""
_STYLE = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem;max-width:70rem}#chart{overflow-x:auto}"


def render_question(heading: str, facts: Sequence[str], specification: Mapping[str, Any]) -> str:
    """The page as HTML; texts are escaped, no connection is admitted. About 0.6 MB, nearly all of it Vega."""
    scripts = [library(), _SCRIPT]
    said = "".join(f"<p>{escape(fact)}</p>\n" for fact in facts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy(scripts))}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(heading)}</title>\n<style>{palette_css()}{_STYLE}</style>\n</head>\n<body>\n"
        f'<h1>{escape(heading)}</h1>\n<div id="chart"></div>\n{said}'
        f'<script type="application/json" id="specification">{inside_page(dict(specification))}</script>\n'
        + "".join(f"<script>{script}</script>\n" for script in scripts)
        + "</body>\n</html>\n"
    )
