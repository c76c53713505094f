"""Marks of judged days, and ways from an incident to its page."""

from pathlib import Path

from esjobs.publish.publication import read_table
from esjobs.schema.today import TODAY_DAYS
from scheduler.notifications.incident_notices import incident_notices
from tests.conftest import memory_session
from tests.delivered.test_pledges import written
from tests.today.grid_jobs import BAD_FROM, BAD_SITE, BAD_TO, DAYS, day, jobs_of, put


def test_a_declared_value_that_changed_and_an_acknowledgement_mark_the_day(tmp_path: Path) -> None:
    text = "level,name,corepower,benchmark,valid_from,site\n" + "".join(
        f"queue,{queue},{value},HS06,{since},{queue}\n"
        for queue, value, since in (
            ("OAK", 10, "2026-01-01"),
            ("OAK", 12.5, day(9)),
            ("OAK", 12.5, day(11)),
            ("PINE", 11, day(9)),
        )
    )
    with memory_session() as session:
        put(session.store, jobs_of(range(DAYS)))
        session.declared.import_values(written(tmp_path, text, "c.csv"))
        session.flags.today.update(day(BAD_TO))
        session.flags.today.acknowledge(BAD_SITE, until=day(20), by="ann")
        rows = read_table(session.store, TODAY_DAYS).to_pylist()
    marks = {(row["day"], row["site"], row["mark"]) for row in rows if row["mark"]}
    assert marks == {
        (day(9), "OAK", "OAK: declared 10.0 to 12.5"),
        (day(BAD_TO), BAD_SITE, "acknowledged by ann"),
    }


def test_a_notice_has_the_command_that_shows_the_parts_of_the_cost() -> None:
    with memory_session() as session:
        put(session.store, jobs_of(range(DAYS)))
        session.flags.today.update()
        (notice,) = incident_notices(session.store, day(BAD_FROM))
        command = f"esjobs incident {BAD_SITE} --window {day(BAD_FROM)}/{day(BAD_FROM + 1)}"
        assert notice.text.endswith(command)
        (row,) = session.flags.today.incident(BAD_SITE, window=command.rpartition(" ")[2])
        assert row["lost_core_h"] > 0
