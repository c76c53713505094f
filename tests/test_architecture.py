"""The rooms and who may import whom, read from the source itself; types and imports in functions included."""

import ast
import fnmatch
import functools
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("esjobs", "fitters", "dashboards", "scheduler")


def modules(root: Path = ROOT) -> dict[str, Path]:
    found = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@functools.cache
def parsed(path: Path) -> ast.Module:
    """The source of a file, read once: every rule asks for it."""
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes(path: Path) -> list[ast.Import | ast.ImportFrom | ast.Call]:
    """Imports and calls anywhere in a file."""
    return [
        node for node in ast.walk(parsed(path)) if isinstance(node, ast.Import | ast.ImportFrom | ast.Call)
    ]


def imports(path: Path, found: dict[str, Path] | None = None) -> set[str]:
    """Absolute names of everything a file imports, lazily or not; types and ``Lazy`` references included."""
    names: set[str] = set()
    known = MODULES if found is None else found
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            names.update(
                f"{module}.{alias.name}" if f"{module}.{alias.name}" in known else module
                for alias in node.names
            )
        elif isinstance(node.func, ast.Name) and node.func.id == "Lazy":
            names.update(
                str(each.value).partition(":")[0] for each in node.args if isinstance(each, ast.Constant)
            )
    return names


FITTERS_GROUND = {"fitters.errors", "fitters.robust", "fitters.compiled", "fitters.threads"}
"""What every folder of the fits may use: errors, constants, the compiler, the number of threads."""

_TABLES = ("esjobs.core", "esjobs.schema")
_SAVED = ("dashboards.targets.saved_objects", "dashboards.targets.vegalite", "dashboards.spec", *_TABLES)

_PUBLISH = {"esjobs.core", "esjobs.schema", "esjobs.store", "esjobs.publish"}
_NAMED = {*_PUBLISH, "esjobs.records.names", "esjobs.records.errors"}
_PACKED = ("esjobs.records.series.packing", "esjobs.records.series.rows")
_INGEST = ("esjobs.records.ingest", "esjobs.records.ingest.formats")
_RECORDS = {
    *_PUBLISH,
    "esjobs.records",
    *(f"esjobs.records.{each}" for each in ("names", "declared", "references", "jobs", "tasks", "clusters")),
    "esjobs.records.errors",
    *("esjobs.records.series", "esjobs.records.accounting", "esjobs.records.export", *_PACKED, *_INGEST),
}
_FITTING = {*_RECORDS, "fitters", "fitters.layout", "fitters.threads"}
"""What a capability may import, beside itself; what nobody has named here yet follows it too."""

FITTING = ("speed", "flags", "pop", "similar", "errors", "what_if")
OTHERS = ("scores", "issues", "provisioning", "noise", "delivered", "today")
_CAPABILITIES = {f"esjobs.{each}" for each in (*FITTING, *OTHERS)} | {"esjobs.issues.detectors"}
_BELOW_RENDER = {*_FITTING, "esjobs.settings", *_CAPABILITIES, "esjobs.records.demo"}
_DASHBOARDS = {
    *("dashboards", "dashboards.spec", "dashboards.panels", "dashboards.pages", "dashboards.view"),
    *("dashboards.servers", "dashboards.targets.vegalite", "dashboards.targets.html"),
    *("dashboards.targets.saved_objects", "dashboards.targets.portable", "dashboards.targets.kibana"),
}
_BELOW_API = {*_BELOW_RENDER, "esjobs.render", *_DASHBOARDS}

