"""Reads descriptions of clusters: TOML of our own, and ClusterCockpit's ``cluster.json``.

[[cluster]]
name = "emmy"

[[cluster.subcluster]]
name = "haswell"
cores = 4
smt = false
memory_b = 32e9
peak_mem_bw_b_s = 24e9
"""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from esjobs.core.errors import InputError
from esjobs.core.sections import Sections
from esjobs.records.clusters.clustercockpit import PROBLEM, is_amount, parts_of_cockpit
from esjobs.records.clusters.description import FACTS, Clusters, Subcluster
from esjobs.records.clusters.settings import ClustersSettings

# Bytes; descriptions with their topology are some 100 kB.
_LARGEST_FILE = 4 << 20
_COUNTS = ("sockets", "cores", "gpus")


def clusters_of(settings: Sections) -> Clusters:
    """Read the descriptions that the settings name. Raises :class:`InputError` for a wrong one."""
    return read_clusters(settings.section(ClustersSettings).files)


def read_clusters(files: Iterable[Path]) -> Clusters:
    """Read the descriptions in files; later ones win. Raises :class:`InputError` for a wrong one."""
    return Clusters(part for path in files for part in _parts(Path(path)))


def _parts(path: Path) -> list[Subcluster]:
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(
            f"cannot read cluster description {path}: {error.strerror or error}; correct the path under "
            "[clusters] files"
        ) from error
    if len(content) > _LARGEST_FILE:
        raise InputError(f"{path} is larger than {_LARGEST_FILE >> 20} MiB; use a cluster description")
    try:
        text = content.decode("utf-8-sig")
        if text.lstrip().startswith("{"):
            return list(parts_of_cockpit(json.loads(text), str(path)))
        return list(_parts_of_toml(tomllib.loads(text), str(path)))
    # both parsers recurse
    except RecursionError as error:
        raise InputError(f"{path} is nested too deeply; a cluster description has two levels") from error
    except ValueError as error:
        raise InputError(f"{path} is not a cluster description in TOML or cluster.json: {error}") from error


def _parts_of_toml(content: Mapping[str, Any], where: str) -> Iterator[Subcluster]:
    _refuse_unknown(content, ("cluster",), where)
    for number, cluster in enumerate(_tables(content, "cluster", where), 1):
        table_name = f"{where}, cluster {number}"
        name = _name(cluster, table_name)
        _refuse_unknown(cluster, ("name", "subcluster"), table_name)
        for part in _tables(cluster, "subcluster", table_name):
            inner = f"{where}, cluster '{name}', subcluster '{_name(part, table_name)}'"
            _refuse_unknown(part, ("name", *FACTS, "partitions"), inner)
            facts: dict[str, Any] = {fact: _fact(fact, part[fact], inner) for fact in FACTS if fact in part}
            facts["partitions"] = _partitions(part.get("partitions", []), inner)
            yield Subcluster(name, part["name"], **facts)


def _tables(content: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    tables = content.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(item, dict) for item in tables):
        raise InputError(f"{where}: {key} must be tables; write [[{key}]]")
    return tables


def _name(content: Mapping[str, Any], where: str) -> str:
    name = content.get("name")
    if not isinstance(name, str) or not name.strip():
        raise InputError(f'{where} has no name; add name = "..."')
    return name


def _refuse_unknown(content: Mapping[str, Any], accepted: Iterable[str], where: str) -> None:
    accepted = tuple(accepted)
    for key in content:
        if key not in accepted:
            raise InputError(f"{where}: unknown key '{key}'; use one of: {', '.join(accepted)}")


def _partitions(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise InputError(f'{where}: partitions is {value!r}; write a list of names, such as ["gpu"]')
    return tuple(value)


def _fact(fact: str, value: object, where: str) -> object:
    problem = PROBLEM.format(where=where, fact=fact, value=value)
    if fact == "cpu_model":
        if not isinstance(value, str):
            raise InputError(f"{problem}; expected a text")
        return value
    if fact == "smt":
        if not isinstance(value, bool):
            raise InputError(f"{problem}; expected true or false")
        return value
    if not is_amount(value):
        raise InputError(f"{problem}; expected a number in base units, 0 or more")
    if fact in _COUNTS:
        # TOML writes 4 and 4.0
        if value != int(value):
            raise InputError(f"{problem}; expected a whole number")
        return int(value)
    return float(value)
