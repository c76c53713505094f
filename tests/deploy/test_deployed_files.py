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
MANIFESTS = {
    path.stem: {part["kind"]: part for part in yaml.safe_load_all(path.read_text())}
    for path in DEPLOY.glob("kubernetes/*.yaml")
}


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


def test_the_cron_job_is_a_night() -> None:
    spec = MANIFESTS["night"]["CronJob"]["spec"]
    Calendar(spec["schedule"], spec["timeZone"])
    assert spec["concurrencyPolicy"] == "Forbid"
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    assert pod["containers"][0]["args"] == ["serve", "--once"]
    require_unprivileged(pod)


def test_the_deployment_is_one_service_that_its_probes_reach() -> None:
    spec = MANIFESTS["service"]["Deployment"]["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"] == ["serve"]
    assert [each["name"] for each in container["env"]] == ["ESJOBS_NIGHTS__HOST"]
    (port,) = container["ports"]
    assert port["containerPort"] == NightsSettings().port
    assert container["livenessProbe"]["httpGet"] == {"path": "/metrics", "port": port["name"]}
    assert MANIFESTS["service"]["Service"]["spec"]["selector"] == spec["selector"]["matchLabels"]
    require_unprivileged(pod)


def require_unprivileged(pod: dict[str, Any]) -> None:
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 10001
    (container,) = pod["containers"]
    assert command_of(container["args"]) == "serve"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    mounted = {each["name"] for each in container["volumeMounts"]}
    assert mounted == {each["name"] for each in pod["volumes"]}
    # the image of the container file keeps its state there, and its user owns it
    paths = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert paths["state"] in (DEPLOY / "Containerfile").read_text()


def test_manifests_are_made_with_the_values_of_the_chart(tmp_path: Path) -> None:
    values = yaml.safe_load((DEPLOY / "helm" / "esjobs" / "values.yaml").read_text())
    for parts in MANIFESTS.values():
        text = parts["ConfigMap"]["data"]["esjobs.toml"]
        assert text == values["settings"]
        file = tmp_path / "esjobs.toml"
        file.write_text(text)
        assert load(file).store.startswith("duckdb:/var/lib/esjobs/")
        claim = parts["PersistentVolumeClaim"]["spec"]["resources"]["requests"]["storage"]
        assert claim == values["state"]["size"]
    containers = [
        MANIFESTS["night"]["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0],
        MANIFESTS["service"]["Deployment"]["spec"]["template"]["spec"]["containers"][0],
    ]
    assert {each["image"] for each in containers} == {values["image"]}
    assert [each["resources"] for each in containers] == [values["resources"]] * 2


def test_every_value_of_the_chart_is_used_and_every_used_one_exists() -> None:
    chart = DEPLOY / "helm" / "esjobs"
    values = yaml.safe_load((chart / "values.yaml").read_text())
    texts = [path.read_text() for path in (chart / "templates").iterdir()]
    used = {name for text in texts for name in re.findall(r"\.Values\.(\w+)", text)}
    assert used == set(values)


def test_the_role_of_ansible_installs_files_that_there_are() -> None:
    role = DEPLOY / "ansible" / "roles" / "esjobs"
    defaults = yaml.safe_load((role / "defaults" / "main.yaml").read_text())
    for name in ("esjobs_lock", "esjobs_settings", "esjobs_units"):
        assert (ROOT / defaults[name]).exists()
    tasks = yaml.safe_load((role / "tasks" / "main.yaml").read_text())
    (units,) = (task["loop"] for task in tasks if task["name"] == "Copy the units")
    assert sorted(units) == sorted(path.name for path in (DEPLOY / "systemd").iterdir())
    handlers = {task["name"] for task in yaml.safe_load((role / "handlers" / "main.yaml").read_text())}
    assert {task["notify"] for task in tasks if "notify" in task} == handlers
    used = set(re.findall(r"\besjobs_\w+", (role / "tasks" / "main.yaml").read_text()))
    registered = {task["register"] for task in tasks if "register" in task}
    template = set(re.findall(r"\besjobs_\w+", (role / "templates" / "environment.j2").read_text()))
    assert used - registered | template == set(defaults)


def test_an_option_that_is_none_is_noticed() -> None:
    with pytest.raises(AssertionError, match="No such option"):
        command_of(["serve", "--forever"])


def test_the_site_leads_to_every_page() -> None:
    text = (DEPLOY / "mkdocs.yml").read_text()
    named = set(re.findall(r": ([\w/-]+\.md)$", text, re.MULTILINE))
    assert named - {"index.md", "more/CHANGELOG.md", "more/SECURITY.md"} == {
        path.name for path in (ROOT / "docs").glob("*.md")
    }
