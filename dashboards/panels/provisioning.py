"""The panel about the quality of provisioning: indices of centres and periods, area by area."""

from dashboards.spec import Entry, Panel, View, Where
from esjobs.core.query import Sum

INDICES = Panel(
    "provisioning",
    "Quality of provisioning, 0 to 100 points: index and areas of each centre and period",
    "bars",
    "Provisioning",
    View(
        "quality_index",
        types="every",
        where=(Where("kind", ("index", "area")), Where("points")),
        by=("label",),
        metrics=(Sum("points", "points"),),
        sort=("-points",),
    ),
    "Over the inputs that are known; what is missing counts nowhere, and esjobs show quality_index names it.",
    fields=(
        Entry("label", "Centre, period: area", "text", "label"),
        Entry("points", "Points", "number", "x"),
    ),
    most=(25,),
    empty="No index is stored: esjobs provision index FILE makes one of a questionnaire.",
)
