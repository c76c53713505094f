"""The rooms and who may import whom, read from the source itself."""

import ast
import functools
import re
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
    """Absolute names of everything a file imports, lazily or not; type-checking blocks included."""
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
    return names


FITTERS_GROUND = {"fitters.errors", "fitters.robust", "fitters.compiled", "fitters.threads"}
"""What every folder of the fits may use: errors, constants, the compiler, the number of threads."""


def tables_of(found: dict[str, Path]) -> set[str]:
    """What capabilities keep: facts like those of the core, which the formats that give rows of them name.

    Every ``tables.py`` that imports the core alone; that of ``speed`` names the runs that make its tables.
    """
    return {
        name
        for name, path in found.items()
        if re.fullmatch(r"esjobs\.(?!core\.)\w+\.tables", name)
        and all(target.startswith("esjobs.core.") for target in imports(path) if _is_ours(target))
    }


def _is_ours(target: str) -> bool:
    return target.split(".", maxsplit=1)[0] in PACKAGES


TABLES = tables_of(MODULES)
_SHARED = {"esjobs", "esjobs.core", "esjobs.store", "esjobs.runs", *TABLES}
_CAPABILITY = {*_SHARED, "esjobs.names", "esjobs.output", "esjobs.setting_types"}
_LATEST = {*_CAPABILITY, "esjobs.declared", "esjobs.jobs", "fitters"}
"""What the last capability in the order may import, and one that nobody has put into it yet."""
_TABLES = ("esjobs.core", "esjobs.capabilities")
_SAVED = ("dashboards.targets.saved_objects", "dashboards.targets.vegalite", "dashboards.spec", *_TABLES)

ROOMS = {
    "esjobs.core": {"esjobs.core"},
    **{tables: {"esjobs.core"} for tables in TABLES},
    "esjobs.series.packing": {"esjobs.core"},
    "esjobs.series.rows": {"esjobs.core", "esjobs.series.packing", *TABLES},
    "esjobs.ingest.formats": {
        *("esjobs.core", "esjobs.ingest", "esjobs.ingest.formats", "esjobs.names"),
        *("esjobs.series.packing", "esjobs.series.rows", *TABLES),
    },
    "esjobs.ingest": {"esjobs.core", "esjobs.ingest"},
    "esjobs.output": {"esjobs.core", "esjobs.output"},
    "esjobs.names": {"esjobs.core", "esjobs.names"},
    "esjobs.store": {"esjobs.core", "esjobs.store"},
    "esjobs.runs": {*_SHARED},
    "esjobs.declared": {*_SHARED, "esjobs.names", "esjobs.declared"},
    "esjobs.references": {*_CAPABILITY, "esjobs.references"},
    "esjobs.series": {*_CAPABILITY, "esjobs.series", "esjobs.series.packing", "esjobs.series.rows"},
    "esjobs.jobs": {
        *_CAPABILITY,
        *("esjobs.ingest", "esjobs.ingest.formats", "esjobs.declared", "esjobs.jobs"),
    },
    "esjobs.speed": {*_LATEST, "esjobs.speed"},
    "esjobs.nights": {
        *(*_LATEST, "esjobs.speed", "esjobs.nights", "esjobs.drift", "esjobs.reasons"),
        *(
            "esjobs.watch",
            "esjobs.notify",
            "esjobs.detect",
            "esjobs.talp",
            "esjobs.similar",
            "esjobs.session",
            "esjobs.settings",
        ),
        "esjobs.efficiency",
    },
    "esjobs.watch": {*_LATEST, "esjobs.speed", "esjobs.watch"},
    "esjobs.notify": {*_CAPABILITY, "esjobs.speed", "esjobs.drift", "esjobs.reasons", "esjobs.notify"},
    "esjobs.drift": {*_LATEST, "esjobs.speed", "esjobs.drift"},
    "esjobs.reasons": {*_LATEST, "esjobs.speed", "esjobs.references", "esjobs.reasons"},
    "esjobs.clusters": {"esjobs.core", "esjobs.clusters"},
    "esjobs.detect.detectors": {"esjobs.detect.detectors"},
    "esjobs.detect": {
        *(*_LATEST, "esjobs.clusters", "esjobs.series", "esjobs.detect", "esjobs.detect.detectors"),
        "esjobs.talp",
    },
    "esjobs.talp": {*_LATEST, "esjobs.ingest", "esjobs.ingest.formats", "esjobs.talp"},
    "esjobs.efficiency": {*_LATEST, "esjobs.clusters", "esjobs.efficiency"},
    "esjobs.noise": {*_LATEST, "esjobs.output", "esjobs.noise"},
    "esjobs.provisioning": {*_LATEST, "esjobs.efficiency", "esjobs.provisioning"},
    "esjobs.similar": {*_LATEST, "esjobs.series", "esjobs.similar"},
    "esjobs.profile": {
        *(*_LATEST, "esjobs.speed", "esjobs.drift", "esjobs.reasons", "esjobs.watch", "esjobs.references"),
        "esjobs.profile",
    },
    "esjobs.demo": {"esjobs.core", "esjobs.demo"},
    "fitters.layout": {"fitters.layout", *FITTERS_GROUND},
    "fitters.variance": {"fitters.layout", "fitters.variance", *FITTERS_GROUND},
    "fitters.fit": {"fitters.layout", "fitters.variance", "fitters.fit", *FITTERS_GROUND},
    "fitters.line": {"fitters.layout", "fitters.line", *FITTERS_GROUND},
    "fitters.fixed_cost": {"fitters.layout", "fitters.variance", "fitters.fixed_cost", *FITTERS_GROUND},
    "fitters.mixture": {"fitters.layout", "fitters.mixture", *FITTERS_GROUND},
    "fitters.change": {"fitters.layout", "fitters.change", *FITTERS_GROUND},
    "fitters.effects": {"fitters.layout", "fitters.effects", *FITTERS_GROUND},
    **{ground: {ground} for ground in FITTERS_GROUND},
    "fitters.warping": {"fitters.warping", *FITTERS_GROUND},
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
    "scheduler": {"scheduler", "esjobs.core", "esjobs.nights"},
}
"""Room -> rooms it may import. What is not listed (session, commands, entry points) may import everything.

Capabilities stand on each other in one order: declared, jobs, speed. One that is not named here follows the
rule of speed; it may be imported by entry points alone until it has an entry.
"""