ROOMS = {
    "esjobs.core": {"esjobs.core"},
    "esjobs.schema": {"esjobs.core", "esjobs.schema"},
    "esjobs.store": {"esjobs.core", "esjobs.schema", "esjobs.store"},
    "esjobs.settings": {"esjobs.core", "esjobs.store", "esjobs.settings"},
    "esjobs.publish": _PUBLISH,
    "esjobs.records.names": {"esjobs.core", "esjobs.records.names"},
    "esjobs.records.errors": {"esjobs.core", "esjobs.records.errors"},
    "esjobs.records.clusters": {"esjobs.core", "esjobs.records.clusters"},
    "esjobs.records.demo": {"esjobs.core", "esjobs.records.demo"},
    "esjobs.records.accounting": {"esjobs.core", "esjobs.schema", "esjobs.records.accounting"},
    "esjobs.records.series.packing": {"esjobs.core"},
    "esjobs.records.series.rows": {"esjobs.core", "esjobs.schema", "esjobs.records.series.packing"},
    "esjobs.records.ingest.formats": {
        *_TABLES,
        *("esjobs.records.names", "esjobs.records.errors", *_PACKED, *_INGEST),
    },
    "esjobs.records.ingest": {"esjobs.core", "esjobs.schema", "esjobs.records.ingest"},
    "esjobs.records.declared": {*_NAMED, "esjobs.records.declared", "esjobs.records.references"},
    "esjobs.records.references": {*_NAMED, "esjobs.records.references"},
    "esjobs.records.series": {*_NAMED, "esjobs.records.series", *_PACKED},
    "esjobs.records.export": {*_NAMED, "esjobs.records.export"},
    "esjobs.records.jobs": {
        *(*_NAMED, *_INGEST),
        *("esjobs.records.declared", "esjobs.records.export", "esjobs.records.jobs"),
    },
    "esjobs.records.tasks": {*_NAMED, "esjobs.records.jobs", "esjobs.records.tasks", "fitters.layout"},
    "esjobs.records": _RECORDS,
    "esjobs.issues.detectors": {"esjobs.issues.detectors"},
    "esjobs.issues": {*_RECORDS, "esjobs.issues", "esjobs.issues.detectors"},
    **{f"esjobs.{each}": {*_FITTING, f"esjobs.{each}"} for each in FITTING},
    **{f"esjobs.{each}": {*_RECORDS, f"esjobs.{each}"} for each in OTHERS if each != "issues"},
    "esjobs.render": _BELOW_API,
    "esjobs.api": {*_BELOW_API, "esjobs.api"},
    "scheduler": {*_BELOW_RENDER, "esjobs.api", "scheduler"},
    "fitters.layout": {"fitters.layout", *FITTERS_GROUND},
    "fitters.variance": {"fitters.layout", "fitters.variance", *FITTERS_GROUND},
    "fitters.fit": {"fitters.layout", "fitters.variance", "fitters.fit", *FITTERS_GROUND},
    "fitters.line": {"fitters.layout", "fitters.line", *FITTERS_GROUND},
    "fitters.fixed_cost": {"fitters.layout", "fitters.variance", "fitters.fixed_cost", *FITTERS_GROUND},
    "fitters.mixture": {"fitters.layout", "fitters.mixture", *FITTERS_GROUND},
    "fitters.change": {"fitters.layout", "fitters.change", *FITTERS_GROUND},
    "fitters.effects": {"fitters.layout", "fitters.effects", *FITTERS_GROUND},
    "fitters.ranking": {"fitters.layout", "fitters.ranking", *FITTERS_GROUND},
    "fitters.checks": {"fitters.layout", "fitters.fit", "fitters.checks", *FITTERS_GROUND},
    **{ground: {ground} for ground in FITTERS_GROUND},
    "fitters.warping": {"fitters.layout", "fitters.warping", *FITTERS_GROUND},
    "fitters": {
        "fitters",
        "fitters.warping",
        "fitters.layout",
        "fitters.fit",
        "fitters.line",
        "fitters.fixed_cost",
        "fitters.mixture",
        "fitters.variance",
        "fitters.change",
        "fitters.effects",
        "fitters.ranking",
        "fitters.checks",
    }
    | FITTERS_GROUND,
    "dashboards.spec": {"dashboards.spec", *_TABLES},
    "dashboards.panels": {"dashboards.panels", "dashboards.spec", "esjobs.core"},
    "dashboards.pages": {"dashboards.pages", "dashboards.panels", "dashboards.spec", "esjobs.core"},
    "dashboards.view": {"dashboards.view", "dashboards.spec", *_TABLES},
    "dashboards.targets.vegalite": {"dashboards.targets.vegalite", "dashboards.spec", *_TABLES},
    "dashboards.targets.html": {
        *("dashboards.targets.html", "dashboards.targets.vegalite"),
        *("dashboards.panels", "dashboards.view", "dashboards.spec", *_TABLES),
    },
    "dashboards.servers": {"dashboards.servers", "esjobs.core"},
    "dashboards.targets.saved_objects": {
        *("dashboards.targets.saved_objects", "dashboards.targets.vegalite", "dashboards.spec", *_TABLES),
    },
    "dashboards.targets.portable": {"dashboards.targets.portable", *_SAVED},
    "dashboards.targets.kibana": {"dashboards.targets.kibana", "dashboards.targets.portable", *_SAVED},
    "dashboards": {"dashboards"},
}
"""Room -> rooms it may import; the innermost room of a module counts. Only entry points have no rule.

Capabilities do not import each other: what one needs of another is a table, or comes in as a function.
"""

