"""Several jobs side by side: a row per fact, a column per job."""

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
    ids = [story.job_id for story in stories]
    names = [
        story.job_id if ids.count(story.job_id) == 1 else f"{story.source}/{story.job_id}"
        for story in stories
    ]
    rows = {name: [each.get(name) for each in facts] for each in facts for name in each}
    table: dict[str, list[str | None]] = {"fact": list(rows)}
    for number, name in enumerate(names):
        table[name] = [_SAME if number and len({*row}) == 1 else row[number] for row in rows.values()]
    return pa.table(table, pa.schema([(name, pa.string()) for name in table]))


def _facts(story: JobStory) -> Iterator[tuple[str, str]]:
    yield "source", story.source
    yield from record_lines(story)
    yield from score_lines(story)
    for row in story.footprints:
        yield f"mean {row['metric']}, {row['scope']}", formatted(row["mean"])
    yield "issues", ", ".join(row["detector"] for row in story.issues if row["severity"] != "info") or "none"
