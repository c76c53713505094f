"""Looks at an installation: versions, settings, store, row counts, last run, and what is missing."""

import platform
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path

import pyarrow as pa

from esjobs.api.factory import embedded_file
from esjobs.api.session import Session
from esjobs.capabilities import CAPABILITIES
from esjobs.cli.secret_files import exposed
from esjobs.core.errors import EsjobsError, UsageError
from esjobs.core.plugins import package_of, plugin_names
from esjobs.core.query import In, NotLike
from esjobs.core.version import __version__
from esjobs.core.window import format_time
from esjobs.core.words import ALL_TYPES
from esjobs.entry import open as open_session
from esjobs.flags.answering.settings import WebSettings
from esjobs.issues import catalogue as detectors
from esjobs.publish.latest import latest_run
from esjobs.publish.publication import count_rows, read_table
from esjobs.publish.stored import stored_runs
from esjobs.records.ingest.formats import sources
from esjobs.records.jobs.field_check import FAILED, OK, check_fields
from esjobs.records.jobs.job_counts import has_events
from esjobs.schema import catalogue as capabilities
from esjobs.schema.catalogue import KINDS, TABLES
from esjobs.schema.declared import COREPOWER
from esjobs.schema.jobs import LOADS
from esjobs.schema.notifications import NOTIFICATIONS, WITHHELD
from esjobs.settings import Settings
from esjobs.store.base import Ailing, JobStore
from scheduler.calendar import Calendar
from scheduler.notifications.settings import NotifySettings
from scheduler.plan import sentences
from scheduler.settings import NightsSettings

_PACKAGES = ("duckdb", "pyarrow", "pandas", "numpy", "scipy", "numba", "iminuit")
_OPTIONAL = {"altair": "plots"}
"""Packages that only an extra needs."""

_AGAIN = "fix the reported problem, then run esjobs doctor again"

_Finding = tuple[str, str, str, str]


def examine(settings: Callable[[], Settings], config: Path | None) -> pa.Table:
    """Columns check, state (``ok``, ``missing``, ``warning``, ``failed``), value, what to do.

    ``settings``: reads the settings, which may fail; ``config``: their file. Never raises our errors.
    """
    findings = zip(*_findings(settings, config), strict=True)
    return pa.table(list(map(pa.array, findings)), ["check", "state", "value", "what_to_do"])


def _findings(read: Callable[[], Settings], config: Path | None) -> Iterator[_Finding]:
    yield "esjobs", "ok", __version__, ""
    yield "python", "ok", f"{platform.python_version()} at {sys.executable}", ""
    for package in (*_PACKAGES, *_OPTIONAL):
        try:
            yield package, "ok", version(package), ""
        except PackageNotFoundError:
            if extra := _OPTIONAL.get(package):
                yield package, "ok", f"not installed; only charts in Python need it, the extra {extra}", ""
            else:
                yield package, "missing", "", f"pip install {package}"
    yield from _plugin_findings()
    try:
        settings = read()
    except EsjobsError as error:
        yield "settings", FAILED, str(error), _AGAIN
        return
    wrong = _wrong_times_and_addresses(settings)
    if wrong:
        yield "settings", FAILED, wrong, _AGAIN
    else:
        yield "settings", "ok", "defaults and environment" if config is None else str(config), ""
    for file, mode in exposed(config, settings):
        yield (
            "secrets",
            "warning",
            f"{file} has mode {mode:03o}; other users may read it",
            f"chmod 600 {file}",
        )
    path = embedded_file(settings)
    if path is not None and not path.exists():
        yield "store", "missing", settings.location, "it is made by the first ingest, night or demo"
        return
    try:
        with open_session(settings=settings, create=False, read_only=True) as session:
            yield "store", "ok", settings.location, ""
            yield from _store_findings(session)
    except EsjobsError as error:
        yield "store", FAILED, str(error), _AGAIN


