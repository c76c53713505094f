"""What Vega-Lite makes of a specification: marks counted, lines read back into the units of their axes."""

import math
import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

import vl_convert

OLDEST, NEWEST = "5.8", "6.4"
"""The oldest and the newest Vega-Lite that the converter carries."""

VERSION_BY_PRODUCT = {"elasticsearch8": OLDEST, "opensearch3": NEWEST}
"""The version that draws the answers of a server; tests without a server draw with both."""

SIZE = 1000.0
"""Pixels on each side of what is drawn here."""

Points = list[tuple[float, float]]


def svg(spec: Mapping[str, Any], version: str = NEWEST) -> ET.Element:
    """The picture; its axes cover exactly :data:`SIZE` pixels each."""
    sized = {**spec, "width": SIZE, "height": SIZE, "autosize": "pad"}
    return ET.fromstring(vl_convert.vegalite_to_svg(sized, vl_version=version))  # noqa: S314 - ours


def marks(picture: ET.Element, name: str) -> list[ET.Element]:
    """The marks of a layer, by its name."""
    groups = [
        group
        for group in picture.iter("{http://www.w3.org/2000/svg}g")
        if f"{name}_marks" in group.get("class", "").split()
    ]
    return [mark for group in groups for mark in group.iter() if mark.get("d") or mark.get("x2")]


def written(picture: ET.Element, name: str) -> list[str]:
    """The texts of a layer, by its name."""
    groups = [
        group
        for group in picture.iter("{http://www.w3.org/2000/svg}g")
        if f"{name}_marks" in group.get("class", "").split()
    ]
    texts = [each for group in groups for each in group.iter() if each.tag.endswith("text")]
    return ["".join(each.itertext()) for each in texts]


def lines(picture: ET.Element, name: str) -> list[Points]:
    """The points of each line of a layer, as shares of both axes, from the lower left corner."""
    found = []
    for mark in marks(picture, name):
        pairs = re.findall(r"[ML](-?[\d.e-]+),(-?[\d.e-]+)", mark.get("d", ""))
        found.append([(float(x) / SIZE, 1 - float(y) / SIZE) for x, y in pairs])
    return found


def linear(share: float, low: float, high: float) -> float:
    """Where a share of an axis lies."""
    return low + share * (high - low)


def logarithmic(share: float, low: float, high: float) -> float:
    """The same on a logarithmic axis."""
    return low * math.exp(share * math.log(high / low))
