"""Days in pieces of bounded size, so that what a step holds does not grow with its window."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta

SPAN_JOBS = 250_000
"""Jobs of several days that are worked on at once, at most; a day of more is worked on alone."""


def spans(
    days: Sequence[date], n_jobs: Mapping[date, int], longest: int | None = None, most: int = SPAN_JOBS
) -> Iterator[list[date]]:
    """Cut ascending days into pieces of up to ``most`` jobs or rows, and of up to ``longest`` days.

    >>> days = [date(2026, 3, number) for number in (1, 2, 3)]
    >>> [len(piece) for piece in spans(days, {days[0]: 200_000, days[1]: 50_000, days[2]: 1})]
    [2, 1]
    """
    piece: list[date] = []
    jobs = 0
    for day in days:
        of_day = n_jobs.get(day, 0)
        if piece and (jobs + of_day > most or len(piece) == longest):
            yield piece
            piece, jobs = [], 0
        piece.append(day)
        jobs += of_day
    if piece:
        yield piece


def adjacent(days: Sequence[date]) -> Iterator[Sequence[date]]:
    """Cut ascending days where one is missing.

    >>> [len(run) for run in adjacent([date(2026, 3, number) for number in (1, 2, 4)])]
    [2, 1]
    """
    start = 0
    for end in range(1, len(days) + 1):
        if end == len(days) or days[end] - days[end - 1] > timedelta(days=1):
            yield days[start:end]
            start = end
