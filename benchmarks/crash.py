"""Nights that are killed with signal 9 at random moments of every step, and begun again.

    python -m benchmarks.crash --engine duckdb --kills 50 --out benchmarks/results/crash.md
    python -m benchmarks.crash --engine elasticsearch8 --kills 24

A grid lives some nights undisturbed; then a night is killed while it runs, the store is looked at as readers
see it, and the night is begun again. On the embedded store every kill meets the same night, in a copy; in a
cluster one night follows the other, each killed once or more, beside an embedded store that nothing disturbs.
Afterwards all tables must hold the same rows, and the mail server must have got the same messages, each once.
The table of an engine takes the place of an earlier one in the same file.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from esjobs import Settings
from esjobs import open as open_session
from scheduler.notifications.settings import NotifySettings
from tests.scheduler.crashes import Victim, in_turn, moments
from tests.scheduler.notifications.servers import MailServer, mail_server
from tests.scheduler.rows import visible_rows
from tests.scheduler.stage import FIRST, Hands, Stage, days, settings_of
from tests.servers.products import PRODUCTS
from tests.servers.server import Server

SEEN = ("factors", "flags", "lines", "fit_summaries", "latest_runs", "nights", "flag_states", "flag_events")
"""What is alike in every engine; marks of days are a store's own."""
_MOST_NIGHTS = 14
"""Nights among which one has to tell something."""


@dataclass
class Tally:
    """What happened. ``kills``: by step; ``faults``: a line for everything that should not be.

    ``mails``: of the nights that were compared; ``again``: of those, sent a second time under the same id.
    """

    kills: Counter[str] = field(default_factory=Counter)
    too_late: int = 0
    mails: int = 0
    again: int = 0
    faults: list[str] = field(default_factory=list)


