"""What esjobs can do, each thing a folder of its own; the one list of them.

Stores, ``show``, the terminal, the session, exports and the documentation follow from the tables that are
named here.
"""

from dataclasses import dataclass

from esjobs.accounting.tables import ACCOUNTING
from esjobs.core.errors import UsageError
from esjobs.core.tables import Table
from esjobs.declared.tables import COREPOWER
from esjobs.detect.tables import DETECT_TABLES
from esjobs.drift.tables import DAILY_FACTORS, DRIFT
from esjobs.efficiency.tables import SCORES
from esjobs.jobs.tables import BUCKETS, DAYS, LOAD_TABLES, LOADS, REJECTS
from esjobs.nights.tables import NIGHT_STEPS, NIGHTS
from esjobs.noise.tables import NOISE_COSTS
from esjobs.notify.tables import NOTIFICATIONS
from esjobs.provisioning.tables import PROVISIONING_TABLES
from esjobs.reasons.tables import REASON
from esjobs.references.tables import REFERENCES
from esjobs.runs.kinds import Kind
from esjobs.runs.tables import ACCOUNT, LATEST_RUNS
from esjobs.series.tables import SERIES
from esjobs.similar.tables import EXECUTABLES, PREDICTED_SCORES
from esjobs.speed.tables import SPEED
from esjobs.talp.tables import TALP_TABLES
from esjobs.watch.tables import WATCH_TABLES


@dataclass(frozen=True)
class Capability:
    """A folder under ``esjobs``: its name, its tables, and the kind of run that makes some of them."""

    name: str
    tables: tuple[Table, ...]
    kind: Kind | None = None


CAPABILITIES: tuple[Capability, ...] = (
    Capability("speed", SPEED.tables, SPEED),
    Capability("watch", WATCH_TABLES),
    Capability("jobs", (BUCKETS, DAYS, REJECTS, LOADS, LOAD_TABLES)),
    Capability("declared", (COREPOWER,)),
    Capability("accounting", (ACCOUNTING,)),
    Capability("references", (REFERENCES,)),
    Capability("series", (SERIES,)),
    Capability("reasons", REASON.tables, REASON),
    Capability("drift", (*DRIFT.tables, DAILY_FACTORS), DRIFT),
    Capability("efficiency", (SCORES,)),
    Capability("detect", DETECT_TABLES),
    Capability("talp", TALP_TABLES),
    Capability("noise", (NOISE_COSTS,)),
    Capability("provisioning", PROVISIONING_TABLES),
    Capability("similar", (EXECUTABLES, PREDICTED_SCORES)),
    Capability("runs", (*ACCOUNT, LATEST_RUNS)),
    Capability("nights", (NIGHTS, NIGHT_STEPS)),
    Capability("notify", (NOTIFICATIONS,)),
)
"""In the order in which people read of them."""

TABLES: tuple[Table, ...] = tuple(table for each in CAPABILITIES for table in each.tables)
"""Every result table; a store lays out exactly these."""

KINDS: tuple[Kind, ...] = tuple(each.kind for each in CAPABILITIES if each.kind is not None)
"""Every kind of question that runs answer."""


def table(name: str) -> Table:
    """Look a table up by name, or raise :class:`UsageError` that lists them all."""
    for candidate in TABLES:
        if candidate.name == name:
            return candidate
    raise UsageError(f"no table '{name}'; there are {', '.join(t.name for t in TABLES)}")


def kind_of(asked: Table) -> Kind | None:
    """The kind of run that makes a table; None for a table that belongs to no run."""
    return next((kind for kind in KINDS if asked in kind.tables), None)
