"""Numbers in charts as people read them: the forms of :mod:`esjobs.core.numbers` in the language of Vega.

A chart names a form where Vega-Lite wants a format; :func:`written` turns the names into texts that are
computed beside the rows (tooltips, labels of marks) and into labels of axes. Vega writes the real minus.
"""

import json
from collections.abc import Iterator
from typing import Any

from esjobs.core.numbers import MISSING

Spec = dict[str, Any]

# ``count``: whole, with commas. ``amount``: hours, tenths below 10. ``number``: three significant digits.
# ``percent``, ``signed``: whole from 10 % on, one decimal below. ``score``: whole, of 100. ``declared``,
# ``estimate``: two decimals and one. ``shift``: a number of standard errors, with its sign.
COUNT, AMOUNT, NUMBER = "form:count", "form:amount", "form:number"
PERCENT, SIGNED, SCORE = "form:percent", "form:signed", "form:score"
DECLARED, ESTIMATE, SHIFT = "form:declared", "form:estimate", "form:shift"

# By form the expression of a text
FORMS = {
    COUNT: "format({0}, ',.0f')",
    AMOUNT: "format({0}, abs({0}) >= 10 ? ',.0f' : '.1f')",
    NUMBER: "format({0}, abs({0}) >= 999.5 ? ',.0f' : '.3r')",
    PERCENT: "(abs({0}) < 5e-4 ? '0' : format(100 * {0}, abs({0}) >= 0.0995 ? ',.0f' : '.1f')) + ' %'",
    SIGNED: "(abs({0}) < 5e-4 ? '0' : format(100 * {0}, abs({0}) >= 0.0995 ? '+,.0f' : '+.1f')) + ' %'",
    SCORE: "format({0}, '.0f')",
    DECLARED: "format({0}, '.2f')",
    ESTIMATE: "format({0}, '.1f')",
    SHIFT: "format({0}, '+.1f')",
}

_TICKS = {
    PERCENT: "format(100 * datum.value, ',.6~r') + ' %'",
    SHIFT: "(datum.value === 0 ? '0' : format(datum.value, '+,.6~r'))",
    SIGNED: "(datum.value === 0 ? '0' : format(100 * datum.value, '+,.6~r')) + ' %'",
}
# Labels of an axis: ticks are round, and have the digits that tell them apart
_TICK = "format(datum.value, ',.6~r')"


def text_of(value: str, form: str) -> str:
    """An expression: a number as text.

    >>> text_of("datum.n", COUNT)
    "(isValid(datum.n) ? format(datum.n, ',.0f') : '\u2013')"
    """
    return f"(isValid({value}) ? {FORMS[form].format(value)} : '{MISSING}')"


def written(layer: Spec) -> Spec:
    """A layer, or layers in it, with texts and labels in place of the names of forms."""
    made = dict(layer)
    if "layer" in made:
        made["layer"] = [written(each) for each in made["layer"]]
    if "encoding" not in made:
        return made
    steps: dict[str, Spec] = {}
    encoding: Spec = {}
    for channel, definition in made["encoding"].items():
        if isinstance(definition, list):
            encoding[channel] = [_worded(each, steps) for each in definition]
        elif isinstance(definition, dict):
            encoding[channel] = _labelled(_worded(definition, steps))
        else:
            encoding[channel] = definition
    made["encoding"] = encoding
    if steps:
        made["transform"] = [*made.get("transform", ()), *steps.values()]
    return made


def _worded(channel: Spec, steps: dict[str, Spec]) -> Spec:
    """A channel of text, with the step that makes the text."""
    form = channel.get("format")
    if form not in FORMS:
        return channel
    name = f"{channel['field']} as {form.removeprefix('form:')}"
    steps[name] = {"calculate": text_of(f"datum[{json.dumps(channel['field'])}]", form), "as": name}
    kept = {key: value for key, value in channel.items() if key != "format"}
    return {**kept, "field": name, "type": "nominal"}


def _labelled(channel: Spec) -> Spec:
    """A channel of position, with labels of its axis; other formats are none of ours."""
    axis = channel.get("axis")
    if not isinstance(axis, dict) or axis.get("format") not in FORMS:
        return channel
    kept = {key: value for key, value in axis.items() if key != "format"}
    return {**channel, "axis": {**kept, "labelExpr": ticks_of(axis["format"])}}


def ticks_of(form: str) -> str:
    """An expression: the label of a tick, of an axis or of a legend."""
    return _TICKS.get(form, _TICK)


def formats_in(found: Any) -> Iterator[str]:
    """Formats of numbers that are left in a chart; those of times begin with a percent sign."""
    if isinstance(found, dict):
        form = found.get("format")
        if isinstance(form, str) and not form.startswith("%"):
            yield form
        for value in found.values():
            yield from formats_in(value)
    elif isinstance(found, list):
        for value in found:
            yield from formats_in(value)
