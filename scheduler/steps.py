"""The steps of every night, in their order; the one list of them.

A capability has a plain function over a store and a night, which knows nothing of this; its line here, and
the few lines above the list that call it, make it a step. What a step promises: :class:`NightStep`.
"""

from scheduler.aggregating import aggregate_inputs, aggregate_night
from scheduler.detecting import detect_inputs, detect_night
from scheduler.explaining import drift_night, reasons_night
from scheduler.files import files_inputs, ingest_files
from scheduler.fitting import fit_inputs, fit_stands, fit_window, runs_inputs
from scheduler.notifying import notify_night
from scheduler.retention import prune_night
from scheduler.scoring import score_inputs, score_night
from scheduler.talp import talp_night
from scheduler.watching import watch_night
from scheduler.work import NightStep

NIGHT_STEPS: tuple[NightStep, ...] = (
    NightStep("ingest", ingest_files, inputs=files_inputs, idle=True, first=True),
    NightStep("talp", talp_night, idle=True),
    NightStep("aggregate", aggregate_night, inputs=aggregate_inputs, idle=True),
    NightStep("detect", detect_night, inputs=detect_inputs, idle=True),
    NightStep("score", score_night, inputs=score_inputs),
    NightStep("fit", fit_window, inputs=fit_inputs, stands=fit_stands, per_window=True),
    NightStep("drift", drift_night, inputs=runs_inputs),
    NightStep("reasons", reasons_night, inputs=runs_inputs),
    NightStep("watch", watch_night),
    NightStep("notify", notify_night, idle=True, after_failure=True),
    NightStep("prune", prune_night, idle=True),
)
"""Between fit and prune, in this order: drift, reasons, watch, notify.

What follows from the runs of a night alone takes ``inputs=runs_inputs`` (:mod:`scheduler.fitting`) and is
done again only when a run of the night was; what looks at the world (mail that waits) is done every time.
"""
