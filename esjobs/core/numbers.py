"""Numbers and times for people: one form each, for tables, pages, mails and sentences.

Minus is U+2212 (as wide as a plus); percents are whole from 10 % on, one decimal below; measured values have
the digits that their error leaves, else three. Files (CSV, JSON) have full precision and do not use this
module.
"""

import math
from datetime import UTC, datetime, timedelta

MISSING = "–"
MINUS = "−"
# Limit below which a number is a zero with rounding error
_ROUND_OFF = 1e-12
# Shares from here on are whole percents
_WHOLE_FROM = 0.0995


def count(value: float | None) -> str:
    """Format a whole number with thousands separators.

    >>> count(13012), count(-1234.4), count(None)
    ('13,012', '−1,234', '–')
    """
    return MISSING if value is None else _signs(f"{round(value):,}")


def many(number: int, noun: str, plural: str = "") -> str:
    """Format a count with its noun.

    >>> many(1, "job"), many(1200, "job"), many(2, "query", "queries")
    ('1 job', '1,200 jobs', '2 queries')
    """
    return f"{count(number)} {noun if number == 1 else plural or noun + 's'}"


def percent(value: float | None, error: float | None = None) -> str:
    """Format a share; with an error, both to the same decimal.

    >>> percent(0.127), percent(0.0042), percent(0.393, 0.05), percent(0.0), percent(None)
    ('13 %', '0.4 %', '39 ± 5 %', '0 %', '–')
    """
    return _percent(value, error, "")


def signed_percent(value: float | None, error: float | None = None) -> str:
    """Format a relative change with its sign; with an error, both to the same decimal.

    >>> signed_percent(-0.372), signed_percent(0.004), signed_percent(-0.00001)
    ('−37 %', '+0.4 %', '0 %')
    >>> signed_percent(-0.372, 0.05), signed_percent(0.042, 0.004)
    ('−37 ± 5 %', '+4.2 ± 0.4 %')
    """
    return _percent(value, error, "+")


def signed_interval(value: float, low: float, high: float) -> str:
    """Format a change with the ends of its interval.

    >>> signed_interval(-0.31, -0.36, -0.26)
    '−31 % (−36 % to −26 %)'
    """
    return f"{signed_percent(value)} ({signed_percent(low)} to {signed_percent(high)})"


def binary_size(value: float) -> str:
    """Format bytes in units of 1024: a job that asked Slurm for 512G has 512 GiB.

    >>> binary_size(512 * 2**30), binary_size(1.87e9), binary_size(1023 * 2**30), binary_size(100)
    ('512 GiB', '1.74 GiB', '1,023 GiB', '100 B')
    """
    power = next((power for power in range(5) if abs(value) < 1024 ** (power + 1)), 5)
    number = value / 1024**power
    text = f"{number:,.0f}" if abs(number) >= 999.5 else f"{number:.3g}"
    return f"{text} {('', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi')[power]}B"


def speed(deviation: float) -> str:
    """Format a deviation of a speed in words.

    >>> speed(-0.372), speed(0.042), speed(-0.00001)
    ('37 % slower', '4.2 % faster', 'less than 0.1 % slower')
    """
    size = percent(abs(deviation))
    if size == "0 %" and deviation:
        size = "less than 0.1 %"
    return f"{size} {'slower' if deviation < 0 else 'faster'}"


def speed_range(low: float, high: float) -> str:
    """Format the interval of a deviation of a speed, beside :func:`speed`.

    >>> speed_range(-0.36, -0.26), speed_range(0.1, 0.22), speed_range(-0.03, 0.071)
    ('26 to 36 %', '10 to 22 %', '3.0 % slower to 7.1 % faster')
    """
    if low < 0 < high:
        return f"{speed(low)} to {speed(high)}"
    least, most = sorted((abs(low), abs(high)))
    return f"{percent(least).removesuffix(' %')} to {percent(most)}"


def exact_percent(value: float) -> str:
    """Format a configured relative number, such as a limit, with all its digits.

    >>> exact_percent(0.2), exact_percent(0.125), exact_percent(0.9)
    ('20 %', '12.5 %', '90 %')
    """
    return f"{100 * value:.3g} %"


def sure(value: float | None) -> str:
    """Format the probability of a statement; certainty is not claimed.

    >>> sure(0.9724), sure(0.9964), sure(0.99991), sure(0.0003), sure(None)
    ('97 %', '99.6 %', 'over 99.9 %', 'below 0.1 %', '–')
    """
    if value is None:
        return MISSING
    if value > 0.999:
        return "over 99.9 %"
    if value < 0.001:
        return "below 0.1 %"
    return f"{100 * value:.{int(value > 0.99)}f} %"


def _percent(value: float | None, error: float | None, sign: str) -> str:
    if value is None:
        return MISSING
    # a ratio to nearly nothing: its digits say nothing
    if abs(value) > 1e6:
        return _signs(f"{value:{sign}.0e} × 100 %")
    widest = abs(value) if error is None else abs(error) * 10
    places = 0 if widest >= _WHOLE_FROM else 1
    text = f"{100 * value:{sign},.{places}f}"
    if not text.strip("+-0."):
        text = "0"
    if error is not None:
        text += f" ± {100 * error:,.{places}f}"
    return _signs(f"{text} %")


