"""Panels of the report, in order."""

from dashboards.panels.account import BOOKS, FITS, METHOD, PROVENANCE, TYPES
from dashboards.panels.expert import (
    EFFICIENCY,
    ERRORS,
    FIT_QUALITY,
    MATRIX,
    METHOD_SHIFT,
    ONE_TASK,
    PULL_HISTOGRAMS,
    SIBLINGS,
    TASK_CURVES,
    TASK_TABLE,
    UNSTABLE,
    WORST,
)
from dashboards.panels.factors import (
    COMPONENTS,
    CORRELATION,
    FACTORS_MODEL,
    FACTORS_MODEL_TABLE,
    FACTORS_SITE,
    FACTORS_SITE_TABLE,
    WITHOUT,
)
from dashboards.panels.flags import OPEN_FLAGS
from dashboards.panels.profiles import PROFILES, TRENDS
from dashboards.panels.reasons import REASONS
from dashboards.panels.shares import RESTS, SHARES
from dashboards.panels.today import INCIDENTS
from dashboards.panels.verdicts import (
    CANDIDATES,
    CONCLUSION,
    COUNTS,
    DEVIATING,
    DEVIATING_MODELS,
    DEVIATIONS,
    FLAGS_OF_SITES,
    FLAGS_TABLE,
    SCATTER,
    SCATTER_MODEL,
    SET_ASIDE,
    UNDECIDED,
    UNDECLARED,
)
from dashboards.spec import Panel

REPORT: tuple[Panel, ...] = (
    COUNTS,
    CONCLUSION,
    INCIDENTS,
    SCATTER,
    DEVIATING,
    CANDIDATES,
    DEVIATING_MODELS,
    OPEN_FLAGS,
    REASONS,
    DEVIATIONS,
    FLAGS_TABLE,
    FLAGS_OF_SITES,
    TRENDS,
    PROFILES,
    SHARES,
    RESTS,
    FACTORS_SITE,
    FACTORS_SITE_TABLE,
    FACTORS_MODEL,
    FACTORS_MODEL_TABLE,
    SCATTER_MODEL,
    CORRELATION,
    COMPONENTS,
    WITHOUT,
    UNDECIDED,
    UNDECLARED,
    SET_ASIDE,
    TYPES,
    TASK_CURVES,
    TASK_TABLE,
    MATRIX,
    ERRORS,
    FIT_QUALITY,
    PULL_HISTOGRAMS,
    ONE_TASK,
    SIBLINGS,
    WORST,
    EFFICIENCY,
    UNSTABLE,
    METHOD_SHIFT,
    BOOKS,
    METHOD,
    FITS,
    PROVENANCE,
)
"""The panels of the report, in order."""


def panel(identity: str) -> Panel:
    """Look a panel up by its id.

    >>> panel("deviating").view.table
    'flags'
    """
    for candidate in REPORT:
        if candidate.id == identity:
            return candidate
    raise LookupError(f"unknown panel '{identity}'; use one of: {', '.join(p.id for p in REPORT)}")


def tables_read() -> tuple[str, ...]:
    """The tables from which the report is made: what its panels are about, what they join, what was declared.

    >>> {"flags", "factors", "day_books"} <= set(tables_read())
    True
    """
    tables = [
        name for each in REPORT for name in (each.view.table, *(join.view.table for join in each.joins))
    ]
    borrowed = [field.table for each in REPORT for field in each.fields]
    return tuple(dict.fromkeys(name for name in (*tables, *borrowed, "corepower") if name))
