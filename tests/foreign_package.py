"""Packages of others as they are installed: modules, and metadata with entry points."""

from collections.abc import Mapping
from pathlib import Path

VERSION = "1.2"


def put_package(
    site: Path, name: str, modules: Mapping[str, str], entries: Mapping[str, Mapping[str, str]]
) -> None:
    """Write an installed package into a folder of the path; ``entries``: objects by group and name."""
    for module, text in modules.items():
        path = site / module
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    metadata = site / f"{name}-{VERSION}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {VERSION}\n")
    (metadata / "entry_points.txt").write_text(_table(entries))


def put_project(
    folder: Path, name: str, modules: Mapping[str, str], entries: dict[str, dict[str, str]]
) -> None:
    """Write a project that pip can build and install."""
    for module, text in modules.items():
        (folder / module).parent.mkdir(parents=True, exist_ok=True)
        (folder / module).write_text(text)
    groups = "".join(
        f'[project.entry-points."{group}"]\n' + "".join(f'"{key}" = "{value}"\n' for key, value in of.items())
        for group, of in entries.items()
    )
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        f'[project]\nname = "{name}"\nversion = "{VERSION}"\n{groups}'
        f"[tool.hatch.build.targets.wheel]\ninclude = {sorted(modules)}\n"
    )


def _table(entries: Mapping[str, Mapping[str, str]]) -> str:
    lines = []
    for group, of in entries.items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in of.items())]
    return "\n".join(lines) + "\n"
