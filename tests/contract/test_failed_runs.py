"""A run of which cleaning leaves nothing says so and leaves no run behind, on every engine."""

from esjobs import Settings
from esjobs.api.session import Session
from esjobs.core.errors import NoResultError
from esjobs.store.base import JobStore
from tests.contract.jobs import job, put
from tests.messages import raised


def test_all_jobs_dropped(store: JobStore) -> None:
    put(store, "a", *(job(n, queue=f"Q{n % 3}_MCORE", events=None) for n in range(9)))
    put(store, "b", *(job(f"b{n}", queue="Q0_MCORE", state="failed") for n in range(2)))
    session = Session(store, Settings())
    with raised(NoResultError):
        session.run()
    assert session.tables.runs().to_pandas().empty
    put(store, "c", *(job(f"c{n}", queue="GOOD") for n in range(30)))
    with raised(NoResultError):
        session.run(where="site=Q0")
    with raised(NoResultError):
        session.run(where="site=Q7")
    assert session.tables.runs().to_pandas().empty
    assert session.run(where="site=GOOD")[0].rows_out == 30
    assert set(session.tables.runs().to_pandas()["step"]) == {"aggregate", "fit", "correlate", "flag"}