def _plugin_findings() -> Iterator[_Finding]:
    """Yield a finding per entry point of another package: formats, detectors, capabilities."""
    for what, group, find, own in (
        ("source", sources.GROUP, sources.source, [each.name for each in sources.SOURCES]),
        ("detector", detectors.GROUP, detectors.detector_named, [each.name for each in detectors.DETECTORS]),
        ("capability", capabilities.GROUP, _capability, capabilities.NAMES),
    ):
        foreign = plugin_names(group, own)
        for name in plugin_names(group, ()):
            package = package_of(group, name)
            if name not in foreign:
                yield f"{what} {name}", "warning", f"{package} is ignored: esjobs has its own", "rename it"
                continue
            try:
                find(name)
            except UsageError as error:
                yield f"{what} {name}", FAILED, str(error), _AGAIN
            else:
                yield f"{what} {name}", "ok", package, ""


def _capability(name: str) -> None:
    if name not in {each.name for each in CAPABILITIES}:
        raise UsageError(f"{package_of(capabilities.GROUP, name)} cannot be used; its warning says why")


def _store_findings(session: Session) -> Iterator[_Finding]:
    able = session.store.capabilities()
    engine = f"{able.engine} {able.version} at {able.location}"
    yield (
        "engine",
        "ok",
        ", ".join([engine, *(f"{name} {value}" for name, value in able.details.items())]),
        "",
    )
    for right in able.lacking:
        to_do = "grant the user the role that esjobs setup prints"
        yield "right", FAILED, f"missing privilege: {right}", to_do
    if isinstance(session.store, Ailing):
        for each in session.store.ailments():
            yield each.what, FAILED, each.text, each.to_do
    yield from _field_findings(session)
    yield from _notification_findings(session)
    span = session.store.span()
    if span.first is None or span.last is None:
        yield "jobs", "missing", "0", "esjobs ingest FORMAT FILE..., or esjobs demo"
        return
    # a day is allowed: sources differ in clocks and time zones
    ahead = span.last > session._context.clock() + timedelta(days=1)
    todo = "jobs end in the future; undo their load: esjobs ingest --undo LOAD" if ahead else ""
    text = f"{span.jobs:,}, {format_time(span.first)} to {format_time(span.last)}"
    yield "jobs", FAILED if ahead else "ok", text, todo
    yield from _plan_findings(session)
    yield from _table_findings(session.store)
    yield from _run_findings(session)
    yield from _night_findings(session)


def _table_findings(store: JobStore) -> Iterator[_Finding]:
    for table in TABLES:
        yield f"table {table.name}", "ok", f"{count_rows(store, table):,} rows", ""
    unfinished = read_table(store, LOADS, [NotLike("state", ("complete",))], ["load_id"])
    for load_id in unfinished.column("load_id").to_pylist():
        to_do = f"load the files again, or run: esjobs ingest --undo {load_id}"
        yield "load", FAILED, f"{load_id} was interrupted", to_do


def _run_findings(session: Session) -> Iterator[_Finding]:
    runs = {kind: stored_runs(session.store, kind) for kind in KINDS}
    newest = max(chain.from_iterable(runs.values()), key=lambda run: run.newest, default=None)
    if newest is None:
        # records of batch systems have no events: there nobody misses speed factors
        if has_events(session.store):
            yield "last run", "missing", "", "esjobs run"
        else:
            yield "speed factors", "ok", "none: no stored job records its events", ""
        return
    yield "last run", "ok", f"{newest.run} of {newest.window}, {format_time(newest.newest)}", ""
    for kind in KINDS:
        # what nobody has asked yet is nothing that is missing
        if kind.named and not runs[kind]:
            continue
        what = f"latest {kind.name} run" if kind.named else "latest run"
        latest = latest_run(session.store, kind)
        if latest is None:
            yield what, "missing", "no unrestricted run is complete", kind.command or ""
        else:
            yield what, "ok", latest.title.removeprefix("run "), ""
    yield from _result_findings(session)


