"""Result tables as people see them: the headline method, the columns one decides by, words for verdicts.

Files and frames have every row and every column; what is left out or put into words here is in them.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from esjobs.core.numbers import percent, signed_interval, signed_percent
from esjobs.core.words import ALL_TYPES, HALF_WIDTH_90, status_shown
from esjobs.records.names.spelling import column_named
from esjobs.schema.catalogue import table
from esjobs.schema.today import REPORTED
from esjobs.today.sentences import command, hours, task_of, usual_again, what_is_wrong

if TYPE_CHECKING:
    from esjobs.today.states import Incident

_COMPARED = "level name processing_type method verdict_a verdict_b change sigma k_a k_b n_jobs_a n_jobs_b"

# Columns that go into the title when every row says the same
_TITLED = ("level", "processing_type", "method")


def for_people(
    what: str, rows: pa.Table, methods: Collection[str] = (), columns: Sequence[str] = ()
) -> tuple[pa.Table, str, list[str]]:
    """A result table for a terminal: the rows and columns shown, a title, and the columns of prose.

    ``methods``: the headline, where nobody asked for a method; rows of other methods are left out, and so are
    rows of a processing type that only repeat those of all types. The title tells what every row has in
    common. Verdicts become what people call them, deviations get their 90 % interval. ``columns``: these
    instead, also those that every row has in common; :class:`UsageError` for one that the table lacks.
    """
    chosen = [column_named(table(what), name).name for name in columns]
    shown = _of_methods(rows, methods)
    if what == "flags":
        worded = {
            "verdict": _statuses(shown, "verdict", "confirmed"),
            "deviation": _intervals(shown, "deviation", "deviation_err"),
        }
        shown = _with_texts(shown, worded)
    usual = shown.select(table(what).shown or shown.column_names)
    if chosen:
        if _without_repetition(usual)[1] is not None:
            shown = shown.filter(pc.equal(shown.column("processing_type"), ALL_TYPES))
        shown, title = shown.select(list(dict.fromkeys(chosen))), ""
    else:
        shown, title = _titled(usual)
        shown = _by_metric(shown) if what == "series" else shown
    if what == "flags":
        shown = _renamed(shown, "deviation")
    prose = [column.name for column in table(what).columns if column.type == "text"]
    return shown, title, prose


def _by_metric(series: pa.Table) -> pa.Table:
    """A line a job, metric and scope, in the order of the rows: units, samples, how many are missing.

    Of unlike distances the smallest is shown.
    """
    keys = ["source", "job_id", "metric", "scope"]
    sums = [
        ("unit", "count"),
        ("start_time", "min"),
        ("step_s", "min"),
        ("n_samples", "sum"),
        ("n_gaps", "sum"),
    ]
    groups = series.group_by(keys, use_threads=False).aggregate([*sums, ("remark", "first")])
    names = ["units", "start_time", "step_s", "n_samples", "n_gaps", "remark"]
    return groups.select([*keys, *(f"{name}_{how}" for name, how in sums), "remark_first"]).rename_columns(
        [*keys, *names]
    )


# A factor that moved by so many errors is worth a look; among several hundred, one or two do by chance
SHIFTED = 3.0


def compared_for_people(
    rows: pa.Table, methods: Collection[str] = (), *, all_rows: bool = False
) -> tuple[pa.Table, str, str]:
    """Return changed rows between two runs for a terminal, with a title and a summary.

    There are no rows where nothing changed, unless ``all_rows``.
    """
    from esjobs.speed.compare import verdict_changed

    shown = _of_methods(rows, methods)
    listed = shown.to_pylist()
    changed = [row for row in listed if verdict_changed(row)]
    shifted = [row for row in listed if abs(row["sigma"] or 0.0) >= SHIFTED]
    summary = _summary(listed, changed, len(shifted))
    if not changed and not shifted and not all_rows:
        shown = shown.slice(0, 0)
    worded = {f"verdict_{run}": _statuses(shown, f"verdict_{run}", f"confirmed_{run}") for run in ("a", "b")}
    worded["change"] = _intervals(shown, "change", "change_err")
    shown, title = _titled(_with_texts(shown, worded).select(_COMPARED.split()))
    return _renamed(shown, "change"), title, summary


def _summary(rows: Sequence[Mapping[str, Any]], changed: Sequence[Mapping[str, Any]], n_shifted: int) -> str:
    """Return the changes in one line."""
    compared = [row for row in rows if row["sigma"] is not None]
    verdicts = "no verdict changed"
    if changed:
        kinds = Counter(
            " to ".join(status_shown(row[f"verdict_{run}"], row[f"confirmed_{run}"]) for run in ("a", "b"))
            for row in changed
        )
        origins = ", ".join(f"{count} from {kind}" for kind, count in kinds.most_common())
        verdicts = f"{len(changed)} verdict{'s' * (len(changed) > 1)} changed: {origins}"
    if n_shifted:
        return (
            f"{verdicts}; {n_shifted} of {len(compared):,} factors changed by {SHIFTED:.0f} standard errors "
            "or more"
        )
    largest = max(compared, key=lambda row: abs(row["sigma"]), default=None)
    if largest is None:
        return f"{verdicts}; no factor can be compared"
    return (
        f"{verdicts}; none of {len(compared):,} factors changed by {SHIFTED:.0f} standard errors, largest "
        f"change: {largest['name']} ({largest['sigma']:+.1f})"
    )


def _states(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the number of rows in each state, and their night; empty without rows."""
    counts = Counter(row["state"] for row in rows)
    states = ", ".join(f"{count} {state}" for state, count in counts.items())
    return f"{states}, as of night {max(row['night'] for row in rows)}" if rows else ""


