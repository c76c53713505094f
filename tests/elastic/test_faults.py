"""Each fault of one request ends with the undisturbed result, or with one line and what was there before."""

from pathlib import Path

import pytest

from esjobs.api.session import Session
from esjobs.core.errors import EsjobsError
from tests.elastic.faults import SCENES, Fault
from tests.elastic.stage import Stage, act, assert_after, assert_before, opened, visible
from tests.elastic.table import PRODUCTS
from tests.messages import raised
from tests.servers.plugin import server_params
from tests.servers.proxy import Proxy
from tests.servers.server import Server

pytestmark = pytest.mark.parametrize("server", server_params(*PRODUCTS), indirect=True)


@pytest.mark.parametrize("scene", SCENES, ids=lambda name: name.replace(" ", "_"))
def test_a_fault_leaves_all_or_nothing(server: Server, stage: Stage, scene: str) -> None:
    faults = SCENES[scene]
    (step,) = {fault.step for fault in faults}
    (survives,) = {fault.error is None for fault in faults}
    timeout_s = min(fault.timeout_s for fault in faults)
    file = stage.next_file()
    with Proxy(server.url) as proxy, opened(proxy.url, stage.prefix, timeout_s=timeout_s) as session:
        if step == "run":
            session.ingest("jobs", file)
            stage.embedded.ingest("jobs", file)
        before = stage.expected()
        act(stage.embedded, step, file)
        after = stage.expected()
        if survives:
            rules = [fault.install(proxy, server) for fault in faults]
            act(session, step, file)
            for fault, rule in zip(faults, rules, strict=True):
                assert rule.hits >= (fault.times or 1), fault.done
        else:
            for fault in faults:
                fails(session, proxy, server, fault, file)
                assert_before(visible(session), before, after)
            act(session, step, file)
        assert_after(session, after, reported=survives and step == "run")
    stage.spoilt = False


def fails(session: Session, proxy: Proxy, server: Server, fault: Fault, file: Path) -> None:
    """The step ends with the line that the fault is known to give."""
    rule = fault.install(proxy, server)
    assert fault.error is not None
    with raised(EsjobsError):
        act(session, fault.step, file)
    assert rule.hits >= (fault.times or 1), fault.done
    proxy.heal()
