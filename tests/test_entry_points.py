"""Capabilities, formats and detectors of other packages; broken ones cost a line, never the program."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import esjobs
from esjobs.core import plugins
from esjobs.core.errors import InputError, UsageError
from esjobs.records.ingest.formats.sources import SOURCES, source
from tests.foreign_package import put_package, put_project
from tests.issues.made_jobs import busy, cores, put_records, put_series, record

PAIRS = '''"""Jobs as lines ``ID SECONDS``."""

from datetime import UTC, datetime

import pyarrow as pa

from esjobs.core.arrow import PUT_SCHEMA
from esjobs.records.ingest.base import Parsed


class Pairs:
    name = "pairs"
    default_source = "pairs"

    def parse(self, file, fill):
        rows = []
        with file.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                job, seconds = line.decode().split()
                end = datetime(2026, 1, 1, tzinfo=UTC)
                rows.append({"source": "pairs", "queue": "batch", "job_id": job, "wall_s": float(seconds),
                             "end_time": end, "origin_file": file.name, "origin_line": number})
        yield Parsed(pa.RecordBatch.from_pylist(rows, schema=PUT_SCHEMA), (), len(rows))


PAIRS = Pairs()
'''

PEAKS = '''"""The highest load of a job."""

import numpy as np

from esjobs.issues.detectors import Detector, Range, measured


def highest(batch, variant):
    load = batch.block.values["cpu_load"].max(axis=(1, 2)).astype(float)
    return measured(np.zeros(len(load), np.int8), load, share=1.0, numbers={"twice": 2 * load})


def fails(batch, variant):
    raise ZeroDivisionError("no load")


def wrong(batch, variant):
    return [1.0]


PEAK = Detector("peak", "highest load", "1", ("cpu_load",), {"twice": Range(None)}, measure=highest)
FAILING = Detector("failing", "never", "1", ("cpu_load",), {}, measure=fails)
WRONG = Detector("wrong", "never", "1", ("cpu_load",), {}, measure=wrong)
NAMED_OTHERWISE = PEAK
'''

RULES = """
[rule.peak-high]
detector = "{name}"
area = "cpu"
meaning = "a load above 0.9"
limits = {{ high = 0.9 }}
when = "value > high"
severity = "minor"
hint = "Highest load {{value:percent}}."
"""

WEATHER = {
    "weather/__init__.py": '''"""Weather where jobs ran."""

from esjobs.core.capability import Capability, Lazy, StepEntry

CAPABILITY = Capability(
    "weather",
    sections=(("weather", Lazy("weather.settings:WeatherSettings")),),
    steps=(
        StepEntry("thermometer", Lazy("weather.night:READ"), after=("score",)),
        StepEntry("barometer", Lazy("weather.night:LOST"), after=("score",)),
        StepEntry("windsock", Lazy("weather.night:READ"), after=("nothing",)),
    ),
    facade=Lazy("weather.facade:Weather"),
    after_ingest=Lazy("weather.night:fails"),
    schema="weather.schema",
)
''',
    "weather/schema.py": '''"""Tables of the weather."""

from esjobs.core.tables import Table, column, columns

WEATHER = Table(
    "weather", "how warm it was", "day",
    (column("day", "day", "day", "UTC"), column("name", "keyword", "queue"),
     column("degrees", "number", "temperature", "K")),
    time="day", made_by="look out of the window", shown=columns("name degrees"), order=("-degrees",),
)
TABLES = (WEATHER,)
''',
    "weather/settings.py": '''"""Settings of the weather."""

from pydantic import BaseModel, ConfigDict


class WeatherSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    wall: str = "north"
''',
    "weather/night.py": '''"""Weather of a night."""

from esjobs.records.night import NightAccount, NightStep

READ = NightStep("thermometer", lambda work: NightAccount(notes=("warm",)))


def fails(context, report):
    raise RuntimeError("no thermometer")
''',
    "weather/facade.py": '''"""Weather in a session."""

from esjobs.records.context import Facade


class Weather(Facade):
    def wall(self):
        return [each for each in self._context.settings.capabilities if each.name == "weather"][0].package
''',
}

BROKEN = {
    "broken.py": "from esjobs.core import nothing_of_that_name\n",
    "leaving.py": 'raise SystemExit("not today")\n',
    "clash.py": """from esjobs.core.capability import Capability, Lazy
CAPABILITY = Capability("clash", schema="clash_schema")
SECTIONS = Capability("sections", sections=(("fit", Lazy("pydantic:BaseModel")),))
SPEED = Capability("speed")
""",
    "clash_schema.py": "from esjobs.schema.speed import TABLES\n",
}

USE = """
import datetime, sys
import pyarrow as pa
import esjobs
from esjobs.capabilities import CAPABILITIES
from esjobs.core.arrow import table_schema
from scheduler.steps import night_steps
from weather.schema import WEATHER

