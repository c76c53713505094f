"""Page of the result tables: what tables share is defined once."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from esjobs.core.fields import Field
from esjobs.core.tables import Table
from esjobs.schema.catalogue import OF_CAPABILITY, TABLES

_HEAD = """# Result tables

{note}
`esjobs show TABLE` prints the main columns of a table, `--format csv` or `parquet` all. Parentheses
hold a unit or type that the name does not tell: `n_` counts, `score_` is % (0 best), `_s` seconds, `_b`
bytes, `_h` hours, `_at` a time, `_on` a day. Columns without definition are [common](#common-columns),
defined in the table that is named, or *plain*: their names say it. *Run columns* are {run_columns}.
Rows are replaced per value of the column behind *per*; people enter *entered* tables. `X+_err` is X and its
standard error `X_err`, `X+_low+_high` X and the ends of its 90 % interval, `X+_before` X in the previous run.
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
_TYPES = ("map", "list", "bytes", "time", "day")
"""Types that the page names."""
_RUN_COLUMNS = ("run", "window_start", "window_end", "window_days", "scope", "program_version")
_NUMBERED_FROM = 4
"""Columns with a number at their end from which on one line defines them."""
_IN_NAME = {
    "s": ("_s",),
    "B": ("_b",),
    "h": ("_h",),
    "core h": ("core_h",),
    "GPU h": ("gpu_h",),
    "core s": ("core_s",),
    "time": ("_at", "_time"),
    "day": ("_on", "day"),
}
"""Units and types, and the endings of names that tell them."""
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
    run_columns = ", ".join(f"`{name}`" for name in _RUN_COLUMNS)
    lines = [_HEAD.format(note=note, run_columns=run_columns), "## Common columns\n"]
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
    entered = ", entered" if table.entered else ""
    lines = [
        f"\n### {table.name}\n",
        f"{table.meaning[0].upper()}{table.meaning[1:]}. Per `{table.partition}`{entered}.",
    ]
    if other := _equal(table):
        return [*lines, f"Columns of {other}."]
    families, beside = _families(table.columns), _beside(table)
    members = {each.name for family in families.values() for each in family}
    members |= {f"{name}{ending}" for name, endings in beside.items() for ending in endings}
    shared, plain, own = [], [], []
    elsewhere: defaultdict[str, list[str]] = defaultdict(list)
    for column in table.columns:
        if column.name in members:
            continue
        if _is_common(column, common):
            shared.append(_name(column, beside))
        elif (other := defined.get(_bare(column))) is not None:
            elsewhere[other].append(_name(column, beside))
        elif _is_plain(column):
            plain.append(_name(column, beside))
        else:
            own.append(column)
    run = [f"`{name}`" for name in _RUN_COLUMNS]
    if set(run) <= set(shared):
        shared = ["run columns", *(name for name in shared if name not in run)]
    lists = {
        "Common": shared,
        **{f"As in {other}": names for other, names in elsewhere.items()},
        "Plain": plain,
    }
    lines += [f"{head}: {', '.join(names)}." for head, names in lists.items() if names]
    lines += ["", *_definitions(own, beside)]
    shown: list[str] = []
    for ending, family in families.items():
        bases = [f"`{each.name.removesuffix(ending)}`" for each in family]
        is_more = bool(shown) and set(shown) <= set(bases)
        text = ", ".join(
            ["as above", *(base for base in bases if base not in shown)] if is_more else ["is", *bases]
        )
        lines.append(f"- `X{ending}`: {_FAMILIES[ending]}; X {text.replace('is, ', 'is ', 1)}")
        shown = shown or bases
    return lines


def _equal(table: Table) -> str:
    """Return the earlier table that has the same columns; empty: none."""
    names = (other.name for other in TABLES[: TABLES.index(table)] if {*other.columns} == {*table.columns})
    return next(names, "")


def _is_plain(column: Field) -> bool:
    """True if the meaning of a column repeats its name."""
    words = re.findall(r"[a-z]+", column.meaning.lower().replace("wall-clock", "wall"))
    named = {word.rstrip("s") for word in column.name.removeprefix("n_").split("_")}
    return {word.rstrip("s") for word in words} - {"of", "the", "time", ""} <= named and not _kind(column)


def _definitions(columns: Sequence[Field], beside: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the definition of each column; one of all whose names differ in a number only."""
    for _, numbered in groupby(columns, lambda column: re.sub(r"\d+$", "", column.name)):
        group = list(numbered)
        if len(group) < _NUMBERED_FROM:
            yield from (_definition(column, beside) for column in group)
        else:
            yield f"- `{group[0].name}` to `{group[-1].name}`: {group[0].meaning}, ..., {group[-1].meaning}"


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
    kind = _kind(column)
    return f"- {_name(column, beside)}{f' ({kind})' if kind else ''}: {column.meaning}"


def _kind(column: Field) -> str:
    """Return unit or type of a column; empty: its name tells it, or a text or a plain number."""
    kind = column.type if column.type in _TYPES[-2:] or not column.unit else column.unit
    if kind == column.type and kind not in _TYPES:
        return ""
    told = column.name.startswith(("n_", "score_")) or column.name.endswith(_IN_NAME.get(kind, "?"))
    return "" if told else kind