_CALCULATING = {"numpy", "pyarrow", "pydantic"}

THIRD_PARTY: dict[str, set[str]] = {
    "esjobs.core": {"numpy", "pandas", "pyarrow", "pydantic"},
    "esjobs.schema": set(),
    "esjobs.store": {
        *("numpy", "pandas", "pyarrow", "duckdb", "orjson", "msgspec"),
        *("elasticsearch", "elastic_transport", "opensearchpy", "urllib3"),
    },
    "esjobs.settings": {"pydantic"},
    "esjobs.publish": {"numpy", "pyarrow"},
    "esjobs.records.ingest.formats": {"numpy", "pyarrow", "msgspec"},
    **{
        f"esjobs.records.{each}": {"numpy", "pyarrow"}
        for each in (
            *("ingest", "names", "errors", "declared", "references", "series", "tasks", "export", "demo"),
        )
    },
    "esjobs.records.jobs": {"numpy", "pyarrow", "scipy"},
    "esjobs.records.series.packing": {"numpy", "pyarrow"},
    "esjobs.records.series.rows": {"numpy", "pyarrow"},
    "esjobs.records.accounting": {"numpy", "pyarrow"},
    "esjobs.records.clusters": {"pydantic"},
    "esjobs.records": {"pandas", "pyarrow", "altair"},
    "esjobs.issues.detectors": {"numpy", "scipy"},
    "esjobs.noise": {"numpy", "pyarrow", "scipy"},
    "esjobs.errors": {*_CALCULATING, "scipy"},
    "esjobs.provisioning": {*_CALCULATING, "scipy"},
    "esjobs.today": {*_CALCULATING, "scipy"},
    "esjobs.similar": {*_CALCULATING, "elftools", "gensim"},
    "esjobs.render": {"numpy", "pyarrow"},
    "esjobs.api": {"pyarrow", "pandas"},
    "scheduler": {
        *(*_CALCULATING, "apscheduler", "prometheus_client"),
        *("jinja2", "markupsafe", "PIL", "requests", "urllib3"),
    },
    "fitters.layout": {"numpy"},
    "fitters.fit": {"numpy", "scipy", "iminuit"},
    "fitters.line": {"numpy", "scipy", "iminuit"},
    "fitters.fixed_cost": {"numpy"},
    "fitters.mixture": {"numpy", "scipy"},
    "fitters.variance": {"numpy", "scipy"},
    "fitters.change": {"numpy", "scipy"},
    "fitters.effects": {"numpy", "scipy"},
    "fitters.checks": {"numpy", "scipy"},
    "fitters.ranking": {"numpy", "scipy"},
    "fitters.warping": {"numpy"},
    "fitters.errors": set(),
    "fitters.robust": set(),
    "fitters.compiled": {"numba"},
    "fitters.threads": {"threadpoolctl"},
    "fitters": set(),
    "dashboards.spec": set(),
    "dashboards.panels": set(),
    "dashboards.pages": set(),
    "dashboards.view": set(),
    "dashboards.targets.vegalite": set(),
    "dashboards.targets.saved_objects": set(),
    "dashboards.targets.portable": set(),
    "dashboards.targets.kibana": set(),
    "dashboards.targets.html": {"numpy", "jinja2", "markupsafe"},
    "dashboards.servers": {"requests", "urllib3"},
    "dashboards": set(),
}
"""Room -> libraries it may import; what is not named here: NumPy, Arrow and pydantic."""

ONLY_IMPORTERS: dict[str, tuple[str, ...]] = {
    "duckdb": ("esjobs/store/duck/*",),
    "elasticsearch": ("esjobs/store/elastic/transport/elasticsearch_*",),
    "elastic_transport": ("esjobs/store/elastic/transport/elasticsearch_client.py",),
    "opensearchpy": ("esjobs/store/elastic/transport/opensearch_client.py",),
    "urllib3": ("esjobs/store/elastic/transport/proxies.py", "dashboards/servers/*", "scheduler/*"),
    "msgspec": ("esjobs/store/elastic/*", "esjobs/records/ingest/formats/*"),
    "orjson": ("esjobs/store/elastic/*",),
    "elftools": ("esjobs/similar/symbols.py",),
    "gensim": ("esjobs/similar/learned.py",),
    "numba": ("fitters/compiled.py",),
    "iminuit": ("fitters/*",),
    "threadpoolctl": ("fitters/threads.py",),
    "click": ("esjobs/cli/*",),
    "pydantic": ("*/settings.py", "esjobs/core/setting_types.py", "scheduler/notifications/redact.py"),
    "altair": ("esjobs/records/answer.py",),
    "starlette": ("esjobs/web/app.py",),
    "apscheduler": ("scheduler/*",),
    "prometheus_client": ("scheduler/metrics.py", "scheduler/endpoint.py"),
    "jinja2": ("dashboards/targets/html/*", "scheduler/notifications/wording.py"),
    "PIL": ("scheduler/notifications/picture.py",),
    "requests": ("dashboards/servers/client.py", "scheduler/notifications/channels/web.py"),
    "smtplib": ("scheduler/notifications/channels/mail.py",),
}
"""Library -> the only files that import it."""

