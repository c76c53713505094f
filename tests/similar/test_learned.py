"""Similarity by learned vectors: planted programs, the same numbers whenever it is asked, what is missing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import esjobs
from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.errors import MissingExtraError
from esjobs.similar.learned import LearnedSimilarity
from esjobs.similar.settings import SimilarSettings
from tests.messages import raised
from tests.similar.test_programs import put_programs
from tests.similar.test_static import program

PROGRAMS = ("gmx", "lmp", "vasp", "qe", "namd", "cp2k")
VERSIONS = [program(name, version) for name in PROGRAMS for version in range(4)]

IN_ANOTHER_PROCESS = """
import json
from esjobs.similar.learned import LearnedSimilarity
from tests.similar.test_learned import VERSIONS
print(json.dumps(LearnedSimilarity(VERSIONS).similarity(0).tolist()))
"""


def matrix(similar: LearnedSimilarity) -> np.ndarray:
    return np.array([similar.similarity(i) for i in range(len(similar))])


def test_versions_of_a_program_are_nearer_than_other_programs() -> None:
    found = matrix(LearnedSimilarity(VERSIONS))
    own = np.kron(np.eye(len(PROGRAMS)), np.ones((4, 4))).astype(bool)
    np.fill_diagonal(found, np.nan)
    assert np.nanmean(found[own]) > np.nanmean(found[~own]) + 0.3
    assert [int(np.nanargmax(row)) // 4 for row in found] == [place // 4 for place in range(len(VERSIONS))]


def test_neither_order_nor_repetition_nor_the_process_changes_a_number() -> None:
    found = LearnedSimilarity(VERSIONS).similarity(0)
    turned = LearnedSimilarity([None, *(names[::-1] for names in VERSIONS[::-1]), VERSIONS[0]])
    again = turned.similarity(len(VERSIONS))
    assert np.isnan(again[0])
    assert again[1:-1].tolist() == found[::-1].tolist()
    assert again[-1] == 1.0
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    run = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS],
        env=environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(run.stdout) == found.tolist()


@pytest.mark.parametrize("fingerprints", [[], [None], [["main"]], [["a", "b"], ["c"], None, []]])
def test_where_nothing_can_be_learned_only_equal_ones_are_alike(fingerprints: list[list[str] | None]) -> None:
    similar = LearnedSimilarity(fingerprints)
    for place, names in enumerate(fingerprints):
        expected = [np.nan if not names or not other else float(names == other) for other in fingerprints]
        np.testing.assert_array_equal(similar.similarity(place), expected)


def test_names_beyond_ten_thousand_and_names_that_are_no_text_count() -> None:
    shared = [f"a_name_{number:05}" for number in range(12_000)]
    tail = [f"z_name_{number:04}" for number in range(400)]
    odd = ["\udcff\ud800", "a b"]
    # only what stands behind the first 10,000 names tells the first two from the third
    found = LearnedSimilarity([[*shared, *tail], [*shared, *tail, *odd], [*shared, "z", *odd]]).similarity(0)
    assert found[0] == 1.0
    assert found[1] > found[2]


def test_the_settings_choose_it_and_what_is_shared_is_told_all_the_same(tmp_path: Path) -> None:
    with esjobs.open("duckdb::memory:") as opened:
        put_programs(opened, tmp_path)
        learned = Session(opened.store, Settings(similar=SimilarSettings(programs="doc2vec")))
        one, other = (each.similar.programs("old", top=None).rows.to_pylist() for each in (opened, learned))
        assert {row["job_id"] for row in one} == {row["job_id"] for row in other}
        assert [row["similarity"] for row in one] != [row["similarity"] for row in other]
        (again,) = (row for row in other if row["job_id"] == "again")
        assert (again["similarity"], again["by"]) == (1.0, "symbols")
        assert again["shared"]


def test_a_package_that_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models.doc2vec", None)
    with raised(MissingExtraError):
        LearnedSimilarity([["main"]])
