"""The web over a search server, which is queried directly."""

from pathlib import Path

import pytest

import esjobs
from esjobs.entry import load
from esjobs.web import source as source_module
from esjobs.web.app import Web
from esjobs.web.source import Source
from tests.servers.plugin import server_params
from tests.servers.server import Server
from tests.web.client import Client

HEAD = "job_id,queue,end_time,wall_s,cpu_s,cores,source,user\n"


@pytest.mark.parametrize("server", server_params("elasticsearch8"), indirect=True)
def test_a_cluster_is_shown(
    server: Server, index_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "_CLUSTER_S", 0.01)
    monkeypatch.setattr(source_module, "_LOOK_S", 0.0)
    monkeypatch.setenv("ESJOBS_CLUSTER__PREFIX", index_prefix.strip("-"))
    settings = load(None, server.start().url)
    file = tmp_path / "jobs.csv"
    file.write_text(
        HEAD + "".join(f"{n},Q{n % 3},2025-06-30T12:00:0{n % 10}Z,100,90,1,s,ann\n" for n in range(25))
    )
    with esjobs.open(settings=settings) as session:
        session.store.set_up()
        session.ingest("jobs", file)
    source = Source(settings)
    with Client(Web(source).application({"localhost"})) as client:
        for where in ("/", "/jobs", "/ask?by=queue", "/queue/Q1", "/user/ann", "/job/7", "/pages/sites.html"):
            assert client.get(where).status == 200, where
        found: list[str] = []
        following = "/api/v1/jobs?limit=7"
        while following:
            page = client.get(following).json
            found += [row["job_id"] for row in page["rows"]]
            following = page["next"]
        assert sorted(found, key=int) == [str(number) for number in range(25)]
        assert client.get("/api/v1/queues").json["meta"]["total"] == 3
    source.close()
    with pytest.raises(esjobs.UsageError, match="--public requires a file"):
        Source(settings, hides_people=True)
