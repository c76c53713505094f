"""A coordinator's questions: command and Python give the same rows, and hand-written SQL the same numbers."""

import json
import math
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import esjobs
from esjobs.api.session import Session
from esjobs.core.states import CANCELLED, FAILED
from esjobs.records.demo.errors import FAILING
from esjobs.records.demo.grid import Grid
from esjobs.records.names.cpu_models import resolve_names
from tests.cli.running import run

SITE, OTHER = "YEW-HEP", "SEQUOIA-T2_MCORE"
JUNE, LAST = "2025-06", "2025-06-16/2025-07-01"
NEW, OLD = "Athena/24.0.95", "Athena/24.0.94"
TASK = "22957682"
CPU, CORES, WATTS, PRICE = "AMD EPYC 9654", 192, 700.0, 12_000.0
PLEDGE, GRAMS = 5000.0, 250.0
SUM, ALL = "a sum over all records: nothing is sampled", "of all jobs, not of a sample"
LOST = f"({', '.join(map(repr, FAILED))})"
UNFINISHED = f"({', '.join(map(repr, (*FAILED, *CANCELLED)))})"

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """A question: its command, the same in Python, and SQL that gives keys, then values of the rows.

    ``errors``: column with the uncertainty; without one ``why`` says why. ``truth``: what was planted.
    """

    name: str
    command: str
    ask: Callable[[Session], Any]
    sql: str = ""
    keys: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    errors: str = ""
    why: str = ""
    truth: Callable[[Sequence[Row]], None] | None = None


def _query(by: str, metrics: str, **more: Any) -> Callable[[Session], Any]:
    return lambda s: s.query(by, metrics, **more)


def _planted(rows: Sequence[Row]) -> None:
    wrong = {queue.name for queue in Grid.of_size(60_000, seed=3).truth().queues if queue.factor != 1.0}
    assert {row["name"] for row in rows if row["confirmed"]} == wrong


