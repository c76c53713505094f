"""Names beside their marks without lying on each other: a greedy placement in an assumed frame of pixels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dashboards.scales import Axis

Side = Literal["right", "left"]

_WIDTH, _LETTER, _LINE, _GAP, _MARK = 860.0, 6.4, 13.0, 9.0, 5.0
_LIFTS = (0, 1, -1, 2, -2, 3, -3)
_SIDES: tuple[Side, Side] = ("right", "left")


@dataclass(frozen=True)
class Label:
    """A text and where it stands, in the units of the axes; ``side`` of its mark."""

    x: float
    y: float
    text: str
    side: Side


@dataclass(frozen=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: "_Box") -> float:
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across * down if across > 0 and down > 0 else 0.0


def place_labels(
    marks: Sequence[tuple[float, float]],
    named: Sequence[tuple[int, str]],
    across: Axis,
    up: Axis,
    height: float,
) -> list[Label]:
    """Place the texts of some marks, in their order, each where it covers least.

    ``marks``: all positions in axis units; ``named``: index of a mark and its text, the most important first.
    The frame is assumed about as wide as a page, ``height`` pixels high; a wider one only loosens the layout.
    Cost: marks x names.
    """
    spots = [(across.share(x) * _WIDTH, (1 - up.share(y)) * height) for x, y in marks]
    taken = [_Box(x - _MARK, y - _MARK, x + _MARK, y + _MARK) for x, y in spots]
    unit = (up.high - up.low) / height
    placed = []
    for mark, text in named:
        x, y = spots[mark]
        boxes = {
            (lift, side): _box(x, y + lift * _LINE, len(text) * _LETTER, side)
            for lift in _LIFTS
            for side in _SIDES
        }
        costs = {spot: _cost(box, taken, height) + 8 * abs(spot[0]) for spot, box in boxes.items()}
        lift, side = min(costs, key=costs.__getitem__)
        taken.append(boxes[lift, side])
        placed.append(Label(marks[mark][0], marks[mark][1] - lift * _LINE * unit, text, side))
    return placed


def _box(x: float, y: float, width: float, side: Side) -> _Box:
    left = x + _GAP if side == "right" else x - _GAP - width
    return _Box(left, y - _LINE / 2, left + width, y + _LINE / 2)


def _cost(box: _Box, taken: Sequence[_Box], height: float) -> float:
    outside = max(0.0, box.right - _WIDTH) + max(0.0, -box.left) + max(0.0, -box.top)
    outside += max(0.0, box.bottom - height)
    return 30 * outside + sum(box.overlap(other) for other in taken)
