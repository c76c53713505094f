"""Drawing styles of verdicts, components and buckets."""

from dataclasses import dataclass

from esjobs.core.words import status_shown


@dataclass(frozen=True)
class Look:
    """Drawing style: colours on light and dark ground, Vega shape, fill."""

    label: str
    shape: str
    glyph: str
    light: str
    dark: str
    filled: bool = True


# Verdicts by colour and shape: either alone is enough (vermilion, blue and grey stay apart for every common
# kind of colour blindness). Only a confirmed deviation has a colour of warning, a candidate is muted.
# ``default`` is the look of an undeclared name whose queue carries a default value; ``other`` is every
# verdict without a look of its own. No two colours are equal, so that a style sheet can tell them apart.
LOOKS: dict[str, Look] = {
    "confirmed": Look("deviates, confirmed", "diamond", "◆", "#bf3c06", "#f2894f"),
    "candidate": Look("candidate, not confirmed", "diamond", "◇", "#858b95", "#9aa2ad", filled=False),
    "ok": Look("ok", "circle", "●", "#1f6699", "#6cb2e4"),
    "undecided": Look("undecided", "triangle-up", "▲", "#858b93", "#9aa2ab"),
    "default": Look("undeclared, a default value", "circle", "○", "#4d545d", "#c4cad1", filled=False),
    "undeclared": Look("undeclared", "square", "□", "#4d545e", "#c4cad2", filled=False),
    "via CPU models": Look("via CPU models", "triangle-down", "▽", "#77579a", "#b99bda", filled=False),
    "not comparable": Look("not comparable", "square", "□", "#77579b", "#b99bdc", filled=False),
    "other": Look("too few, mixed or implausible", "cross", "✚", "#77579c", "#b99bdd", filled=False),
}

# Styles of factors without a verdict, by component
GROUPS: dict[str, Look] = {
    "largest": Look("largest component", "circle", "●", "#5a6d82", "#8ba5c1"),
    "other": Look("other components, not comparable", "square", "□", "#5a6d83", "#8ba5c2", filled=False),
}

# Styles of buckets, by their status in the fit
STATES: dict[str, Look] = {
    "used": Look("used in the fit", "circle", "●", "#5a6d81", "#8ba5c0"),
    "rejected": Look("rejected as outlier", "diamond", "◇", "#bf3c07", "#f2894e", filled=False),
    "other": Look("not in the fit", "square", "□", "#858b94", "#9aa2ac", filled=False),
}

# Colour of bars, lines and marks that mean nothing but their length or place: no verdict has it
NEUTRAL = "#5a6d80"

# Colours of a person's next step: act, look first, nothing to do; each comes with a word
STOP, CARE, GO = "#bf3c06", "#b8860b", "#2a7f62"

# By column, the colours of its values, in the order in which people read them
FIXED_COLOURS: dict[str, dict[str, str]] = {
    "severity": {"critical": STOP, "major": CARE, "minor": "#6b7280", "info": "#858b95"},
    "kind": {"binned": NEUTRAL, "dropped": "#858b95"},
    "step": {"flag": NEUTRAL},
}

# All looks, in the order of a legend
EVERY_LOOK: tuple[Look, ...] = (*LOOKS.values(), *GROUPS.values(), *STATES.values())


def look_of(verdict: object, origin: object = None, confirmed: object = None) -> str:
    """The key of :data:`LOOKS` for a verdict, the origin of its declaration, and whether it is confirmed.

    >>> look_of("ok", "own"), look_of("undeclared", "default"), look_of("too few", "own")
    ('ok', 'default', 'other')
    >>> look_of("deviates", "own", True), look_of("deviates", "own", None)
    ('confirmed', 'candidate')
    """
    if verdict == "undeclared" and origin == "default":
        return "default"
    word = status_shown(str(verdict), confirmed)
    return word if word in LOOKS else "other"
