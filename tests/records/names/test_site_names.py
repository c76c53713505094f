"""Sites guessed from queue names: the queues of real jobs, and what any name may do."""

import csv
import gzip
import os
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esjobs.records.names.sites import guess_site, queue_parts

JOBS = Path(__file__).parents[3].parent / "shared" / "data" / "panda-jobs"


@pytest.fixture(scope="module")
def real_queues() -> dict[str, dict[str, float]]:
    """Declared corepower by task and queue, from the records of the four real tasks."""
    if not JOBS.is_dir():
        message = f"real data missing: {JOBS}; put the shared data folder beside the checkout"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    declared: dict[str, dict[str, float]] = {}
    for path in sorted(JOBS.glob("*.csv.gz")):
        sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        with gzip.open(path, "rt") as lines:
            for row in csv.DictReader(lines):
                if row["hs06sec"] and row["wall_time"] and row["actualcorecount"]:
                    queue = sums[row["computingsite"]]
                    queue[0] += float(row["hs06sec"])
                    queue[1] += float(row["wall_time"]) * float(row["actualcorecount"])
        task = path.name.removesuffix(".csv.gz").rsplit("_", 1)[-1]
        declared[task] = {queue: hs06 / core_s for queue, (hs06, core_s) in sums.items() if core_s > 0}
    return declared


class TestRealQueues:
    def test_siblings(self, real_queues: dict[str, dict[str, float]]) -> None:
        sites: dict[str, set[str]] = defaultdict(set)
        queues = set().union(*real_queues.values())
        for queue in queues:
            sites[guess_site(queue)].add(queue)
        assert (len(queues), len(sites)) == (55, 37)
        assert {site: members for site, members in sites.items() if len(members) > 1} == {
            "FZK-LCG2": {"FZK-LCG2", "FZK-LCG2_UCORE"},
            "IAAS": {"IAAS", "IAAS_MCORE"},
            "IN2P3-CC": {
                "IN2P3-CC",
                "IN2P3-CC_CL7",
                "IN2P3-CC_CL7_HIMEM",
                "IN2P3-CC_CL7_MCORE_HIMEM",
                "IN2P3-CC_CL7_VVL",
            },
            "INFN-ROMA1": {"INFN-ROMA1", "INFN-ROMA1_MCORE"},
            "INFN-T1": {"INFN-T1_HIMEM", "INFN-T1_UCORE"},
            "INFN-T1-CINECA": {"INFN-T1-CINECA-SL7_HIMEM", "INFN-T1-CINECA-SL7_UCORE"},
            "MWT2": {"MWT2_HIMEM", "MWT2_MCORE"},
            "NIKHEF-ELPROD": {"NIKHEF-ELPROD-HighMem", "NIKHEF-ELPROD_MCORE"},
            "RAL-LCG2": {"RAL-LCG2-ECHO_MCORE", "RAL-LCG2_UCORE"},
            "SARA-MATRIX": {"SARA-MATRIX", "SARA-MATRIX_LONG"},
            "SLACXRD": {"SLACXRD", "SLACXRD_LMEM"},
            "SWT2_CPB": {"SWT2_CPB_DEV_MCORE", "SWT2_CPB_MCORE"},
            "Taiwan-LCG2": {
                "Taiwan-LCG2",
                "Taiwan-LCG2-HPC2_Unified",
                "Taiwan-LCG2-HPC_Unified",
                "Taiwan-LCG2_VL",
            },
        }

    def test_declaring_queues_of_the_large_task(self, real_queues: dict[str, dict[str, float]]) -> None:
        """36 of its 40 queues declare a value other than the default of 10; from about 26 sites."""
        task = real_queues["15350577"]
        declaring = {queue for queue, corepower in task.items() if abs(corepower - 10.0) > 0.03}
        assert (len(task), len(declaring)) == (40, 36)
        assert len({guess_site(queue) for queue in declaring}) == 27

    def test_siblings_declare_alike(self, real_queues: dict[str, dict[str, float]]) -> None:
        """Within a task the queues of a guessed site carry one value; a farm of its own kind may differ."""
        differ = set()
        for queues in real_queues.values():
            values: dict[str, set[float]] = defaultdict(set)
            for queue, corepower in queues.items():
                values[guess_site(queue)].add(round(corepower, 1))
            differ |= {site for site, declared in values.items() if len(declared) > 1}
        assert differ == {"Taiwan-LCG2"}


@pytest.mark.parametrize(
    ("queue", "site"),
    [
        ("CERN-PROD_T0_SCORE_SHORT", "CERN-PROD"),
        ("IN2P3-CC-T3_HTC", "IN2P3-CC-T3"),
        ("INFN-T1_4CORE", "INFN-T1"),
        ("UKI-LT2-QMUL_HIMEM_SL6", "UKI-LT2-QMUL"),
        ("ANALY_TRIUMF", "TRIUMF"),
        ("ANALY_BNL_SHORT", "BNL"),
        ("BU_ATLAS_Tier2_SL6", "BU_ATLAS_Tier2"),
        ("OU_OSCER_ATLAS_OPP", "OU_OSCER_ATLAS"),
        ("wuppertalprod_ucore", "wuppertalprod"),
        ("ROMANIA07_MCORE_ARC", "ROMANIA07"),
        ("ARC-T2", "ARC-T2"),
        ("ARC", "ARC"),
        ("CERN-PROD", "CERN-PROD"),
        ("ZA-WITS-CORE", "ZA-WITS-CORE"),
        ("  pic_HIMEM ", "pic"),
    ],
)
def test_known_names(queue: str, site: str) -> None:
    assert guess_site(queue) == site


@pytest.mark.parametrize("queue", ["_MCORE", "ANALY_", "_MCORE_HIMEM", "-SL7", "__MCORE"])
def test_a_name_is_never_eaten_whole(queue: str) -> None:
    assert guess_site(queue).strip("_- ") != ""


@pytest.mark.parametrize("queue", ["", "  "])
def test_a_blank_queue_has_no_site(queue: str) -> None:
    assert guess_site(queue) == queue


def test_the_lists_carry_their_separator() -> None:
    assert all(suffix[0] in "_-" and suffix == suffix.upper() for suffix in queue_parts()[0])
    assert all(prefix.endswith("_") for prefix in queue_parts()[1])


@given(
    st.text(min_size=1).filter(str.strip),
    st.lists(st.sampled_from(queue_parts()[0]), max_size=4),
)
def test_any_name(stem: str, endings: list[str]) -> None:
    queue = stem + "".join(endings)
    site = guess_site(queue)
    assert site
    assert site in queue
    assert guess_site(site) == site


@given(
    st.from_regex(r"[A-Z]{3}[0-9]", fullmatch=True), st.permutations(["_MCORE", "_HIMEM", "_SL7", "-HighMem"])
)
def test_order_and_case_of_endings_do_not_matter(stem: str, endings: list[str]) -> None:
    assert guess_site(stem + "".join(endings)) == stem
    assert guess_site(stem + "".join(endings).lower()) == stem
