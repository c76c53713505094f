"""The panel about the quality of provisioning."""

from dashboards.spec import Entry, Panel, View, Where
from esjobs.core.query import Sum

INDICES = Panel(
    "provisioning",
    "Provisioning quality (0 to 100)",
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
    "Index and areas of each centre and period, over available inputs (list: esjobs show quality_index).",
    fields=(
        Entry("label", "Centre, period: area", "text", "label"),
        Entry("points", "Points", "number", "x"),
    ),
    most=(25,),
    empty="No index stored; run: esjobs provision index FILE.",
)