def main() -> None:
    """Kill, begin again, compare; write the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--engine", choices=["duckdb", *PRODUCTS], default="duckdb")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/crash.md"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="esjobs-crash-") as name, mail_server() as mails:
        folder = Path(name)
        if args.engine == "duckdb":
            tally = embedded(folder, mails, args.kills, args.seed)
            title = f"DuckDB {describe()['duckdb']}"
        else:
            product = PRODUCTS[args.engine]
            with Server(product, heap_mb=512) as server:
                tally = clustered(server.url, folder, mails, args.kills, args.seed)
            title = f"{product.title} ({product.version})"
    write(args.out, title, tally, " ".join(["python -m benchmarks.crash", *sys.argv[1:]]))
    if tally.faults:
        raise SystemExit("\n".join(tally.faults))


def told(settings: Settings, mails: MailServer) -> Settings:
    """The same with somebody who is told everything by mail."""
    people = [
        {"name": role, "role": role, "channel": "mail", "address": f"{role}@grid.example"}
        for role in ("coordinator", "operator")
    ]
    notify = {"mail": mails.settings(security="none"), "recipients": people}
    return settings.model_copy(
        update={"notify": NotifySettings.model_validate(notify)},
    )


def messages(mails: MailServer) -> Counter[tuple[str, str, str]]:
    """What was sent: address, subject, the id of the message."""
    return Counter((address, str(mail["Subject"]), str(mail["Message-ID"])) for address, mail in mails.taken)


def embedded(folder: Path, mails: MailServer, kills: int, seed: int) -> Tally:
    """Every kill meets the same night: the first one after four that tells somebody something by mail."""
    tally, hands = Tally(), Hands()
    ready, before, store = (folder / f"{name}.duckdb" for name in ("jobs", "before", "night"))
    settings = told(settings_of(f"duckdb:{store}"), mails)
    with opened(told(settings_of(f"duckdb:{ready}"), mails), hands) as stage:
        stage.live(*days(FIRST, 4))
    for last in days(FIRST + timedelta(days=4), _MOST_NIGHTS):
        with opened(told(settings_of(f"duckdb:{ready}"), mails), hands) as stage:
            stage.arrive(last)
        hands.morning_after(last)
        shutil.copy(ready, before)
        mails.taken.clear()
        with opened(told(settings_of(f"duckdb:{ready}"), mails), hands) as stage:
            stage.trigger(last)
        if mails.taken:
            break
    shutil.copy(before, store)
    old = latest(settings)
    mails.taken.clear()
    began = Victim(settings, hands.now).survive()
    expected, new, sent = seen(settings), latest(settings), messages(mails)
    for number, (step, after_s) in enumerate(moments(began, in_turn(began, kills), seed), 1):
        for leftover in folder.glob("night.duckdb*"):
            leftover.unlink()
        shutil.copy(before, store)
        mails.taken.clear()
        if Victim(settings, hands.now).kill_in(step, after_s):
            tally.kills[step] += 1
        else:
            tally.too_late += 1
        if latest(settings) not in (old, new):
            tally.faults.append(f"kill {number}, {step}: flags of neither before nor after")
        Victim(settings, hands.now).survive()
        tally.mails += sum(sent.values())
        compare(tally, f"kill {number}, {step}", expected, seen(settings), sent, messages(mails))
    return tally


def clustered(url: str, folder: Path, mails: MailServer, kills: int, seed: int) -> Tally:
    """One night follows the other, in a cluster and beside it."""
    tally, hands, chance = Tally(), Hands(), random.Random(seed)  # noqa: S311
    plain = settings_of(url)
    cluster = plain.cluster.model_copy(update={"prefix": "crash"})
    settings = told(plain.model_copy(update={"cluster": cluster}), mails)
    twin = told(settings_of(f"duckdb:{folder / 'twin.duckdb'}"), mails)
    began: dict[str, float] = {}
    number, night = 0, FIRST
    while number < kills:
        sent = twin_night(twin, hands, night, mails)
        with opened(settings, hands) as stage:
            stage.arrive(night)
        hands.morning_after(night)
        mails.taken.clear()
        # the first nights grow into their windows, and say how long the steps take
        if night >= FIRST + timedelta(days=4):
            for step, after_s in moments(began, in_turn(began, 2), chance.randrange(1 << 30)):
                names = [name for name in began if name != "done"]
                step = names[number % len(names)]  # noqa: PLW2901  every step in turn
                number += 1
                if Victim(settings, hands.now).kill_in(step, after_s):
                    tally.kills[step] += 1
                else:
                    tally.too_late += 1
        ended = Victim(settings, hands.now).survive()
        began = ended if len(ended) >= len(began) else began
        tally.mails += sum(sent.values())
        expected, found = seen(twin, SEEN), seen(settings, SEEN)
        compare(tally, f"night {night}", expected, found, sent, messages(mails))
        night += timedelta(days=1)
    return tally


def twin_night(twin: Settings, hands: Hands, night: date, mails: MailServer) -> Counter[tuple[str, str, str]]:
    """The night on the store that nothing disturbs; what it sent."""
    mails.taken.clear()
    with opened(twin, hands) as stage:
        stage.live(night)
    return messages(mails)


@contextmanager
def opened(settings: Settings, hands: Hands) -> Iterator[Stage]:
    """A stage on a store with these settings."""
    with open_session(settings=settings, clock=hands.clock) as session:
        yield Stage(session, hands)


def seen(settings: Settings, only: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """What readers see."""
    with open_session(settings=settings) as session:
        rows = visible_rows(session.store)
    return {name: rows[name] for name in only} if only else rows


def latest(settings: Settings) -> list[str]:
    """The flags that people see."""
    with open_session(settings=settings) as session:
        return sorted(map(repr, session.tables.flags().rows.to_pylist()))


def compare(
    tally: Tally,
    where: str,
    expected: Mapping[str, list[str]],
    found: Mapping[str, list[str]],
    sent: Mapping[Any, int],
    got: Mapping[Any, int],
) -> None:
    """Note what differs."""
    tally.faults += [f"{where}: table {name} differs" for name in expected if expected[name] != found[name]]
    subjects = [sorted({(address, subject) for address, subject, _ in each}) for each in (sent, got)]
    if subjects[0] != subjects[1]:
        tally.faults.append(f"{where}: other messages, {subjects}")
    # a message that was accepted just before the kill may come again under the same id: receivers drop it
    tally.again += sum(n - 1 for n in got.values())
    tally.faults += [f"{where}: {n} times {what}" for what, n in got.items() if n > 2]


def write(out: Path, title: str, tally: Tally, command: str) -> None:
    """Put the table of an engine into the page, in place of an earlier one."""
    data = out.with_suffix(".json")
    known: dict[str, Any] = json.loads(data.read_text()) if data.exists() else {}
    known[title.split(maxsplit=1)[0]] = {
        "title": title,
        "command": command,
        "kills": dict(tally.kills),
        "too_late": tally.too_late,
        "mails": tally.mails,
        "again": tally.again,
        "faults": tally.faults,
        "machine": describe(),
    }
    data.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    lines = [
        "# Nights that are killed",
        "",
        "Written by `python -m benchmarks.crash`: a night is killed (signal 9) at random moments of every",
        "step, the store is looked at, and the night is begun again. All tables must then hold the rows of a",
        "night that nothing disturbed, and the mail server must have got the same messages; before, readers",
        "must see the flags of the night before or those of this one, nothing between.",
    ]
    for each in known.values():
        total = sum(each["kills"].values())
        lines += [
            "",
            f"## {each['title']}",
            "",
            f"{total} kills, {len(each['faults'])} faults; {each['mails']} messages in the nights compared, "
            f"{each.get('again', 0)} sent twice under one id; {each['too_late']} kills came too late.",
            "",
            "| step | kills |",
            "|---|---|",
            *(f"| `{step}` | {number} |" for step, number in each["kills"].items()),
        ]
    out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
