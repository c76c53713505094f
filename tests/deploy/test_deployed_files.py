"""The files of deploy/: read by the programs' own rules, and what they start is a command that there is."""

import configparser
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from esjobs.cli.main import main
from esjobs.entry import load
from scheduler.calendar import Calendar
from scheduler.settings import NightsSettings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SETTINGS = DEPLOY / "esjobs.toml"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MANIFESTS = [
    part for path in DEPLOY.glob("kubernetes/*.yaml") for part in yaml.safe_load_all(path.read_text())
]


def command_of(arguments: list[str]) -> str:
    """The command that these arguments name; every option must be one that it has."""
    answer = CliRunner().invoke(main, [*arguments, "--help"])
    assert answer.exit_code == 0, answer.output
    found = re.match(r"Usage: \w+ ([a-z-]+)", answer.output)
    assert found is not None
    return found[1]


def unit(path: Path) -> configparser.ConfigParser:
    """A unit; keys that come twice add up there, the last one is enough here."""
    parser = configparser.ConfigParser(strict=False, interpolation=None, comment_prefixes=("#", ";"))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(path.read_text())
    return parser


def test_the_settings_are_read() -> None:
    read = load(SETTINGS).section(NightsSettings)
    assert read.windows == (7, 30, 90)
    Calendar(read.cron, read.time_zone)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_service_starts_a_command_that_there_is(path: Path) -> None:
    service = unit(path)["Service"]
    program, *arguments = shlex.split(service["ExecStart"])
    assert program.endswith("/bin/esjobs")
    arguments = [str(SETTINGS) if each == "/etc/esjobs/esjobs.toml" else each for each in arguments]
    assert command_of(arguments) == "serve"
    assert service["User"] == "esjobs"
    assert service["ProtectSystem"] == "strict"
    assert service["NoNewPrivileges"] == "yes"
    # all that is written goes where systemd makes a folder for it
    home = f"/var/lib/{service['StateDirectory']}"
    written = dict(each.split("=", 1) for each in service["Environment"].split())
    assert written["HOME"] == service["WorkingDirectory"] == home
    assert written["NUMBA_CACHE_DIR"].startswith(home)


def test_the_timer_names_its_zone() -> None:
    (path,) = (DEPLOY / "systemd").glob("*.timer")
    timer = unit(path)["Timer"]
    assert re.fullmatch(r"\*-\*-\* \d\d:\d\d:\d\d [A-Z]\w+/\w+", timer["OnCalendar"])
    assert timer["Persistent"] == "true"
    assert path.with_suffix(".service").exists()


def test_the_container_is_an_unprivileged_one() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    steps = [line for line in text.splitlines() if line and not line.startswith("#")]
    last = steps[max(place for place, step in enumerate(steps) if step.startswith("FROM")) :]
    named = {step.split()[0]: step.split(maxsplit=1)[1] for step in last}
    assert named["USER"].isdigit()
    assert int(named["USER"]) > 0
    (program, *arguments), command = yaml.safe_load(named["ENTRYPOINT"]), yaml.safe_load(named["CMD"])
    assert program == "esjobs"
    arguments = [str(SETTINGS) if each.startswith("/etc/") else each for each in arguments]
    assert command_of([*arguments, *command]) == "serve"
    # what is built from lies in the repository
    assert (ROOT / "constraints.txt").exists()
    assert "constraints.txt" in text


def containers(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    pod = manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    found: list[dict[str, Any]] = pod["containers"]
    return found


def test_the_cron_job_is_one_unprivileged_night() -> None:
    (manifest,) = MANIFESTS
    assert (manifest["apiVersion"], manifest["kind"]) == ("batch/v1", "CronJob")
    spec = manifest["spec"]
    Calendar(spec["schedule"], spec["timeZone"])
    assert spec["concurrencyPolicy"] == "Forbid"
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    assert pod["securityContext"]["runAsNonRoot"] is True
    (container,) = containers(manifest)
    assert command_of(container["args"]) == "serve"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    mounted = {each["name"] for each in container["volumeMounts"]}
    assert mounted == {each["name"] for each in pod["volumes"]}
    # the image of the container file keeps its state there, and its user owns it
    paths = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert paths["state"] in (DEPLOY / "Containerfile").read_text()
    assert pod["securityContext"]["runAsUser"] == 10001


def test_an_option_that_is_none_is_noticed() -> None:
    with pytest.raises(AssertionError, match="No such option"):
        command_of(["serve", "--forever"])


def test_the_site_leads_to_every_page() -> None:
    text = (DEPLOY / "mkdocs.yml").read_text()
    named = set(re.findall(r": ([\w/-]+\.md)$", text, re.MULTILINE))
    assert named - {"index.md", "more/CHANGELOG.md", "more/SECURITY.md"} == {
        path.name for path in (ROOT / "docs").glob("*.md")
    }
