"""The formats, as a literal: adding one is a file and a line."""

from esjobs.core.errors import UsageError
from esjobs.core.plugins import package_of, plugin, plugin_names
from esjobs.records.ingest.base import Source, require_source
from esjobs.records.ingest.formats.apel import APEL
from esjobs.records.ingest.formats.canonical import JOBS
from esjobs.records.ingest.formats.clustercockpit import ClusterCockpit
from esjobs.records.ingest.formats.corepower import COREPOWER_TABLE
from esjobs.records.ingest.formats.cric import CRIC_QUEUES
from esjobs.records.ingest.formats.downtimes import DOWNTIME_TABLE
from esjobs.records.ingest.formats.htcondor import CMS_HTCONDOR
from esjobs.records.ingest.formats.long_series import LongSeries
from esjobs.records.ingest.formats.panda import PANDA
from esjobs.records.ingest.formats.perf_stat import PerfStat
from esjobs.records.ingest.formats.pledges import PLEDGE_TABLES
from esjobs.records.ingest.formats.power import EMISSION_TABLE, POWER_TABLE
from esjobs.records.ingest.formats.prmon import Prmon
from esjobs.records.ingest.formats.probes import PROBE_TABLE
from esjobs.records.ingest.formats.published_scores import ATLAS_FACTORS, ATLAS_HS06, HEPIX_HS06, HEPIX_HS23
from esjobs.records.ingest.formats.slurm import SLURM
from esjobs.records.ingest.formats.slurm_profile import SlurmProfile
from esjobs.records.ingest.formats.supremm import Supremm
from esjobs.records.ingest.formats.swf import SWF
from esjobs.records.ingest.formats.talp import Talp

REFERENCE_SOURCES = (HEPIX_HS23, HEPIX_HS06, ATLAS_HS06, ATLAS_FACTORS)
"""The formats of reference tables, by which ``esjobs reference import`` names its forms."""

SOURCES: tuple[Source, ...] = (
    PANDA,
    JOBS,
    SLURM,
    SWF,
    CMS_HTCONDOR,
    APEL,
    COREPOWER_TABLE,
    CRIC_QUEUES,
    ClusterCockpit(),
    LongSeries(),
    SlurmProfile(),
    Prmon(),
    Supremm(),
    PerfStat(),
    Talp(),
    *REFERENCE_SOURCES,
    PLEDGE_TABLES,
    DOWNTIME_TABLE,
    POWER_TABLE,
    EMISSION_TABLE,
    PROBE_TABLE,
)
"""Every format that ``esjobs ingest`` reads."""


GROUP = "esjobs.sources"
"""Entry points of formats of other packages; each names a :class:`Source` of its own name."""


def source(name: str) -> Source:
    """Look a format up by name, ours first, or raise :class:`UsageError` that lists them all.

    A format of another package that cannot be used is a :class:`UsageError`, too.

    >>> source("panda").default_source
    'panda'
    """
    for candidate in SOURCES:
        if candidate.name == name:
            return candidate
    found = plugin(GROUP, name, require_source)
    if found is None:
        own = [candidate.name for candidate in SOURCES]
        raise UsageError(
            f"unknown format '{name}'; use one of: {', '.join([*own, *plugin_names(GROUP, own)])}"
        )
    if found.name != name:
        raise UsageError(
            f"{package_of(GROUP, name)}: entry point '{name}' of {GROUP} provides the format '{found.name}'; "
            "both must have the same name"
        )
    return found
