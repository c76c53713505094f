"""Quality of provisioning: indices of centres."""

from esjobs.core.tables import Table, column, columns
from esjobs.schema.provisioning_names import AREAS

ROW_KINDS = ("index", "area", "input")
"""Kinds of rows of an index."""
ORIGINS = ("measured", "entered", "missing")
"""Origins of input values."""

QUALITY_INDEX = Table(
    "quality_index",
    "quality of provisioning of a centre in a period: its index, the five areas, and every input",
    "assessment",
    (
        column("assessment", "keyword", "follows from centre and period; made again it is replaced"),
        column("centre", "keyword", "who provides, as the questionnaire names it"),
        column("period", "keyword", "what of the time it is about: half-open, UTC"),
        column("kind", "keyword", "index, one of the areas, or one input of an area", values=ROW_KINDS),
        column("area", "keyword", "the area; null of the index", values=tuple(AREAS)),
        column(
            "priority", "keyword", "how much centres care for the area", values=("high", "moderate", "low")
        ),
        column("name", "keyword", "what is asked for; of an index or area: of which"),
        column("origin", "keyword", "of an input: measured, entered or missing", values=ORIGINS),
        column("measure", "keyword", "of a measured input: the metric"),
        column("value", "number", "of an input: its value, in the unit of the measure"),
        column("worst", "number", "the value that is worth 0 points"),
        column("best", "number", "the value that is worth 100 points"),
        column(
            "points", "number", "what it is worth, over the inputs that are known; null: none is", "points"
        ),
        column("points_low", "number", "the same if everything missing were at its worst", "points"),
        column("points_high", "number", "the same if everything missing were at its best", "points"),
        column("weight", "number", "weight of an area in the index, of an input in its area"),
        column("coverage", "number", "part of the weight that is known: 1 is everything"),
        column("reason", "text", "why an input is missing"),
        column("label", "keyword", "centre, period and area in one text, for charts"),
        column("position", "integer", "place in the order of the questionnaire"),
        column("made_at", "time", "when the index was made", "UTC"),
    ),
    made_by="provision index",
    shown=columns("centre period kind area name origin value points points_low points_high weight coverage"),
    order=columns("centre period position"),
)
"""A row an index, an area, an input."""

CONTACTS = Table(
    "contacts",
    "users and projects who were contacted about their jobs, as people entered it",
    "contact",
    (
        column("contact", "keyword", "follows from who was contacted and when; entered again it is replaced"),
        column("user", "keyword", "the user who was contacted; null of a project"),
        column("project", "keyword", "the project that was contacted; null of a user"),
        column("contacted_on", "day", "the day", "UTC"),
        column("entered_by", "keyword", "person who contacted them"),
        column("text", "text", "what was said"),
        column("acknowledged_on", "day", "the day on which they acknowledged it; null: they have not", "UTC"),
        column("entered_at", "time", "when it was entered", "UTC"),
        column("account", "keyword", "account of the cluster, or of the machine, by which it was entered"),
    ),
    entered=True,
    made_by="provision contact",
    shown=columns("contacted_on user project entered_by acknowledged_on text contact"),
    order=columns("-contacted_on user project"),
)

TABLES = (QUALITY_INDEX, CONTACTS)
