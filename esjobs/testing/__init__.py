"""Contract of stores and sources as tests that other packages run on theirs. They need pytest.

A store, in a file of tests:

    import pytest
    from esjobs.schema.catalogue import TABLES
    from esjobs.testing import Engine
    from esjobs.testing.stores import *

    from my_package import MyStore

    @pytest.fixture
    def engine():
        return Engine("mine", lambda folder: MyStore(folder, tables=TABLES))

A source, with a file that it reads without refusing a row:

    import pytest
    from esjobs.testing.sources import *

    from my_package import SOURCE

    @pytest.fixture
    def source():
        return SOURCE

    @pytest.fixture
    def sample(tmp_path):
        (tmp_path / "jobs.txt").write_text("...")
        return tmp_path / "jobs.txt"
"""

from esjobs.testing.engine import Engine

__all__ = ["Engine"]
