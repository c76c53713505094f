"""Functions that capabilities offer to each other, and what follows an ingest."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from esjobs.core.capability import Lazy
from esjobs.core.report import RunReport
from esjobs.records.context import Context

_OFFERS = {
    "scores.rank": Lazy("esjobs.scores.rank:rank"),
    "noise.sentences": Lazy("esjobs.noise.budget:cost_sentences"),
    "flags.relevance": Lazy("esjobs.flags.drift.settings:relevance"),
    "nights.headline": Lazy("scheduler.settings:headline"),
    "render.line_chart": Lazy("esjobs.render.charts.line:drawn"),
}


def peers() -> Mapping[str, Callable[..., Any]]:
    """Functions by name, imported when they are called."""
    return {name: _Late(lazy) for name, lazy in _OFFERS.items()}


def after_ingest(context: Context, report: RunReport) -> RunReport:
    """Account of a load after all that follows from it."""
    from esjobs.pop.facade import joined_after

    return joined_after(context, report)


def load_files(context: Context, form: str, files: Sequence[Path], fill: Sequence[str]) -> RunReport:
    """Load files of a format with everything that follows."""
    from esjobs.records.facade import Records

    report = Records(context).ingest(form, files, source=None, fill=fill, dry_run=False)
    return after_ingest(context, report)


class _Late:
    def __init__(self, lazy: Lazy) -> None:
        self._lazy = lazy

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self._lazy.load()(*given, **named)
