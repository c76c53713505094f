"""Columns that name people, groups or machines, for pseudonymised exports.

A column that is not listed here counts as a name, so a new column is pseudonymised by default.
"""

from collections.abc import Mapping
from types import MappingProxyType

from esjobs.core.fields import Field
from esjobs.core.states import ALL_STATES
from esjobs.core.tables import columns

PERSONAL: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("user", "entered_by", "account", "acknowledged_by", "recipient", "address"), "user"),
        **dict.fromkeys(("project", "vo_group"), "project"),
        **dict.fromkeys(("unit", "submit_host", "host", "node"), "host"),
        **dict.fromkeys(
            ("transformation", "application", "executable", "path", "work_kind", "region"), "path"
        ),
        **dict.fromkeys(("job_id", "task_id", "cause_key"), "id"),
        "job_name": "job",
    }
)
"""Column to the kind of its names: the same name under two kinds has two pseudonyms.

A ``host`` may be followed by a slash and the number of a core or device, which stays. A ``path`` is a
program: its name stays unless it has a slash, for folders are named after people. An ``id`` stays where it is
made of digits: HTCondor's name the machine that submitted (``crab3@host#9053.0``), CRAB's tasks who did. A
``job`` is what its user called it, which may be anybody's name.
"""

AUTHORS = frozenset({"entered_by", "account", "acknowledged_by"})
"""Columns of kind ``user`` that say who did something: their rows are about something else."""

KEPT_TEXTS = frozenset({"cpu_raw"})
"""Columns of type text that hold no sentences."""

KEPT = frozenset(
    (
        # of jobs: where, what, how; queues and sites are public
        *columns("source job_id task_id queue site measured_by cpu_raw cpu_model processing_type state"),
        *columns(
            "cluster subcluster exit_code error error_category release country vo vo_role infrastructure "
            "benchmark core_class task_type only_type"
        ),
        # of what was measured
        *columns(
            "metric scope detector rule variant reason issues_variant score_cpu_reason score_mem_reason"
        ),
        *columns(
            "score_mpi_reason score_io_reason score_gpu_reason score_gpumem_reason cpu_efficiency_reason"
        ),
        *columns("time_used_reason cores_from cpu_from gpu_variant"),
        # of factors and verdicts
        *columns(
            "level name method verdict status origin outcome kind decision sole_link cause rules resolver"
        ),
        *columns("grade estimate_benchmark sigma_cost_kind sigma_int_kind sigma_type_kind"),
        # of runs, loads, nights and notices: made by esjobs itself
        *columns("run run_before run_step speed_run step search_step fingerprint inputs load_id import_id"),
        *columns("format field windows backfill order_id"),
        *columns(
            "incident table_name program_version event ack_id last_event from_state note_id notification"
        ),
        *columns("act route request"),
        *columns("bundle channel"),
        # of reports of TALP: known by their hashes
        *columns("report part_of dlb_version worst"),
        # of indices: a centre is public
        *columns("assessment centre period measure label contact"),
        # of pledges, downtimes and emission factors: public
        *columns("federation accounting_name country_code zone service severity downtime endpoint"),
        # of the cost of monitoring, of programs and of what is predicted: software and numbers
        *columns("measurement collector collective module digest metrics"),
    )
)
"""Columns whose texts name nobody."""


NAMING = frozenset({"user", "project", "host"})
"""Kinds whose names are looked for in the texts that stay."""

END_STATES = frozenset(
    (*ALL_STATES, *columns("revoked merging transferring holding running completed stopped"))
)
"""Job end states, in the words of the sources."""


def kind_of_names(column: Field) -> str | None:
    """Return the kind of names in a column: ``user``, ``project``, ``host``, ``path``, ``id`` or its own.

    None if the column names nobody or holds no texts.

    >>> from esjobs.core.fields import field
    >>> kind_of_names(field("user")), kind_of_names(field("queue"))
    ('user', None)
    """
    if column.type != "keyword" or column.values:
        return None
    # a keyword that is in neither list may name people: its own kind, so that it is pseudonymised
    return PERSONAL.get(column.name) or (None if column.name in KEPT else column.name)


def is_free_text(column: Field) -> bool:
    """True if a column holds sentences, which may contain any name."""
    return column.type == "text" and column.name not in KEPT_TEXTS
