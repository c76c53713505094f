"""Page of the result tables: what tables share is defined once."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from esjobs.core.fields import Field
from esjobs.core.tables import Table
from esjobs.schema.catalogue import OF_CAPABILITY, TABLES

_HEAD = """# Result tables

{note}
`esjobs show TABLE` prints the main columns of a table, `--format csv` or `parquet` all of them.
Parentheses hold the unit, else the type; without, a column is a text or a number without unit, as its
definition says. A column without a definition is a [common column](#common-columns), or defined in the
table that is named. Rows are replaced per value of the column behind *per*; *entered* tables hold what
people typed. `X+_err` stands for X and its standard error `X_err`, `X+_low+_high` for X and the ends of
its 90 % interval, `X+_before` for X and its value in the previous run.
"""
_FAMILIES = {
    "_status": "reason for the value of X, or for its absence",
    "_unclipped": "X before clipping",
    "_reason": "reason for a missing or clipped X",
    "_sq": "square of X, for standard deviations over jobs",
    "_from": "lower end of the 10 % bin of X",
}
"""Ending of the name of a column, and what it says of the column X without it."""
_SMALLEST_FAMILY = 4
_SHARED_FROM = 3
"""Tables that define a column alike from which on the definition stands among the common ones."""
_BESIDE = {
    "_err": "its standard error",
    "_low": "lower end of its 90 % interval",
    "_high": "upper end of its 90 % interval",
}
"""Ending of a column that stands beside the one without it, and its meaning there."""
_PLAIN = {"keyword": "", "text": "", "number": ""}
"""Types that a column without a unit has unless the page says otherwise."""
_PRINTED = ", as printed"
"""What the raw numbers of a report say beyond the definition of the computed ones."""
_COMMON_NAMES = (
    *("window_start", "window_end", "window_days", "program_version", "job_id", "end_time", "loaded_at"),
    *("application", "cpu_model", "core_h"),
)
"""Columns that mean the same in every table, whatever the words of its definition."""


def tables_page(note: str) -> str:
    """Return the page, capability by capability."""
    common = _common()
    lines = [_HEAD.format(note=note), "## Common columns\n"]
    lines += [_definition(common[name], {}) for name in sorted(common)]
    defined: dict[Field, str] = {}
    for capability, tables in OF_CAPABILITY.items():
        if tables:
            lines.append(f"\n## {capability}")
        for table in tables:
            lines += _section(table, common, defined)
            defined = {**{_bare(each): table.name for each in table.columns}, **defined}
    return "\n".join(lines) + "\n"


def _common() -> dict[str, Field]:
    """Return the definition of each column that several tables have: the one that most of them give."""
    definitions: defaultdict[str, Counter[Field]] = defaultdict(Counter)
    for table in TABLES:
        for column in table.columns:
            definitions[column.name][_bare(column)] += 1
    most = (counted.most_common(1)[0] for counted in definitions.values())
    return {column.name: column for column, count in most if count >= _SHARED_FROM}


def _bare(column: Field) -> Field:
    """Return a column with what the page says of it, so that equal definitions are equal."""
    return Field(column.name, column.type, column.unit, column.meaning.removesuffix(_PRINTED))


def _section(table: Table, common: dict[str, Field], defined: dict[Field, str]) -> list[str]:
    families, beside = _families(table.columns), _beside(table)
    members = {each.name for family in families.values() for each in family}
    members |= {f"{name}{ending}" for name, endings in beside.items() for ending in endings}
    shared, own = [], []
    elsewhere: defaultdict[str, list[str]] = defaultdict(list)
    for column in table.columns:
        if column.name in members:
            continue
        if _is_common(column, common):
            shared.append(_name(column, beside))
        elif (other := defined.get(_bare(column))) is not None:
            elsewhere[other].append(_name(column, beside))
        else:
            own.append(_definition(column, beside))
    entered = ", entered" if table.entered else ""
    lines = [
        f"\n### {table.name}\n",
        f"{table.meaning[0].upper()}{table.meaning[1:]}. Per `{table.partition}`{entered}.",
    ]
    if shared:
        lines.append(f"Common: {', '.join(shared)}.")
    lines += [f"As in {other}: {', '.join(names)}." for other, names in elsewhere.items()]
    lines += ["", *own]
    for ending, family in families.items():
        bases = ", ".join(f"`{each.name.removesuffix(ending)}`" for each in family)
        lines.append(f"- `X{ending}`: {_FAMILIES[ending]}; X is {bases}")
    return lines


def _is_common(column: Field, common: dict[str, Field]) -> bool:
    return column.name in common and (column.name in _COMMON_NAMES or common[column.name] == _bare(column))


def _families(columns: Sequence[Field]) -> dict[str, list[Field]]:
    """Return the columns of a table that only say something of another one, by the ending of their names."""
    names = {each.name for each in columns}
    found = {
        ending: [each for each in columns if each.name.removesuffix(ending) in names - {each.name}]
        for ending in _FAMILIES
    }
    return {ending: family for ending, family in found.items() if len(family) >= _SMALLEST_FAMILY}


def _beside(table: Table) -> dict[str, list[str]]:
    """Return the endings of the columns that stand beside a column, by its name."""
    meanings = {each.name: each.meaning for each in table.columns}
    found = {
        name: [ending for ending, meaning in _BESIDE.items() if meanings.get(f"{name}{ending}") == meaning]
        for name in meanings
    }
    for name in table.before:
        found[name].append("_before")
    return found


def _name(column: Field, beside: Mapping[str, list[str]]) -> str:
    return f"`{'+'.join((column.name, *beside.get(column.name, ())))}`"


def _definition(column: Field, beside: Mapping[str, list[str]]) -> str:
    kind = (
        column.type if column.type in ("time", "day") else column.unit or _PLAIN.get(column.type, column.type)
    )
    return f"- {_name(column, beside)}{f' ({kind})' if kind else ''}: {column.meaning}"
