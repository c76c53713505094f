"""Generated pages are current, links lead somewhere, examples of the reader pages run, pages stay short."""

import re
import shlex
from pathlib import Path

import pytest

from docs.generate import pages
from esjobs.cli.demo import demonstrate
from tests.cli.running import run

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
BUDGET = {
    "README.md": 650,
    "CODE_OF_CONDUCT.md": 150,
    "CONTRIBUTING.md": 440,
    "SECURITY.md": 250,
    "CHANGELOG.md": 700,
    "docs/alerts.md": 350,
    "docs/architecture.md": 1150,
    "docs/benchmarks.md": 150,
    "docs/cli.md": 5150,
    "docs/coordinator.md": 2150,
    "docs/dashboards.md": 650,
    "docs/decisions": 1750,
    "docs/developer.md": 850,
    "docs/elasticsearch.md": 1300,
    "docs/fields.md": 1700,
    "docs/hpc-support.md": 1300,
    "docs/jobs_in_kibana.md": 500,
    "docs/method.md": 6200,
    "docs/noise.md": 550,
    "docs/notifications.md": 900,
    "docs/operator.md": 1850,
    "docs/provisioning.md": 900,
    "docs/questions.md": 1050,
    "docs/real_run.md": 550,
    "docs/rules.md": 1150,
    "docs/scores.md": 1600,
    "docs/settings.md": 2200,
    "docs/similar.md": 1000,
    "docs/site-admin.md": 1100,
    "docs/sources.md": 1500,
    "docs/tables.md": 10_000,
    "docs/talp.md": 1150,
    "docs/web.md": 380,
}
"""Words of each page, and of the decisions together."""
MOST_WORDS = 50_000
SLACK = 1.05


@pytest.mark.parametrize(("name", "text"), pages().items())
def test_generated_pages_are_current(name: str, text: str) -> None:
    committed = (DOCS / name).read_text(encoding="utf-8")
    assert committed == text, f"docs/{name} is stale: make docs"


def test_the_manual_page_has_no_word_that_fills_a_line() -> None:
    """Troff warns of lines that it can neither adjust nor break."""
    text = (DOCS / "esjobs.1").read_text(encoding="utf-8")
    assert "\n.ad l\n" in text
    prose = re.sub(r"^\.nf$.*?^\.fi$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert max(map(len, re.split(r"\s|\\:", prose))) < 40


def anchors(page: Path) -> set[str]:
    """Return the anchors that the headings of a page have on GitHub."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = (heading.lower() for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text(encoding="utf-8")):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        linked = (page.parent / target) if target else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(linked), f"{page.name} links to {target}#{anchor}"


def test_modules_that_the_pages_for_developers_name_exist() -> None:
    """A path is named from the root, from a package, or from the folder that the text is about."""
    files = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if ".venv" not in path.parts]
    read = [DOCS / "architecture.md", DOCS / "developer.md", *(DOCS / "decisions").glob("*.md")]
    named = re.findall(r"[\w/]+\.py\b", "".join(page.read_text(encoding="utf-8") for page in read))
    assert len(named) > 40
    assert [name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in files)] == []


def words(name: str) -> int:
    """Return the words of a page, or of all pages of a folder."""
    path = ROOT / name
    files = sorted(path.glob("*.md")) if path.is_dir() else [path]
    return sum(len(file.read_text(encoding="utf-8").split()) for file in files)


@pytest.mark.parametrize(("name", "most"), BUDGET.items())
def test_a_page_keeps_to_its_budget(name: str, most: int) -> None:
    assert words(name) <= most * SLACK


def test_every_page_has_a_budget_and_all_keep_to_one() -> None:
    names = {page.relative_to(ROOT).as_posix() for page in PAGES if page.parent.name != "decisions"}
    assert names | {"docs/decisions"} == set(BUDGET)
    assert sum(words(name) for name in BUDGET) <= MOST_WORDS


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo whose names the pages show, with fewer jobs; commands may write to it."""
    folder = tmp_path_factory.mktemp("pages")
    demonstrate(folder / "demo", jobs=20_000, seed=1)
    (folder / "site.toml").write_text("[rule.short-job]\nenabled = false\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["coordinator", "site-admin", "hpc-support"])
def test_the_commands_of_a_reader_page_run(name: str, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command in a block of shell, in order, then its Python blocks."""
    monkeypatch.chdir(demo)
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if line.startswith("esjobs ")]
    assert commands
    for command in commands:
        done = run(*shlex.split(command)[1:], store="demo/demo.duckdb")
        assert done.exit_code == 0, f"{command}\n{done.stderr}"
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, name, "exec"), {})  # noqa: S102
