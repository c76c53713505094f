"""Every table of every capability, and the kinds of runs that make some; the one list of them.

Stores, ``show``, the terminal, the session, exports and the documentation follow from it.
"""

from dataclasses import dataclass

from esjobs.core.errors import UsageError
from esjobs.core.tables import Table
from esjobs.schema.accounting import ACCOUNTING
from esjobs.schema.declared import COREPOWER
from esjobs.schema.decomposition import REASON
from esjobs.schema.drift import DAILY_FACTORS, DRIFT
from esjobs.schema.flags import WATCH_TABLES
from esjobs.schema.issues import DETECT_TABLES
from esjobs.schema.jobs import BUCKETS, DAYS, LOAD_TABLES, LOADS, REJECTS
from esjobs.schema.kinds import Kind
from esjobs.schema.nights import NIGHT_STEPS, NIGHTS
from esjobs.schema.noise import NOISE_COSTS
from esjobs.schema.notifications import NOTIFICATIONS
from esjobs.schema.pop import TALP_TABLES
from esjobs.schema.provisioning import PROVISIONING_TABLES
from esjobs.schema.references import REFERENCES
from esjobs.schema.runs import ACCOUNT, LATEST_RUNS
from esjobs.schema.scores import SCORES
from esjobs.schema.series import SERIES
from esjobs.schema.similar import EXECUTABLES, PREDICTED_SCORES
from esjobs.schema.speed import SPEED


@dataclass(frozen=True)
class Capability:
    """A capability: its name, its tables, and the kind of run that makes some of them."""

    name: str
    tables: tuple[Table, ...]
    kind: Kind | None = None


CAPABILITIES: tuple[Capability, ...] = (
    Capability("speed", SPEED.tables, SPEED),
    Capability("flags", WATCH_TABLES),
    Capability("jobs", (BUCKETS, DAYS, REJECTS, LOADS, LOAD_TABLES)),
    Capability("declared", (COREPOWER,)),
    Capability("accounting", (ACCOUNTING,)),
    Capability("references", (REFERENCES,)),
    Capability("series", (SERIES,)),
    Capability("decomposition", REASON.tables, REASON),
    Capability("drift", (*DRIFT.tables, DAILY_FACTORS), DRIFT),
    Capability("scores", (SCORES,)),
    Capability("issues", DETECT_TABLES),
    Capability("pop", TALP_TABLES),
    Capability("noise", (NOISE_COSTS,)),
    Capability("provisioning", PROVISIONING_TABLES),
    Capability("similar", (EXECUTABLES, PREDICTED_SCORES)),
    Capability("publish", (*ACCOUNT, LATEST_RUNS)),
    Capability("nights", (NIGHTS, NIGHT_STEPS)),
    Capability("notifications", (NOTIFICATIONS,)),
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
