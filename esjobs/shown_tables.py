"""Result tables as people see them: the headline method, the columns one decides by, words for verdicts.

Files and frames have every row and every column; what is left out or put into words here is in them.
"""

from collections.abc import Collection
from typing import Any

import pandas as pd

from esjobs.capabilities import table
from esjobs.core.words import ALL_TYPES, HALF_WIDTH_90, standing

_COMPARED = "level name processing_type method verdict_a verdict_b change sigma k_a k_b n_jobs_a n_jobs_b"

_TITLED = ("level", "processing_type", "method")
"""Columns that go into the title when every row says the same."""


def for_people(
    what: str, frame: pd.DataFrame, methods: Collection[str] = ()
) -> tuple[pd.DataFrame, str, list[str]]:
    """A result table for a terminal: the rows and columns shown, a title, and the columns of prose.

    ``methods``: the headline, where nobody asked for a method; rows of other methods are left out, and so are
    rows of a processing type that only repeat those of all types. The title tells what every row has in
    common. Verdicts become what people call them, deviations get their 90 % interval.
    """
    shown = _of_methods(frame, methods)
    if what == "flags":
        shown = _worded(shown)
    columns = list(table(what).shown)
    rows, title = _titled(shown[columns] if columns else shown)
    if what == "flags":
        rows = rows.rename(columns={"deviation": _INTERVAL.format("deviation")})
    prose = [column.name for column in table(what).columns if column.type == "text"]
    return rows, title, prose


def compared_for_people(frame: pd.DataFrame, methods: Collection[str] = ()) -> tuple[pd.DataFrame, str]:
    """What changed between two runs, for a terminal, with a title; as :func:`for_people`."""
    shown = _of_methods(frame, methods)
    worded: dict[str, Any] = {
        f"verdict_{run}": _standings(shown[f"verdict_{run}"], shown[f"confirmed_{run}"]) for run in ("a", "b")
    }
    worded["change"] = _intervals(shown["change"], shown["change_err"])
    rows, title = _titled(shown.assign(**worded)[_COMPARED.split()])
    return rows.rename(columns={"change": _INTERVAL.format("change")}), title


_INTERVAL = "{} (90 %)"


def _of_methods(frame: pd.DataFrame, methods: Collection[str]) -> pd.DataFrame:
    if not methods or "method" not in frame:
        return frame
    return frame[frame["method"].isin(methods)]


def _worded(flags: pd.DataFrame) -> pd.DataFrame:
    worded: dict[str, Any] = {
        "verdict": _standings(flags["verdict"], flags["confirmed"]),
        "deviation": _intervals(flags["deviation"], flags["deviation_err"]),
    }
    return flags.assign(**worded)


def _standings(verdicts: pd.Series, confirmed: pd.Series) -> list[str | None]:
    """What people call each verdict; None where there is none."""
    pairs = zip(verdicts, confirmed.eq(True).fillna(False), strict=True)
    return [None if pd.isna(verdict) else standing(verdict, bool(sure)) for verdict, sure in pairs]


def _intervals(values: pd.Series, errors: pd.Series) -> list[str | None]:
    """Relative numbers in percent with the half-width of their 90 % interval; None where one is missing."""
    pairs = zip(values, errors, strict=True)
    return [
        None if pd.isna(value) or pd.isna(error) else f"{100 * value:+z.0f} ± {_half_width(error)} %"
        for value, error in pairs
    ]


def _half_width(error: float) -> str:
    return f"{100 * HALF_WIDTH_90 * error:.0f}"


def _titled(frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The rows without what all of them share, which is the title."""
    shown, only_type = _without_repetition(frame)
    alike = [name for name in _TITLED if name in shown.columns and len(shown[name].unique()) == 1]
    facts = [f"{name.replace('_', ' ')} {shown[name].iloc[0]}" for name in alike]
    if only_type is not None:
        facts.append(f"every job of the fits is {only_type}")
    return shown.drop(columns=alike), ", ".join(facts)


def _without_repetition(frame: pd.DataFrame) -> tuple[pd.DataFrame, str | None]:
    """Without the rows of a type that is the only one and has the very rows of all types; and which it is."""
    if "processing_type" not in frame.columns:
        return frame, None
    kinds = set(frame["processing_type"].dropna()) - {ALL_TYPES}
    of_all = frame["processing_type"] == ALL_TYPES
    if len(kinds) != 1 or not of_all.any():
        return frame, None
    together, alone = (
        frame[chosen].drop(columns="processing_type").reset_index(drop=True) for chosen in (of_all, ~of_all)
    )
    return (frame[of_all], kinds.pop()) if together.equals(alone) else (frame, None)
