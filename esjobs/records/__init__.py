"""Records of jobs: formats, stored jobs and their queries, names, declared values, references, series."""

from esjobs.core.capability import Capability, Lazy

CAPABILITY = Capability(
    "jobs", sections=(("clusters", Lazy("esjobs.records.clusters.settings:ClustersSettings")),)
)
