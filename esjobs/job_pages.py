"""Pages of jobs beside the pages of dashboards: which jobs have one, what it is called, what it holds."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from dashboards.targets.html.job import Around
from esjobs.core.arrow import table_schema
from esjobs.core.query import In
from esjobs.core.tables import Table
from esjobs.detect.many_jobs import Identity, job_stories
from esjobs.detect.tables import ISSUES, SEVERITIES
from esjobs.efficiency.tables import SCORES
from esjobs.job_page import job_html
from esjobs.store.base import JobStore

FOLDER = "jobs"
"""Where they stand, beside the pages."""
USUAL_JOBS = 300
"""So many jobs have a page unless told otherwise."""
_WORST = (("-score_sum", 25), ("-wasted_core_hours", 25))
"""Jobs that have one whether or not an issue was found: the first by these columns of their scores."""
_WAYS = (
    ("Efficiency", "../efficiency.html"),
    ("Projects and users", "../people.html"),
    ("Job issues", "../issues.html"),
)
"""The pages to which each leads back."""
_POINTS = 120
"""Values that a plot has at most: a page is looked at, not calculated with."""


@dataclass(frozen=True)
class JobPages:
    """The jobs that have a page.

    ``files``: the address of each, by source and job_id. ``n_with_issues``: how many jobs have issues, and
    ``n_shown`` of them a page.
    """

    files: Mapping[Identity, str] = field(default_factory=dict)
    n_with_issues: int = 0
    n_shown: int = 0

    @property
    def told(self) -> str:
        """What is left out, in a sentence."""
        return (
            f"{len(self.files):,}: {self.n_shown:,} of {self.n_with_issues:,} with issues, the worst first, "
            "and those with the worst scores; any other: esjobs job JOBID"
        )


def job_pages(store: JobStore, most: int) -> JobPages:
    """The jobs of which at most so many pages are written.

    First those of the worst scores and the most wasted core-hours, then those with issues, the worst first
    as the table of issues has them. Cost: columns of both tables are read, a batch at a time.
    """
    if most <= 0:
        return JobPages()
    worst = [job for column, some in _WORST for job in _first(store, SCORES, (column,), min(some, most))]
    severe = In("severity", SEVERITIES[1:])
    order = ("-severity_rank", "-wasted_core_hours")
    chosen = list(dict.fromkeys(worst))[:most]
    issues = _read(store, ISSUES, order, (severe,))
    with_issues = list(dict.fromkeys(_identities(issues)))
    chosen = list(dict.fromkeys([*chosen, *with_issues]))[:most]
    files = {job: f"{FOLDER}/{_name(job)}.html" for job in chosen}
    return JobPages(files, len(with_issues), sum(job in files for job in with_issues))


def job_files(store: JobStore, pages: JobPages, style: str, mark: str) -> Iterator[tuple[str, str]]:
    """Each page by its name. ``style``: the address of the style sheet, seen from the pages beside them."""
    around = Around(f"../{style}", mark, _WAYS)
    for story in job_stories(store, list(pages.files), points=_POINTS):
        yield pages.files[story.source, story.job_id], job_html(story, around)


def _name(job: Identity) -> str:
    """A name for a file that every file system takes, the same whenever it is made."""
    letters = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in job[1])[:40]
    return f"{letters}-{hashlib.sha256(chr(0).join(job).encode()).hexdigest()[:10]}"


def _first(store: JobStore, table: Table, order: Sequence[str], most: int) -> list[Identity]:
    rows = _read(store, table, order, (), most)
    return _identities(rows.filter(pc.is_valid(rows.column(order[0].lstrip("-")))))


def _read(
    store: JobStore, table: Table, order: Sequence[str], where: Sequence[In], most: int | None = None
) -> pa.Table:
    """Source, job_id and some columns of rows, the first by these columns; ties by their names."""
    keys = [(each.lstrip("-"), "descending" if each.startswith("-") else "ascending") for each in order]
    keys += [("source", "ascending"), ("job_id", "ascending")]
    names = [name for name, _ in keys]
    found = pa.schema([table_schema(table).field(name) for name in names]).empty_table()
    for batch in store.read(table, where, names):
        found = pa.concat_tables([found, pa.Table.from_batches([batch]).select(names).cast(found.schema)])
        if most is not None:
            found = found.sort_by(keys).slice(0, most)
    return found.sort_by(keys)


def _identities(rows: pa.Table) -> list[Identity]:
    return list(zip(rows.column("source").to_pylist(), rows.column("job_id").to_pylist(), strict=True))
