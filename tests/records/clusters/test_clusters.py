"""Descriptions of clusters: our TOML, ClusterCockpit's files, and what is refused."""

import json
from pathlib import Path

import pytest

from esjobs.core.errors import InputError
from esjobs.records.clusters.description import Clusters, Subcluster
from esjobs.records.clusters.reading import read_clusters
from tests.messages import raised

TWO_PARTS = """
[[cluster]]
name = "taurus"

[[cluster.subcluster]]
name = "haswell"
cpu_model = "Intel Xeon E5-2680 v3"
sockets = 2
cores = 24
smt = true
memory_b = 64e9
gpus = 0
peak_mem_bw_b_s = 120e9

[[cluster.subcluster]]
name = "ml"
cores = 44
gpus = 6
"""


def written(folder: Path, text: str, name: str = "clusters.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_part_is_found_by_its_names(tmp_path: Path) -> None:
    clusters = read_clusters([written(tmp_path, TWO_PARTS)])
    haswell = clusters.described("taurus", "haswell")
    assert haswell is not None
    assert (haswell.cores, haswell.smt, haswell.memory_b, haswell.gpus) == (24, True, 64e9, 0)
    assert haswell.peak_flops_s is None
    # of two parts nobody knows which one a job without a subcluster ran on
    assert clusters.described("taurus") is None
    assert clusters.described("other", "haswell") is None


def test_a_part_is_found_by_its_partitions(tmp_path: Path) -> None:
    text = TWO_PARTS.replace('name = "ml"', 'name = "ml"\npartitions = ["gpu", "gpu-long"]')
    clusters = read_clusters([written(tmp_path, text)])
    found = [clusters.described("taurus", None, queue) for queue in ("gpu", "gpu-long", "batch", None)]
    assert [part and part.name for part in found] == ["ml", "ml", "haswell", None]
    named = clusters.described("taurus", "haswell", "gpu")
    assert named is not None
    assert named.name == "haswell", "what the record names wins"
    twice = text.replace('name = "haswell"', 'name = "haswell"\npartitions = ["gpu"]')
    assert read_clusters([written(tmp_path, twice)]).described("taurus", None, "gpu") is None
    for wrong in ('"gpu"', "[1]", '[""]'):
        with raised(InputError):
            read_clusters([written(tmp_path, text.replace('["gpu", "gpu-long"]', wrong))])


def test_a_later_file_completes_and_corrects(tmp_path: Path) -> None:
    first = written(tmp_path, TWO_PARTS)
    more = '[[cluster.subcluster]]\nname = "haswell"\ncores = 28\npeak_flops_s = 1e12\n'
    text = f'[[cluster]]\nname = "taurus"\n{more}'
    part = read_clusters([first, written(tmp_path, text, "site.toml")]).described("taurus", "haswell")
    assert part is not None
    assert (part.cores, part.peak_flops_s, part.memory_b) == (28, 1e12, 64e9)


def test_the_descriptions_of_real_clusters(shared_data: Path) -> None:
    archive = shared_data / "job-archive"
    clusters = read_clusters([archive / "emmy" / "cluster.json", archive / "fritz" / "cluster.json"])
    fritz = clusters.described("fritz")
    assert fritz is not None
    assert (fritz.sockets, fritz.cores, fritz.smt, fritz.gpus) == (2, 72, False, 0)
    assert (fritz.peak_flops_s, fritz.peak_mem_bw_b_s, fritz.memory_b) == (9.216e12, 3.5e11, 2.56e11)
    assert fritz.peak_scalar_flops_s == 4.32e11
    skylake = clusters.described("emmy", "skylake")
    assert skylake is not None
    assert (skylake.cpu_model, skylake.cores, skylake.peak_mem_bw_b_s) == ("Intel Xeon E3-1240 v5", 4, 6.4e10)
    assert clusters.described("emmy") is None


@pytest.mark.parametrize(
    "text",
    [
        "[[cluster]]\n",
        '[[cluster]]\nname = "a"\nnodes = 3\n',
        '[cluster]\nname = "a"\n',
        '[[cluster]]\nname = "a"\n[[cluster.subcluster]]\nname = "b"\ncores = "4"\n',
        '[[cluster]]\nname = "a"\n[[cluster.subcluster]]\nname = "b"\ncores = 4.5\n',
        '[[cluster]]\nname = "a"\n[[cluster.subcluster]]\nname = "b"\nsmt = 1\n',
        '[[cluster]]\nname = "a"\n[[cluster.subcluster]]\nname = "b"\nmemory_b = inf\n',
        '[[cluster]]\nname = "a"\n[[cluster.subcluster]]\nname = "b"\nmemory_b = -1\n',
        "[[cluster]",
        "{",
        "[" * 5000,
        "a = " + "[" * 20000,
        '{"a": ' * 20000,
        json.dumps({"name": "a"}),
        json.dumps({"name": "a", "subClusters": [{"name": "b", "coresPerSocket": 0}]}),
        json.dumps(
            {
                "name": "a",
                "subClusters": [{"name": "b", "memoryBandwidth": {"value": 2, "unit": {"prefix": "Q"}}}],
            }
        ),
    ],
)
def test_what_is_refused_and_how(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    with raised(InputError):
        read_clusters([path])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with raised(InputError):
        read_clusters([tmp_path / "nowhere.toml"])


def test_without_files_nothing_is_described() -> None:
    assert read_clusters([]).described("emmy") is None
    assert Clusters([Subcluster("a", "b")]).parts == (Subcluster("a", "b"),)
