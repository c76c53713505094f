"""Facts about the nodes of a cluster, in base units; missing is None, never 0."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace


@dataclass(frozen=True)
class Subcluster:
    """The part of a cluster with one kind of node; all facts are per node.

    ``cores``: physical cores of all ``sockets``. ``smt``: two hardware threads run on a core. Peaks are what
    a well-tuned program reaches, in operations, bytes or instructions per second or cycle; network and file
    systems count both directions. ``partitions``: queues of the scheduler whose jobs run on these nodes.
    """

    cluster: str
    name: str
    cpu_model: str | None = None
    sockets: int | None = None
    cores: int | None = None
    smt: bool | None = None
    memory_b: float | None = None
    gpus: int | None = None
    gpu_memory_b: float | None = None
    peak_flops_s: float | None = None
    peak_mem_bw_b_s: float | None = None
    peak_net_b_s: float | None = None
    peak_io_b_s: float | None = None
    peak_ipc: float | None = None
    peak_scalar_flops_s: float | None = None
    partitions: tuple[str, ...] = ()

    def completed(self, other: "Subcluster") -> "Subcluster":
        """This description, with what it leaves open from another one."""
        missing = {fact: getattr(other, fact) for fact in FACTS if getattr(self, fact) is None}
        partitions = self.partitions or other.partitions
        return replace(self, **missing, partitions=partitions)


FACTS: tuple[str, ...] = tuple(item.name for item in fields(Subcluster))[2:-1]
"""Names of the facts about a node."""


class Clusters:
    """Descriptions of clusters by their names; a later description of a part wins, fact by fact."""

    def __init__(self, parts: Iterable[Subcluster] = ()) -> None:
        self._parts: dict[str, dict[str, Subcluster]] = {}
        for part in parts:
            named = self._parts.setdefault(part.cluster, {})
            earlier = named.get(part.name)
            # later files complete earlier ones, so that a file of one's own may name a single fact
            named[part.name] = part if earlier is None else part.completed(earlier)

    @property
    def parts(self) -> tuple[Subcluster, ...]:
        """Every part that is described, in the order in which it was first named."""
        return tuple(part for named in self._parts.values() for part in named.values())

    def described(
        self, cluster: str | None, subcluster: str | None = None, queue: str | None = None
    ) -> Subcluster | None:
        """Return the part that a job ran on: by its subcluster, else by its queue; None if unknown.

        A part without partitions has the jobs of all queues that no other part lists.

        >>> emmy = Clusters([Subcluster("emmy", "haswell", cores=4)])
        >>> emmy.described("emmy").cores, emmy.described("emmy", "skylake"), emmy.described(None)
        (4, None, None)
        """
        named = self._parts.get(cluster or "", {})
        if subcluster:
            return named.get(subcluster)
        parts = list(named.values())
        if queue is not None:
            listing = [part for part in parts if queue in part.partitions]
            parts = listing or [part for part in parts if not part.partitions]
        # two kinds of node fit: neither is certain
        return parts[0] if len(parts) == 1 else None
