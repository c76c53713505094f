"""Several jobs side by side: a row per fact, a column per job."""

from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow as pa

from esjobs.issues.one_job import JobStory
from esjobs.issues.rules.hints import formatted
from esjobs.render.text.job import record_lines, score_lines

_SAME = "(same)"


def beside(stories: Sequence[JobStory]) -> pa.Table:
    """Return what is stored of jobs: record, scores, mean of each metric, issues; null where a job has none.

    A row of equal values has them once. Jobs of one id of several sources are told apart by the source.
    """
    facts = [dict(_facts(story)) for story in stories]
    names = dict.fromkeys(name for each in facts for name in each)
    rows = [[name, *_cells([each.get(name) for each in facts])] for name in names]
    schema = pa.schema([(name, pa.string()) for name in ("fact", *_headings(stories))])
    return pa.Table.from_arrays(
        [pa.array(each, pa.string()) for each in zip(*rows, strict=True)], schema=schema
    )


def _headings(stories: Sequence[JobStory]) -> list[str]:
    ids = Counter(story.job_id for story in stories)
    return [story.job_id if ids[story.job_id] == 1 else f"{story.source}/{story.job_id}" for story in stories]


def _cells(values: list[str | None]) -> list[str | None]:
    """Return the values of a row; of equal ones the first."""
    return values if len({*values}) > 1 else [values[0], *[_SAME] * (len(values) - 1)]


def _facts(story: JobStory) -> Iterator[tuple[str, str]]:
    yield "source", story.source
    yield from record_lines(story)
    yield from score_lines(story)
    for row in story.footprints:
        yield f"mean {row['metric']}, {row['scope']}", formatted(row["mean"])
    yield "issues", ", ".join(row["detector"] for row in story.issues if row["severity"] != "info") or "none"
