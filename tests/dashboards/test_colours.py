"""Colours of marks in the bundles: seen on a light and on a dark ground."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from esjobs.render import bundles

WHITE, DARK = "#ffffff", "#1d1e24"
LEAST = 3.0  # WCAG 1.4.11, of marks against their ground
PALE = {"#f4f4f2", "#f4f3f0", "#fdfdfd", "#14181d"}  # Middle of a scale of two sides, and texts on its ends
SIDES = {"#8c2d04", "#ec7a3c", "#74a9d8", "#0b4a8f"}  # Its steps: the further away, the stronger


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def specifications(text: str) -> Iterator[str]:
    """The Vega specifications of a bundle, wherever they stand."""

    def walk(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            for name, value in node.items():
                if name == "spec" and isinstance(value, str):
                    yield value
                else:
                    yield from walk(value)
        elif isinstance(node, list):
            for value in node:
                yield from walk(value)
        elif isinstance(node, str) and node.lstrip().startswith(("{", "[")):
            try:
                inner = json.loads(node)
            except ValueError:
                return
            yield from walk(inner)

    for line in text.splitlines():
        yield from walk(json.loads(line))


def texts_of(node: Any) -> Iterator[dict[str, Any]]:
    """The marks of text of a specification."""
    if isinstance(node, dict):
        if node.get("type") == "text":
            yield node
        node = list(node.values())
    for each in node if isinstance(node, list) else ():
        yield from texts_of(each)


@pytest.mark.parametrize("target", bundles.TARGETS)
def test_texts_have_the_colour_of_the_theme(target: str) -> None:
    """No grey has 4.5 to 1 (WCAG 1.4.3) on both grounds; large bold letters need 3 to 1."""
    marks = [
        mark for spec in specifications(bundles.bundle_of(target)) for mark in texts_of(json.loads(spec))
    ]
    small = [mark for mark in marks if mark["fontSize"] < 19]
    assert len(small) > 50
    assert {mark.get("style") for mark in small} == {"guide-label", "group-subtitle"}
    assert not any("color" in mark for mark in small)


@pytest.mark.parametrize("target", bundles.TARGETS)
def test_marks_are_seen_on_both_grounds(target: str) -> None:
    specs = list(specifications(bundles.bundle_of(target)))
    assert len(specs) > 20
    colours = {colour for spec in specs for colour in re.findall(r"#[0-9a-f]{6}\b", spec)} - PALE - SIDES
    assert colours
    faint = {colour for colour in colours if min(contrast(colour, each) for each in (WHITE, DARK)) < LEAST}
    assert faint == set()
