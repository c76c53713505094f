"""The recipes of docs/developer.md, followed to the letter in a copy of the program."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[1]

TABLES = '''"""The tables of a capability that a test makes up."""

from esjobs.core.tables import Table, column, columns

WEATHER = Table(
    "weather",
    "how warm it was where jobs ran",
    "day",
    (
        column("day", "day", "day", "UTC"),
        column("name", "keyword", "queue"),
        column("degrees", "number", "temperature outside", "K"),
        column("comfort", "keyword", "how people felt", values=("cold", "warm")),
        column("sensors", "map", "readings by sensor", "K"),
    ),
    time="day",
    made_by="look out of the window",
    shown=columns("name degrees"),
    order=("-degrees",),
)
TABLES = (WEATHER,)
'''

CAPABILITY = {
    "__init__.py": '''"""Weather where jobs ran."""

from esjobs.core.capability import Capability, Lazy, StepEntry

CAPABILITY = Capability(
    "weather",
    sections=(("weather", Lazy("esjobs.weather.settings:WeatherSettings")),),
    steps=(StepEntry("thermometer", Lazy("esjobs.weather.night:READ"), after=("score",)),),
    facade=Lazy("esjobs.weather.facade:Weather"),
)
''',
    "settings.py": '''"""Settings of the weather."""

from pydantic import BaseModel, ConfigDict


class WeatherSettings(BaseModel):
    """Where the thermometer hangs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    wall: str = "north"
''',
    "night.py": '''"""Weather of a night."""

from esjobs.records.night import NightAccount, NightStep, NightWork
from esjobs.weather.settings import WeatherSettings


def read(work: NightWork) -> NightAccount:
    """Read the thermometer."""
    return NightAccount(notes=(work.settings.section(WeatherSettings).wall,))


READ = NightStep("thermometer", read)
''',
    "facade.py": '''"""Weather in a session: ``s.weather``."""

from esjobs.records.context import Facade
from esjobs.weather.settings import WeatherSettings


class Weather(Facade):
    """Weather where jobs ran."""

    def wall(self) -> str:
        """Return the wall of the thermometer."""
        return self._context.settings.section(WeatherSettings).wall
''',
}

COMMAND = '''"""Weather on the command line."""

import click

from esjobs.cli.options import Context


@click.command()
@click.pass_obj
def weather(obj: Context) -> None:
    """Print the wall of the thermometer."""
    with obj.session() as session:
        click.echo(session.weather.wall())
'''

ENTRY = """    CommandEntry("weather", "weather:weather", "Print the wall of the thermometer."),
"""

PANEL = '''"""A panel that a test makes up."""

from dashboards.spec import Entry, Panel, View, Where