def open_flags_for_people(rows: pa.Table) -> tuple[pa.Table, str]:
    """Return open flags for a terminal, one line per name, with a title that has their date."""
    listed = rows.to_pylist()
    title = _states(listed) or "no open flags"
    has_answers = any(row["answered_on"] for row in listed)
    shown = [
        {
            "name": row["name"],
            "site": row["site"],
            "state": _state(row),
            "since": row["since"],
            "nights": row["nights"],
            "deviation (90 %)": _spanned(row),
            "declared": row["corepower"],
            "processing types": row["kinds"],
            **({"answered": row["answered_on"]} if has_answers else {}),
        }
        for row in listed
    ]
    return pa.Table.from_pylist(shown), title


def incidents_for_people(rows: pa.Table, *, tasks: bool = False) -> tuple[pa.Table, str]:
    """Return incidents for a reader, with a title that has their night; noticed ones are only counted.

    ``tasks``: with a column of the task that is the cause, for pages to link.
    """
    from esjobs.today.states import Incident

    listed = rows.to_pylist()
    reported = [(row, Incident(**row)) for row in listed if row["state"] in REPORTED]
    shown = [{**_incident(row, one), **({"task": task_of(one)} if tasks else {})} for row, one in reported]
    return pa.Table.from_pylist(shown), _states(listed) or "no incidents"


def _incident(row: Mapping[str, Any], one: "Incident") -> dict[str, Any]:
    cost = so_far = None
    # waiting and the like cost nothing that could be added up
    if not one.what:
        so_far = hours(row["total_core_h"])
        cost = None if row["state"] == "closed" else hours(row["cost_core_h"] or 0.0)
    return {
        "state": ", ".join(filter(None, [_state(row), usual_again(one)])),
        "since": row["since"],
        "site": row["site"],
        "what": what_is_wrong(one),
        "cost a day": cost,
        "so far": so_far,
        "cause": row["cause"],
        "share": None if row["cause_share"] is None else percent(row["cause_share"]),
    }


def commands_of(rows: pa.Table) -> list[str]:
    """Return a line for each reported incident with a cost: the command that shows its parts."""
    from esjobs.today.states import Incident

    reported = [Incident(**row) for row in rows.to_pylist() if row["state"] in REPORTED]
    return [f"cost in parts, cancelled jobs included: {each}" for each in map(command, reported) if each]


def _state(row: Mapping[str, Any]) -> str:
    if row["state"] != "acknowledged":
        return str(row["state"])
    return f"acknowledged by {row['acknowledged_by']} until {row['acknowledged_until']}"


def _spanned(row: Mapping[str, Any]) -> str | None:
    if row["deviation"] is None or row["deviation_low"] is None:
        return None
    return signed_interval(row["deviation"], row["deviation_low"], row["deviation_high"])


def _of_methods(rows: pa.Table, methods: Collection[str]) -> pa.Table:
    if not methods or "method" not in rows.column_names:
        return rows
    return rows.filter(pc.is_in(rows.column("method"), pa.array(methods)))


def _with_texts(rows: pa.Table, texts: Mapping[str, Sequence[str | None]]) -> pa.Table:
    """The rows with columns replaced by texts."""
    for name, column in texts.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, pa.array(column, pa.string()))
    return rows


def _renamed(rows: pa.Table, interval: str) -> pa.Table:
    """The rows, with the level of an interval in its heading."""
    return rows.rename_columns([f"{name} (90 %)" if name == interval else name for name in rows.column_names])


def _statuses(rows: pa.Table, verdict: str, confirmed: str) -> list[str | None]:
    pairs = zip(rows.column(verdict).to_pylist(), rows.column(confirmed).to_pylist(), strict=True)
    return [None if word is None else status_shown(word, sure is True) for word, sure in pairs]


def _intervals(rows: pa.Table, value: str, error: str) -> list[str | None]:
    """Relative numbers in percent with the half-width of their 90 % interval; None where one is missing."""
    pairs = zip(rows.column(value).to_pylist(), rows.column(error).to_pylist(), strict=True)
    return [
        None if number is None or its_error is None else signed_percent(number, HALF_WIDTH_90 * its_error)
        for number, its_error in pairs
    ]


def _titled(rows: pa.Table) -> tuple[pa.Table, str]:
    """The rows without what all of them share, which is the title."""
    shown, only_type = _without_repetition(rows)
    shared = [
        name
        for name in _TITLED
        if name in shown.column_names
        and len(pc.unique(shown.column(name))) == 1
        and not shown.column(name).null_count
    ]
    facts = [f"{name.replace('_', ' ')} {shown.column(name)[0]}" for name in shared]
    if only_type is not None:
        facts.append(f"all jobs of the fits are {only_type}")
    return shown.drop_columns(shared), ", ".join(facts)


def _without_repetition(rows: pa.Table) -> tuple[pa.Table, str | None]:
    """Without the rows of a type that is the only one and has the very rows of all types; and which it is."""
    if "processing_type" not in rows.column_names:
        return rows, None
    kinds = rows.column("processing_type")
    others = set(kinds.drop_null().unique().to_pylist()) - {ALL_TYPES}
    of_all = rows.filter(pc.equal(kinds, ALL_TYPES))
    if len(others) != 1 or not of_all.num_rows:
        return rows, None
    only_type = others.pop()
    of_it = rows.filter(pc.equal(kinds, only_type))
    equal = of_all.drop_columns("processing_type").equals(of_it.drop_columns("processing_type"))
    return (of_all, only_type) if equal else (rows, None)
