"""Windows fitted in a night, and the default one."""

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import pairwise

from esjobs.core.window import Window


def windows_of(
    night: date, lengths: Sequence[int], first_day: date, covered_since: date = date.min
) -> tuple[Window, ...]:
    """Return the windows that end with a night, shortest first, as far as data reach.

    ``first_day``: first day with jobs. A longer window is fitted once data reach back beyond the shorter one:
    before, it would repeat its results under a wrong length. ``covered_since``: from this day on every job is
    in buckets; of the longer windows only those without an older day with jobs are fitted.

    >>> [str(window) for window in windows_of(date(2018, 8, 10), (7, 30, 90), date(2018, 8, 1))]
    ['2018-08-04/2018-08-11', '2018-07-12/2018-08-11']
    >>> len(windows_of(date(2018, 8, 10), (7, 30, 90), date(2018, 1, 1), date(2018, 7, 1)))
    2
    """
    windows = [Window.of_days(night - timedelta(days=length - 1), night) for length in lengths]
    # the shortest one always: a young installation has results from its first night on
    found = windows[:1]
    for shorter, window in pairwise(windows):
        if first_day < shorter.first_day and covered_since <= max(window.first_day, first_day):
            found.append(window)
    return tuple(found)


def headline_of(windows: Sequence[Window], days: int) -> Window | None:
    """Return the default window, or the longest available one; None of none.

    >>> windows = windows_of(date(2018, 8, 10), (7, 30, 90), date(2018, 8, 8))
    >>> str(headline_of(windows, 30))
    '2018-08-04/2018-08-11'
    """
    return next((window for window in reversed(windows) if window.days <= days), None)