def number(value: float | None, error: float | None = None) -> str:
    """Format three significant digits, with the error to the same decimal; fewer if the error exceeds them.

    >>> number(1.0836, 0.0312), number(1.0836), number(12.345, 0.004), number(0.08, 0.01)
    ('1.08 ± 0.03', '1.08', '12.345 ± 0.004', '0.080 ± 0.010')
    >>> number(1296, 10226), number(1910, 1323)
    ('1,000 ± 10,000', '1,900 ± 1,300')
    """
    if value is None:
        return MISSING
    value = value if abs(value) > _ROUND_OFF else 0.0
    if value != 0 and not 1e-6 <= abs(value) < 1e7:
        return _signs(f"{value:.2e}" + (f" ± {error:.0e}" if error is not None else ""))
    # rounded first: 0.09999 has the decimals of 0.1
    places = _decimals(float(f"{value:.3g}"))
    # digits before the point that the error makes meaningless become zeros
    if error is not None and error >= 100:
        places = 1 - math.floor(math.log10(error))
        value, error = round(value, places), round(error, places)
        places = 0
    # to the first digit of the error, unless value and error would get more than two further decimals
    elif error is not None and error > 0:
        first = -math.floor(math.log10(error))
        places = first if places < first <= places + 2 else max(0, min(places, first + 1))
    return _fixed(value, error, places)


def estimate(value: float, error: float | None) -> str:
    """Format a value to the first digit of its error, or to the second if the first is 1.

    >>> estimate(8.871, 0.4436), estimate(11.16, 0.558), estimate(9.94, 0.141)
    ('8.9 ± 0.4', '11.2 ± 0.6', '9.94 ± 0.14')
    """
    if error is None or not 1e-6 < error < 10:
        return number(value, error)
    first = math.floor(math.log10(error))
    # one digit would change an error such as 1.4 by a third
    leading = round(error / 10.0**first)
    return _fixed(value, error, max(0, (1 if leading == 1 else 0) - first))


def declared(value: float) -> str:
    """Format a declared score with all its digits and at least two decimals.

    A score derived from rounded records gets two decimals.

    >>> declared(16.35), declared(10.672), declared(10), declared(16.879691)
    ('16.35', '10.672', '10.00', '16.88')
    """
    places = next((n for n in (2, 3, 4) if math.isclose(round(value, n), value, rel_tol=1e-9)), 2)
    return _fixed(value, None, places)


def amount(value: float) -> str:
    """Format a number of a table: four significant digits, whole with commas from 1,000 on.

    >>> amount(0.39312), amount(12345.6), amount(-3.0), amount(1234.5), amount(1.5e12)
    ('0.3931', '12,346', '−3', '1,234', '1,500,000,000,000')
    """
    # "z" turns a rounded -0 into 0
    return _signs(f"{value:,.0f}" if abs(value) >= 999.95 else f"{value:z.4g}")


def core_h(value: float, unit: str = "core-hours") -> str:
    """Format core-hours; with a decimal below 10.

    >>> core_h(12345.6), core_h(3.25), core_h(40, "GPU-hours")
    ('12,346 core-hours', '3.2 core-hours', '40 GPU-hours')
    """
    return f"{_signs(f'{value:,.0f}' if abs(value) >= 10 else f'{value:.1f}')} {unit}"


_TIMES = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))


def duration(seconds: float) -> str:
    """Format a duration in the largest unit of which it has at least two.

    >>> duration(75), duration(150), duration(5971), duration(9000), duration(86400 * 3), duration(0.25)
    ('75 s', '2.5 min', '100 min', '2.5 h', '3 d', '0.25 s')
    """
    # 75 s rather than 1.2 min
    size, unit = next(((size, unit) for size, unit in _TIMES if abs(seconds) >= 2 * size), (1.0, "s"))
    value = seconds / size
    return _signs(f"{value:,.0f} {unit}" if abs(value) >= 99.5 else f"{value:z.2g} {unit}")


def day_range(start: datetime, end: datetime) -> str:
    """Format a half-open window by its first and last day.

    >>> day_range(datetime(2025, 6, 12, tzinfo=UTC), datetime(2025, 6, 19, tzinfo=UTC))
    '2025-06-12 to 2025-06-18'
    """
    # half-open: a window that ends at midnight does not touch the day that begins there
    last = (end - timedelta(microseconds=1)).astimezone(UTC).date()
    first = start.astimezone(UTC).date()
    return f"{first}" if first == last else f"{first} to {last}"


def _decimals(value: float) -> int:
    """Return the decimals for three significant digits, at most six."""
    if value == 0:
        return 2
    return min(6, max(0, 2 - math.floor(math.log10(abs(value)))))


def _fixed(value: float, error: float | None, places: int) -> str:
    text = f"{value:z,.{places}f}"
    if error is not None:
        text += f" ± {error:,.{places}f}"
    return _signs(text)


def _signs(text: str) -> str:
    return text.replace("-", MINUS)
