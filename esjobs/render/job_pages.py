"""Pages of jobs beside the pages of dashboards: which jobs have one, what it is called, what it holds."""

import hashlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import pyarrow as pa

from dashboards.targets.html.job import Around
from esjobs.core.query import In, Present
from esjobs.issues.one_job import DescribedClusters, Identity, job_stories
from esjobs.noise.budget import cost_sentences
from esjobs.render.job_page import job_html
from esjobs.schema.issues import ISSUES, SEVERITIES
from esjobs.schema.scores import OWN_ROW, SCORES
from esjobs.store.base import JobStore

FOLDER = "jobs"  # Folder of the job pages, beside the other pages
USUAL_JOBS = 300  # Default number of job pages
# Jobs that have one whether or not an issue was found: the first by these columns of their scores
_WORST = (("score_sum", 25), ("idle_core_h", 25))
# The pages to which each leads back
_WAYS = (
    ("Efficiency", "../efficiency.html"),
    ("Projects and users", "../people.html"),
    ("Job issues", "../issues.html"),
)
_KEYS = ("source", "job_id")
# The worst issues first, as their table has them
_BADLY = ("-severity_rank", "-idle_core_h", *_KEYS)
# Values that a plot has at most: a page is looked at, not calculated with
_POINTS = 120


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
    def summary(self) -> str:
        """Return a sentence about the jobs without a page."""
        return (
            f"{len(self.files):,}: {self.n_shown:,} of {self.n_with_issues:,} with issues (worst first) and "
            "those with the worst scores; any other job: esjobs job JOBID"
        )


def job_pages(store: JobStore, most: int) -> JobPages:
    """The jobs of which at most so many pages are written.

    First those of the worst scores and the most wasted core-hours, then those with issues, the worst first
    as the table of issues has them. Cost: two columns of the issues are read twice, sorted by the store, the
    first time as far as there is room for jobs; memory: the chosen jobs and a batch of rows.
    """
    if most <= 0:
        return JobPages()
    worst = [job for column, some in _WORST for job in _first(store, column, min(some, most))]
    chosen = list(dict.fromkeys(worst))[:most]
    files = {job: f"{FOLDER}/{_name(job)}.html" for job in _filled(chosen, _with_issues(store, _BADLY), most)}
    n_with_issues = n_shown = 0
    # in the order of their names a job's issues follow each other: no more than the last one is remembered
    for job in _with_issues(store, _KEYS):
        n_with_issues += 1
        n_shown += job in files
    return JobPages(files, n_with_issues, n_shown)


def job_files(
    store: JobStore, pages: JobPages, style: str, mark: str, clusters: DescribedClusters
) -> Iterator[tuple[str, str]]:
    """Each page by its name. ``style``: the address of the style sheet, seen from the pages beside them."""
    around = Around(f"../{style}", mark, _WAYS)
    monitoring = cost_sentences(store)
    for found in job_stories(store, list(pages.files), points=_POINTS, clusters=clusters):
        story = replace(found, monitoring=monitoring)
        yield pages.files[story.source, story.job_id], job_html(story, around)


def _name(job: Identity) -> str:
    """A name for a file that every file system takes, the same whenever it is made."""
    characters = "".join(
        character if character.isascii() and character.isalnum() else "-" for character in job[1]
    )[:40]
    return f"{characters}-{hashlib.sha256(chr(0).join(job).encode()).hexdigest()[:10]}"


def _first(store: JobStore, column: str, most: int) -> list[Identity]:
    """The jobs in which a column of the scores is largest; ties by their names."""
    order = (f"-{column}", *_KEYS)
    return [
        job
        for batch in store.read(SCORES, (Present(column), OWN_ROW), _KEYS, order=order, limit=most)
        for job in _identities(batch)
    ]


def _with_issues(store: JobStore, order: Sequence[str]) -> Generator[Identity]:
    """The jobs with issues that are more than information, in an order; one after itself comes once."""
    severe = In("severity", SEVERITIES[1:])
    last: Identity | None = None
    for batch in store.read(ISSUES, (severe,), _KEYS, order=order):
        for job in _identities(batch):
            if job != last:
                yield job
            last = job


def _filled(chosen: Sequence[Identity], further: Generator[Identity], most: int) -> list[Identity]:
    """Some jobs, and of further ones as many as there is room for; the others are not read."""
    jobs = dict.fromkeys(chosen)
    with closing(further):
        while len(jobs) < most and (job := next(further, None)) is not None:
            jobs[job] = None
    return list(jobs)


def _identities(rows: pa.RecordBatch) -> Iterator[Identity]:
    return zip(rows.column("source").to_pylist(), rows.column("job_id").to_pylist(), strict=True)
