"""What comes in and is asked of it: formats, jobs, names, declared values, references, series."""

from esjobs.core.capability import Capability, Lazy

CAPABILITY = Capability(
    "jobs", sections=(("clusters", Lazy("esjobs.records.clusters.settings:ClustersSettings")),)
)
