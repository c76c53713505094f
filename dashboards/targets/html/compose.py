"""From the frames of a run to the sections of its report, panel by panel."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dashboards.panels import REPORT, panel, tables_read
from dashboards.spec import Panel, View
from dashboards.targets.html.captions import line_caption
from dashboards.targets.html.cells import level_name, readable_json
from dashboards.targets.html.charts import PAGE_FRAMES, dots_axis, dots_with_errors, scatter_line, siblings
from dashboards.targets.html.evidence import (
    curve_parts,
    extreme_parts,
    matrix_parts,
    name_parts,
    pull_parts,
    scatter_parts,
)
from dashboards.targets.html.marks import looks_of
from dashboards.targets.html.parts import (
    Block,
    BooksPart,
    Charts,
    FigurePart,
    FitAccount,
    Part,
    ProfilesPart,
    Section,
    TermsPart,
    TextPart,
    TrendsPart,
    TypePart,
    table_part,
    tiles_part,
)
from dashboards.targets.html.profile import Fold
from dashboards.targets.html.profile import Part as LaidOut
from dashboards.targets.html.top_k import Names, by_type, top_k
from dashboards.view.books import books_of
from dashboards.view.rows import (
    Row,
    Tabular,
    joined,
    relative_to_siblings,
    rows_of,
    select,
    siblings_of,
    values,
)
from esjobs.core.freshness import Freshness
from esjobs.core.numbers import MINUS, count, exact_percent
from esjobs.core.text import visible
from esjobs.core.words import ALL_TYPES, CANDIDATE, CONFIRMED, DEVIATION_LIMIT, LEVELS

# Counts in the summary of a processing type, by column of its conclusion
_SUMMARY = (
    ("n_confirmed", CONFIRMED),
    ("n_candidates", CANDIDATE),
    ("n_undecided", "undecided"),
    ("n_ok", "ok"),
)
# names up to which a chart of names has one column, or two
_ONE_COLUMN, _TWO_COLUMNS = 20, 90


@dataclass(frozen=True)
class ReportData:
    """The results of one run, as frames or Arrow tables with the columns of the result tables.

    A table may be ``None`` or empty, and may lack columns: what is missing is null. ``more``: by name, the
    tables that panels are about beside these. ``provenance``: what else a reader should know about the origin
    of the numbers, as text by term. ``method``: whose results are
    shown; ``headline``: that on which the run's conclusion rests, where it is another. ``limit``: the
    accepted deviation. ``jobs_in``: jobs stored in the window, counted independently of the books, so that a
    reader sees them balance; ``None`` when nobody counted.
    ``restriction``: tasks and conditions that the run was restricted to. ``profiles``: sites one by one.
    ``trends``: what is known over weeks. ``age``: of the run; None where nobody asked.
    """

    factors: Tabular | None = None
    fits: Tabular | None = None
    pull_histograms: Tabular | None = None
    components: Tabular | None = None
    lines: Tabular | None = None
    flags: Tabular | None = None
    fit_summaries: Tabular | None = None
    tasks: Tabular | None = None
    residuals: Tabular | None = None
    day_books: Tabular | None = None
    runs: Tabular | None = None
    corepower: Tabular | None = None
    more: Mapping[str, Tabular] = field(default_factory=dict)
    provenance: Mapping[str, object] = field(default_factory=dict)
    method: str = "gamma"
    headline: str | None = None
    limit: float = DEVIATION_LIMIT
    jobs_in: int | None = None
    restriction: Sequence[str] = ()
    profiles: Sequence[Fold] = ()
    trends: LaidOut | None = None
    age: Freshness | None = None


class Composer:
    """Makes blocks of panels. Each table is read once; charts are collected as they are made."""

    def __init__(self, data: ReportData) -> None:
        """Turn the tables into plain rows; ``data`` itself is not changed."""
        self.data = data
        self.charts = Charts()
        frames = {name: getattr(data, name, data.more.get(name)) for name in tables_read()}
        methods = dict.fromkeys(values(data.factors, "method"))
        self.method = data.method if data.method in methods or not methods else next(iter(methods))
        self.is_headline = self.method == (data.headline or self.method)
        self.tables = {name: rows_of(name, rows, self.method) for name, rows in frames.items()}
        self._by_type = {name: by_type(rows) for name, rows in self.tables.items()}
        self._top_k: dict[str, Names | None] = {}
        factors = self.tables["factors"]
        types = Counter(row["processing_type"] for row in factors)
        # without rows of all types, the type of most rows stands for them
        self.main_type = ALL_TYPES if ALL_TYPES in types or not types else types.most_common(1)[0][0]
        self._makers: dict[str, Callable[[Panel, str, str], Block]] = {
            "tiles": self._tiles,
            "sentence": self._sentences,
            "table": self._table,
            "scatter-line": self._scatter,
            "dots-with-errors": self._dots,
            "siblings": self._siblings,
            "scatter": self._made_by(lambda each, rows: scatter_parts(each, rows, self.charts)),
            "task-curves": self._made_by(
                lambda each, rows: curve_parts(each, rows, self.tables["tasks"], self.charts)
            ),
            "matrix": self._made_by(lambda each, rows: matrix_parts(each, rows, self.charts)),
            "pulls": self._made_by(
                lambda each, rows: pull_parts(
                    each, rows, self.seen(View("fits", sort=("-level",)), self.main_type), self.charts
                )
            ),
            "extremes": self._made_by(extreme_parts),
            "name-list": self._made_by(name_parts),
            "types": self._types,
            "books": self._books,
            "profiles": self._profiles,
            "trends": self._trends,
            "markdown": self._markdown,
            "provenance": self._provenance,
        }

    def sections(self) -> list[Section]:
        """All panels of the report, grouped under their headings."""
        made: dict[str, list[Block]] = {}
        for each in REPORT:
            if each.headline_only and not self.is_headline:
                continue
            block = self.block(each, self.main_type)
            if self._shown(each, block, self.main_type):
                made.setdefault(each.section, []).append(block)
        return [
            Section(title, f"section-{title.lower().replace(' ', '-')}", tuple(blocks))
            for title, blocks in made.items()
        ]

    def _shown(self, each: Panel, block: Block, processing_type: str) -> bool:
        """True if an empty panel is shown with its sentence."""
        if block.parts:
            return True
        return not each.optional and (
            not each.requires or bool(self.seen(replace(each.view, where=each.requires), processing_type))
        )

    def block(self, each: Panel, processing_type: str, anchor: str = "") -> Block:
        """One panel for one processing type."""
        return self._makers[each.kind](each, processing_type, anchor or each.id)

    def seen(self, view: View, processing_type: str) -> list[Row]:
        """The rows of a view."""
        if not view.table:
            return []
        apart = self._by_type[view.table] if view.types == "main" else {}
        rows = apart.get(processing_type, []) if apart else self.tables[view.table]
        return select(view, rows, processing_type, self.method)

    def rows(self, each: Panel, processing_type: str) -> list[Row]:
        """The rows that a panel shows; of a type with many names, those of the first ones."""
        seen, names = self.seen(each.view, processing_type), self._top_k.get(processing_type)
        if names is not None and each.view.table in {"flags", "factors"}:
            seen = [row for row in seen if (row["level"], row["name"]) in names]
        if each.besides:
            view = panel(each.besides).view
            elsewhere = {(row["level"], row["name"]) for row in self.seen(view, processing_type)}
            seen = [row for row in seen if (row["level"], row["name"]) not in elsewhere]
        return joined(seen, each.fields, self.tables, processing_type, self.method)

    def _made_by(self, parts: Callable[[Panel, list[Row]], list[Part]]) -> Callable[[Panel, str, str], Block]:
        """A maker of blocks from a function of a panel and its rows."""

        def make(each: Panel, processing_type: str, anchor: str) -> Block:
            rows = self.rows(each, processing_type)
            return Block(anchor, each, tuple(parts(each, rows)), len(rows))

        return make

    def _tiles(self, each: Panel, processing_type: str, anchor: str) -> Block:
        row = next(iter(self.rows(each, processing_type)), {})
        tiles = []
        for tile in each.tiles:
            parts = [f"{count(row[column])} {what}" for column, what in tile.parts if row.get(column)]
            tiles.append(
                replace(
                    tile, label=", ".join(parts) or (row.get(tile.column) == 1 and tile.one) or tile.label
                )
            )
        counts = [row.get(tile.column) for tile in tiles]
        return Block(anchor, each, (tiles_part(replace(each, tiles=tuple(tiles)), counts),))

    def _sentences(self, each: Panel, processing_type: str, anchor: str) -> Block:
        row = next(iter(self.rows(each, processing_type)), {})
        texts = [row.get(field.column) for field in each.fields]
        paragraphs = tuple(visible(str(text)) for text in texts if text is not None)
        return Block(anchor, each, (TextPart(paragraphs or (each.empty,), loud=True),))

    def _table(self, each: Panel, processing_type: str, anchor: str) -> Block:
        rows = self.rows(each, processing_type)
        if each.stands_in and not self.seen(panel(each.stands_in).view, processing_type):
            each = replace(each, folded=False)
        shown = rows[: each.most[0]] if each.most else rows
        parts: list[Part] = [table_part(each, shown)] if rows else []
        if len(shown) < len(rows):
            parts.append(TextPart((f"The first {count(len(shown))} of {count(len(rows))} are shown.",)))
        return Block(anchor, each, tuple(parts), len(rows))

    def _scatter(self, each: Panel, processing_type: str, anchor: str) -> Block:
        rows = self.rows(each, processing_type)
        lines = self.seen(View("lines", level=each.view.level), processing_type)
        parts: list[Part] = []
        for benchmark in dict.fromkeys(row["benchmark"] for row in rows):
            chosen = [row for row in rows if row["benchmark"] == benchmark]
            line = next((row for row in lines if row["benchmark"] == benchmark), None)
            drawing = scatter_line(each, chosen, line, self.data.limit, frames=PAGE_FRAMES)
            caption = line_caption(line, benchmark, each.view.level)
            figure = FigurePart(
                (self.charts.add(drawing),), len(chosen), each.title, caption, looks_of(each, chosen)
            )
            parts.append(figure)
        return Block(anchor, each, tuple(parts), len(rows))

    def _dots(self, each: Panel, processing_type: str, anchor: str) -> Block:
        rows = self.rows(each, processing_type)
        if not rows:
            return Block(anchor, each, (), 0)
        axis = dots_axis(each, rows, self.data.limit)
        columns = 1 if len(rows) <= _ONE_COLUMN else 2 if len(rows) <= _TWO_COLUMNS else 3
        height = math.ceil(len(rows) / columns)
        numbers: list[int] = []
        for start in range(0, len(rows), height):
            chunk = rows[start : start + height]
            drawing = dots_with_errors(each, chunk, limit=self.data.limit, axis=axis)
            # the specification of the first chart serves the others, which differ in rows and height
            numbers.append(self.charts.add(drawing, like=numbers[0] if numbers else None))
        figure = FigurePart(tuple(numbers), len(rows), each.title, looks=looks_of(each, rows))
        return Block(anchor, each, (figure,), len(rows))

    def _siblings(self, each: Panel, processing_type: str, anchor: str) -> Block:
        group, across, up = (each.entry(role).column for role in ("group", "x", "y"))
        rows = siblings_of(self.rows(each, processing_type), group)
        related = relative_to_siblings(rows, group, across, up)
        parts: list[Part] = []
        if related:
            shown = [item[0] for item in related]
            chart = self.charts.add(siblings(each, shown, frames=PAGE_FRAMES))
            caption = _siblings_caption(rows, group, across, up)
            parts.append(FigurePart((chart,), len(related), each.title, caption, looks_of(each, shown)))
        if rows:
            parts.append(table_part(each, rows, folded=bool(related)))
        return Block(anchor, each, tuple(parts), len(rows))

    def _types(self, each: Panel, _main: str, anchor: str) -> Block:
        found = {row["processing_type"] for name in ("factors", "fits") for row in self.tables[name]}
        kinds = sorted(str(name) for name in found - {self.main_type, None})
        # the same rows twice would read as a second finding
        if len(kinds) == 1 and self._same_fit(each, kinds[0]):
            text = (
                f"All jobs of the fit have one processing type, {visible(kinds[0])}; its results are those "
                "above."
            )
            return Block(anchor, each, (TextPart((text,)),), 1)
        parts = tuple(self._type(each, place, kind) for place, kind in enumerate(kinds))
        return Block(anchor, each, parts, len(parts))

    def _type(self, each: Panel, place: int, kind: str) -> TypePart:
        """The panels of one processing type; of many names the first ones."""
        judged = {level: self.seen(View("flags", level=level), kind) for level in LEVELS}
        most = each.most[0] if each.most else None
        # kept before the panels are made: they ask for their rows by it
        self._top_k[kind], note = top_k(judged, most, kind, None if self.is_headline else self.method)
        blocks = (self.block(panel(name), kind, f"type-{place}-{name}") for name in each.repeat)
        shown = tuple(block for block in blocks if self._shown(block.panel, block, kind))
        return TypePart(visible(kind), self._type_summary(each, kind), shown, note)

    def _same_fit(self, each: Panel, kind: str) -> bool:
        """True if a type has the same fit as all types together, because it is the only one."""
        wanted = replace(panel("factors-site").view, level=each.view.level)
        both = [
            {(row["name"], row["k"], row["n_jobs"]) for row in self.seen(wanted, name)}
            for name in (kind, self.main_type)
        ]
        return both[0] == both[1] != set()

    def _type_summary(self, each: Panel, kind: str) -> str:
        fitted = self.seen(replace(panel("factors-site").view, level=each.view.level), kind)
        if not fitted:
            fit = next((row for row in self.seen(View("fits", level="queue"), kind)), None)
            return (visible(fit["reason"]) if fit and fit["reason"] else "") or "no queue has a factor"
        said = next(iter(self.seen(View("fit_summaries", level=each.view.level), kind)), {})
        words = [f"{count(len(fitted))} {level_name(each.view.level)} with a speed factor"]
        words += [f"{count(said[column])} {word}" for column, word in _SUMMARY if said.get(column)]
        return " · ".join(words)

    def _books(self, each: Panel, _type: str, anchor: str) -> Block:
        rows = self.rows(each, _type)
        if not rows:
            return Block(anchor, each, (), 0)
        books = books_of(rows, self.data.jobs_in)
        accounts = []
        for fit in self.seen(View("fits"), self.main_type):
            used, left = int(fit["n_jobs"]), int(fit["n_jobs_dropped"])
            accounts.append(FitAccount(level_name(fit["level"]), used, left, books.binned - used - left))
        return Block(anchor, each, (BooksPart(books, tuple(accounts)),), len(rows))

    def _profiles(self, each: Panel, _type: str, anchor: str) -> Block:
        folds = tuple(self.data.profiles)
        return Block(anchor, each, (ProfilesPart(folds),) if folds else (), len(folds))

    def _trends(self, each: Panel, _type: str, anchor: str) -> Block:
        parts = (TrendsPart(self.data.trends),) if self.data.trends else ()
        return Block(anchor, each, parts, len(parts))

    def _markdown(self, each: Panel, _type: str, anchor: str) -> Block:
        limit = exact_percent(self.data.limit)
        return Block(
            anchor, each, (TermsPart(tuple((t, text.replace("{limit}", limit)) for t, text in each.text)),)
        )

    def _provenance(self, each: Panel, _type: str, anchor: str) -> Block:
        terms = [(visible(str(term)), _words(value)) for term, value in self.data.provenance.items()]
        if not terms:
            settings = dict.fromkeys(row["settings"] for row in self.tables["runs"] if row["settings"])
            terms = [("Settings", visible(readable_json(str(text)))) for text in settings]
        terms += self._declarations()
        rows = self.rows(each, _type)
        parts: list[Part] = [TermsPart(tuple(terms), foreign=True)] if terms else []
        if rows:
            parts.append(table_part(each, rows))
        return Block(anchor, each, tuple(parts), len(rows))

    def _declarations(self) -> list[tuple[str, str]]:
        sources = Counter((row["source"], row["benchmark"]) for row in self.tables["corepower"])
        text = "; ".join(
            f"{source} ({benchmark}, {count(n)} names)" for (source, benchmark), n in sources.items()
        )
        return [
            ("Imported declarations", visible(text) if text else "none; values come from the job records")
        ]


def _siblings_caption(rows: list[Row], group: str, across: str, up: str) -> str:
    """Return the slope of factors against events per job inside sites, with and without the correction."""
    power = _power(relative_to_siblings(rows, group, across, up))
    raw = _power(relative_to_siblings(rows, group, across, "k_raw"))
    if power is None:
        return ""
    corrected = any(row["k"] != row["k_raw"] for row in rows)
    before = f" ({_exponent(raw)} without correction)" if corrected and raw is not None else ""
    return (
        f"Within sites, k grows like events per job to the power {_exponent(power)}{before}. "
        "0: no start-up time left; 1: nothing but start-up time."
    )


def _exponent(power: float) -> str:
    return f"{power:z.2f}".replace("-", MINUS)


def _power(related: Sequence[tuple[Any, ...]]) -> float | None:
    steep = [(math.log(item[1]), math.log(item[2])) for item in related]
    weight = math.fsum(x * x for x, _ in steep)
    # least squares through the origin, of logarithms; few or equal sizes determine no power
    return math.fsum(x * y for x, y in steep) / weight if len(steep) >= 6 and weight >= 0.05 else None


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{visible(str(key))}: {_words(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_words(item) for item in value)
    return visible(readable_json(str(value)))
