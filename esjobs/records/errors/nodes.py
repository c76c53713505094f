"""Names of worker nodes, as records of pilots and schedulers spell them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SERVER_HOSTS = ("aipanda*", "pandaserver*")
"""Hosts of PanDA's server, which writes its own name when it ends a job itself."""

# CERN renames its machines for the experiment: atlprd1-2-b6d1.cern.ch is b6d1.cern.ch.
_RENAMED = re.compile(r"atlprd\d+-[^-.]+-([^.]+\.cern\.ch)")
_LIST = re.compile(r"[\[\],\s]")


def node_name(raw: str | None, servers: Sequence[str] = SERVER_HOSTS) -> str | None:
    """Return the node in lower case, without its slot; None for a list of nodes and for a server.

    Sources: pilot3 ``util/workernode.py``, panda-server ``srvcore/CoreUtils.py``.

    >>> node_name("slot1_3@WN042.site.tld"), node_name("n[01-04]"), node_name("aipanda12.cern.ch")
    ('wn042.site.tld', None, None)
    """
    if raw is None or _LIST.search(raw.strip()):
        return None
    # HTCondor writes slot1_3@host; a name may end in the dot of the root domain
    name = raw.strip().rpartition("@")[2].lower().rstrip(".")
    if not name or name == "none" or any(fnmatchcase(name, server) for server in servers):
        return None
    renamed = _RENAMED.fullmatch(name)
    return renamed[1] if renamed else name


def node_names(column: pa.Array) -> pa.Array:
    """Return a column of cleaned names; each text is cleaned once."""
    texts = column.dictionary_encode()
    names = pa.array([node_name(text) for text in texts.dictionary.to_pylist()], pa.string())
    return names.take(texts.indices)


def numbered(
    texts: Iterable[str | None], servers: Sequence[str] = SERVER_HOSTS
) -> tuple[npt.NDArray[np.int64], dict[str, list[str]]]:
    """Return the number of the node of each text, -1 for none, and by node, in order, the texts that name it.

    >>> numbered(["slot1@a.tld", None, "a.tld", "b.tld"])
    (array([ 0, -1,  0,  1]), {'a.tld': ['slot1@a.tld', 'a.tld'], 'b.tld': ['b.tld']})
    """
    names: dict[str, list[str]] = {}
    number: dict[str, int] = {}
    numbers = []
    for text in texts:
        name = node_name(text, servers)
        if name is None or text is None:
            numbers.append(-1)
            continue
        numbers.append(number.setdefault(name, len(number)))
        names.setdefault(name, []).append(text)
    return np.array(numbers, np.int64), names


def common_domain(nodes: Iterable[str]) -> str:
    """Return the domain that at least 90 % of the nodes share, with its dot; empty without one.

    >>> common_domain(["a.site.tld", "b.site.tld"]), common_domain(["a", "b.site.tld"])
    ('.site.tld', '')
    """
    domains = Counter(node.partition(".")[2] for node in nodes)
    domain, n_nodes = max(domains.items(), key=lambda item: item[1], default=("", 0))
    return f".{domain}" if domain and n_nodes >= 0.9 * domains.total() else ""
