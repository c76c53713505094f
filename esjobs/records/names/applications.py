"""Usual application of a job, recognised by its program, the program's path, its script and its name."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from esjobs.core.errors import SettingsError
from esjobs.core.identity import content_id

_WORD = re.compile(r"[a-z0-9+]+")


@dataclass(frozen=True)
class Application:
    """An application: patterns of file names in lower case, and words; an ``interpreter`` counts last."""

    name: str
    programs: tuple[str, ...]
    words: frozenset[str]
    interpreter: bool

    def runs(self, program: str) -> bool:
        """True if a file name in lower case is that of its program."""
        return any(fnmatchcase(program, pattern) for pattern in self.programs)


@dataclass(frozen=True)
class Applications:
    """A table of applications, in the order of search; interpreters count last."""

    listed: tuple[Application, ...]

    @cached_property
    def digest(self) -> str:
        """Digest that changes with the table."""
        return content_id({"applications": [repr(one) for one in self.listed]})

    def of_job(
        self, executable: str | None, job_name: str | None = None, script: str | None = None
    ) -> str | None:
        """Return the usual name of a job's application; None if nothing names one.

        Evidence counts in this order: file name of the program, words of its path, programs that the script
        starts, the job's name as that of a program, its words; interpreters after all others. Cost: a look at
        the table per new program and per name.

        >>> shipped().of_job("/opt/vasp/6.4/bin/vasp_std"), shipped().of_job("python3", "gromacs-run7")
        ('vasp', 'gromacs')
        >>> shipped().of_job("a.out", "half_dynamic"), shipped().of_job(None, None, "#run gmx\\nsrun gmx_mpi")
        (None, 'gromacs')
        >>> shipped().of_job(None, "lmp"), shipped().of_job("pw.x", "lmp"), shipped().of_job(None, "lmpx")
        ('lammps', 'quantum-espresso', None)
        """
        path = PurePosixPath((executable or "").lower())
        texts = (job_name or "").strip().lower()
        programs = (*_programs_of(script or ""), texts)
        for kind in self._kinds:
            found = kind.first((path.name,), str(path.parent)) or kind.first(programs, texts)
            if found is not None:
                return found
        return None

    def of_jobs(
        self,
        executable: pa.ChunkedArray | pa.Array | None = None,
        job_name: pa.ChunkedArray | pa.Array | None = None,
    ) -> pa.Array:
        """Return the application of each job; a column that is None names none."""
        n_jobs = len(executable if executable is not None else job_name if job_name is not None else ())
        columns = [[None] * n_jobs if each is None else each.to_pylist() for each in (executable, job_name)]
        pairs = list(zip(*columns, strict=True))
        # millions of jobs have few different pairs
        found = {pair: self.of_job(*pair) for pair in set(pairs)}
        return pa.array([found[pair] for pair in pairs], pa.string())

    @cached_property
    def _kinds(self) -> tuple["_Kind", "_Kind"]:
        programs = [one for one in self.listed if not one.interpreter]
        return _Kind(tuple(programs)), _Kind(tuple(one for one in self.listed if one.interpreter))


# Programs remembered at once: names that contain the number of a job never end.
_MOST_PROGRAMS = 10_000


class _Kind:
    """Applications of one rank, with the programs looked up so far: jobs of many names run few programs."""

    def __init__(self, listed: tuple[Application, ...]) -> None:
        self._listed = listed
        self._found: dict[str, str | None] = {}

    def first(self, programs: Iterable[str], text: str) -> str | None:
        """Return the first kind that runs a program, else one with a word of the text."""
        for program in filter(None, programs):
            found = self._of_program(program)
            if found is not None:
                return found
        words = {*_WORD.findall(text)}
        return next((one.name for one in self._listed if one.words & words), None)

    def _of_program(self, program: str) -> str | None:
        if program not in self._found:
            if len(self._found) >= _MOST_PROGRAMS:
                self._found.clear()
            self._found[program] = next((one.name for one in self._listed if one.runs(program)), None)
        return self._found[program]


@cache
def shipped() -> Applications:
    """Return the table of the package; the name of an application is one of its words."""
    text = files(__package__).joinpath("applications.toml").read_text(encoding="utf-8")
    return _parsed(text, "applications.toml")


def load_applications(path: Path) -> Applications:
    """Return the table of a file, before that of the package: an equal name replaces.

    Raises :class:`SettingsError` for a file that cannot be read or is wrong.
    """
    try:
        text = path.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read {path}: {error}; correct [clusters] applications") from error
    own = _parsed(text, str(path)).listed
    names = {one.name for one in own}
    return Applications((*own, *(one for one in shipped().listed if one.name not in names)))


def _parsed(text: str, where: str) -> Applications:
    try:
        entries = tomllib.loads(text)
    except ValueError as error:
        raise SettingsError(f"{where} is not valid TOML: {error}") from error
    for name, entry in entries.items():
        _require_entry(name, entry, where)
    return Applications(
        tuple(
            Application(
                name,
                tuple(map(str.lower, entry["programs"])),
                frozenset(map(str.lower, entry.get("words", (name,)))),
                entry.get("interpreter", False),
            )
            for name, entry in entries.items()
        )
    )


def _require_entry(name: str, entry: Mapping[str, Any], where: str) -> None:
    usable = (
        isinstance(entry, dict)
        and entry.keys() <= {"programs", "words", "interpreter"}
        and all(_is_texts(entry.get(key, default)) for key, default in (("programs", None), ("words", [])))
        and isinstance(entry.get("interpreter", False), bool)
    )
    if not usable:
        raise SettingsError(
            f'{where}: [{name}] must have programs = ["PATTERN"], and may have words = ["WORD"] and '
            "interpreter = true"
        )


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _programs_of(script: str) -> Iterator[str]:
    """Yield the file names of all words of a script but comments, in lower case."""
    for line in script.lower().splitlines():
        if not line.lstrip().startswith("#"):
            yield from (PurePosixPath(word).name for word in line.split())
