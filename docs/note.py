"""Method note, fit to be cited, printed by a browser: ``python -m docs.note OUT.pdf``.

Nothing is written twice: the note holds sections of ``docs/method.md`` and of ``docs/real_run.md``.
"""

import base64
import re
import sys
from pathlib import Path

import yaml
from markdown_it import MarkdownIt

from esjobs.render.printing import printed

ROOT = Path(__file__).parents[1]
SECTIONS = (
    *("Words", "Buckets", "The fit", "χ² by Minuit", "Errors", "Start-up time of a job"),
    *("The line and the deviations", "Verdicts", "How sure a deviation is", "Why to trust it"),
)
"""Sections of the method, in order; the coverage, the real run, limits and sources follow."""
_COLUMNS = 6  # Of the table of coverage that a page can hold: case, accused, found, width, 68 %, 95 %
ABSTRACT = """
The speed of a queue, or of a CPU model, is measured from the CPU time that its jobs need per event, against
the same tasks elsewhere. The fit eliminates the level of each task and takes out the start-up time of jobs;
its errors hold the scatter between queue and task. A line through the origin relates speed to the declared
benchmark score, HS06 or HS23. Each declaration has a probability of being off by more than a limit, and is
reported only if no cut-off job, wrong core count, second speed or single task explains it. Coverage is
measured on generators that break the assumptions; four public tasks of 2018 show what real records give.
"""
_STYLE = """
@page { size: A4; margin: 18mm 20mm }
body { font: 10pt/1.34 "Liberation Serif", "DejaVu Serif", Georgia, serif; color: #000 }
h1 { font-size: 17pt; line-height: 1.15; margin: 0 0 2mm }
h2 { font-size: 11.5pt; margin: 4mm 0 1mm; break-after: avoid }
h3 { font-size: 10pt; margin: 3mm 0 1mm; break-after: avoid } p, ul, ol { margin: 0 0 1.5mm } li { margin: 0 }
.by { margin: 0 0 3mm } .abstract { margin: 0 8mm 3mm; font-style: italic }
.body { text-align: justify; hyphens: auto }
table { border-collapse: collapse; margin: 1mm 0 2mm; font-size: 8pt; line-height: 1.2; text-align: left }
td, th { padding: .4mm 1mm; border-top: .2mm solid #999; vertical-align: top; hyphens: none }
code { font: 8pt "DejaVu Sans Mono", monospace; overflow-wrap: anywhere }
pre { white-space: pre-wrap; margin: 1mm 0; text-align: left } pre code { font-size: 7.2pt }
img { max-width: 75%; display: block; margin: 1mm auto }
tr, img { break-inside: avoid }
a { color: inherit; text-decoration: none }
"""


def note() -> str:
    """Return the note as one HTML page that loads nothing."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    authors = ", ".join(author["name"] for author in cited["authors"])
    method = sections((ROOT / "docs" / "method.md").read_text(encoding="utf-8"))
    real = (
        (ROOT / "docs" / "real_run.md")
        .read_text(encoding="utf-8")
        .replace("# A real run", "## A real run", 1)
    )
    last = (coverage(), real, method["Known limits"], method["Sources"])
    text = "\n".join([*(method[name] for name in SECTIONS), *last])
    return "\n".join(
        [
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>esjobs: method</title>',
            f"<style>{_STYLE}</style>",
            "<h1>Speed factors of sites and CPU models from job records, with errors</h1>",
            f'<p class="by">{authors}. esjobs {cited["version"]}, {cited["license"]}.</p>',
            f'<div class="abstract">{_html(ABSTRACT)}</div>',
            f'<div class="body">{_html(text)}</div></html>',
        ]
    )


def coverage() -> str:
    """Return text and first columns of the table of ``benchmarks/results/honesty.md``."""
    page = (ROOT / "benchmarks" / "results" / "honesty.md").read_text(encoding="utf-8")
    introduction, _, rest = page.partition("\n|")
    rows = [line for line in f"|{rest}".partition("\n\n")[0].splitlines() if line.startswith("|")]
    table = "\n".join(f"{'|'.join(row.split('|')[: _COLUMNS + 1])}|" for row in rows)
    return f"{introduction.replace('# ', '## ', 1)}\n{table}\n"


def sections(page: str) -> dict[str, str]:
    """Return the sections of a page by their headings; a section ends at the next heading of any level."""
    parts = re.split(r"^(?=#{2,3} )", page, flags=re.MULTILINE)[1:]
    return {part.partition("\n")[0].lstrip("# "): part for part in parts}


def _html(text: str) -> str:
    html: str = MarkdownIt("commonmark").enable("table").render(text)
    # links lead to pages that are not printed
    html = re.sub(r'<a href="(?!https?:)[^"]*">(.*?)</a>', r"\1", html, flags=re.DOTALL)
    return re.sub(r'src="([^"]+)"', _embedded, html)


def _embedded(found: re.Match[str]) -> str:
    picture = (ROOT / "docs" / found[1]).read_bytes()
    return f'src="data:image/png;base64,{base64.b64encode(picture).decode()}"'


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(printed(note()))