def _night_findings(session: Session) -> Iterator[_Finding]:
    """The nights, where there are any: as the metrics of the service tell them."""
    health = session.nights.health()
    if health.future:
        yield (
            "future nights",
            FAILED,
            f"{len(health.future)}, up to {health.future[-1]}: the clock was ahead; they are not counted",
            "esjobs nights forget",
        )
    if health.paused:
        yield "pause", "warning", f"triggers run no nights: paused {health.paused}", "esjobs nights resume"
    if health.last_night is None:
        return
    counts = ", ".join(f"{number} {state}" for state, number in sorted(health.nights.items()))
    yield "nights", "ok", f"of the last 60 days: {counts}", ""
    text = f"{health.last_night} {health.last_state}"
    if health.last_state == "failed":
        yield "last night", FAILED, f"{text}: {health.last_reason}", "fix the cause, then run esjobs catch-up"
    else:
        yield "last night", "ok", text, ""
    # one command makes up for both
    missing = health.nights.get("missing", 0) + health.nights.get("failed", 0)
    if missing:
        yield "missing nights", "missing", f"{missing}", "see: esjobs nights; run esjobs catch-up"
    if health.last_end is not None:
        stopped = FAILED if health.stopped else "ok"
        todo = "no job has ended recently; check the delivery of job records" if health.stopped else ""
        yield "newest job", stopped, format_time(health.last_end), todo


def _plan_findings(session: Session) -> Iterator[_Finding]:
    """Costs of the next night, as in ``esjobs nights plan``."""
    for line in sentences(session.nights.plan(), most=1):
        what, _, text = line.partition(": ")
        yield what, "ok", text, ""


def _notification_findings(session: Session) -> Iterator[_Finding]:
    """Messages that could not be delivered yet, where somebody is to be told anything."""
    recipients = session.settings.section(NotifySettings).recipients
    if not recipients:
        return
    late = count_rows(session.store, NOTIFICATIONS, [In("state", ("failed",))])
    text = f"{len(recipients)} recipients, {late} messages not yet delivered"
    withheld = count_rows(session.store, NOTIFICATIONS, [In("state", (WITHHELD,))])
    if withheld:
        text += f"; {withheld} messages to sites are {session.settings.section(NotifySettings).why_withheld}"
    todo = "see: esjobs notify log --state failed; run: esjobs notify test" if late else ""
    yield "notifications", FAILED if late else "ok", text, todo


def _field_findings(session: Session) -> Iterator[_Finding]:
    """Return a finding per missing field of the jobs index, with its effect."""
    checked = check_fields(session.store)
    lacking = [row for row in checked if row.check != OK]
    yield "fields", OK, f"{len(checked) - len(lacking)} of {len(checked)} ok", ""
    for row in lacking:
        yield f"field {row.field}", row.check, f"{row.state}: {row.note or row.foreign}", row.effect


def _wrong_times_and_addresses(settings: Settings) -> str:
    """Return what ``esjobs serve`` would refuse; empty if nothing."""
    nights, listen = settings.section(NightsSettings), settings.section(WebSettings).listen
    try:
        Calendar(nights.cron, nights.time_zone)
        if listen:
            from esjobs.web.server import listen_on

            listen_on(listen)
    except EsjobsError as error:
        return str(error)
    return ""


def _result_findings(session: Session) -> Iterator[_Finding]:
    reasons: dict[str, str] = {}
    of_all = [row for row in session.tables.fits() if row["processing_type"] == ALL_TYPES]
    fitted = {row["level"] for row in of_all if row["status"] == "ok"}
    for row in of_all:
        if row["level"] not in fitted:
            reasons.setdefault(row["level"], row["reason"])
    for level, reason in reasons.items():
        yield f"fit by {level}", "missing", reason, "see: esjobs show components"
    declared = count_rows(session.store, COREPOWER)
    if not declared:
        yield (
            "declared corepower",
            "missing",
            "nothing imported; only values implied by hs06_s of the job records are compared",
            "esjobs corepower import FILE",
        )
    else:
        yield "declared corepower", "ok", f"{declared:,} rows imported", ""
