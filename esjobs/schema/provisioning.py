"""Quality of provisioning: indices of centres."""

from esjobs.core.tables import Table, column, columns
from esjobs.schema.provisioning_names import AREAS

ROW_KINDS = ("index", "area", "input")
"""Kinds of rows of an index."""
ORIGINS = ("measured", "entered", "missing")
"""Origins of input values."""

QUALITY_INDEX = Table(
    "quality_index",
    "service quality of a centre in a period: index, five areas, and all inputs",
    "assessment",
    (
        column("assessment", "keyword", "derived from centre and period; a new index replaces it"),
        column("centre", "keyword", "centre, as in the questionnaire"),
        column("period", "keyword", "period: half-open, UTC"),
        column("kind", "keyword", "index, one of the areas, or one input of an area", values=ROW_KINDS),
        column("area", "keyword", "area; null for the index", values=tuple(AREAS)),
        column("priority", "keyword", "priority of the area for centres", values=("high", "moderate", "low")),
        column("name", "keyword", "question; for an index or area: its parent"),
        column("origin", "keyword", "of an input: measured, entered or missing", values=ORIGINS),
        column("measure", "keyword", "of a measured input: the metric"),
        column("value", "number", "of an input: its value, in the unit of the measure"),
        column("worst", "number", "value for 0 points"),
        column("best", "number", "value for 100 points"),
        column("points", "number", "points over the available inputs; null: none", "points"),
        # the range of the index over all that is not known: narrow only if most inputs are there
        column("points_low", "number", "points if all missing inputs had the worst value", "points"),
        column("points_high", "number", "points if all missing inputs had the best value", "points"),
        column("weight", "number", "weight of an area in the index, of an input in its area"),
        column("coverage", "number", "available share of the weight"),
        column("reason", "text", "reason for a missing input"),
        column("label", "keyword", "centre, period and area in one text, for charts"),
        column("position", "integer", "position in the questionnaire"),
        column("made_at", "time", "time of computation", "UTC"),
    ),
    made_by="provision index",
    shown=columns("centre period kind area name origin value points points_low points_high weight coverage"),
    order=columns("centre period position"),
)

CONTACTS = Table(
    "contacts",
    "contacts of users and projects about their jobs, as entered",
    "contact",
    (
        column("contact", "keyword", "derived from the contact; a second entry replaces it"),
        column("user", "keyword", "contacted user; null for a project"),
        column("project", "keyword", "contacted project; null for a user"),
        column("contacted_on", "day", "day of the contact", "UTC"),
        column("entered_by", "keyword", "person who contacted them"),
        column("text", "text", "text of the contact"),
        column("acknowledged_on", "day", "day of the acknowledgement; null: none", "UTC"),
        column("entered_at", "time", "time of entry", "UTC"),
        column("account", "keyword", "account of the cluster or the machine that entered it"),
    ),
    entered=True,
    made_by="provision contact",
    shown=columns("contacted_on user project entered_by acknowledged_on text contact"),
    order=columns("-contacted_on user project"),
)

TABLES = (QUALITY_INDEX, CONTACTS)
