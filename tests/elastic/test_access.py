"""Users of a cluster with security: who is let in, who is not, and what the printed role is enough for."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from esjobs.cli.doctor import examine
from esjobs.core.errors import EsjobsError, StoreError
from esjobs.entry import load
from esjobs.settings import secret
from esjobs.store.elastic.layout import Names
from esjobs.store.elastic.setup import role
from esjobs.store.elastic.transport.access import Access
from esjobs.store.elastic.transport.connect import connect
from tests.cli.running import run_apart
from tests.contract.jobs import job
from tests.elastic.foreign import CATALOGUE, make_index, plain
from tests.elastic.stage import Stage, act, differing, opened, visible
from tests.elastic.table import LINE, SAME, scene
from tests.messages import raised
from tests.servers.plugin import server_params
from tests.servers.pool import Servers
from tests.servers.security import Role, Security
from tests.servers.server import Server

pytestmark = pytest.mark.every_version

PREFIX = "esjobs"
READER, OTHERS = "reading", "jobs-archive-*"
VIEW = "jobs-view"
PRINTED = json.loads(role("elasticsearch", Names(PREFIX)))
(OWN,) = PRINTED["indices"]


NARROWER = ("create_index", "maintenance", "view_index_metadata")
"""What stands in for ``manage``, as far as it goes: who may switch aliases may manage."""


def printed_role(without: str = "") -> Role:
    """The role that ``esjobs setup`` prints, or all of it but one privilege."""
    (pattern,) = OWN["names"]
    kept = [privilege for privilege in OWN["privileges"] if privilege != without]
    if without == "manage":
        kept += NARROWER
    return Role({pattern: kept}, [privilege for privilege in PRINTED["cluster"] if privilege != without])


def reading_role(others: str = OTHERS) -> Role:
    """The role that ``esjobs setup`` prints for whoever reads the jobs of others."""
    printed = json.loads(role("elasticsearch", Names(READER), others))
    indices = {pattern: each["privileges"] for each in printed["indices"] for pattern in each["names"]}
    return Role(indices, printed["cluster"])


EACH = (*PRINTED["cluster"], *OWN["privileges"])
"""Every privilege of the role."""


@pytest.fixture(scope="module")
def guarded(servers: Servers) -> Iterator[Server]:
    """A server where the worker has the printed role, and others the role without one privilege each."""
    roles = {"worker": printed_role()} | {f"no-{name}": printed_role(name) for name in EACH}
    roles |= {"reader": reading_role(), "by-alias": reading_role(VIEW)}
    roles["maker"] = Role(printed_role().indices, [*PRINTED["cluster"], "manage_index_templates"])
    security = Security(roles=roles, users={name: [name] for name in roles})
    with servers.of_its_own("elasticsearch8", security=security) as server:
        yield server


def work(server: Server, user: str, file: Path) -> None:
    """The whole job of a user."""
    with opened(server.url, PREFIX, **login(server, user)) as session:
        for step in ("ingest", "run"):
            act(session, step, file)


def login(server: Server, user: str) -> dict[str, str]:
    """The settings of a user."""
    assert server.security is not None
    name, password = server.security.login(user)
    return {"user": name, "password": password}


@scene(
    "a user with just the role that `esjobs setup` prints; the same user writes to an index of others",
    "the whole job; the cluster refused the write to the other index",
    SAME,
    "elasticsearch8",
    own=True,
)
def test_the_printed_role_is_enough(
    guarded: Server, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(guarded.url, PREFIX, **login(guarded, "maker")) as session:
        assert not any("may not" in line for line in session.store.set_up().done)
        assert session.store.set_up().done == ()
    stage = Stage(PREFIX, tmp_path)
    worker = login(guarded, "worker")
    file = stage.next_file()
    work(guarded, "worker", file)
    for step in ("ingest", "run"):
        act(stage.embedded, step, file)
    with opened(guarded.url, PREFIX, **worker) as session:
        assert differing(stage.expected(), visible(session)) == []
    for key, value in worker.items():
        monkeypatch.setenv(f"ESJOBS_CLUSTER__{key.upper()}", value)
    nodes = guarded.json("GET", "_nodes/stats/indices/search")["nodes"].values()
    assert sum(node["indices"]["search"]["open_contexts"] for node in nodes) == 0
    findings = examine(lambda: load(None, guarded.url), None).to_pandas()
    assert "failed" not in set(findings["state"])
    assert findings.set_index("check").loc["table factors", "state"] == "ok"
    assert guarded.security is not None
    refused = guarded.request("PUT", "others/_doc/1", {"x": 1}, login=guarded.security.login("worker"))
    assert refused.status == 403


@pytest.mark.parametrize("name", server_params("elasticsearch8"))
def test_the_printed_role_reads_the_jobs_of_others_and_cannot_write_them(guarded: Server, name: str) -> None:
    archive = "jobs-archive-2018"
    rows = [
        job(f"{task}-{site}-{n}", task_id=str(task), queue=f"S{site}", cpu_s=4000.0 + 300 * site + n)
        for task in range(3)
        for site in range(4)
        for n in range(25)
    ]
    make_index(guarded, archive, CATALOGUE, map(plain, rows))
    given = {"jobs_index": OTHERS, "field_map": "esjobs", **login(guarded, "reader")}
    with opened(guarded.url, READER, **given) as session:
        done = session.store.set_up().done
        assert any("may not manage index templates" in line for line in done)
        assert session.store.capabilities().lacking == ()
        assert session.run("2018-08-01/2018-08-02")[-1].rows_out
        assert len(session.tables.factors(level="queue", method="gamma", type="all").to_pandas()) == 4
        assert session.query(by=["queue"], metrics=["jobs"]).to_pandas()["jobs"].tolist() == [75] * 4
        session.nights.pause(by="ann")
        (order,) = session.tables.night_orders().rows.to_pylist()
        assert (order["entered_by"], order["account"]) == ("ann", "reader")
    assert guarded.security is not None
    refused = guarded.request("PUT", f"{archive}/_doc/1", {"x": 1}, login=guarded.security.login("reader"))
    assert refused.status == 403
    with (
        raised(StoreError),
        opened(guarded.url, READER, **given | login(guarded, "worker")),
    ):
        pass
    with opened(guarded.url, PREFIX, **login(guarded, "no-write")) as session:
        assert session.store.capabilities().lacking == ("write on esjobs-*",)


@pytest.mark.parametrize("name", server_params("elasticsearch8"))
def test_a_right_to_an_alias_alone_does_not_do(guarded: Server, name: str) -> None:
    """Elasticsearch looks up the rights to a point in time by the indices behind the alias."""
    index = "hidden-2018"
    make_index(guarded, index, CATALOGUE, [plain(job(1))])
    guarded.json("POST", "_aliases", {"actions": [{"add": {"index": index, "alias": VIEW}}]})
    given = {"jobs_index": VIEW, "field_map": "esjobs"}
    with opened(guarded.url, READER, **given | login(guarded, "by-alias")) as session:
        assert session.store.span().jobs == 1
        with raised(StoreError):
            session.run("2018-08-01/2018-08-02")


@scene(
    "a user whose role lacks one of the printed privileges, each in turn",
    "said what was refused and where the role is printed",
    LINE,
    "elasticsearch8",
    own=True,
)
def test_the_printed_role_has_no_privilege_too_many(guarded: Server, name: str, tmp_path: Path) -> None:
    stage = Stage(PREFIX, tmp_path)
    file = stage.next_file()
    for privilege in EACH:
        with raised(EsjobsError):
            work(guarded, f"no-{privilege}", file)


@scene(
    "a wrong password, and an API key that the cluster does not know",
    "asked once",
    LINE,
    "elasticsearch8",
    own=True,
)
def test_who_is_not_known_is_told(guarded: Server, name: str) -> None:
    # the minimal distribution cannot make API keys, which could then expire
    for access in (
        Access(guarded.url, user="worker", password=secret("open sesame")),
        Access(guarded.url, api_key=secret("dW5rbm93bjp1bmtub3du")),
    ):
        with raised(StoreError) as caught:
            connect(access)
        assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("name", server_params("elasticsearch8"))
def test_who_is_not_known_learns_nothing_from_the_log(guarded: Server, name: str) -> None:
    login = {"USER": "worker", "PASSWORD": "open-sesame"}
    encoded = base64.b64encode(b"worker:open-sesame").decode()
    for given in (login, {"API_KEY": "dW5rbm93bjp1bmtub3du"}, {"TOKEN": "open-sesame"}):
        environment = {f"ESJOBS_CLUSTER__{name}": value for name, value in given.items()}
        done = run_apart("--store", guarded.url, "--log-level", "debug", "doctor", **environment)
        said = done.stdout + done.stderr
        assert done.returncode == 1
        assert "401" in said
        assert "DEBUG" in said
        assert not any(secret in said for secret in ("sesame", encoded, "dW5rbm93bjp1bmtub3du"))
