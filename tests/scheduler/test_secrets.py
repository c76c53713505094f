"""Secrets of every kind are planted in the settings; nothing that a night writes has one in it."""

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from esjobs import open as open_session
from esjobs.publish.publication import read_table
from esjobs.schema.catalogue import TABLES
from scheduler.condition import condition
from scheduler.metrics import Metrics
from tests.scheduler.notifications.servers import free_port
from tests.scheduler.stage import FIRST, History, settings_of

SECRETS = {
    "cluster password": "PlantedOfTheCluster1",
    "cluster key": "PlantedOfTheKey2",
    "mail password": "PlantedOfTheMail3",
    "hook address": "PlantedInTheAddress4",
    "hook secret": "PlantedOfTheHook5",
}

CONFIG = """
[fit]
methods = ["gamma"]
[nights]
windows = [3, 7]
headline = 7
late_days = 3
[cluster]
password = "{cluster_password}"
user = "esjobs"
[notify]
attempts = 1
timeout_s = 5
[notify.mail]
host = "127.0.0.1"
port = {port}
user = "mailer"
password = "{mail_password}"
sender = "esjobs@grid.example"
[[notify.recipients]]
name = "coordinators"
role = "coordinator"
channel = "mail"
address = "coordinators@grid.example"
[[notify.recipients]]
name = "operator"
role = "operator"
channel = "webhook"
url = "http://127.0.0.1:{port}/hooks/{hook_address}"
secret = "{hook_secret}"
"""


def test_no_secret_is_in_anything_that_a_night_writes(tmp_path: Path, history: History) -> None:
    shutil.copy(history(3), tmp_path / "jobs.duckdb")
    config = tmp_path / "esjobs.toml"
    words = {name.replace(" ", "_"): secret for name, secret in SECRETS.items()}
    config.write_text(CONFIG.format(port=free_port(), **words))
    store = tmp_path / "jobs.duckdb"
    command = [sys.executable, "-m", "tests.scheduler.once", f"duckdb:{store}"]
    environment = os.environ | {"ESJOBS_CLUSTER__API_KEY": SECRETS["cluster key"]}
    written = ""
    # a night without jobs, so that there is something to tell, which nobody takes; then what shows it
    moment = f"{FIRST + timedelta(days=4)}T03:30:00+00:00"
    options = ["--config", str(config), "--log-level", "debug", "--log", "json"]
    for asked in (["serve", "--once"], ["nights"], ["doctor"], ["notify", "log"], ["show", "night_steps"]):
        ended = subprocess.run(
            [*command, moment, *options, *asked], env=environment, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in ended.stderr
        written += ended.stdout + ended.stderr
    with open_session(settings=settings_of(f"duckdb:{store}")) as session:
        told = read_table(session.store, next(each for each in TABLES if each.name == "notifications"))
        assert {"failed", "queued"} & set(told.column("state").to_pylist())
        for table in TABLES:
            written += repr(read_table(session.store, table).to_pylist())
        metrics = Metrics()
        metrics.show(condition(session.store, datetime.now(UTC), 36.0))
        written += metrics.text().decode()
    for file in tmp_path.iterdir():
        if file != config and file.is_file():
            written += file.read_bytes().decode("latin-1")
    assert {name: secret in written for name, secret in SECRETS.items()} == dict.fromkeys(SECRETS, False)
