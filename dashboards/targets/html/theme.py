"""The page's colours, light and dark, for the page itself and for the marks of its charts."""

from collections.abc import Sequence

from dashboards.spec import CARE, EVERY_LOOK, GO, GROUPS, LOOKS, NEUTRAL, STATES, STOP
from dashboards.targets.html.files import read
from dashboards.targets.vegalite.bands import STEPS
from dashboards.targets.vegalite.marks import BAND, GRID, INK, LINE, MUTED, PAPER
from dashboards.targets.vegalite.sums import SERIES
from esjobs.core.freshness import FRESH_DAYS, STALE_DAYS

_GROUND = (
    ("paper", PAPER, "#16191d"),
    ("ink", INK, "#e7eaed"),
    ("muted", MUTED, "#9da6b0"),
    ("grid", GRID, "#2b3138"),
    ("band", BAND, "#232a31"),
    ("line", LINE, "#cfd5db"),
    ("neutral", NEUTRAL, "#8ba5bf"),
)

# Outlines of the marks' shapes, for legends outside a chart
SHAPES = {
    "circle": "M4,0A4,4,0,1,1,-4,0A4,4,0,1,1,4,0Z",
    "square": "M-3.7,-3.7H3.7V3.7H-3.7Z",
    "diamond": "M0,-5L5,0L0,5L-5,0Z",
    "triangle-up": "M0,-4.6L4.8,3.7H-4.8Z",
    "triangle-down": "M0,4.6L4.8,-3.7H-4.8Z",
    "cross": "M-4.6,-1.5H-1.5V-4.6H1.5V-1.5H4.6V1.5H1.5V4.6H-1.5V1.5H-4.6Z",
}


def age_macro() -> str:
    """The template of the line that says how old the numbers are, with the limits that it goes by."""
    return f"{{% set fresh, stale = {FRESH_DAYS}, {STALE_DAYS} %}}{read('age.jinja')}"


def look_names() -> dict[str, str]:
    """The custom property that holds the colour of a look, by the look's label."""
    found = {look.label: f"look-{key}".replace(" ", "-") for key, look in LOOKS.items()}
    found |= {look.label: f"group-{key}" for key, look in GROUPS.items()}
    return found | {look.label: f"state-{key}" for key, look in STATES.items()}


def palette_css() -> str:
    """Custom properties for both grounds, and rules that let the marks of a chart follow them.

    A chart names its colours literally, so that it looks the same in a notebook; here each literal colour is
    bound to a property, which changes on a dark screen but not on paper.
    """
    names = look_names()
    colours = [*_GROUND, *((names[look.label], look.light, look.dark) for look in EVERY_LOOK)]
    light, dark, bound = _properties(colours)
    verdicts = "".join(f".{names[look.label]}{{color:var(--{names[look.label]})}}" for look in LOOKS.values())
    return (
        f":root{{color-scheme:light dark;{light}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}{bound}{verdicts}"
    )


_SERIES_DARK = ("#9f93ff", "#9dc42a", "#ff67cf", "#5bb094", "#dcacff", "#a5a54e", "#ff9ec4", "#44d084")
_LIGHTS = (("go", GO, "#5cc39b"), ("care", CARE, "#e0b445"), ("stop", STOP, "#f2894f"))


def series_css() -> str:
    """Colours of names over time and of the light, in the way of :func:`palette_css`."""
    series = (
        (f"series-{place}", light, dark)
        for place, (light, dark) in enumerate(zip(SERIES, _SERIES_DARK, strict=True))
    )
    colours = [*series, *_LIGHTS]
    light, dark, bound = _properties(colours)
    return f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}{bound}"


_STEPS_DARK = ("#ffb280", "#b85a1e", "#2a2f36", "#2f6fb0", "#9ccbff")


def steps_css() -> str:
    """Classes of the squares of a map of nights, from slow to fast, on light and on dark ground."""
    light, dark = (
        "".join(f".step-{place}{{--step:{colour}}}" for place, colour in enumerate(colours))
        for colours in (STEPS, _STEPS_DARK)
    )
    return f"{light}@media screen and (prefers-color-scheme:dark){{{dark}}}"


def _properties(colours: Sequence[tuple[str, str, str]]) -> tuple[str, str, str]:
    """Custom properties on light and on dark ground, and the rules that let marks follow them."""
    light = "".join(f"--{name}:{value};" for name, value, _ in colours)
    dark = "".join(f"--{name}:{value};" for name, _, value in colours)
    bound = "".join(
        f'.chart [{side}="{value}"]{{{side}:var(--{name})}}'
        for name, value, _ in colours
        for side in ("fill", "stroke")
    )
    return light, dark, bound
