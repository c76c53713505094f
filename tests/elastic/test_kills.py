"""The server is killed (signal 9) at the worst moments of a day's job, and comes back.

In ``make test-all``: what esjobs makes of a lost answer or snapshot is in ``faults.py``, without the minute
that a server takes to come back.
"""

import pytest

from esjobs.core.errors import EsjobsError
from tests.elastic.faults import PAGE, SWITCH, writes_jobs
from tests.elastic.stage import Stage, act, assert_after, assert_before, opened, visible
from tests.elastic.table import BEFORE, SAME, scene
from tests.messages import raised
from tests.servers.proxy import Action, Predicate, Proxy, Request, then
from tests.servers.server import Server


def killed_and_started(server: Server) -> Action:
    """The server carries a request out, dies before it can answer, and is started again."""

    def restart(_: Request) -> None:
        server.kill()
        server.start()

    return then(restart)


def survives(server: Server, stage: Stage, step: str, when: Predicate) -> None:
    file = stage.next_file()
    with Proxy(server.url) as proxy, opened(proxy.url, stage.prefix) as session:
        if step == "run":
            session.ingest("jobs", file)
            stage.embedded.ingest("jobs", file)
        act(stage.embedded, step, file)
        killed = proxy.on(when, killed_and_started(server))
        act(session, step, file)
        assert killed.hits == 1
        assert_after(session, stage.expected(), reported=step == "run")
    stage.spoilt = False


@pytest.mark.matrix
@scene(
    "`kill -9` just after it carried out a bulk request of jobs, and a restart",
    "waited, sent the request again, recognised its own rows",
    SAME,
)
def test_killed_in_the_middle_of_a_load(server: Server, stage: Stage) -> None:
    survives(server, stage, "ingest", writes_jobs)


@pytest.mark.matrix
@scene(
    "`kill -9` just after the aliases were switched, and a restart",
    "waited, sent the switch again",
    SAME,
)
def test_killed_in_the_moment_of_publication(server: Server, stage: Stage) -> None:
    survives(server, stage, "run", SWITCH)


@pytest.mark.matrix
@scene(
    "`kill -9` while a snapshot was read, and a restart",
    "refused to go on with another snapshot",
    BEFORE,
)
def test_killed_while_it_was_read(server: Server, stage: Stage) -> None:
    file = stage.next_file()
    with Proxy(server.url) as proxy, opened(proxy.url, stage.prefix) as session:
        for each in (session, stage.embedded):
            each.ingest("jobs", file)
        before = stage.expected()
        stage.embedded.run()
        after = stage.expected()
        killed = proxy.on(PAGE, killed_and_started(server))
        with raised(EsjobsError):
            session.run()
        assert killed.hits == 1
        assert_before(visible(session), before, after)
        session.run()
        assert_after(session, after, reported=False)
    stage.spoilt = False
