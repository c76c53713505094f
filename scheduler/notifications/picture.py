"""Picture of a message: each deviation with its 90 % interval, beside the limit.

A PNG, because mail programs show no SVG. Pillow draws it: it brings a font and has no dependencies.
"""

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from esjobs.core.extras import require
from esjobs.core.numbers import MINUS, exact_percent, signed_interval, signed_percent
from esjobs.core.text import visible
from esjobs.core.words import ALL_TYPES
from scheduler.notifications.notices import Kind, Notice

if TYPE_CHECKING:
    from PIL import ImageDraw, ImageFont

WIDTH = 620  # Pixels as it is shown; it is drawn with twice as many
MOST_ROWS = 30
DRAWN_KINDS = ("opened", "reopened", "closed", "candidate", "expired")
_SCALE = 2
_ROW, _TOP, _BOTTOM, _SIDE = 26, 30, 34, 14
_TICK = 52  # Pixels between two ticks, at least
_FURTHEST = 2.0  # Deviations beyond are drawn at the edge, with an arrow
_INK, _FAINT, _GRID, _BAND = "#1f2933", "#5b6770", "#dfe4e8", "#eef3ee"
_SLOWER, _FASTER, _CLOSED = "#a8410a", "#1d5fa8", "#5b6770"


@dataclass(frozen=True)
class Picture:
    """``png``: file content. ``alt``: description."""

    png: bytes
    alt: str


@dataclass(frozen=True)
class _Bar:
    """A deviation with its 90 % interval, and its label."""

    kind: Kind
    label: str
    deviation: float
    low: float
    high: float

    @property
    def colour(self) -> str:
        """Colour of the interval and its number."""
        if self.kind == "closed":
            return _CLOSED
        return _SLOWER if self.deviation < 0 else _FASTER


def picture_of(notices: Sequence[Notice], limit: float) -> Picture | None:
    """Draw the deviations of some notices: confirmed ones before others, largest first.

    ``limit``: accepted relative deviation, drawn as a band. None if there are none.
    Raises :class:`MissingExtraError` without Pillow.
    """
    drawn = sorted((one for one in notices if one.kind in DRAWN_KINDS), key=_order)
    found = [_bar(one, *values) for one in drawn if None not in (values := _values(one))]
    if not found:
        return None
    bars = found[:MOST_ROWS]
    alt = "; ".join(
        f"{visible(bar.label)}: {signed_interval(bar.deviation, bar.low, bar.high)}" for bar in bars[:10]
    )
    png = _drawn(bars, limit, len(found) - len(bars))
    return Picture(png, f"Deviation from the declared corepower. {alt}")


def _order(notice: Notice) -> tuple[bool, float, str, str]:
    is_confirmed = DRAWN_KINDS.index(notice.kind) <= 1
    return not is_confirmed, -abs(notice.deviation or 0.0), notice.name or "", notice.id


def _values(notice: Notice) -> tuple[Any, ...]:
    return notice.deviation, notice.deviation_low, notice.deviation_high


def _bar(notice: Notice, *values: float) -> _Bar:
    work = notice.processing_type
    label = (notice.name or "-") + ("" if work in (None, ALL_TYPES) else f", {work}")
    return _Bar(notice.kind, label, *values)


