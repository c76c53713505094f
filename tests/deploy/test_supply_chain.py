"""What a release is made of: pinned actions, locked packages, licences that somebody has read."""

import re
import tomllib
from datetime import date
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import esjobs

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
LICENCES = tomllib.loads((ROOT / ".ci" / "licences.toml").read_text())
# esjobs needs them on other systems only
ELSEWHERE = {"tzdata"}
# no wheels for all versions of Python, so not in the lock
UNLOCKED = "programs"


def installed(extras: set[str]) -> set[str]:
    """Names of the packages that esjobs and these extras install, read in the metadata of each."""
    found: set[str] = set()
    open_ends = [("esjobs", frozenset(extras))]
    while open_ends:
        name, wanted = open_ends.pop()
        for text in distribution(name).requires or ():
            each = Requirement(text)
            if each.marker and not any(each.marker.evaluate({"extra": extra}) for extra in (*wanted, "")):
                continue
            next_name = canonicalize_name(each.name)
            if next_name not in found or each.extras:
                open_ends.append((next_name, frozenset(each.extras)))
            found.add(next_name)
    return found - {"esjobs"}


def extras_of_the_program() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return set(project["optional-dependencies"]) - {"test", "all"}


def pins(path: str) -> dict[str, str]:
    found = re.findall(r"^([\w.\-]+)==([^\s;\\]+)", (ROOT / path).read_text(), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_to_commits(path: Path) -> None:
    text = path.read_text()
    uses = re.findall(r"uses: (.*)", text)
    assert len(uses) == text.count("uses:")
    for each in uses:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v[\d.]+", each), each
    assert yaml.safe_load(text)["permissions"] == {}


def test_the_lock_has_what_is_installed_in_the_versions_that_are_tested() -> None:
    locked = pins("deploy/requirements.lock")
    assert set(locked) - ELSEWHERE == installed(extras_of_the_program() - {UNLOCKED})
    tested = pins("constraints.txt")
    assert {name: tested[name] for name in locked if name not in ELSEWHERE} == {
        name: version for name, version in locked.items() if name not in ELSEWHERE
    }


def test_the_lock_has_hashes_and_no_address() -> None:
    text = (ROOT / "deploy" / "requirements.lock").read_text()
    assert "://" not in text
    for block in re.split(r"\n(?=\S)", text.strip()):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block.splitlines()[0]


def test_each_package_has_a_licence_that_somebody_has_read() -> None:
    read = LICENCES["packages"]
    assert set(read) - ELSEWHERE == installed(extras_of_the_program())
    for name, expression in read.items():
        terms = set(re.findall(r"[\w.\-]+", expression)) - {"AND", "OR", "WITH"}
        unknown = terms - set(LICENCES["allowed"]) - set(LICENCES["reasons"])
        assert not unknown, (name, unknown)
        if name not in ELSEWHERE:
            declared = distribution(name).metadata.json.get("license_expression", expression)
            assert declared == expression, name


def test_exceptions_of_the_audit_have_a_reason_and_end() -> None:
    found = tomllib.loads((ROOT / ".ci" / "audit.toml").read_text()).get("exceptions", [])
    for each in found:
        assert each["reason"]
        assert each["until"] >= date.today(), each["id"]  # noqa: DTZ011


def test_one_version_everywhere() -> None:
    named = yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert esjobs.__version__ == named == project
