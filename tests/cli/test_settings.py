"""Settings that make no sense are refused when they are read: file, key, value and what is accepted."""

import re
from pathlib import Path

import pytest

from esjobs import Settings
from esjobs.core.errors import SettingsError
from esjobs.core.rules import CleaningRules
from esjobs.core.words import OF_LAUNCHES
from esjobs.entry import load
from esjobs.pop.settings import TalpSettings
from esjobs.pop.wrapper import SCRIPT
from tests.cli.running import run
from tests.messages import compare_text, raised

REFUSED = (
    ("rules.min_wall_s", "nan"),
    ("rules.min_wall_s", "inf"),
    ("rules.min_wall_s", "-1"),
    ("rules.min_wall_s", "2592000"),
    ("rules.min_wall_s", "true"),
    ("rules.max_wall_s", "60"),
    ("rules.max_wall_s", "nan"),
    ("rules.max_wall_s", "inf"),
    ("rules.min_efficiency", "nan"),
    ("rules.min_efficiency", "2.0"),
    ("rules.max_efficiency", "inf"),
    ("rules.max_efficiency", "0"),
    ("rules.min_events", "0"),
    ("rules.min_events", "9999999999999999999999"),
    ("rules.min_cores", "-1"),
    ("rules.min_cores", "true"),
    ("rules.finished_states", "[]"),
    ("rules.finished_states", '["finished", " "]'),
    ("rules.excluded_types", '["*"]'),
    ("rules.excluded_types", '[""]'),
    ("fit.min_bucket_jobs", "0"),
    ("fit.min_bucket_jobs", "10000000000000000000000"),
    ("fit.min_name_jobs", "-5"),
    ("fit.min_name_jobs", "true"),
    ("fit.deviation_limit", "nan"),
    ("fit.deviation_limit", "1"),
    ("fit.deviation_limit", "inf"),
    ("fit.methods", "[]"),
    ("fit.methods", '["gamma", "gamma"]'),
    ("fit.methods", '["gama"]'),
    ("cluster.timeout_s", "inf"),
    ("cluster.timeout_s", "nan"),
    ("cluster.timeout_s", "0"),
    ("cluster.retries", "-1"),
    ("cluster.retries", "1000000"),
    ("nights.time_zone", '"Europe/Zurch"'),
    ("nights.time_zone", '"../../etc/passwd"'),
    ("memory", '"0"'),
    ("memory", '"0GB"'),
    ("memory", '"-1GB"'),
    ("memory", '"1 potato"'),
    ("memory", '"1000000000TB"'),
    ("memory", '"0%"'),
    ("memory", '"101%"'),
    ("memory", '"1KB"'),
    ("memory", '"٤GB"'),
    ("memory", "4"),
)


def named(key: str) -> tuple[str, str]:
    section, _, name = key.rpartition(".")
    return f"[{section}]\n{name}" if section else name, "ESJOBS_" + key.replace(".", "__").upper()


@pytest.mark.parametrize(("key", "value"), REFUSED)
def test_what_makes_no_sense_is_refused_when_a_file_is_read(tmp_path: Path, key: str, value: str) -> None:
    config = tmp_path / "esjobs.toml"
    config.write_text(f"{named(key)[0]} = {value}\n", encoding="utf-8")
    result = run("--config", str(config), "show", "runs", store=":memory:")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"esjobs: setting '{key}' in {config}: ")
    assert result.stderr.count("\n") == 1
    compare_text(result.stderr)


@pytest.mark.parametrize(
    ("key", "value"), [each for each in REFUSED if each[1] != "true" and each[0] != "memory"]
)
def test_so_is_it_in_the_environment(monkeypatch: pytest.MonkeyPatch, key: str, value: str) -> None:
    variable = named(key)[1]
    monkeypatch.setenv(variable, value)
    with raised(SettingsError) as refused:
        load()
    assert str(refused.value).startswith(f"{variable}={value} in the environment: ")


def test_a_section_in_one_variable_and_one_in_small_letters_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ESJOBS_RULES", '{"min_wall_s": NaN}')
    with raised(SettingsError):
        load()
    monkeypatch.delenv("ESJOBS_RULES")
    monkeypatch.setenv("esjobs_memory", "0")
    with raised(SettingsError):
        load()


def test_variables_of_launches_under_talp_are_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has loaded the module has them in every shell, and asks for the page of the job from there."""
    script = SCRIPT.read_text()
    assert set(re.findall(r"ESJOBS_TALP_[A-Z]+", script)) == OF_LAUNCHES
    for name in OF_LAUNCHES:
        monkeypatch.setenv(name, "/scratch/talp")
    monkeypatch.setenv("ESJOBS_POP__EVERY_MINUTES", "7")
    assert load().section(TalpSettings).every_minutes == 7
    monkeypatch.setenv("ESJOBS_TALP", "off")
    assert load().section(TalpSettings).every_minutes == 7
    monkeypatch.setenv("ESJOBS_POP", '{"timeout_s": 9}')
    assert (load().section(TalpSettings).timeout_s, load().section(TalpSettings).every_minutes) == (9, 7)
    monkeypatch.setenv("ESJOBS_TALP", "on")
    with pytest.raises(SettingsError):
        load()
    monkeypatch.delenv("ESJOBS_TALP")
    monkeypatch.setenv("ESJOBS_TALP_SPOOLS", "[]")
    with raised(SettingsError):
        load()


def test_lists_in_the_environment_are_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESJOBS_RULES__FINISHED_STATES", '["finished", "closed"]')
    monkeypatch.setenv("ESJOBS_RULES__EXCLUDED_TYPES", "[]")
    assert load().rules == CleaningRules(finished_states=("finished", "closed"), excluded_types=())


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("[rules]\nmin_wall_s = 0\nmax_wall_s = 1e9\nexcluded_types = []\n", "1.5 GiB"),
        ('[rules]\nmin_efficiency = 0.5\nmax_efficiency = 0.51\n[fit]\nmethods = ["paper"]\n', "16mb"),
        ('[rules]\nfinished_states = ["finished", "closed"]\nmin_events = 1000\n', "50%"),
        ("[cluster]\ntimeout_s = 0.5\nretries = 0\n", "100TB"),
    ],
)
def test_what_makes_sense_is_taken(tmp_path: Path, text: str, memory: str) -> None:
    config = tmp_path / "esjobs.toml"
    config.write_text(f'memory = "{memory}"\n{text}')
    assert load(config).memory == memory


def test_the_limit_that_was_set_is_named_where_two_cross(tmp_path: Path) -> None:
    config = tmp_path / "esjobs.toml"
    config.write_text("[rules]\nmin_wall_s = 500\nmax_wall_s = 500\n")
    with raised(SettingsError):
        load(config)


def test_python_gets_the_same_answer() -> None:
    with pytest.raises(ValueError, match="a number from 0 to"):
        Settings(rules=CleaningRules(min_wall_s=float("nan")))


@pytest.mark.parametrize("key", ["password", "api_key", "token", "user"])
def test_a_secret_that_is_not_accepted_is_not_shown(tmp_path: Path, key: str) -> None:
    config = tmp_path / "esjobs.toml"
    for text in (
        f'[cluster]\n{key} = ["sesame"]\n',
        'store = ["http://me:sesame@host:1"]',
        'cluster = "sesame"',
    ):
        config.write_text(text)
        with pytest.raises(SettingsError) as refused:
            load(config)
        assert "sesame" not in str(refused.value)