_CALCULATING = {"numpy", "pyarrow", "pydantic"}

THIRD_PARTY: dict[str, set[str]] = {
    "esjobs.core": {"numpy", "pyarrow"},
    **{tables: set[str]() for tables in TABLES},
    "esjobs.ingest.formats": {"numpy", "pyarrow", "msgspec"},
    "esjobs.ingest": {"numpy", "pyarrow"},
    "esjobs.store": {
        *("numpy", "pandas", "pyarrow", "duckdb", "orjson", "msgspec", "tenacity"),
        *("elasticsearch", "elastic_transport", "opensearchpy"),
    },
    "esjobs.output": {"numpy", "pandas", "pyarrow"},
    "esjobs.names": {"numpy", "pyarrow"},
    "esjobs.runs": {"numpy", "pyarrow"},
    "esjobs.declared": {"numpy", "pyarrow"},
    "esjobs.references": {"numpy", "pyarrow"},
    "esjobs.jobs": {"numpy", "pyarrow"},
    "esjobs.speed": _CALCULATING,
    "esjobs.drift": _CALCULATING,
    "esjobs.reasons": _CALCULATING,
    "esjobs.efficiency": _CALCULATING,
    "esjobs.noise": {"numpy", "pyarrow", "scipy"},
    "esjobs.provisioning": {*_CALCULATING, "scipy"},
    "esjobs.nights": _CALCULATING,
    "esjobs.watch": {"pyarrow", "pydantic"},
    "esjobs.notify": {
        *("pyarrow", "pydantic", "jinja2", "markupsafe", "PIL"),
        *("requests", "urllib3", "tenacity"),
    },
    "esjobs.clusters": {"pydantic"},
    "esjobs.similar": {*_CALCULATING, "elftools", "gensim"},
    "esjobs.detect.detectors": {"numpy", "scipy"},
    "esjobs.detect": _CALCULATING,
    "esjobs.demo": {"numpy", "pyarrow"},
    "fitters.layout": {"numpy"},
    "fitters.fit": {"numpy", "scipy", "iminuit"},
    "fitters.line": {"numpy", "scipy", "iminuit"},
    "fitters.fixed_cost": {"numpy"},
    "fitters.mixture": {"numpy", "scipy"},
    "fitters.variance": {"numpy", "scipy"},
    "fitters.change": {"numpy", "scipy"},
    "fitters.effects": {"numpy", "scipy"},
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
    "scheduler": {"apscheduler", "prometheus_client"},
}

ONLY_IMPORTERS: dict[str, str | tuple[str, ...]] = {
    "duckdb": "esjobs/store/duck",
    "elasticsearch": "esjobs/store/elastic/transport/elasticsearch_",
    "elastic_transport": "esjobs/store/elastic/transport/elasticsearch_client.py",
    "opensearchpy": "esjobs/store/elastic/transport/opensearch_client.py",
    "msgspec": ("esjobs/store/elastic/", "esjobs/ingest/formats/"),
    "orjson": "esjobs/store/elastic/",
    "elftools": "esjobs/similar/symbols.py",
    "gensim": "esjobs/similar/learned.py",
    "tenacity": ("esjobs/store/elastic/transport/patience.py", "esjobs/notify/sending.py"),
    "numba": "fitters/compiled.py",
    "iminuit": "fitters/",
    "threadpoolctl": "fitters/threads.py",
    "click": ("esjobs/cli.py", "esjobs/commands/", "esjobs/terminal.py"),
    "pydantic": (
        *("esjobs/settings.py", "esjobs/setting_types.py", "esjobs/speed/settings.py"),
        *("esjobs/nights/settings.py", "esjobs/watch/settings.py", "esjobs/drift/settings.py"),
        *("esjobs/notify/settings.py", "esjobs/clusters/settings.py", "esjobs/detect/settings.py"),
        *("esjobs/efficiency/settings.py", "esjobs/talp/settings.py"),
        "esjobs/similar/settings.py",
    ),
    "pydantic_settings": "esjobs/settings.py",
    "altair": "esjobs/session.py",
    "apscheduler": "scheduler/",
    "prometheus_client": "scheduler/metrics.py",
    "jinja2": ("dashboards/targets/html/", "esjobs/notify/wording.py"),
    "PIL": "esjobs/notify/picture.py",
    "requests": ("dashboards/servers/client.py", "esjobs/notify/channels/web.py"),
    "smtplib": "esjobs/notify/channels/mail.py",
}
"""Library -> the only place (start of the path) that imports it."""


