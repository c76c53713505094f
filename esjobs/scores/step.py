"""Scoring with what the settings name: the weights of issues, and the descriptions of clusters."""

from esjobs.core.identity import content_id
from esjobs.core.report import RunReport
from esjobs.core.sections import Sections
from esjobs.core.window import Window
from esjobs.records.clusters.description import Clusters
from esjobs.records.clusters.reading import read_clusters
from esjobs.records.clusters.settings import ClustersSettings
from esjobs.scores.score import Progress, day_marks, score
from esjobs.scores.settings import EfficiencySettings
from esjobs.store.base import JobStore


def score_window(
    store: JobStore,
    window: Window,
    settings: Sections,
    rebuild: bool = False,
    progress: Progress | None = None,
) -> RunReport:
    """Score the days of a window that need it (:func:`~esjobs.scores.score.score`).

    Raises :class:`InputError` for a description of a cluster that cannot be read.
    """
    clusters = read_clusters(settings.section(ClustersSettings).files)
    return score(
        store,
        window,
        settings.section(EfficiencySettings),
        clusters.described,
        clusters=_digest(clusters),
        rebuild=rebuild,
        progress=progress,
    )


def score_digest(store: JobStore, window: Window, settings: Sections) -> str:
    """A text that moves with anything that the scores of a window are made from."""
    clusters = read_clusters(settings.section(ClustersSettings).files)
    marks = day_marks(store, window, settings.section(EfficiencySettings), _digest(clusters))
    return content_id({"days": {str(day): mark for day, mark in marks.items()}})


def _digest(clusters: Clusters) -> str:
    return content_id({"parts": sorted(map(repr, clusters.parts))})