def _drawn(bars: Sequence[_Bar], limit: float, left_out: int) -> bytes:
    fonts = _pillow("ImageFont")
    font = fonts.load_default(size=13 * _SCALE)
    small = fonts.load_default(size=12 * _SCALE)
    labels = [_fitting(_ascii(bar.label), font, 0.42 * WIDTH * _SCALE) for bar in bars]
    left: float = _SIDE * 2 + max(font.getlength(label) for label in labels) / _SCALE
    right = WIDTH - _SIDE - 74
    height = _TOP + _ROW * len(bars) + _BOTTOM
    low, high = _range(bars, limit)

    def x(value: float) -> float:
        return (left + (min(max(value, low), high) - low) / (high - low) * (right - left)) * _SCALE

    image = _pillow("Image").new("RGB", (WIDTH * _SCALE, height * _SCALE), "white")
    draw = _pillow("ImageDraw").Draw(image)
    top, bottom = _TOP * _SCALE, (height - _BOTTOM) * _SCALE
    below = bottom + 5 * _SCALE
    draw.rectangle((x(-limit), top, x(limit), bottom), fill=_BAND)
    for tick in _ticks(low, high, right - left):
        draw.line((x(tick), top, x(tick), bottom), fill=_FAINT if tick == 0 else _GRID, width=_SCALE)
        draw.text((x(tick), below), _drawn_percent(tick), font=small, fill=_FAINT, anchor="mt")
    title = f"Deviation from declared corepower, 90 % intervals; shaded: within {exact_percent(limit)}"
    draw.text((_SIDE * _SCALE, 6 * _SCALE), title, font=small, fill=_FAINT, anchor="lt")
    if left_out:
        note = f"{left_out} more are not shown"
        draw.text((_SIDE * _SCALE, below), note, font=small, fill=_FAINT, anchor="lt")
    for number, (bar, label) in enumerate(zip(bars, labels, strict=True)):
        y = (_TOP + _ROW * (number + 0.5)) * _SCALE
        draw.text((_SIDE * _SCALE, y), label, font=font, fill=_INK, anchor="lm")
        draw.line((x(bar.low), y, x(bar.high), y), fill=bar.colour, width=2 * _SCALE)
        for end in (bar.low, bar.high):
            _end(draw, x(end), y, bar.colour, beyond=end > high, before=end < low)
        _dot(draw, x(bar.deviation), y, bar)
        at = ((WIDTH - _SIDE) * _SCALE, y)
        draw.text(at, _drawn_percent(bar.deviation), font=font, fill=bar.colour, anchor="rm")
    stream = io.BytesIO()
    # 32 colours suffice for edges of letters, and make a file of some 10 kB
    image.quantize(32).save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _dot(draw: "ImageDraw.ImageDraw", at: float, y: float, bar: _Bar) -> None:
    # not confirmed ones are hollow
    radius, fill = 4.5 * _SCALE, "white" if bar.kind == "candidate" else bar.colour
    draw.ellipse((at - radius, y - radius, at + radius, y + radius), fill, bar.colour, 2 * _SCALE)


def _pillow(module: str) -> Any:
    return require(f"PIL.{module}", extra="mail", needed_by="the picture of a mail")


def _end(
    draw: "ImageDraw.ImageDraw", at: float, y: float, colour: str, *, beyond: bool, before: bool
) -> None:
    # A stroke, or an arrow if the interval continues outside.
    size = 4 * _SCALE
    if beyond or before:
        back = at - size if beyond else at + size
        draw.polygon(((at, y), (back, y - size), (back, y + size)), fill=colour)
    else:
        draw.line((at, y - size, at, y + size), fill=colour, width=2 * _SCALE)


def _range(bars: Sequence[_Bar], limit: float) -> tuple[float, float]:
    low = min(-1.4 * limit, *(bar.low * 1.08 for bar in bars))
    high = max(1.4 * limit, *(bar.high * 1.08 for bar in bars))
    return max(low, -1.0), min(high, _FURTHEST)


def _ticks(low: float, high: float, width: float) -> list[float]:
    most = max(width / _TICK, 1.0)
    step = next((each for each in (0.1, 0.2, 0.5, 1.0) if (high - low) / each <= most), 2.0)
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _drawn_percent(value: float) -> str:
    """Format a deviation for the font of the picture, which lacks the real minus.

    >>> _drawn_percent(-0.3)
    '-30 %'
    """
    return signed_percent(value).replace(MINUS, "-")


def _ascii(text: str) -> str:
    return "".join(character if " " <= character <= "~" else "?" for character in text)


def _fitting(text: str, font: "ImageFont.FreeTypeFont | ImageFont.ImageFont", most: float) -> str:
    # Cut in the middle: names often differ at their ends.
    if len(text) > 200:
        text = f"{text[:100]}{text[-100:]}"
    if font.getlength(text) <= most:
        return text
    # an advance per character is no measure: the font is proportional
    for keep in range(len(text) // 2, 0, -1):
        cut = f"{text[:keep]}...{text[-keep:]}"
        if font.getlength(cut) <= most:
            return cut
    return "..."
