"""The same demo in DuckDB and in a cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import esjobs
from esjobs.api.session import Session
from esjobs.cli.demo import demonstrate
from tests.servers.server import Server

Both = tuple[Session, Session]


@contextmanager
def demo_in_both(
    server: Server, folder: Path, prefix: str, *, jobs: int
) -> Iterator[tuple[Session, Session]]:
    """Run the demo in both, nothing is copied from one to the other; yield the embedded store first."""
    config = folder / "esjobs.toml"
    config.write_text(f'[cluster]\nprefix = "{prefix}"\n')
    demonstrate(folder / "embedded", jobs=jobs, seed=3)
    demonstrate(folder / "cluster", jobs=jobs, seed=3, store=server.url, config=config)
    with (
        esjobs.open(f"duckdb:{folder / 'embedded' / 'demo.duckdb'}") as embedded,
        esjobs.open(server.url, config=config) as cluster,
    ):
        yield embedded, cluster