with esjobs.open("duckdb::memory:") as session:
    rows = [{"day": datetime.date(2026, 1, 1), "name": "CERN", "degrees": 281.5}]
    batch = pa.RecordBatch.from_pylist(rows, schema=table_schema(WEATHER))
    session.store.publish([session.store.replace(WEATHER, "2026-01-01", [batch])])
    print(session.tables.weather(name="cern").rows["degrees"].to_pylist())
    print(session.weather.wall(), type(session.settings).model_fields["weather"].default.wall)
    print(session.ingest("swf", [sys.argv[1]]).rows_in)
print(*[each.name for each in CAPABILITIES if each.package])
print(*[step.name for step in night_steps(CAPABILITIES)])
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages on the path of this process; what is imported from it is forgotten."""
    folder = tmp_path / "queue"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    plugins.warn.cache_clear()
    yield folder
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            del sys.modules[name]


def run(site: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the packages of a folder."""
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": f"{site}:{Path(__file__).parents[1]}"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_format_of_an_installed_package(site: Path, tmp_path: Path) -> None:
    """Built and installed by pip, as its users do."""
    put_project(
        tmp_path / "project", "pairs", {"pairs.py": PAIRS}, {"esjobs.sources": {"pairs": "pairs:PAIRS"}}
    )
    done = run(
        site,
        *("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"),
        *("--no-build-isolation", "--no-deps", "--target", str(site), str(tmp_path / "project")),
    )
    assert done.returncode == 0, done.stderr
    jobs = tmp_path / "jobs.txt"
    jobs.write_text("a 10\nb 20\n")
    with esjobs.open("duckdb::memory:") as session:
        assert session.ingest("pairs", [jobs]).rows_out == 2
        assert sorted(session.jobs().rows["wall_s"].to_pylist()) == [10.0, 20.0]


def test_formats_of_ours_are_looked_up_without_entry_points(site: Path) -> None:
    """A package cannot stand in front of a format of ours, and is not even imported."""
    put_package(
        site, "front", {"front.py": "raise SystemExit\n"}, {"esjobs.sources": {"panda": "front:PANDA"}}
    )
    assert source("panda") is SOURCES[0]


def test_an_unknown_format_names_those_of_packages(site: Path) -> None:
    put_package(site, "pairs", {}, {"esjobs.sources": {"pairs": "pairs:PAIRS"}})
    with pytest.raises(UsageError, match=r"hepix-hs06.*, pairs$"):
        source("pears")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("broken:PAIRS", "ImportError: cannot import name 'nothing_of_that_name'"),
        ("leaving:PAIRS", "SystemExit: not today"),
        ("absent:PAIRS", "ModuleNotFoundError: No module named 'absent'"),
        ("pairs:PEARS", "AttributeError: module 'pairs' has no attribute 'PEARS'"),
        ("pairs:Pairs", "UsageError: "),
    ],
)
def test_a_broken_format_is_one_line(site: Path, value: str, why: str) -> None:
    put_package(site, "pack", {"pairs.py": PAIRS, **BROKEN}, {"esjobs.sources": {"pairs": value}})
    with pytest.raises(UsageError) as raised:
        source("pairs")
    line = str(raised.value)
    assert line.startswith(
        f"pack 1.2: entry point 'pairs' of esjobs.sources ({value}) cannot be loaded: {why}"
    )
    assert "\n" not in line


def test_a_name_of_two_packages_is_refused(site: Path) -> None:
    for name in ("one", "two"):
        put_package(site, name, {f"{name}.py": PAIRS}, {"esjobs.sources": {"pairs": f"{name}:PAIRS"}})
    with pytest.raises(UsageError, match=r"one 1\.2 and two 1\.2"):
        source("pairs")


def put_detectors(site: Path) -> None:
    names = {
        "peak": "PEAK",
        "failing": "FAILING",
        "wrong": "WRONG",
        "other": "NAMED_OTHERWISE",
        "lost": "LOST",
    }
    put_package(
        site, "peaks", {"peaks.py": PEAKS}, {"esjobs.detectors": {n: f"peaks:{v}" for n, v in names.items()}}
    )


def detected(folder: Path, name: str) -> tuple[list[float], set[str | None], str]:
    """Values of the issues that a rule with a detector finds, reasons without, and the mark of the day."""
    rules = folder / "rules.toml"
    rules.write_text(RULES.format(name=name))
    settings = esjobs.Settings(issues={"rules": [rules]})
    with esjobs.open("duckdb::memory:", settings=settings) as session:
        put_records(session, folder, [record("high"), record("low")])
        put_series(session, {"high": cores([busy(0.95)] * 4), "low": cores([busy(0.6)] * 4)})
        session.issues.detect()
        rows = session.tables.issues().rows.to_pylist()
        found = [row["value"] for row in rows if row["detector"] == "peak-high"]
        measures = session.tables.measures(detector=name).rows
        return (
            [round(value, 2) for value in found],
            set(measures["reason"].to_pylist()),
            str(session.tables.issue_days().rows["fingerprint"].to_pylist()),
        )


