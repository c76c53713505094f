"""The page as text: complete, valid, safe, the same every time, and sensible when there is little to say."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pandas as pd
import pytest

from dashboards.panels import REPORT
from dashboards.targets.html.compose import Composer
from dashboards.targets.html.report import ReportData, render
from dashboards.view.books import books_of

_VOID = {"meta", "input", "br", "img", "link", "hr"}


class Outline(HTMLParser):
    """Checks that elements nest and collects ids, attributes and what stands in scripts."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.names: set[str] = set()
        self.tags: set[str] = set()
        self.scripts = 0
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        found = dict(attrs)
        if "id" in found:
            self.ids.append(str(found["id"]))
        if "href" in found:
            self.targets.append(str(found["href"]))
        self.scripts += tag == "script"
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> without a start"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in {"script", "style"}:
            self.text.append(data)


@pytest.fixture(scope="module")
def small(make_data: Callable[..., ReportData]) -> ReportData:
    """A run over 12 sites and two types."""
    return make_data(12, types=("all", "evgen"))


def outline(page: str) -> Outline:
    """The page read by a parser that refuses wrong nesting."""
    parser = Outline()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


@pytest.fixture(scope="module")
def page(data: ReportData) -> str:
    """The report over 60 sites."""
    return render(data)


def test_elements_nest_and_ids_are_unique(page: str) -> None:
    found = outline(page)
    assert page.startswith("<!DOCTYPE html>")
    assert len(set(found.ids)) == len(found.ids)
    assert {target.removeprefix("#") for target in found.targets} <= set(found.ids)
    assert {each.id for each in REPORT if not each.requires and not each.optional} <= set(found.ids)


def test_the_page_refers_to_nothing_outside(page: str) -> None:
    found = outline(page)
    assert found.scripts == 4
    assert not found.names & {"src", "srcset", "action", "data", "poster"}
    assert not [name for name in found.names if name.startswith("on")]
    assert not found.tags & {"img", "link", "iframe", "object", "embed", "form", "base"}
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_names_are_text(page: str) -> None:
    text = " ".join(outline(page).text)
    for name in (
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(2)>',
        "</script><script>alert(3)</script>",
        "{{7*7}}",
        "line\\nbreak",
        "\\u202eright to left",
        "x" * 5000,
    ):
        assert name in text
    assert "line\nbreak" not in text
    assert "\u202e" not in page


def test_charts_cannot_end_their_element(page: str) -> None:
    start = page.index('<script type="application/json"')
    body = page[page.index(">", start) + 1 : page.index("</script>", start)]
    assert not set(body) & set("<>&\u2028\u2029")
    specs = json.loads(body)
    names = json.dumps([spec["datasets"] for spec in specs])
    assert "</script><script>alert(3)</script>" in names


def test_the_same_data_gives_the_same_page(data: ReportData, page: str) -> None:
    assert render(data) == page


def test_sections_come_in_the_order_of_the_panels(page: str) -> None:
    places = [page.index(f'id="{each.id}"') for each in REPORT if f'id="{each.id}"' in page]
    assert places == sorted(places)


def test_what_a_coordinator_wants_first_comes_first(data: ReportData, page: str) -> None:
    text = " ".join(outline(page).text)
    assert "2018-08-01 to 2018-09-01" in text
    assert "run-4f1c2a" in text
    assert data.flags is not None
    flags = data.flags.query("level == 'queue' and processing_type == 'all' and method == 'gamma'")
    judged = flags.verdict.isin(["deviates", "ok", "undecided"]).sum()
    sentence = (
        f"{flags.confirmed.eq(True).sum()} of {judged} comparable queues have a confirmed deviation of more "
        "than 20 %"
    )
    assert text.index(sentence) < text.index("on the scale of 51 other sites")
    for phrase in ("if all are outdated by 10 %, so is the line", "hs06sec contains the declared corepower"):
        assert phrase in text


def test_the_page_of_a_large_grid_stays_small(make_data: Callable[..., ReportData]) -> None:
    assert len(render(make_data(300)).encode()) < 4e6


def test_nothing_at_all_is_said_plainly() -> None:
    page = render(ReportData())
    text = " ".join(" ".join(outline(page).text).split())
    for each in REPORT:
        if each.empty and each.kind != "provenance" and not (each.optional or each.requires):
            assert each.empty in text, each.id
    assert "Jobs in the window" not in text


