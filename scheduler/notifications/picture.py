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
from scheduler.notifications.notices import Notice

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


def picture_of(notices: Sequence[Notice], limit: float) -> Picture | None:
    """Draw the deviations of some notices: confirmed ones before others, largest first.

    ``limit``: accepted relative deviation, drawn as a band. None if there are none.
    Raises :class:`MissingExtraError` without Pillow.
    """
    drawn = [
        notice
        for notice in notices
        if notice.kind in DRAWN_KINDS
        and None not in (notice.deviation, notice.deviation_low, notice.deviation_high)
    ]
    drawn.sort(
        key=lambda one: (DRAWN_KINDS.index(one.kind) > 1, -abs(one.deviation or 0.0), one.name or "", one.id)
    )
    left_out = len(drawn) - MOST_ROWS
    drawn = drawn[:MOST_ROWS]
    if not drawn:
        return None
    alt = "; ".join(
        f"{visible(_label(one))}: "
        + signed_interval(one.deviation or 0.0, one.deviation_low or 0.0, one.deviation_high or 0.0)
        for one in drawn[:10]
    )
    return Picture(_drawn(drawn, limit, max(left_out, 0)), f"Deviation from the declared corepower. {alt}")


def _label(notice: Notice) -> str:
    work = notice.processing_type
    return (notice.name or "-") + ("" if work in (None, ALL_TYPES) else f", {work}")


def _drawn(rows: Sequence[Notice], limit: float, left_out: int) -> bytes:
    fonts = _pillow("ImageFont")
    font = fonts.load_default(size=13 * _SCALE)
    small = fonts.load_default(size=12 * _SCALE)
    labels = [_fitting(_ascii(_label(one)), font, 0.42 * WIDTH * _SCALE) for one in rows]
    left: float = _SIDE * 2 + max(font.getlength(label) for label in labels) / _SCALE
    right = WIDTH - _SIDE - 74
    height = _TOP + _ROW * len(rows) + _BOTTOM
    low, high = _range(rows, limit)

    def x(value: float) -> float:
        return (left + (min(max(value, low), high) - low) / (high - low) * (right - left)) * _SCALE

    image = _pillow("Image").new("RGB", (WIDTH * _SCALE, height * _SCALE), "white")
    draw = _pillow("ImageDraw").Draw(image)
    top, bottom = _TOP * _SCALE, (height - _BOTTOM) * _SCALE
    draw.rectangle((x(-limit), top, x(limit), bottom), fill=_BAND)
    for tick in _ticks(low, high, right - left):
        draw.line((x(tick), top, x(tick), bottom), fill=_FAINT if tick == 0 else _GRID, width=_SCALE)
        draw.text((x(tick), bottom + 5 * _SCALE), _drawn_percent(tick), font=small, fill=_FAINT, anchor="mt")
    title = f"Deviation from declared corepower, 90 % intervals; shaded: within {exact_percent(limit)}"
    draw.text((_SIDE * _SCALE, 6 * _SCALE), title, font=small, fill=_FAINT, anchor="lt")
    if left_out:
        note = f"{left_out} more are not shown"
        draw.text((_SIDE * _SCALE, bottom + 5 * _SCALE), note, font=small, fill=_FAINT, anchor="lt")
    for number, (one, label) in enumerate(zip(rows, labels, strict=True)):
        y = (_TOP + _ROW * (number + 0.5)) * _SCALE
        deviation = one.deviation or 0.0
        colour = _CLOSED if one.kind == "closed" else _SLOWER if deviation < 0 else _FASTER
        draw.text((_SIDE * _SCALE, y), label, font=font, fill=_INK, anchor="lm")
        draw.line(
            (x(one.deviation_low or 0.0), y, x(one.deviation_high or 0.0), y), fill=colour, width=2 * _SCALE
        )
        for end in (one.deviation_low or 0.0, one.deviation_high or 0.0):
            _end(draw, x(end), y, colour, beyond=end > high, before=end < low)
        radius = 4.5 * _SCALE
        fill = "white" if one.kind == "candidate" else colour
        draw.ellipse(
            (x(deviation) - radius, y - radius, x(deviation) + radius, y + radius), fill, colour, 2 * _SCALE
        )
        draw.text(
            ((WIDTH - _SIDE) * _SCALE, y), _drawn_percent(deviation), font=font, fill=colour, anchor="rm"
        )
    stream = io.BytesIO()
    # 32 colours suffice for edges of letters, and make a file of some 10 kB
    image.quantize(32).save(stream, "PNG", optimize=True)
    return stream.getvalue()


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


def _range(rows: Sequence[Notice], limit: float) -> tuple[float, float]:
    low = min(-1.4 * limit, *((one.deviation_low or 0.0) * 1.08 for one in rows))
    high = max(1.4 * limit, *((one.deviation_high or 0.0) * 1.08 for one in rows))
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