def test_a_detector_of_another_package(site: Path, tmp_path: Path) -> None:
    put_detectors(site)
    values, reasons, digest = detected(tmp_path, "peak")
    assert (values, reasons) == ([0.95], {None})
    metadata = site / "peaks-1.2.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("1.2", "1.3"))
    assert detected(tmp_path, "peak")[2] != digest


@pytest.mark.parametrize("name", ["failing", "wrong"])
def test_a_detector_that_fails_assesses_no_job(
    site: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    put_detectors(site)
    with caplog.at_level(logging.WARNING, plugins.__name__):
        values, reasons, _ = detected(tmp_path, name)
    assert (values, reasons) == ([], {"the detector failed"})
    (line,) = [each.message for each in caplog.records if each.name == plugins.__name__]
    assert line.startswith(f"peaks 1.2: detector '{name}' failed: ")


@pytest.mark.parametrize("name", ["other", "lost", "unknown"])
def test_rules_cannot_name_a_broken_detector(site: Path, tmp_path: Path, name: str) -> None:
    put_detectors(site)
    with pytest.raises(InputError) as raised:
        detected(tmp_path, name)
    expected = "peak" if name == "unknown" else f"peaks 1.2: entry point '{name}' of esjobs.detectors"
    assert expected in str(raised.value)


def test_a_capability_brings_tables_settings_and_steps(site: Path, tmp_path: Path) -> None:
    """What of it is broken is left out, with a line of its own."""
    entries = {"weather": "weather:CAPABILITY"}
    put_package(site, "weather", WEATHER, {"esjobs.capabilities": entries})
    jobs = tmp_path / "jobs.swf"
    jobs.write_text("; UnixStartTime: 1500000000\n" + "1 0 5 100 4 50 -1 4 100 -1 1 1 1 1 1 1 -1 -1\n")
    done = run(site, "-c", USE, str(jobs))
    assert done.returncode == 0, done.stderr
    rows, facade, n_rows, names, steps = done.stdout.splitlines()
    assert (rows, facade, n_rows, names) == ("[281.5]", "weather 1.2 north", "1", "weather")
    order = steps.split()
    assert order.index("score") < order.index("thermometer")
    assert not {"barometer", "windsock"} & set(order)
    said = done.stderr.splitlines()
    assert [line.partition(": ")[0] for line in said] == ["weather 1.2"] * 3
    assert [next(name for name in ("ingest", "barometer", "windsock") if name in line) for line in said]
    shown = run(site, "-m", "esjobs", "--store", f"duckdb:{tmp_path / 'x.duckdb'}", "show")
    assert "weather" in shown.stderr.replace(",", "").split()


def test_broken_capabilities_cost_a_line_each(site: Path) -> None:
    entries = {
        "broken": "broken:CAPABILITY",
        "leaving": "leaving:CAPABILITY",
        "clash": "clash:CAPABILITY",
        "sections": "clash:SECTIONS",
        "speed": "clash:SPEED",
        "none": "clash:Lazy",
    }
    put_package(site, "mess", BROKEN, {"esjobs.capabilities": entries})
    code = "import esjobs; s = esjobs.open('duckdb::memory:'); print(len(s.tables.runs().rows))"
    done = run(site, "-c", code)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    said = done.stderr.splitlines()
    assert len(said) == len(entries)
    assert all(line.startswith("mess 1.2") for line in said)
    whys = ("nothing_of_that_name", "not today", "table 'factors'", "section 'fit'", "'speed'", "Capability")
    assert [why for why in whys if not any(why in line for line in said)] == []


def test_doctor_names_plugins_and_those_that_fail(site: Path, tmp_path: Path) -> None:
    put_detectors(site)
    entries = {"pairs": "pairs:PAIRS", "swf": "pairs:PAIRS"}
    put_package(site, "pack", {"pairs.py": PAIRS}, {"esjobs.sources": entries})
    found = json.loads(
        run(
            site,
            *("-m", "esjobs", "--store", f"duckdb:{tmp_path / 'x.duckdb'}", "doctor", "--format", "json"),
        ).stdout
    )
    states = {row["check"]: (row["state"], row["value"].split(":")[0]) for row in found}
    assert states["source pairs"] == ("ok", "pack 1.2")
    assert states["source swf"] == ("warning", "pack 1.2 is ignored")
    assert states["detector peak"] == ("ok", "peaks 1.2")
    assert states["detector lost"][0] == states["detector other"][0] == "failed"
    assert states["store"][0] == "missing"