ENTRY_ROOMS = {"esjobs.cli", "esjobs.testing", "esjobs.web"}
"""Folders that may import everything."""

MOST_FLOORS = 10


def unlisted(found: dict[str, Path]) -> set[str]:
    """Folders of the program that no entry of ``ROOMS`` speaks of."""
    folders = {".".join(name.split(".")[:2]) for name in found if name.count(".") > 1}
    return {each for each in folders if each.startswith("esjobs.")} - set(ROOMS) - ENTRY_ROOMS


def rooms(found: dict[str, Path]) -> dict[str, set[str]]:
    """``ROOMS``, with the capabilities that have no entry: folders of which the schema has tables."""
    added = {each for each in unlisted(found) if each.replace("esjobs.", "esjobs.schema.") in found}
    return {**ROOMS, **{each: {*_FITTING, each} for each in added}}


def room(name: str, known: Iterable[str]) -> str:
    """The innermost room that holds a module; for the package itself and entry points their own name."""
    holding = [each for each in known if name == each or name.startswith(f"{each}.")]
    return max(holding, key=len, default=name)


def breaches(name: str, found: dict[str, Path], known: dict[str, set[str]]) -> list[str]:
    """What a module imports that its room, one of those known, may not."""
    here = room(name, known)
    if here not in known:
        return []
    parties = set().union(*THIRD_PARTY.values())
    beyond = THIRD_PARTY.get(here, _CALCULATING)
    told = []
    for target in sorted(imports(found[name], found)):
        top = target.split(".")[0]
        upwards = top in PACKAGES and room(target, known) not in known[here]
        if upwards or (top in parties and top not in beyond):
            told.append(f"{name} imports {target}")
    return told


def test_imports_go_down_only() -> None:
    known = rooms(MODULES)
    found = [breach for name in MODULES for breach in breaches(name, MODULES, known)]
    assert not found, "\n".join(found)


def _outer(name: str) -> str:
    parts = name.split(".")
    return parts[0] if parts[0] != "esjobs" else ".".join(parts[:2])


def test_rooms_lie_on_few_floors_without_knots() -> None:
    """Of top-level folders, by all imports; entry points count as one room."""
    below: dict[str, set[str]] = defaultdict(set)
    for name, path in MODULES.items():
        if name in ("esjobs", "esjobs.__main__"):
            continue
        ours = {each for each in imports(path) if each.split(".")[0] in PACKAGES and each != "esjobs"}
        below[_outer(name)] |= {_outer(each) for each in ours} - {_outer(name)}

    @functools.cache
    def floor(here: str, trail: tuple[str, ...] = ()) -> int:
        assert here not in trail, " -> ".join((*trail, here))
        return 1 + max((floor(each, (*trail, here)) for each in below[here]), default=0)

    assert max(floor(each) for each in list(below)) <= MOST_FLOORS


def nameless(found: dict[str, Path]) -> set[str]:
    """Folders that nothing says a rule for."""
    return {each for each in unlisted(found) if each not in rooms(found)}


def test_every_folder_has_a_rule() -> None:
    assert nameless(MODULES) == set(), "add a room to ROOMS, and a line to the rooms of docs/architecture.md"