WARMTH = Panel(
    "warmth",
    "How warm it was where jobs ran",
    "dots-with-errors",
    "Weather",
    View("weather", where=(Where("degrees"),), sort=("-degrees",)),
    fields=(Entry("name", "Queue", "name", "label"), Entry("degrees", "Temperature, K", "number", "x")),
    empty="Nobody looked out of the window.",
)
'''

DRAW = """
import json, sys
import esjobs
from dashboards.panels import panel, tables_read
from dashboards.targets.html.report import ReportData, render
from dashboards.targets.vegalite.charts import from_index
from dashboards.view.ask import query_rows

with esjobs.open(sys.argv[1]) as session:
    rows = session.tables.weather().to_pandas()
    names = [row["name"] for row in query_rows(session.store, panel("warmth").view)]
page = render(ReportData(more={"weather": rows}))
block = page[page.index('id="warmth"'):]
(chart,) = json.loads(page.partition('id="charts">')[2].partition("</script>")[0])
spec = from_index(panel("warmth"))
print(json.dumps({
    "names": names,
    "read": "weather" in tables_read(),
    "title": "How warm it was" in page,
    "marks": block.partition('data-marks="')[2].partition('"')[0],
    "drawn": len(chart["datasets"]["rows"]["rows"]),
    "index": spec["data"]["url"]["index"],
    "columns": spec["data"]["url"]["body"]["_source"],
}))
"""

SCRIPT = """
import datetime, sys
import pyarrow as pa
import esjobs
from esjobs.core.arrow import table_schema
from esjobs.schema.weather import WEATHER

rows = [
    {"day": datetime.date(2026, 1, 1), "name": name, "degrees": degrees, "sensors": [("roof", degrees)]}
    for name, degrees in (("CERN", 273.0), ("BNL", 281.5))
]
with esjobs.open(sys.argv[1]) as session:
    batch = pa.RecordBatch.from_pylist(rows, schema=table_schema(WEATHER))
    session.store.publish([session.store.replace(WEATHER, "2026-01-01", [batch])])
    print(session.tables.weather(name="bnl").rows["degrees"].to_pylist())
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with one file of tables more, and one entry more in the list of capabilities."""
    home = tmp_path_factory.mktemp("copy")
    for package in ("esjobs", "fitters", "dashboards", "scheduler", "docs", "deploy"):
        shutil.copytree(ROOT / package, home / package, ignore=shutil.ignore_patterns("__pycache__"))
    (home / "esjobs" / "schema" / "weather.py").write_text(TABLES)
    listed = home / "esjobs" / "schema" / "catalogue.py"
    listed.write_text(listed.read_text().replace('    "runs",\n', '    "runs",\n    "weather",\n'))
    folder = home / "esjobs" / "weather"
    folder.mkdir()
    for name, text in CAPABILITY.items():
        (folder / name).write_text(text)
    (home / "esjobs" / "cli" / "weather.py").write_text(COMMAND)
    listed = home / "esjobs" / "cli" / "registry.py"
    listed.write_text(listed.read_text().replace("_QUERY = (\n", f"_QUERY = (\n{ENTRY}", 1))
    (home / "dashboards" / "panels" / "weather.py").write_text(PANEL)
    listed = home / "dashboards" / "panels" / "__init__.py"
    text = listed.read_text()
    assert text.count("    PROVENANCE,\n)") == 1
    text = text.replace("    PROVENANCE,\n)", "    PROVENANCE,\n    WARMTH,\n)")
    listed.write_text(
        text.replace("\n\nREPORT:", "\nfrom dashboards.panels.weather import WARMTH\n\nREPORT:", 1)
    )
    (home / "write.py").write_text(SCRIPT)
    (home / "draw.py").write_text(DRAW)
    return home


def run(home: Path, *command: str) -> str:
    """What a command prints in the copy."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=home,
        env={"PYTHONPATH": str(home), "HOME": str(home), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_table_is_one_file_and_one_line(copy: Path, tmp_path: Path) -> None:
    store = f"duckdb:{tmp_path / 'jobs.duckdb'}"
    assert run(copy, "write.py", store) == "[281.5]\n"
    shown = run(copy, "-m", "esjobs", "--store", store, "show", "weather")
    assert [line.split() for line in shown.splitlines()] == [
        ["name", "degrees"],
        ["BNL", "281.5"],
        ["CERN", "273"],
    ]
    exported = run(copy, "-m", "esjobs", "--store", store, "show", "weather", "--format", "json")
    rows = json.loads(exported)
    assert [(row["day"][:10], row["sensors"]) for row in rows] == [
        ("2026-01-01", {"roof": 281.5}),
        ("2026-01-01", {"roof": 273.0}),
    ]
    parquet = tmp_path / "weather.parquet"
    run(
        copy,
        "-m",
        "esjobs",
        "--store",
        store,
        "show",
        "weather",
        "--format",
        "parquet",
        "--out",
        str(parquet),
    )
    assert pq.read_table(parquet).column("sensors").to_pylist() == [[("roof", 281.5)], [("roof", 273.0)]]
    comma = run(copy, "-m", "esjobs", "--store", store, "show", "weather", "--format", "csv")
    assert '"{""roof"": 281.5}"' in comma
    pages = run(copy, "-c", "from docs.generate import pages; print(pages()['tables.md'])")
    assert "### weather\n" in pages
    assert "- `degrees` (K): temperature outside\n" in pages


def test_a_panel_is_one_file_and_one_line(copy: Path, tmp_path: Path) -> None:
    """Its rows are asked of the store, the page draws them, and so would a dashboard from the index."""
    store = f"duckdb:{tmp_path / 'jobs.duckdb'}"
    run(copy, "write.py", store)
    assert json.loads(run(copy, "draw.py", store)) == {
        "names": ["BNL", "CERN"],
        "read": True,
        "title": True,
        "marks": "2",
        "drawn": 2,
        "index": "esjobs-weather",
        "columns": ["name", "degrees"],
    }


def test_a_capability_is_a_folder_and_one_line(copy: Path, tmp_path: Path) -> None:
    """Its settings, step of the night and facade follow from the line; a command has one of its own."""
    store = f"duckdb:{tmp_path / 'jobs.duckdb'}"
    run(copy, "write.py", store)
    settings = tmp_path / "esjobs.toml"
    settings.write_text('[weather]\nwall = "south"\n')
    assert run(copy, "-m", "esjobs", "--store", store, "weather") == "north\n"
    assert run(copy, "-m", "esjobs", "--store", store, "--config", str(settings), "weather") == "south\n"
    assert "Print the wall of the thermometer." in run(copy, "-m", "esjobs", "--help")
    steps = "from esjobs.capabilities import CAPABILITIES; from scheduler.steps import night_steps"
    names = run(copy, "-c", f"{steps}; print(*(step.name for step in night_steps(CAPABILITIES)))").split()
    assert names.index("score") < names.index("thermometer")
