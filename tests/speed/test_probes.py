"""Benchmarks in job slots beside production: against numbers by hand, refused rows, names without any."""

import math
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from esjobs.api.session import Session
from esjobs.core.errors import InputError, NoResultError
from esjobs.render.profile.sections import sections
from esjobs.speed.probes import AGREE, DIFFER, NODES_SEEN, NOT_COMPARABLE, SCATTER, UNDECIDED
from tests.cli.running import job_file
from tests.conftest import memory_session
from tests.delivered.test_pledges import written
from tests.messages import raised

HEAD = "queue,node,measured_at,benchmark,value_per_core\n"


@pytest.fixture
def fitted(tmp_path: Path) -> Session:
    session = memory_session()
    session.ingest("jobs", job_file(tmp_path / "jobs.csv"))
    session.run()
    return session


def flag(session: Session) -> dict[str, object]:
    rows = session.tables.flags(level="queue", type="all", method="gamma").rows.to_pylist()
    return next(row for row in rows if row["estimate"] and row["estimate_benchmark"] == "HS06")


def load(session: Session, folder: Path, lines: list[str]) -> None:
    session.ingest("probes", written(folder, HEAD + "\n".join(lines) + "\n", "probes.csv"))


def day(session: Session) -> str:
    run = session.tables.flags().run
    assert run is not None
    return str(run.window.last_day)


def test_the_median_of_nodes_and_its_interval_are_those_by_hand(fitted: Session, tmp_path: Path) -> None:
    of, when = flag(fitted), day(fitted)
    value = float(of["estimate"])  # type: ignore[arg-type]
    nodes = {"a": [1.0, 1.1, 1.05], "b": [0.9], "c": [1.02, 0.98], "d": [1.2]}
    lines = [
        f"{of['name']},{node},{when}T{hour:02}:00:00Z,HS06,{value * factor}"
        for node, factors in nodes.items()
        for hour, factor in enumerate(factors)
    ]
    load(fitted, tmp_path, lines)
    (row,) = fitted.speed.probes().rows.to_pylist()
    logs = [median(math.log(value * factor) for factor in factors) for factors in nodes.values()]
    centre = median(logs)
    spread = math.sqrt(
        (NODES_SEEN * SCATTER**2 + sum((each - centre) ** 2 for each in logs)) / (NODES_SEEN + len(logs) - 1)
    )
    half = 1.645 * math.sqrt(math.pi / 2) * spread / math.sqrt(len(logs))
    assert row["probes"] == pytest.approx(math.exp(centre))
    assert row["probes_low"] == pytest.approx(math.exp(centre - half), rel=1e-3)
    assert row["probes_high"] == pytest.approx(math.exp(centre + half), rel=1e-3)
    assert (row["n_probes"], row["n_nodes"]) == (7, 4)
    assert row["ratio"] == pytest.approx(value / row["probes"])
    assert row["production"] == pytest.approx(value)


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.0, AGREE), (0.5, DIFFER), (2.0, DIFFER), (1.25, UNDECIDED)]
)
def test_verdicts(fitted: Session, tmp_path: Path, factor: float, verdict: str) -> None:
    of, when = flag(fitted), day(fitted)
    value = float(of["estimate"]) * factor  # type: ignore[arg-type]
    load(fitted, tmp_path, [f"{of['name']},n{node},{when},HS06,{value}" for node in range(30)])
    (row,) = fitted.speed.probes(str(of["name"])).rows.to_pylist()
    assert row["verdict"] == verdict
    assert ("slower than the probes" in row["sentence"]) == (factor == 2.0)


def test_what_has_no_factor_on_its_scale_is_not_compared(fitted: Session, tmp_path: Path) -> None:
    of, when = flag(fitted), day(fitted)
    load(fitted, tmp_path, [f"{of['name']},n1,{when},HS23,10", f"NOWHERE,n1,{when},HS06,10"])
    rows = fitted.speed.probes().rows.to_pylist()
    assert [row["verdict"] for row in rows] == [NOT_COMPARABLE] * 2
    assert [row["ratio"] for row in rows] == [None, None]
    said = {row["queue"]: row["sentence"] for row in rows}
    assert said["NOWHERE"].startswith("Nothing declared, ")
    assert said[str(of["name"])].startswith("Declared in HS06, ")


def test_old_probes_and_later_ones_do_not_count(fitted: Session, tmp_path: Path) -> None:
    of = flag(fitted)
    load(fitted, tmp_path, [f"{of['name']},n1,2001-01-01,HS06,10", f"{of['name']},n1,2100-01-01,HS06,10"])
    with raised(NoResultError):
        fitted.speed.probes()


def test_the_page_of_a_queue_has_its_probes(fitted: Session, tmp_path: Path) -> None:
    of, when = flag(fitted), day(fitted)
    load(fitted, tmp_path, [f"{of['name']},n1,{when},HS06,10"])
    (section,) = [each for each in sections(fitted.queue(str(of["name"])).content) if each.title == "Probes"]
    assert list(section.sentences) == [fitted.speed.probes().rows["sentence"][0].as_py()]


def test_scores_of_slots_are_divided_by_their_cores_and_bad_rows_are_refused(tmp_path: Path) -> None:
    text = (
        "queue,node,measured_at,benchmark,score,cores,cpu_model\n"
        "Q,n1,2026-01-02T03:00:00Z,HEPscore23,88,8,AMD EPYC 7302 16-Core Processor\n"
        "Q,n1,2026-01-02T04:00:00Z,SPEC2017,88,8,\n"
        "Q,n1,,HS23,88,8,\n"
        ",n1,2026-01-02T03:00:00Z,HS23,88,8,\n"
        "Q,n1,2026-01-02T05:00:00Z,HS23,,8,\n"
        "Q,n1,2026-01-02T06:00:00Z,HS23,88,0,\n"
        "Q,n1,2026-01-02T07:00:00Z,HS23,-1,8,\n"
    )
    with memory_session() as session:
        report = session.ingest("probes", written(tmp_path, text, "probes.csv"))
        (row,) = session.tables.read("probes").rows.to_pylist()
    assert (row["value_per_core"], row["benchmark"], row["cpu_model"]) == (11.0, "HS23", "AMD EPYC 7302")
    assert sum(report.dropped.values()) == 6
    with memory_session() as session, raised(InputError):
        session.ingest("probes", written(tmp_path, "queue,value\nQ,1\n", "other.csv"))


def test_the_correlation_is_that_of_logarithms(fitted: Session, tmp_path: Path) -> None:
    when = day(fitted)
    flags = fitted.tables.flags(level="queue", type="all", method="gamma").rows.to_pylist()
    values = {row["name"]: row["estimate"] for row in flags if row["estimate"]}
    rng = np.random.default_rng(2)
    scores = {name: value * math.exp(rng.normal(0, 0.05)) for name, value in values.items()}
    load(fitted, tmp_path, [f"{name},n1,{when},HS06,{score:.6f}" for name, score in scores.items()])
    answer = fitted.speed.probes()
    rows = answer.rows.to_pylist()
    probes, production = (np.log([row[name] for row in rows]) for name in ("probes", "production"))
    r = np.corrcoef(probes, production)[0, 1]
    assert f"{r:.2f} over {len(rows)} queues" in " ".join(answer.notes)
