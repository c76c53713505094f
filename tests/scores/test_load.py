"""CPU efficiency of jobs whose record has no CPU time: from the load of their cores, and marked as such."""

from pathlib import Path

import numpy as np
import pytest

import esjobs
from esjobs.records.clusters.settings import ClustersSettings
from tests.conftest import with_settings
from tests.issues.made_jobs import N, made_series, put_records, put_series, record, series

NODE = '[[cluster]]\nname = "emmy"\n[[cluster.subcluster]]\nname = "a"\ncores = 4\n'


def rows(session: esjobs.Session) -> dict[str, tuple[object, ...]]:
    session.issues.detect()
    session.scores.compute()
    found = session.tables.scores()
    return {row["job_id"]: (row["cpu_efficiency"], row["cpu_from"], row["idle_core_h"]) for row in found}


def test_load_of_cores_stands_for_missing_cpu_time(session: esjobs.Session, tmp_path: Path) -> None:
    idle = made_series()["idle"]
    put_records(
        session,
        tmp_path,
        [record("idle"), record("recorded", cpu_s=14400.0), record("nothing")],
    )
    put_series(session, {"idle": idle, "recorded": idle})
    found = rows(session)
    # 1.9 of 4 cores were busy for 4 h
    assert found["idle"] == (pytest.approx(0.475), "load", pytest.approx(8.4))
    assert found["recorded"] == (0.25, "cpu_s", 12.0)
    assert found["nothing"] == (None, None, None)
    assert any("no CPU time" in note for note in session.scores.rank("user").notes)
    assert "from the load of its cores" in str(session.job("idle").html)


def test_a_load_average_counts_only_of_jobs_alone_on_their_nodes(
    session: esjobs.Session, tmp_path: Path
) -> None:
    path = tmp_path / "nodes.toml"
    path.write_text(NODE)
    clusters = {"clusters": ClustersSettings(files=(path,))}
    own = with_settings(session, session.settings.model_copy(update=clusters))
    names = {"alone": 4, "beside": 2, "beyond": 4}
    put_records(own, tmp_path, [record(name, cores=cores) for name, cores in names.items()])
    loads = {"alone": 3.0, "beside": 3.0, "beyond": 5.2}
    given = {name: [series("cpu_load", "node", "n1", np.full(N, load))] for name, load in loads.items()}
    put_series(own, given)
    found = rows(own)
    assert found["alone"] == (pytest.approx(0.75), "load", pytest.approx(4.0))
    assert found["beside"] == (None, None, None)
    # a load average may exceed the cores
    assert found["beyond"] == (1.0, "load", 0.0)