ENTRY_ROOMS = {"esjobs.commands"}
"""Folders that may import everything."""


def unlisted(found: dict[str, Path]) -> set[str]:
    """Folders of the program that no entry of ``ROOMS`` speaks of."""
    folders = {".".join(name.split(".")[:2]) for name in found if name.count(".") > 1}
    return {each for each in folders if each.startswith("esjobs.")} - set(ROOMS) - ENTRY_ROOMS


def rooms(found: dict[str, Path]) -> dict[str, set[str]]:
    """``ROOMS``, with the capabilities that have no entry: folders with a ``tables.py``."""
    tables = tables_of(found)
    added = {each for each in unlisted(found) if f"{each}.tables" in found}
    return {
        **{each: {"esjobs.core"} for each in tables},
        **{each: may | (tables if may & TABLES else set()) for each, may in ROOMS.items()},
        **{each: {*_LATEST, *tables, each} for each in added},
    }


def room(name: str, known: Iterable[str]) -> str:
    """The innermost room that holds a module; for the package itself and entry points their own name."""
    return next((each for each in known if name == each or name.startswith(f"{each}.")), name)


def breaches(name: str, found: dict[str, Path], known: dict[str, set[str]]) -> list[str]:
    """What a module imports that its room, one of those known, may not."""
    here = room(name, known)
    if here not in known:
        return []
    parties = set().union(*THIRD_PARTY.values())
    beyond = THIRD_PARTY.get(here, set() if here.endswith(".tables") else _CALCULATING)
    told = []
    for target in sorted(imports(found[name], found)):
        top = target.split(".")[0]
        if (top in PACKAGES and room(target, known) not in known[here]) or (
            top in parties and top not in beyond
        ):
            told.append(f"{name} imports {target}")
    return told


def test_imports_go_down_only() -> None:
    known = rooms(MODULES)
    found = [breach for name in MODULES for breach in breaches(name, MODULES, known)]
    assert not found, "\n".join(found)


def nameless(found: dict[str, Path]) -> set[str]:
    """Folders that nothing says a rule for."""
    return {each for each in unlisted(found) if f"{each}.tables" not in found}


def test_every_folder_has_a_rule() -> None:
    assert nameless(MODULES) == set(), "add a room to ROOMS, and a line to the rooms of docs/architecture.md"


def test_a_new_capability_has_the_rule_of_the_last_one(tmp_path: Path) -> None:
    texts = {
        "weather/tables.py": "from esjobs.core.tables import Table",
        "weather/rules.py": "import numpy\nfrom esjobs.weather import tables\nfrom esjobs.jobs import query",
        "weather/bad.py": "import duckdb\nfrom esjobs.speed import fit\nfrom esjobs.session import Session",
        "winds/tables.py": "from esjobs.runs.kinds import Kind",
        "gusts/rules.py": "import duckdb",
        "ingest/formats/weatherlog.py": "from esjobs.weather.tables import WEATHER",
        "ingest/formats/windlog.py": "from esjobs.winds.tables import WINDS",
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
        "weather/bad.py": [
            "esjobs.weather.bad imports duckdb",
            "esjobs.weather.bad imports esjobs.session",
            "esjobs.weather.bad imports esjobs.speed.fit",
        ],
        "ingest/formats/windlog.py": ["esjobs.ingest.formats.windlog imports esjobs.winds.tables"],
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
        if not relative.startswith(ONLY_IMPORTERS[library])
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
        if name not in ("esjobs.cli", "esjobs.terminal")
        for _, called, where in calls(name)
        if called in endings or (called in clocks and name != "esjobs.core.clock")
    ]
    assert not found, "\n".join(found)


def test_one_module_writes_files_by_name() -> None:
    """Others take a stream from it: who opens a name to write cuts links, devices, and files of before."""
    writers = {"write_text", "write_bytes", "mkstemp", "NamedTemporaryFile", "savefig"}
    found = []
    for name in MODULES:
        if name == "esjobs.output.destination":
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
