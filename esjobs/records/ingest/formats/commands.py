"""Program that a command names, where it is certain from its words alone."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import PurePosixPath

STARTERS = frozenset(
    {
        # launchers of MPI, and what they start on every node
        *("mpirun", "mpiexec", "mpiexec.hydra", "srun", "aprun", "jsrun", "orterun", "prterun"),
        *("orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_proxy", "pmi_proxy", "mpispawn"),
        # shells, and what runs another program in a way of its own
        *("sh", "bash", "dash", "ash", "ksh", "zsh", "csh", "tcsh", "fish", "env", "nice", "time", "timeout"),
        *("stdbuf", "numactl", "taskset", "perf", "valgrind", "gdb", "strace", "ltrace", "xargs", "parallel"),
        *("singularity", "apptainer", "shifter", "ch-run", "enroot", "podman", "docker"),
    }
)
"""Programs that start another one, which is what ran; their name says nothing of it."""


def program_of(word: str) -> str | None:
    """Return the program that the first word of a command names: a path from the root, else the name.

    None for what starts another program. Other paths lead from a folder that is unknown.

    >>> program_of("/opt/md/bin/md"), program_of("./md"), program_of("bash")
    ('/opt/md/bin/md', 'md', None)
    """
    name = PurePosixPath(word).name
    if not name or name in STARTERS:
        return None
    return word if word.startswith("/") else name


def program_of_step(name: str, line: str) -> str | None:
    """Return the program of a step of Slurm; ``line``: the command that made it, empty if not recorded.

    Slurm names a step after its program unless ``--job-name`` was used: the name must be a word of the
    command.

    >>> program_of_step("md", "srun -n 4 /opt/md/bin/md in.dat"), program_of_step("md", "srun -J md ./a.out")
    ('/opt/md/bin/md', None)
    """
    if not line:
        return program_of(name)
    words = line.split()
    if "--multi-prog" in words:
        return None
    for before, word in pairwise(words):
        if PurePosixPath(word).name == name and before not in ("-J", "--job-name"):
            return program_of(word)
    return None


def main_program(programs: Iterable[tuple[str | None, float]]) -> str | None:
    """Return the program that ran alone, or for more than half of the time (s); None without one."""
    times: dict[str | None, float] = {}
    for program, seconds in programs:
        times[program] = times.get(program, 0.0) + seconds
    # alone, even in no measured time
    if len(times) == 1:
        return next(iter(times))
    most = max(times, key=lambda program: times[program], default=None)
    return most if most is not None and 2 * times[most] > sum(times.values()) else None


def quoted_program(texts: Sequence[str]) -> str | None:
    """The one program of commands in quotes, each at the beginning of a text; None without or with several.

    >>> quoted_program([" './md in.dat' (3 runs):", " 'md':"]), quoted_program([" process id '7':"])
    ('md', None)
    """
    begun = [text.lstrip() for text in texts]
    programs = {
        program_of(words[0]) if text.startswith("'") and (words := text[1:].split("'")[0].split()) else None
        for text in begun
    }
    return programs.pop() if len(programs) == 1 else None
