"""Bundles of dashboards: put together for an installation, written, checked."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dashboards.pages import HEADLINE, PAGES
from dashboards.spec import OWN, IndexFields, JobsIndex
from dashboards.targets.kibana.bundle import kibana
from dashboards.targets.portable.bundle import portable
from dashboards.targets.saved_objects.boards import Opening
from dashboards.targets.saved_objects.checks import complaints
from esjobs.core.errors import InputError, UsageError
from esjobs.core.fields import field
from esjobs.settings import Settings
from esjobs.store.files.destination import STANDARD_OUTPUT, writing_text
from esjobs.store.files.sharing import make_folder

TARGETS = ("portable", "kibana")  # For both products, and for Kibana alone

_MAKERS = {"portable": portable, "kibana": kibana}


def bundle_of(target: str, settings: Settings | None = None) -> str:
    """The lines of a bundle for an installation: prefix, index of jobs, address of pages, range of time."""
    settings = settings or Settings()
    cluster, shown = settings.cluster, settings.dashboards
    jobs = jobs_of(cluster.jobs_index, cluster.field_map)
    base_url = getattr(getattr(settings, "web", None), "base_url", None)
    opening = Opening(shown.days, shown.refresh_s, base_url or "")
    return _MAKERS[target](PAGES, HEADLINE, cluster.prefix, jobs, opening)


def jobs_of(index: str | None, field_map: str | None) -> JobsIndex:
    """Return the index of the jobs: our own, or another one with its field map."""
    if index is None:
        return OWN
    from esjobs.store.elastic.fields.field_map import load_field_map

    found = load_field_map(field_map or "esjobs")
    mapped = {
        name: IndexFields(
            _grouped_by(name, source.names, found.texts), source.factor, source.unset, source.values
        )
        for name, source in found.sources.items()
        if source.names
    }
    return JobsIndex(index, found.time, mapped)


def _grouped_by(name: str, places: tuple[str, ...], texts: str) -> tuple[str, ...]:
    """The fields of an index by which a field of the catalogue is grouped."""
    return tuple(f"{place}{texts}" for place in places) if field(name).type == "keyword" else places


def write_bundles(out: Path, targets: Sequence[str], settings: Settings) -> Iterator[tuple[str, int]]:
    """Write bundles into a folder, which is made, as ``TARGET.ndjson``; each file, its number of objects."""
    if str(out) == STANDARD_OUTPUT:
        if len(targets) > 1:
            raise UsageError(
                "standard output accepts one bundle; select it with --target, or use --out FOLDER"
            )
        with writing_text(STANDARD_OUTPUT) as stream:
            text = bundle_of(targets[0], settings)
            stream.write(text)
        yield "standard output", text.count("\n")
        return
    try:
        make_folder(out)
    except OSError as error:
        raise InputError(f"cannot create folder {out}: {error.strerror}; use a different --out") from error
    for target in dict.fromkeys(targets):
        text = bundle_of(target, settings)
        path = out / f"{target}.ndjson"
        with writing_text(path) as stream:
            stream.write(text)
        yield str(path), text.count("\n")


def check_bundles(files: Iterable[Path]) -> Iterator[tuple[str, list[str]]]:
    """Yield complaints about bundles; without files, about those of this version and default settings."""
    named = list(files)
    for path in named:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"cannot read {path}: {error}; use a file written by: esjobs dashboards render"
            ) from error
        yield str(path), complaints(text)
    for target in TARGETS if not named else ():
        yield f"{target} (rendered)", complaints(bundle_of(target))
