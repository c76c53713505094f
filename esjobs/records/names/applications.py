"""Usual application of a job, recognised by its program, the program's path, its script and its name."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import PurePosixPath

import pyarrow as pa

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


@cache
def applications() -> tuple[Application, ...]:
    """Return the shipped table in order; the name of an application is one of its words."""
    text = files(__package__).joinpath("applications.toml").read_text(encoding="utf-8")
    return tuple(
        Application(
            name,
            tuple(entry["programs"]),
            frozenset(entry.get("words", (name,))),
            entry.get("interpreter", False),
        )
        for name, entry in tomllib.loads(text).items()
    )


def application_of(
    executable: str | None, job_name: str | None = None, script: str | None = None
) -> str | None:
    """Return the usual name of a job's application; None if nothing names one.

    Evidence counts in this order: file name of the program, words of its path, programs that the script
    starts, words of the job's name; interpreters after all others. Cost: a look at the table per new program
    and per name.

    >>> application_of("/opt/vasp/6.4/bin/vasp_std"), application_of("python3", "gromacs-run7")
    ('vasp', 'gromacs')
    >>> application_of("./a.out", "half_dynamic"), application_of(None, None, "#run gmx\\nsrun gmx_mpi mdrun")
    (None, 'gromacs')
    """
    path = PurePosixPath((executable or "").lower())
    programs, texts = tuple(_programs_of(script or "")), (job_name or "").lower()
    for interpreter in (False, True):
        found = _first((path.name,), str(path.parent), interpreter) or _first(programs, texts, interpreter)
        if found is not None:
            return found
    return None


def applications_of(
    executable: pa.ChunkedArray | pa.Array | None = None, job_name: pa.ChunkedArray | pa.Array | None = None
) -> pa.Array:
    """Return the application of each job; a column that is None names none."""
    n_jobs = len(executable if executable is not None else job_name if job_name is not None else ())
    columns = [[None] * n_jobs if each is None else each.to_pylist() for each in (executable, job_name)]
    pairs = list(zip(*columns, strict=True))
    found = {pair: application_of(*pair) for pair in set(pairs)}
    return pa.array([found[pair] for pair in pairs], pa.string())


def _first(programs: Iterable[str], text: str, interpreter: bool) -> str | None:
    for program in filter(None, programs):
        found = _of_program(program, interpreter)
        if found is not None:
            return found
    words = {*_WORD.findall(text)}
    return next((one.name for one in _kind(interpreter) if one.words & words), None)


@lru_cache(10_000)  # jobs of many names run few programs
def _of_program(program: str, interpreter: bool) -> str | None:
    return next((one.name for one in _kind(interpreter) if one.runs(program)), None)


@cache
def _kind(interpreter: bool) -> tuple[Application, ...]:
    return tuple(one for one in applications() if one.interpreter == interpreter)


def _programs_of(script: str) -> Iterator[str]:
    """Yield the file names of all words of a script but comments, in lower case."""
    for line in script.lower().splitlines():
        if not line.lstrip().startswith("#"):
            yield from (PurePosixPath(word).name for word in line.split())