def test_nothing_deviates(small: ReportData) -> None:
    assert small.flags is not None
    calm = small.flags.assign(verdict=small.flags.verdict.replace("deviates", "ok"), confirmed=False)
    text = " ".join(outline(render(replace(small, flags=calm))).text)
    assert "No confirmed deviations of queues." in text


def test_nothing_is_declared(small: ReportData) -> None:
    assert small.flags is not None
    nothing = dict.fromkeys(("corepower", "benchmark", "deviation", "deviation_err", "expected_k"))
    bare = small.flags.assign(**nothing, verdict="undeclared")
    empty = pd.DataFrame()
    text = " ".join(outline(render(replace(small, flags=bare, lines=empty, fit_summaries=empty))).text)
    assert "No queue has both a speed factor and a declared corepower" in text
    assert "No conclusion" in text


def test_the_spread_stands_with_its_dof_even_when_there_is_none(small: ReportData) -> None:
    assert small.fits is not None
    page = render(replace(small, fits=small.fits.assign(spread=None, dof=0)))
    fits = page[page.index('id="fits"') :]
    heads = re.findall(r'<button type="button">(.*?)</button>', fits[: fits.index("</thead>")])
    assert heads[heads.index("dof") + 1] == "S"


def test_five_sites_and_one_type(make_data: Callable[..., ReportData]) -> None:
    text = " ".join(outline(render(make_data(5, types=("all",)))).text)
    assert "Job records name no processing types." in text
    assert "Dashed, because no verdict uses it: verdicts need at least 10 sites." in text


def test_a_hostile_processing_type_and_provenance_are_text(make_data: Callable[..., ReportData]) -> None:
    name = "</summary><script>alert(5)</script>"
    data = make_data(12, types=("all", name))
    page = render(replace(data, provenance={name: {name: [name]}}, method="gamma"))
    found = outline(page)
    assert found.scripts == 4
    assert name in " ".join(found.text)


def test_without_all_the_largest_type_leads(make_data: Callable[..., ReportData]) -> None:
    composer = Composer(make_data(12, types=("evgen",)))
    assert composer.main_type == "evgen"


def test_of_another_method_what_speaks_of_the_headline_alone_is_left_out(small: ReportData) -> None:
    def titles(data: ReportData) -> set[str]:
        return {block.panel.title for section in Composer(data).sections() for block in section.blocks}

    usual, other = titles(small), titles(replace(small, method="paper", headline="gamma"))
    assert titles(replace(small, headline="gamma")) == usual
    assert usual - other == {each.title for each in REPORT if each.headline_only}
    assert {each.title for each in REPORT if each.view.table in ("residuals", "tasks")} <= usual - other
    assert not other - usual


def test_a_type_without_factors_says_why(small: ReportData) -> None:
    assert small.factors is not None
    assert small.fits is not None
    factors = small.factors[small.factors.processing_type != "evgen"]
    fits = small.fits.assign(reason=small.fits.processing_type.map({"evgen": "one task only"}))
    text = " ".join(outline(render(replace(small, factors=factors, fits=fits))).text)
    assert "one task only" in text


def test_books_balance_and_say_so(small: ReportData) -> None:
    text = " ".join(outline(render(small)).text).replace("\u202f", " ")
    assert "The books balance:" in text
    assert "12,600 in buckets + 420 dropped = 13,020 jobs in the window." in text
    assert "Fit of queues: 11,900 jobs used + 700 left out = 12,600, all of the jobs in buckets." in text


def test_books_that_do_not_balance_say_so_too(small: ReportData) -> None:
    text = " ".join(outline(render(replace(small, jobs_in=13_021))).text).replace("\u202f", " ")
    assert "The books do not balance:" in text
    assert "1 are missing." in text
    uncounted = " ".join(outline(render(replace(small, jobs_in=None))).text).replace("\u202f", " ")
    assert "12,600 in buckets + 420 dropped = 13,020 jobs read." in uncounted


def test_books_keep_the_order_of_the_rules() -> None:
    rows = [
        {"day": "2018-08-01", "outcome": outcome, "kind": kind, "n_jobs": jobs}
        for outcome, kind, jobs in (
            ("no task", "dropped", 4),
            ("split by hand", "dropped", 1),
            ("not finished", "dropped", 2),
            ("binned", "binned", 10),
            ("state unknown", "note", 3),
        )
    ]
    books = books_of(rows, 18)
    assert books.dropped == (("not finished", 2), ("no task", 4), ("split by hand", 1))
    assert (books.accounted, books.missing, books.notes) == (17, 1, (("state unknown", 3),))
    assert books.days == (("2018-08-01", 10, 7),)
