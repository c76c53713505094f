"""Primary errors: the order of families, codes that are text, states without a code, the table."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import esjobs
from esjobs.api.session import Session
from esjobs.core.errors import SettingsError
from esjobs.core.states import UNFINISHED
from esjobs.records.errors.categories import load_table, parse_table, shipped
from esjobs.records.errors.nodes import common_domain, node_name
from esjobs.records.errors.primary import FAMILIES, batch_error, errors_of, panda_error
from esjobs.schema.catalogue import TABLES
from esjobs.store.duck.store import DuckStore
from tests.messages import raised

GOLDEN: tuple[tuple[str, dict[str, str | None], str], ...] = (
    ("failed", {"pilot": "1099", "trans": "65", "exe": "65"}, "pilot:1099"),
    ("failed", {"pilot": "1305", "trans": "65", "exe": "66"}, "trans:65"),
    ("failed", {"pilot": "1305", "trans": "1", "exe": "68"}, "exe:68"),
    ("failed", {"pilot": "1305", "trans": "0", "exe": None}, "pilot:1305"),
    ("failed", {"pilot": "1315", "sup": "5530"}, "pilot:1315"),
    ("failed", {"pilot": "0", "sup": "5530", "dispatcher": "100"}, "sup:5530"),
    ("failed", {"sup": "8970", "taskbuffer": "300"}, "sup:8970"),
    ("failed", {"sup": "2", "dispatcher": "100"}, "dispatcher:100"),
    ("failed", {"ddm": "200", "trans": "11"}, "trans:11"),
    ("failed", {"ddm": "200", "taskbuffer": "300"}, "ddm:200"),
    ("failed", {"ddm": "100", "exe": "5"}, "ddm:100"),
    ("failed", {"taskbuffer": "300", "brokerage": "1"}, "taskbuffer:300"),
    ("failed", {"brokerage": "7"}, "brokerage:7"),
    ("failed", {"exe": "-11"}, "exe:-11"),
    ("failed", {"trans": "65.0"}, "trans:65"),
    ("failed", dict.fromkeys(FAMILIES, "0"), "none:0"),
    ("failed", {}, "none:0"),
    ("failed", {"trans": "unknown", "pilot": ""}, "trans:unparsed"),
    ("failed", {"trans": "nan", "exe": "inf"}, "trans:unparsed"),
    ("failed", {"trans": "unknown", "pilot": "1099"}, "pilot:1099"),
    ("cancelled", {"taskbuffer": "100"}, "taskbuffer:100"),
    ("cancelled", {}, "state:cancelled"),
    ("closed", {"taskbuffer": "107", "pilot": "1305"}, "taskbuffer:107"),
    ("closed", {"pilot": "1305"}, "state:closed"),
)
CATEGORIES = {
    "pilot:1212": "memory", "sup:4211": "memory", "state:out_of_memory": "memory", "cms:50660": "memory",
    "pilot:1150": "time limit", "trans:67": "time limit", "cms:71305": "time limit", "hold:46": "time limit",
    "pilot:1098": "disk", "cms:50662": "disk", "pilot:1099": "input", "sup:3635": "input",
    "ddm:100": "input", "pilot:1137": "output", "dispatcher:104": "output", "cms:60321": "output",
    "cms:60499": "output", "pilot:1377": "node, container", "cms:11004": "node, container",
    "dispatcher:100": "node lost", "taskbuffer:300": "node lost", "state:node_fail": "node lost",
    "pilot:1110": "setup", "trans:127": "setup", "cms:10100": "setup", "cms:50115": "payload",
    "pilot:1305": "payload", "trans:65": "payload", "trans:99": "payload", "exit:1:0": "payload",
    "exe:68": "payload", "cms:7500": "payload", "trans:15": "no or bad events", "ddm:204": "no or bad events",
    "pilot:1369": "credentials, network", "hold:11": "credentials, network", "taskbuffer:100": "killed",
    "exit:0:9": "killed", "state:cancelled": "killed", "cms:9000": "killed", "pilot:1379": "preempted",
    "hold:1014": "preempted", "pilot:1008": "system", "pilot:4": "system", "trans:251": "system",
    "cms:79000": "system", "taskbuffer:105": "retried", "taskbuffer:130": "retried",
    "state:closed": "retried", "none:0": "unknown", "trans:unparsed": "unknown",
}  # fmt: skip


@pytest.mark.parametrize(("state", "codes", "error"), GOLDEN)
def test_the_first_code_in_the_order_of_families_is_the_error(
    state: str, codes: dict[str, str | None], error: str
) -> None:
    assert panda_error(state, codes) == error


@settings(deadline=None)
@given(
    st.sampled_from(UNFINISHED),
    st.dictionaries(
        st.sampled_from(FAMILIES), st.sampled_from(["0", "", None, "7", "x", "1e999", "-3", "1305"])
    ),
)
def test_every_unfinished_job_has_one_error_with_a_category(state: str, codes: dict[str, str | None]) -> None:
    error = panda_error(state, codes)
    assert error.count(":") == 1
    assert shipped().category(error) is not None
    assert shipped().category(batch_error(state, {"exit": "1:0"})) is not None


def test_a_state_that_names_the_reason_is_the_error() -> None:
    assert batch_error("timeout", {"exit": "0:15"}) == "state:timeout"
    assert batch_error("failed", {"exit": "2:0"}) == "exit:2:0"
    assert batch_error("failed", {"exit": "0:0"}) == batch_error("failed", {"exit": None}) == "none:0"
    assert batch_error("failed", {}) is None
    assert batch_error("failed", {"exit": "killed by ann"}) == "exit:unparsed"


def test_jobs_that_finished_or_whose_state_is_unknown_have_no_error() -> None:
    states = pa.array(["finished", None, "failed", "running", "failed"])
    codes = {"pilot": pa.array(["1099", "1099", "1099", "1099", "0"])}
    assert errors_of(states, codes).to_pylist() == [None, None, "pilot:1099", None, "none:0"]
    hostile = {"pilot": pa.array(["a\x1fb"]), "trans": pa.array(["7"])}
    assert errors_of(pa.array(["failed"]), hostile).to_pylist()[0].endswith(":unparsed")
    assert errors_of(pa.array([], pa.string()), {"pilot": pa.array([], pa.string())}).to_pylist() == []


def test_codes_have_the_categories_of_the_shipped_table() -> None:
    table = shipped()
    found = {error: getattr(table.category(error), "name", None) for error in CATEGORIES}
    assert found == CATEGORIES
    assert table.category("nowhere:1") is None
    assert len(table.categories) == 14 + 2
    assert all(each.who and each.sentence for each in table.categories.values())


def test_an_own_table_wins_code_by_code(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        '[tape]\nwho = "tape team"\nsentence = "Recall from tape failed."\npilot = [1103, "1060-1099"]\n'
        '[memory]\nwho = "us"\n[texts]\n"pilot:1103" = "not on tape"\n',
        encoding="utf-8",
    )
    table = load_table(path)
    names = {code: getattr(table.category(f"pilot:{code}"), "name", None) for code in (1103, 1098, 1100)}
    assert names == {1103: "tape", 1098: "tape", 1100: "input"}
    assert (table.sentence("pilot:1103"), table.sentence("pilot:1098")) == (
        "not on tape",
        "not enough local disk space",
    )
    memory = table.categories["memory"]
    assert (memory.who, memory.sentence) == ("us", shipped().categories["memory"].sentence)


@pytest.mark.parametrize(
    "text",
    [
        "[memory",
        "memory = 4",
        "[memory]\npolit = [1]",
        "[memory]\npilot = 1",
        "[memory]\npilot = ['9-3']",
        "[memory]\npilot = [true]",
        "[memory]\nwho = 4",
        "[memory]\npilot = [1]\n[disk]\npilot = [1]",
        "texts = 3",
    ],
)
def test_a_wrong_table_is_refused_in_one_line(text: str) -> None:
    with raised(SettingsError):
        parse_table(text, "own.toml")


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("slot1_3@wn042.site.tld", "wn042.site.tld"),
        ("slot1@WN042", "wn042"),
        ("a@b@wn1", "wn1"),
        ("aipanda007.cern.ch", None),
        ("pandaserver-1.cern.ch", None),
        ("atlprd1-2-b6d1.cern.ch", "b6d1.cern.ch"),
        ("n[01-04]", None),
        ("n1,n2", None),
        ("None assigned", None),
        (" ", None),
        (None, None),
    ],
)
def test_names_of_nodes_are_cleaned_once_and_for_all(raw: str | None, name: str | None) -> None:
    assert node_name(raw) == name
    assert node_name(name) == name


def test_a_domain_is_common_from_nine_nodes_in_ten() -> None:
    nodes = [f"wn{n}.site.tld" for n in range(9)]
    assert common_domain([*nodes, "other.else.tld"]) == ".site.tld"
    assert common_domain([*nodes, "a.else.tld", "b.else.tld"]) == ""
    assert common_domain([]) == ""


PANDA = (
    "pandaid,jeditaskid,computingsite,jobstatus,endtime,actualcorecount,wall_time,piloterrorcode,"
    "transexitcode,taskbuffererrorcode,modificationhost\n"
)


def test_panda_records_bring_error_and_node(session: Session, tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    end = "2025-06-01 10:00:00,8,3600"
    file.write_text(
        PANDA + f"1,5,A,failed,{end},1305,65,0,slot1@WN1.x.y\n2,5,A,failed,{end},NULL,,0,aipanda12\n"
        f"3,5,A,failed,{end},abc,0,0,wn2\n4,5,A,closed,{end},1305,0,105,wn2\n5,5,A,finished,{end},0,0,0,wn2\n",
        encoding="utf-8",
    )
    session.ingest("panda", file)
    rows = session.jobs(columns=["job_id", "error", "error_category", "node"]).rows.to_pylist()
    assert {row["job_id"]: (row["error"], row["error_category"], row["node"]) for row in rows} == {
        "1": ("trans:65", "payload", "wn1.x.y"),
        "2": ("none:0", "unknown", None),
        "3": ("pilot:unparsed", "unknown", "wn2"),
        "4": ("taskbuffer:105", "retried", "wn2"),
        "5": (None, None, "wn2"),
    }


def test_a_file_without_codes_leaves_errors_missing(session: Session, tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text(
        "pandaid,computingsite,jobstatus,endtime\n1,A,failed,2025-06-01 10:00:00\n", encoding="utf-8"
    )
    session.ingest("panda", file)
    assert session.query("error").rows.to_pylist() == [{"error": None, "jobs": 1}]
    assert len(session.errors.lost().notes) == 1


def test_slurm_records_bring_error_and_node(session: Session, shared_data: Path) -> None:
    columns = (
        "jobid,jobidraw,cluster,partition,qos,account,group,gid,user,uid,submit,eligible,start,end,elapsed,"
        "exitcode,state,nnodes,ncpus,reqcpus,reqmem,reqtres,alloctres,timelimit,nodelist,jobname"
    )
    session.ingest("slurm", shared_data / "slurm-accounting" / "phillips.log.gz", fill=[f"columns={columns}"])
    rows = session.query("state,error").rows.to_pylist()
    errors = {(row["state"], row["error"]): row["jobs"] for row in rows}
    assert all((error is None) == (state == "finished") for state, error in errors)
    assert errors["timeout", "state:timeout"] > 0
    assert any(str(error).startswith("exit:") for _, error in errors)
    with_node = session.query("nodes,node", where="node is present").rows.to_pylist()
    assert {row["nodes"] for row in with_node} == {1}


def test_a_table_in_the_settings_answers_queries(tmp_path: Path) -> None:
    own, jobs, config = (tmp_path / name for name in ("own.toml", "jobs.csv", "esjobs.toml"))
    own.write_text('[weird]\nwho = "us"\nsentence = "Ours."\npilot = [1]\n', encoding="utf-8")
    jobs.write_text("job_id,queue,state,end_time,error\n1,A,failed,2025-06-01,pilot:1\n", encoding="utf-8")
    config.write_text(f'[errors]\ntable = "{own}"\n', encoding="utf-8")
    with esjobs.open("duckdb::memory:", config=config) as session:
        session.ingest("jobs", jobs)
        assert session.query("error_category").rows.to_pylist() == [{"error_category": "weird", "jobs": 1}]
        assert session.errors.lost().rows.column("who").to_pylist() == ["us"]
        with esjobs.open(DuckStore(None, tables=TABLES), settings=session.settings) as other:
            other.ingest("jobs", jobs)
            assert other.errors.lost().rows.column("who").to_pylist() == ["us"]
    own.write_text("weird = 4", encoding="utf-8")
    with raised(SettingsError):
        esjobs.open("duckdb::memory:", config=config)
    with esjobs.open("duckdb::memory:") as session:
        session.ingest("jobs", jobs)
        assert session.query("error_category").rows.to_pylist() == [{"error_category": "system", "jobs": 1}]