def _sure(rows: Sequence[Row]) -> None:
    truth = {queue.name: queue for queue in Grid.of_size(60_000, seed=3).truth().queues}
    fair = [row for row in rows if row["deviation"] is not None and row["estimate"] is not None]
    # a site measures its speed, on a common scale
    ratios = [math.log(row["estimate"] / truth[row["name"]].speed) for row in fair]
    scale = sorted(ratios)[len(ratios) // 2]
    ends = ((math.log(row["estimate_low"]), math.log(row["estimate_high"])) for row in fair)
    inside = [
        low <= scale + math.log(truth[row["name"]].speed) <= high
        for row, (low, high) in zip(fair, ends, strict=True)
    ]
    assert sum(inside) / len(inside) > 0.8


def _moved(rows: Sequence[Row]) -> None:
    speed = {queue.name: queue.speed for queue in Grid.of_size(60_000, seed=3).truth().queues}
    expected = rows[0]["cpu_s_from"] * speed[OTHER] / speed[SITE]
    half = rows[0]["cpu_s_high"] - rows[0]["cpu_s_low"]
    assert rows[0]["cpu_s"] == pytest.approx(expected, abs=half)


def _none_is_slow(rows: Sequence[Row]) -> None:
    assert rows
    assert not any(row["slow"] for row in rows)


def _is_planted(rows: Sequence[Row]) -> None:
    first, *others = [row for row in rows if row["state"] == "open"]
    assert first["site"] == SITE
    # of 1,800 nights of sites some two have false alarms, at sites of some forty jobs a day
    assert all(row["cost_core_h"] < 0.01 * first["cost_core_h"] for row in others)


FEW = ["cores>1", "busy_cores<=1.1", "busy_cores>=0.5", "state=finished"]
FEW_OPTIONS = " ".join(f"--where '{each}'" for each in FEW)
FLAGS = "show flags --level queue --type all --method gamma"
EFFICIENCY = "sum(cpu_s) filter (known and {0}) / sum(wall_s * cores) filter (known and {0})".replace(
    "known", "cpu_s is not null and wall_s * cores is not null"
)
NAMES = {
    **{
        name: value
        for name, value in globals().items()
        if name.isupper() and isinstance(value, str | float | int)
    },
    "FAILING": FAILING,
    "OF_NEW": EFFICIENCY.format(f"release = '{NEW}'"),
    "OF_OLD": EFFICIENCY.format(f"release = '{OLD}'"),
    "AFTER": EFFICIENCY.format("end_time >= '2025-06-16'"),
    "BEFORE": EFFICIENCY.format("end_time < '2025-06-16'"),
}

QUESTIONS = (
    Asked(
        "which site to drain",
        f"what-if drain {SITE}",
        lambda s: s.what_if.drain(SITE),
        "select processing_type, sum(wall_s * cores) / 3600 / 28 from jobs where queue = '{SITE}' and "
        "state = 'finished' and end_time >= '2025-06-03' group by all",
        ("processing_type",),
        ("core_h_per_day",),
        errors="work_h_per_day_err",
    ),
    Asked(
        "is the new AMD worth it per HS23 and watt",
        "what-if buy --top 0 --prices {prices}",
        lambda s: s.what_if.buy(Path(_FILES["prices"])),
        "select name, estimate, 1000 * estimate * {CORES} / {WATTS}, estimate * {CORES} / {PRICE} from "
        "latest_flags where level = 'cpu_model' and processing_type = 'all' and method = 'gamma' and "
        "name = '{CPU}'",
        ("cpu_model",),
        ("score", "work_per_kwh", "score_per_eur"),
        errors="work_per_kwh_err",
    ),
    Asked(
        "work per country",
        f"delivered --by country --window {JUNE}",
        lambda s: s.delivered.work("country", window=JUNE),
        "select c.country, sum(wall_s * j.cores) / 3600, sum(hs06_s) / 3600 from jobs j join "
        "(select distinct name, country from corepower where country is not null) c on c.name = j.queue "
        "group by all",
        ("country",),
        ("core_h", "recorded_h"),
        errors="measured_h_err",
    ),
    Asked(
        "work against pledge",
        f"delivered --by federation,month --vo atlas --window {JUNE}",
        lambda s: s.delivered.work(["federation", "month"], window=JUNE, vo="atlas"),
        "select 'ONE', sum(wall_s * cores) / 3600, {PLEDGE} * 24 * 30 from jobs where queue = '{SITE}'",
        ("federation",),
        ("core_h", "pledge_h"),
        errors="measured_h_err",
    ),
    Asked(
        "site or task",
        f"task {TASK} --top 0",
        lambda s: s.what_if.task(TASK),
        "select queue, count(*), count(*) filter (state in {LOST}) from jobs where task_id = '{TASK}' "
        "group by all",
        ("queue",),
        ("n_jobs", "failed"),
        errors="cpu_ratio_low",
    ),
    Asked(
        "CPU time of moving simul from A to B",
        f"what-if move --processing-type simul --from {OTHER} --to {SITE}",
        lambda s: s.what_if.move(OTHER, SITE, processing_type="simul"),
        errors="cpu_s_low",
        truth=_moved,
    ),
    Asked(
        "who changed CPU models",
        f"query --by queue,cpu_model --metric core_h --share-of queue --window {LAST} --compare previous",
        _query("queue,cpu_model", "core_h", share_of="queue", window=LAST, compare="previous"),
        "with h as (select queue, model, end_time >= '2025-06-16' as now, sum(wall_s * cores) as h from jobs "
        "left join models using (cpu_raw) group by all), t as (select queue, now, sum(h) as t from h "
        "group by all) select queue, model, coalesce(sum(h / t) filter (now), 0), "
        "coalesce(sum(h / t) filter (not now), 0) "
        "from h join t using (queue, now) where h > 0 and queue in (select queue from t group by queue "
        "having count(*) = 2) group by all",
        ("queue", "cpu_model"),
        ("core_h_share", "core_h_share_before"),
        errors="core_h_share_z",
    ),
    Asked(
        "efficiency after a release",
        f"query --by processing_type --metric efficiency --where release={NEW} --versus release={OLD} "
        "--strata queue,core_class",
        _query(
            *("processing_type", "efficiency"),
            where=f"release={NEW}",
            versus=f"release={OLD}",
            strata="queue,core_class",
        ),
        "select processing_type, {OF_NEW}, {OF_OLD} from jobs where release in ('{NEW}', '{OLD}') "
        "group by all",
        ("processing_type",),
        ("efficiency", "efficiency_before"),
        errors="efficiency_within_z",
    ),
    Asked(
        "one-core payloads by user, hours saved",
        f"query --by user --metric jobs,spare_core_h --errors {FEW_OPTIONS}",
        _query("user", "jobs,spare_core_h", errors=True, where=FEW),
        'select "user", count(*), sum(wall_s * (cores - 1)) / 3600 from jobs where cores > 1 and '
        "cpu_s between 0.5 * wall_s and 1.1 * wall_s and state = 'finished' group by all",
        ("user",),
        ("jobs", "spare_core_h"),
        errors="spare_core_h_err",
    ),
    Asked(
        "what this user would save",
        "query --by user --metric core_h,idle_core_h --errors --where user=analyst-a",
        _query("user", "core_h,idle_core_h", errors=True, where="user=analyst-a"),
        'select "user", sum(wall_s * cores) / 3600, (sum(wall_s * cores) filter (cpu_s is not null) - '
        "sum(cpu_s) filter (wall_s * cores is not null)) / 3600 from jobs "
        "where \"user\" = 'analyst-a' group by all",
        ("user",),
        ("core_h", "idle_core_h"),
        errors="idle_core_h_err",
    ),
    Asked(
        "wrong corepower",
        FLAGS,
        lambda s: s.tables.flags(level="queue", type="all", method="gamma"),
        errors="deviation_err",
        truth=_planted,
    ),
    Asked(
        "hours lost by error code",
        "errors --by error",
        lambda s: s.errors.lost("error"),
        "select error, sum(wall_s * cores) / 3600 from jobs where state in {UNFINISHED} group by all",
        ("error",),
        ("core_h",),
        why=SUM,
    ),
    Asked(
        "tasks with most failed hours",
        "query --by task_id --metric lost_core_h --sort lost_core_h --errors",
        _query("task_id", "lost_core_h", sort="lost_core_h", errors=True),
        "select task_id, sum(wall_s * cores) / 3600 as lost from jobs where state in {LOST} "
        "and task_id is not null group by all order by lost desc limit 20",
        ("task_id",),
        ("lost_core_h",),
        errors="lost_core_h_err",
    ),
    Asked(
        "waiting, median and 95 %",
        "query --by queue --metric waiting_median_s,waiting_p95_s",
        _query("queue", "waiting_median_s,waiting_p95_s"),
        "select queue, quantile_cont(queue_s, 0.5), quantile_cont(queue_s, 0.95) from jobs group by all",
        ("queue",),
        ("waiting_median_s", "waiting_p95_s"),
        why=ALL,
    ),
    Asked(
        "CPU models of a site",
        f"query --by cpu_model --metric core_h --share --errors --where site={SITE}",
        _query("cpu_model", "core_h", share=True, errors=True, where=f"site={SITE}"),
        "select model, sum(wall_s * cores) / 3600 from jobs left join models "
        "using (cpu_raw) where queue = '{SITE}' group by all",
        ("cpu_model",),
        ("core_h",),
        errors="core_h_err",
    ),
    Asked(
        "is SMT on",
        "query --by queue,smt --metric core_h,cpu_s_per_event --errors",
        _query("queue,smt", "core_h,cpu_s_per_event", errors=True),
        "select queue, smt, sum(wall_s * cores) / 3600 from jobs group by all",
        ("queue", "smt"),
        ("core_h",),
        errors="cpu_s_per_event_err",
    ),
    Asked(
        "what SMT costs",
        "show decomposition",
        lambda s: s.tables.decomposition(),
        why="null where the queue has one SMT state",
    ),
    Asked(
        "efficiency against the weeks before, mix or real",
        f"query --by queue --metric efficiency --window {LAST} --compare previous "
        "--strata processing_type,core_class",
        _query(
            *("queue", "efficiency"), window=LAST, compare="previous", strata="processing_type,core_class"
        ),
        "select queue, {AFTER}, {BEFORE} from jobs group by all",
        ("queue",),
        ("efficiency", "efficiency_before"),
        errors="efficiency_mix_z",
    ),
    Asked(
        "memory used against asked",
        "query --by queue --metric memory_used --errors",
        _query("queue", "memory_used", errors=True),
        "select queue, sum(max_rss_b) / sum(requested_memory_b) from jobs where max_rss_b is not null and "
        "requested_memory_b is not null group by all",
        ("queue",),
        ("memory_used",),
        errors="memory_used_err",
    ),
    Asked(
        "slots that memory blocks",
        "query --by queue --metric blocked_core_h --where 'mem_per_core_b>2GB'",
        _query("queue", "blocked_core_h", where="mem_per_core_b>2GB"),
        "select queue, sum(wall_s * (max_rss_b / 2e9 - cores)) / 3600 from jobs "
        "where max_rss_b / cores > 2e9 group by all",
        ("queue",),
        ("blocked_core_h",),
        why=SUM,
    ),
    Asked(
        "black-hole nodes",
        "nodes",
        lambda s: s.errors.nodes(),
        "select node, count(*) from jobs where node like '{FAILING}.sequoia-t2%' "
        "and state in {LOST} group by all",
        ("node",),
        ("failed",),
        errors="ratio_low",
    ),
    Asked(
        "slow nodes",
        "nodes --slow --all --site YEW-HEP",
        lambda s: s.errors.nodes(slow=True, every=True, site=SITE),
        errors="slower_low",
        truth=_none_is_slow,
    ),
    Asked(
        "how sure",
        FLAGS,
        lambda s: s.tables.flags(level="queue", type="all", method="gamma"),
        errors="estimate_low",
        truth=_sure,
    ),
    Asked(
        "energy and CO2",
        "energy --by queue",
        lambda s: s.delivered.energy("queue"),
        "select queue, sum(wall_s * cores) / 3600 * 4.9 / 1000, "
        "sum(wall_s * cores) / 3600 * 4.9 / 1000 * {GRAMS} from jobs group by all",
        ("queue",),
        ("energy_kwh", "gco2e"),
        errors="energy_kwh_err",
    ),
    Asked(
        "worst user",
        "issues --by user",
        lambda s: s.issues.work_list("user"),
        'with j as (select "user", source, job_id, max(idle_core_h) as h, '
        "bool_or(severity <> 'info') as bad from issues group by all) "
        'select "user", count(*), sum(h) from j where bad group by all',
        ("user",),
        ("n_jobs", "idle_core_h"),
        why=SUM,
    ),
    Asked(
        "where to put 1 000 cores",
        "what-if place --cores 1000 --top 0",
        lambda s: s.what_if.place_cores(1000),
        "select name, 1000 * estimate * sum(cpu_s) / sum(core_s) from latest_flags join buckets on "
        "name = queue where level = 'queue' and latest_flags.processing_type = 'all' "
        "and method = 'gamma' and estimate is not null group by name, estimate",
        ("queue",),
        ("work_h",),
        errors="work_h_low",
    ),
    Asked(
        "is anything broken since yesterday",
        "today --night 2025-06-19",
        lambda s: s.flags.today.incidents("2025-06-19"),
        errors="efficiency_low",
        truth=_is_planted,
    ),
    Asked(
        "does it match APEL",
        f"delivered --against accounting --window {JUNE}",
        lambda s: s.delivered.against_accounting(window=JUNE),
        "select 'yew-hep', sum(wall_s * cores) / 3600, 1000.0 from jobs where queue = '{SITE}'",
        ("site",),
        ("core_h", "accounted_core_h"),
        why=SUM,
    ),
)

_FILES: dict[str, str] = {}


def _written(folder: Path, name: str, *lines: str) -> Path:
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / name


@pytest.fixture(scope="module")
def asked(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the demo with countries, a pledge, emission factors, accounting and prices."""
    folder = tmp_path_factory.mktemp("questions")
    shutil.copy(demo_folder / "demo.duckdb", folder / "demo.duckdb")
    with esjobs.open(f"duckdb:{folder / 'demo.duckdb'}") as session:
        add_tables(session, demo_folder / "corepower.csv", folder)
    return folder / "demo.duckdb"


def add_tables(session: Session, declared: Path, folder: Path) -> None:
    """Countries, a pledge, emission factors, accounting and prices; files are written to the folder."""
    lines = declared.read_text(encoding="utf-8").splitlines()
    queues = [f"{line},{'ES' if number % 2 else 'US'}" for number, line in enumerate(lines[1:])]
    countries = [line for line in queues if line.startswith("queue,")]
    file = _written(folder, "c.csv", f"{lines[0]},country", *countries)
    session.declared.import_values(file, benchmark=None if "benchmark" in lines[0] else "HS06")
    text = f"ONE,2025,1,atlas,{PLEDGE},HS06"
    session.ingest("pledges", _written(folder, "p.csv", "federation,year,quarter,vo,cpu,benchmark", text))
    session.ingest("pledges", _written(folder, "f.csv", "federation,site,vo", f"ONE,{SITE},atlas"))
    text = "\n".join(f"{country},2025,,{GRAMS},life_cycle" for country in ("ES", "US"))
    session.ingest("emissions", _written(folder, "e.csv", "country_code,year,month,g_per_kwh,kind", text))
    block = {"Site": SITE.lower(), "Month": 6, "Year": 2025, "VO": "atlas", "Processors": 1}
    block |= {"WallDuration": 3_600_000, "CpuDuration": 3_600_000, "NumberOfJobs": 9}
    both = {f"Normalised{name}Duration": "{hepspec: 36000000}" for name in ("Wall", "Cpu")}
    apel = [f"{name}: {value}" for name, value in (block | both).items()]
    head = "APEL-normalised-summary-message: v0.4"
    session.ingest("apel", _written(folder, "a.apel", head, *apel, "%%"))
    offer = f"{CPU},{PRICE},{CORES},{WATTS}"
    _FILES["prices"] = str(_written(folder, "prices.csv", "cpu_model,price,cores,power_w", offer))


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_a_question_has_a_command_a_call_and_the_right_answer(question: Asked, asked: Path) -> None:
    arguments = shlex.split(question.command.format(**_FILES))
    result = run(*arguments, "--format", "json", store=asked)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    with esjobs.open(f"duckdb:{asked}", read_only=True) as session:
        rows = question.ask(session).rows.to_pylist()
        hand = by_hand(session, question.sql.format_map(NAMES)) if question.sql else []
    assert len(told) == len(rows) > 0
    for one, other in zip(told, rows, strict=True):
        numbers = {name for name, value in one.items() if isinstance(value, int | float)}
        assert numbers == {name for name, value in other.items() if isinstance(value, int | float)}
        assert [one[name] for name in numbers] == pytest.approx([other[name] for name in numbers])
    assert (question.errors in rows[0]) if question.errors else question.why
    if question.truth is not None:
        question.truth(rows)
    found = {tuple(row[key] for key in question.keys): row for row in rows}
    assert bool(hand) == bool(question.sql)
    for row in hand:
        n = len(question.keys)
        mine = [found[tuple(row[:n])][name] for name in question.values]
        theirs = [math.nan if value is None else value for value in row[n:]]
        mine = [math.nan if value is None else value for value in mine]
        assert mine == pytest.approx(theirs, rel=1e-9, nan_ok=True), row[:n]


def by_hand(session: Session, sql: str) -> list[list[Any]]:
    raw = (
        session.sql("select distinct cpu_raw from jobs where cpu_raw is not null").rows["cpu_raw"].to_pylist()
    )
    pairs = zip(raw, resolve_names(raw), strict=True)
    named = ", ".join(f"('{text}', '{name}')" for text, name in pairs)
    models = f"models as (select * from (values {named}) as v(cpu_raw, model))"  # noqa: S608
    rest = sql.replace("with ", ", ", 1) if sql.startswith("with ") else f" {sql}"
    joined = f"with {models}{rest}"
    return [list(row.values()) for row in session.sql(joined).rows.to_pylist()]


def test_the_page_of_a_user_names_hints(asked: Path) -> None:
    result = run("user", "analyst-b", store=asked)
    assert result.exit_code == 0
    assert "analyst-b" in result.stdout
