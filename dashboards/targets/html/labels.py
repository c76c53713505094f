"""Names beside their marks without lying on each other: a greedy placement in an assumed frame of pixels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from dashboards.targets.html.scales import Axis

Boxes = npt.NDArray[np.float64]
Side = Literal["right", "left"]

_CHARACTER, _LINE, _GAP, _MARK = 6.4, 13.0, 9.0, 5.0
_SIDES: tuple[Side, Side] = ("right", "left")
_SPOTS = tuple((lift, side) for lift in (0, 1, -1, 2, -2, 3, -3) for side in _SIDES)
# Per pixel out of the frame: a name that is cut reads worse than one that covers marks
_CUT_COST = 300
_LIFT_COST = np.array([8.0 * abs(lift) for lift, _ in _SPOTS])


@dataclass(frozen=True)
class Frame:
    """A room for names: its name, its width in pixels, and how many names it takes at most."""

    name: str
    width: float
    most: int

    @property
    def letters(self) -> int:
        """Number of letters that fit into half of the width."""
        return int(self.width / 2 / _CHARACTER)


@dataclass(frozen=True)
class Label:
    """A text and where it stands, in the units of the axes; ``side`` of its ``mark``, which is a number."""

    x: float
    y: float
    text: str
    side: Side
    mark: int


def place_labels(
    marks: Sequence[tuple[float, float]],
    named: Sequence[tuple[int, str]],
    across: Axis,
    up: Axis,
    height: float,
    width: float = 640.0,
) -> list[Label]:
    """Place the texts of some marks, in their order, each where it covers least.

    ``marks``: all positions in axis units; ``named``: index of a mark and its text, the most important first.
    The frame is assumed ``width`` pixels wide and ``height`` high; a wider one only loosens the layout.
    Cost: marks x names.
    """
    place = np.array([(across.share(x) * width, (1 - up.share(y)) * height) for x, y in marks])
    taken = np.empty((len(marks) + len(named), 4))
    if len(marks):
        taken[: len(marks)] = np.concatenate([place - _MARK, place + _MARK], axis=1)
    unit = (up.high - up.low) / height
    placed = []
    for order, (mark, text) in enumerate(named):
        x, y = place[mark]
        boxes = np.array([_box(x, y + lift * _LINE, len(text) * _CHARACTER, side) for lift, side in _SPOTS])
        cost = (
            _overlap(boxes, taken[: len(marks) + order])
            + _CUT_COST * _outside(boxes, width, height)
            + _LIFT_COST
        )
        best = int(np.argmin(cost))
        taken[len(marks) + order] = boxes[best]
        lift, side = _SPOTS[best]
        placed.append(Label(marks[mark][0], marks[mark][1] - lift * _LINE * unit, text, side, mark))
    return placed


def _box(x: float, y: float, width: float, side: Side) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a text beside the mark at (x, y)."""
    left = x + _GAP if side == "right" else x - _GAP - width
    return left, y - _LINE / 2, left + width, y + _LINE / 2


def _overlap(boxes: Boxes, taken: Boxes) -> Boxes:
    """For each box the area that it shares with those taken."""
    low = np.maximum(boxes[:, None, :2], taken[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], taken[None, :, 2:])
    area: Boxes = np.clip(high - low, 0, None).prod(axis=2).sum(axis=1)
    return area


def _outside(boxes: Boxes, width: float, height: float) -> Boxes:
    """For each box how far it sticks out of the frame."""
    low = np.clip(-boxes[:, :2], 0, None)
    high = np.clip(boxes[:, 2:] - np.array([width, height]), 0, None)
    far: Boxes = (low + high).sum(axis=1)
    return far