def test_a_new_capability_has_the_rule_of_the_others(tmp_path: Path) -> None:
    texts = {
        "schema/weather.py": "from esjobs.core.tables import Table",
        "schema/winds.py": "from esjobs.records.jobs.query import ask",
        "weather/rules.py": "import numpy, esjobs.schema.weather, esjobs.records.jobs.query",
        "weather/bad.py": "import duckdb\nimport esjobs.speed.fit\nfrom esjobs.api.session import Session",
        "gusts/rules.py": "import duckdb",
        "records/ingest/formats/weatherlog.py": "from esjobs.schema.weather import WEATHER",
        "speed/warm.py": "from esjobs.weather import rules",
    }
    found = dict(MODULES)
    for place, text in texts.items():
        path = tmp_path / "esjobs" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found |= modules(tmp_path)
    known = rooms(found)
    told = {place: breaches(_dotted(place), found, known) for place in texts}
    assert {place: what for place, what in told.items() if what} == {
        "schema/winds.py": ["esjobs.schema.winds imports esjobs.records.jobs.query"],
        "weather/bad.py": [
            "esjobs.weather.bad imports duckdb",
            "esjobs.weather.bad imports esjobs.api.session",
            "esjobs.weather.bad imports esjobs.speed.fit",
        ],
        "speed/warm.py": ["esjobs.speed.warm imports esjobs.weather.rules"],
    }
    assert nameless(found) == {"esjobs.gusts"}


def _dotted(place: str) -> str:
    return "esjobs." + place.removesuffix(".py").replace("/", ".")


def test_a_library_has_one_importer() -> None:
    found = [
        f"{relative} imports {library}"
        for path in MODULES.values()
        for relative in [path.relative_to(ROOT).as_posix()]
        for library in sorted({target.split(".")[0] for target in imports(path)} & set(ONLY_IMPORTERS))
        if not any(fnmatch.fnmatch(relative, each) for each in ONLY_IMPORTERS[library])
    ]
    assert not found, "\n".join(found)


def test_no_cycles() -> None:
    """Not between modules, and not through a package whose ``__init__`` imports what imports it."""
    graph: dict[str, set[str]] = defaultdict(set)
    for name, path in MODULES.items():
        graph[name] = {
            target for node in parsed(path).body for target in _targets(name, node) if target in MODULES
        } - {name}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail[trail.index(name) :], name))
        if name not in done:
            for target in graph[name]:
                visit(target, (*trail, name))
            done.add(name)

    for name in MODULES:
        visit(name, ())


def _targets(name: str, node: ast.stmt) -> set[str]:
    """What a statement runs: modules, packages, and the packages on the way that are not running yet."""
    if isinstance(node, ast.Import):
        named = {alias.name for alias in node.names}
    elif isinstance(node, ast.ImportFrom):
        module = node.module or ""
        members = {f"{module}.{alias.name}" for alias in node.names}
        named = {member if member in MODULES else module for member in members}
    else:
        return set()
    parts = [target.split(".") for target in named]
    on_the_way = {".".join(part[:end]) for part in parts for end in range(1, len(part))}
    return named | {package for package in on_the_way if not name.startswith(f"{package}.")}


@functools.cache
def calls(name: str) -> list[tuple[ast.Call, str, str]]:
    """Each call in a module, the name that is called, and where."""
    return [
        (node, ast.unparse(node.func), f"{name}:{node.lineno}")
        for node in nodes(MODULES[name])
        if isinstance(node, ast.Call)
    ]


def test_nothing_prints_exits_or_asks_the_clock_below_the_entry_points() -> None:
    endings = {"print", "exit", "quit", "sys.exit"}
    clocks = {"datetime.now", "datetime.utcnow", "date.today", "time.time"}
    found = [
        f"{where} calls {called}"
        for name in MODULES
        if name not in ("esjobs.cli.main", "esjobs.cli.start", "esjobs.cli.terminal")
        for _, called, where in calls(name)
        if called in endings or (called in clocks and name != "esjobs.core.clock")
    ]
    assert not found, "\n".join(found)


def test_one_module_writes_files_by_name() -> None:
    """Others take a stream from it: who opens a name to write cuts links, devices, and files of before."""
    writers = {"write_text", "write_bytes", "mkstemp", "NamedTemporaryFile", "savefig"}
    found = []
    for name in MODULES:
        # the suites for other packages write files of tests
        if name == "esjobs.store.files.destination" or name.startswith("esjobs.testing."):
            continue
        for node, called, where in calls(name):
            last = called.rpartition(".")[2]
            if last in ("open", "fdopen"):
                given = (*node.args, *(keyword.value for keyword in node.keywords))
                writes = not {"'w'", "'wb'", "'a'", "'x'"}.isdisjoint(map(ast.unparse, given))
            else:
                writes = last in writers
            if writes:
                found.append(f"{where} calls {called}")
    assert not found, "\n".join(found)
