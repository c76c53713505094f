"""Construction of stores from settings; the only module that maps addresses to classes."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from esjobs.core.errors import SettingsError, StoreError, UsageError
from esjobs.core.secret_file import SecretFile
from esjobs.schema.catalogue import TABLES
from esjobs.settings import Settings, secret
from esjobs.store.base import JobStore

if TYPE_CHECKING:
    from esjobs.store.elastic.transport.access import Access, Secret


def require_address(settings: Settings) -> None:
    """Raise :class:`UsageError` unless ``settings.store`` is the address of a known kind of store."""
    kind, _, rest = settings.store.partition(":")
    if _is_cluster(settings):
        return
    if settings.cluster.jobs_index is not None:
        raise UsageError(
            f"--jobs-index {settings.cluster.jobs_index} requires a cluster; add its address: --store "
            "http://HOST:9200"
        )
    if kind == "duckdb" and settings.cluster.field_map is not None:
        raise UsageError(
            f"--field-map {settings.cluster.field_map} requires a cluster; omit it, or add the address: "
            "--store http://HOST:9200"
        )
    if kind != "duckdb" or not rest:
        raise UsageError(
            f"'{settings.location}' is not a store; expected duckdb:PATH, duckdb::memory: or the address of "
            "a cluster, http://HOST:9200 (--store, ESJOBS_STORE)"
        )


def _is_cluster(settings: Settings) -> bool:
    return settings.store.startswith(("http://", "https://"))


def embedded_file(settings: Settings) -> Path | None:
    """Return the file of an embedded store; None for a cluster and a store in memory."""
    kind, _, rest = settings.store.partition(":")
    # the shell expands ~ only at the beginning of a word, and here is duckdb: before it
    return Path(rest).expanduser() if kind == "duckdb" and rest != ":memory:" else None


def open_store(settings: Settings, *, create: bool = True, read_only: bool = False) -> JobStore:
    """Open the store that ``settings.store`` names; made with its folder when absent, unless not ``create``.

    ``read_only``: nothing is written or made, and a file is shared with others who read.

    Raises :class:`UsageError` for an address of unknown kind, :class:`StoreError` when it cannot be opened.
    """
    require_address(settings)
    if _is_cluster(settings):
        return _open_cluster(settings, read_only)
    # here, so that a cluster does not load DuckDB, nor an embedded store the clients
    from esjobs.store.duck.store import DuckStore

    path = embedded_file(settings)
    if path is None:
        return DuckStore(None, tables=TABLES, memory_limit=settings.memory, read_only=read_only)
    # DuckDB would create the file, and a misspelt path would look like an empty store
    if (read_only or not create) and not path.exists():
        raise StoreError(
            f"no store at {path}; create it with esjobs ingest, or use a different one with --store "
            "duckdb:PATH"
        )
    return DuckStore(
        path, tables=TABLES, memory_limit=settings.memory, read_only=read_only, wait_s=settings.wait_s
    )


def access_to(
    settings: Settings, location: str, user: str | None = None, password: str | None = None
) -> "Access":
    """Return the access to a server at ``location``, by the settings of the cluster.

    A user and a password win over those of the settings.

    Raises :class:`SettingsError` for credentials that contradict each other or lack their other half.
    """
    from esjobs.store.elastic.transport.access import Access

    cluster = settings.cluster
    files = (cluster.ca_file, cluster.certificate, cluster.key)
    ca_file, certificate, key = (str(path.expanduser()) if path is not None else None for path in files)
    from_settings = _secret_of("password", cluster.password, cluster.password_file)
    return Access(
        location,
        api_key=_secret_of("api_key", cluster.api_key, cluster.api_key_file),
        token=_secret_of("token", cluster.token, cluster.token_file),
        user=user if user is not None else cluster.user,
        password=secret(password) if password is not None else from_settings,
        ca_file=ca_file,
        certificate=certificate,
        key=key,
        verify=cluster.verify,
        timeout_s=cluster.timeout_s,
        retries=cluster.retries,
    )


def _secret_of(name: str, value: "Secret | None", file: Path | None) -> "Secret | None":
    if value is not None and file is not None:
        raise SettingsError(f"cluster.{name} and cluster.{name}_file are both set; remove one of them")
    return value if file is None else SecretFile(f"cluster.{name}", file)


def _other_addresses(settings: Settings, location: str) -> tuple[str, ...]:
    from esjobs.store.elastic.transport.access import split_user

    scheme = location.partition(":")[0]
    others = []
    for address in settings.cluster.addresses:
        other, user, password = split_user(address)
        # one login for all: it stands in the address of the store, or in the settings
        if (user, password) != (None, None) or other.partition(":")[0] != scheme:
            raise SettingsError(
                f"cluster.addresses contains {other}; expected {scheme}://HOST:9200, with the scheme of the "
                "store and without user and password"
            )
        others.append(other)
    return tuple(others)


def _open_cluster(settings: Settings, read_only: bool) -> JobStore:
    from esjobs.store.elastic.fields.field_map import load_field_map
    from esjobs.store.elastic.layout import IndexSettings
    from esjobs.store.elastic.store import ElasticStore
    from esjobs.store.elastic.transport.access import split_user
    from esjobs.store.elastic.transport.connect import connect

    cluster = settings.cluster
    location, user, password = split_user(settings.store)
    for name, in_address, in_settings in (
        ("user", user, cluster.user),
        ("password", password, cluster.password or cluster.password_file),
    ):
        # two different ones: neither may win silently
        if in_address is not None and in_settings is not None:
            raise SettingsError(
                f"{name} is set in the address of {location} and in the settings; remove one of them"
            )
    # only the store: dashboards have one address, and no signatures of AWS
    access = replace(
        access_to(settings, location, user, password),
        others=_other_addresses(settings, location),
        proxy=cluster.proxy,
        aws_region=cluster.aws_region,
    )
    field_map = load_field_map(cluster.field_map) if cluster.field_map is not None else None
    return ElasticStore(
        connect(access, cluster.product),
        cluster.prefix,
        tables=TABLES,
        jobs_index=cluster.jobs_index,
        field_map=field_map,
        how=IndexSettings(cluster.shards, cluster.replicas, cluster.template_priority),
        read_at_most=cluster.read_at_most,
        read_only=read_only,
    )
