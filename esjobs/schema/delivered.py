"""Words of delivered work, and what people import for it: pledges, downtimes, watts, emission factors."""

from esjobs.core.tables import Table, column, columns

BY = (
    *("site", "queue", "country", "user", "project", "processing_type", "cluster", "source", "month"),
    "federation",
)
"""Groupings of delivered work."""

ACCOUNTED_BY = ("site", "vo", "user", "infrastructure", "month", "federation")
"""Groupings of delivered work by accounting."""

ENERGY_BY = (*BY[:-1], "cpu_model")
"""Groupings of energy."""

NOT_SHOWN = ("cpu_core_h", "gain_h_err", "no_declared_core_h", "no_measured_core_h")
"""Columns that files have and the terminal omits; its notes say what sums lack."""

OF_PLEDGES = ("pledge_h", "of_pledge_percent", "available_share", "of_available_percent")
"""Columns of delivered work by federation."""

KINDS_OF_FACTORS = ("life_cycle", "direct")
"""Emission factors with and without construction and fuel supply; never mixed."""

_FEDERATION = column("federation", "keyword", "federation of sites")
_COUNTRY = column("country_code", "keyword", "country, ISO 3166 alpha-2")
_SITE_VALID_FROM = column("valid_from", "time", "start of validity; null: always", "UTC")
_OF_IMPORT = (
    column("source", "text", "source file or table"),
    column("import_id", "keyword", "hash of the imported file and options"),
    column("imported_at", "time", "time of the import", "UTC"),
)

PLEDGES = Table(
    "pledges",
    "capacity that federations pledged; the newest import counts",
    "import_id",
    (
        _FEDERATION,
        column("vo", "keyword", "virtual organisation, lower case"),
        column("year", "integer", "pledge year, from 1 April"),
        column("quarter", "integer", "1: April to June; null: complete year"),
        # null would mean an unknown pledge; a federation may pledge none
        column("cpu", "number", "pledged capacity; 0: pledged none", "benchmark"),
        column("benchmark", "keyword", "HS06 or HS23", values=("HS06", "HS23")),
        column("valid_from", "time", "start of the quarter or year", "UTC"),
        column("tier", "integer", "tier of WLCG"),
        _COUNTRY,
        column("accounting_name", "keyword", "its name in the accounting"),
        column("infrastructure", "keyword", "EGI or OSG"),
        *_OF_IMPORT,
    ),
    entered=True,
    made_by="ingest pledges",
    key=columns("federation vo year quarter"),
)

FEDERATION_SITES = Table(
    "federation_sites",
    "sites of federations",
    "import_id",
    (
        _FEDERATION,
        column("site", "keyword", "site of the federation"),
        column("vo", "keyword", "virtual organisation, lower case; null: all"),
        # a site of two federations must not count twice
        column("fraction", "number", "share of the site in the pledge; null: not divided"),
        _SITE_VALID_FROM,
        *_OF_IMPORT,
    ),
    entered=True,
    made_by="ingest pledges",
    key=columns("federation site vo valid_from"),
)

POWER = Table(
    "power",
    "watts per core and PUE of sites",
    "import_id",
    (
        column("site", "keyword", "site; null: all"),
        column("cpu_model", "keyword", "canonical CPU model; null: all"),
        column("smt", "boolean", "true with two threads per core; null: either"),
        # of a job slot: with two threads per core, of one thread
        column("watts_per_core", "number", "power of a job slot at full load", "W"),
        column("pue", "number", "power of the centre over that of its computers"),
        _SITE_VALID_FROM,
        *_OF_IMPORT,
    ),
    entered=True,
    made_by="ingest power",
    key=columns("site cpu_model smt valid_from"),
)

EMISSION_FACTORS = Table(
    "emission_factors",
    "carbon intensity of electricity",
    "import_id",
    (
        column("zone", "keyword", "country or zone of the grid"),
        _COUNTRY,
        column("year", "integer", "calendar year"),
        column("month", "integer", "month; null: mean of the year"),
        column("kind", "keyword", "life_cycle or direct", values=KINDS_OF_FACTORS),
        column("g_per_kwh", "number", "emitted CO2 equivalent", "g/kWh"),
        column("licence", "text", "licence of the data"),
        *_OF_IMPORT,
    ),
    entered=True,
    made_by="ingest emissions",
    key=columns("zone kind year month"),
)

OUTAGE = "OUTAGE"
"""Severity of a downtime in which a service is not available."""
# as GOCDB has them; a service at risk (WARNING) still delivers
SEVERITIES = (OUTAGE, "WARNING")

DOWNTIMES = Table(
    "downtimes",
    "declared downtimes of services",
    "import_id",
    (
        column("site", "keyword", "site"),
        column("service", "keyword", "service type; null: all"),
        column("severity", "keyword", "OUTAGE or WARNING", values=SEVERITIES),
        column("scheduled", "boolean", "true if scheduled and declared before its start"),
        column("begin", "time", "start", "UTC"),
        column("until", "time", "end, not included", "UTC"),
        column("downtime", "keyword", "identifier"),
        column("endpoint", "keyword", "host of the service"),
        column("declared_at", "time", "declaration", "UTC"),
        column("text", "text", "reason"),
        column("url", "text", "page"),
        *_OF_IMPORT,
    ),
    entered=True,
    made_by="ingest downtimes",
    key=columns("downtime site service endpoint"),
)

TABLES = (PLEDGES, FEDERATION_SITES, POWER, EMISSION_FACTORS, DOWNTIMES)
