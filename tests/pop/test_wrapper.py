"""The wrapper of launchers: what it adds, what it passes on, and that no program fails because of it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from esjobs.core.errors import InputError
from esjobs.pop.wrapper import NAMES, SCRIPT, write_wrappers
from esjobs.records.ingest.formats.talp_names import OURS
from tests.messages import compare_text, raised

SHELLS = [shell for shell in ("/bin/dash", "/bin/bash", "/bin/sh") if Path(shell).exists()]
SAYS = {
    "openmpi": "mpirun (Open MPI) 4.1.4",
    "intel": "Intel(R) MPI Library for Linux* OS, Version 2021.9",
    "mpich": "HYDRA build details:",
    "other": "mpirun of somebody",
}
LAUNCHER = """#!/bin/sh
if [ "$1" = --version ]; then echo "{says}"; exit 0; fi
for each in "$@"; do printf '<%s>' "$each"; done; echo
echo "DLB_ARGS=$DLB_ARGS"
echo "LD_PRELOAD=$LD_PRELOAD"
exit 37
"""


class Place:
    """A node with an MPI, a library of DLB, and the wrappers ahead of both."""

    def __init__(self, folder: Path) -> None:
        self.real, self.wrappers = folder / "mpi", folder / "wrappers"
        self.spool, self.library = folder / "spool", folder / "dlb" / "lib" / "libdlb_mpi.so"
        for each in (self.real, self.spool, self.library.parent):
            each.mkdir(parents=True)
        self.library.write_bytes(b"")
        write_wrappers(self.wrappers)
        self.environment = {
            "PATH": f"{self.wrappers}:{self.real}:/usr/bin:/bin",
            "SLURM_JOB_ID": "4711",
            "ESJOBS_TALP_SPOOL": str(self.spool),
            "DLB_HOME": str(self.library.parent.parent),
        }

    def launcher(self, name: str, says: str, text: str = LAUNCHER) -> None:
        path = self.real / name
        path.write_text(text.replace("{says}", says))
        path.chmod(0o755)

    def run(
        self, *arguments: str, shell: str | None = None, **environment: str | None
    ) -> subprocess.CompletedProcess[str]:
        known = {name: text for name, text in {**self.environment, **environment}.items() if text is not None}
        command = [str(self.wrappers / arguments[0]), *arguments[1:]]
        if shell is not None:
            command = [shell, *command]
        return subprocess.run(command, env=known, capture_output=True, text=True, timeout=30, check=False)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


ODD = ["-np", "4", "--", "./a b", "", "*", "$(touch x)", "`id`", "'", '"', "Ω", "a\nb", "-x"]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("kind", ["openmpi", "intel", "mpich"])
def test_library_and_arguments_reach_the_program_and_everything_else_is_untouched(
    place: Place, kind: str, shell: str
) -> None:
    place.launcher("mpirun", SAYS[kind])
    done = place.run("mpirun", *ODD, shell=shell, DLB_ARGS="--lewi")
    assert done.returncode == 37
    assert done.stderr == ""
    flags = ["-x", "-x"] if kind == "openmpi" else ["-genv", "-genv"]
    first = re.match(
        rf"<{flags[0]}><LD_PRELOAD(?:=|><)(.*?)><{flags[1]}><DLB_ARGS(?:=|><)(.*?)>", done.stdout
    )
    assert first is not None
    assert first[1] == str(place.library)
    assert first[2].startswith("--lewi --talp --talp-output-file=")
    assert done.stdout[first.end() :].startswith("".join(f"<{each}>" for each in ODD) + "\n")
    report = Path(first[2].split("=")[1])
    assert report.parent == place.spool
    named = OURS.fullmatch(report.name)
    assert named is not None
    assert named["job"] == "4711"


def test_srun_gets_them_by_its_environment(place: Place) -> None:
    place.launcher("srun", "")
    done = place.run("srun", "-n", "4", "./app", LD_PRELOAD=None)
    assert done.stdout.startswith("<-n><4><./app>\n")
    assert "DLB_ARGS=--talp --talp-output-file=" in done.stdout
    assert f"LD_PRELOAD={place.library}" in done.stdout


def test_what_is_asked_for_is_added(place: Place) -> None:
    place.launcher("mpirun", SAYS["openmpi"])
    asked = {"COUNTERS": "yes", "OPENMP": "yes", "SUMMARY": "process,node"}
    done = place.run("mpirun", "./app", **{f"ESJOBS_TALP_{name}": value for name, value in asked.items()})
    assert "--talp-papi --ompt --talp-openmp --talp-summary=pop-metrics,process,node>" in done.stdout


WITHOUT: dict[str, dict[str, str | None]] = {
    "no library": {"DLB_HOME": None},
    "a library that is gone": {"ESJOBS_TALP_LIBRARY": "/nowhere/libdlb_mpi.so"},
    "no job": {"SLURM_JOB_ID": None},
    "an odd job": {"SLURM_JOB_ID": "../../etc"},
    "no spool": {"ESJOBS_TALP_SPOOL": None},
    "a spool that is gone": {"ESJOBS_TALP_SPOOL": "/nowhere"},
    "a report of their own": {"DLB_ARGS": "--talp --talp-output-file=x.json"},
    "a list of Open MPI": {"OMPI_MCA_mca_base_env_list": "A;B"},
}


@pytest.mark.parametrize("what", WITHOUT)
def test_without_something_it_runs_all_the_same_with_one_line(place: Place, what: str) -> None:
    place.launcher("mpirun", SAYS["openmpi"])
    done = place.run("mpirun", *ODD, **WITHOUT[what])
    assert done.returncode == 37
    assert done.stdout.startswith("".join(f"<{each}>" for each in ODD) + "\n")
    assert done.stderr.startswith("esjobs talp: not measured: ")
    compare_text(done.stderr)
    assert done.stderr.count("\n") == 1


def test_several_programs_in_one_launch_are_not_measured_for_they_would_wait_for_ever(place: Place) -> None:
    place.launcher("mpirun", SAYS["openmpi"])
    done = place.run("mpirun", "-np", "1", "./a", ":", "-np", "1", "./b")
    assert done.stdout.startswith("<-np><1><./a><:><-np><1><./b>\n")
    compare_text(done.stderr)


@pytest.mark.parametrize("option", ["-x", "--x"])
@pytest.mark.parametrize("name", ["LD_PRELOAD", "DLB_ARGS"])
@pytest.mark.parametrize("value", ["=its own", ""])
def test_what_the_user_passes_by_x_is_left_and_told(place: Place, option: str, name: str, value: str) -> None:
    place.launcher("mpirun", SAYS["openmpi"])
    arguments = [option, name + value, "-x", "OTHER=1", "./app"]
    done = place.run("mpirun", *arguments, **{name: "" if value else "its own"})
    assert done.stdout.startswith("".join(f"<{each}>" for each in arguments) + "\n")
    assert done.returncode == 37
    assert [line for line in done.stderr.splitlines() if line.startswith("esjobs talp: not measured: -x ")]
    compare_text(done.stderr)


def test_passing_by_x_what_is_not_set_keeps_nothing_from_being_measured(place: Place) -> None:
    place.launcher("mpirun", SAYS["openmpi"])
    done = place.run("mpirun", "-x", "DLB_ARGS", "./app", DLB_ARGS=None)
    assert f"<LD_PRELOAD={place.library}>" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("first", [[":"], ["-x", "LD_PRELOAD=its own"]])
def test_an_earlier_reason_stays_when_x_passes_what_is_not_set(place: Place, first: list[str]) -> None:
    place.launcher("mpirun", SAYS["openmpi"])
    done = place.run("mpirun", "./a", *first, "-x", "DLB_ARGS", "./b", DLB_ARGS=None)
    assert "--talp" not in done.stdout
    assert done.stderr.startswith("esjobs talp: not measured: ")


def test_a_launcher_that_nobody_knows_is_left_alone(place: Place) -> None:
    place.launcher("mpirun", SAYS["other"])
    done = place.run("mpirun", "./app")
    assert (done.returncode, done.stdout.splitlines()[0]) == (37, "<./app>")
    compare_text(done.stderr)


def told(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What the wrapper said; the linker complains about the made-up library of these tests."""
    return [line for line in done.stderr.splitlines() if "ld.so" not in line]


KEPT: dict[str, tuple[list[str], str | None, str]] = {
    "none": (["--export=NONE"], None, "--export=NONE keeps"),
    "a list": (["--export", "PATH,HOME"], None, "--export=PATH,HOME keeps"),
    "only one of the two": (["--export=LD_PRELOAD"], None, "--export=LD_PRELOAD keeps"),
    "of sbatch": ([], "NONE", "SLURM_EXPORT_ENV=NONE keeps"),
    "its own": (["--export=ALL,LD_PRELOAD="], None, "--export sets LD_PRELOAD or DLB_ARGS"),
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("what", KEPT)
def test_srun_that_keeps_the_environment_from_the_program_is_told(
    place: Place, what: str, shell: str
) -> None:
    place.launcher("srun", "")
    options, inherited, said = KEPT[what]
    done = place.run("srun", "-n", "2", *options, "./app", shell=shell, SLURM_EXPORT_ENV=inherited)
    assert done.returncode == 37
    assert done.stdout.splitlines()[1:] == ["DLB_ARGS=", "LD_PRELOAD="]
    assert done.stderr.startswith(f"esjobs talp: not measured: {said}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "inherited"),
    [
        (["--export=ALL,X=1", "./app"], None),
        (["--export=LD_PRELOAD,DLB_ARGS,PATH", "./app"], None),
        (["--export=DLB_ARGS,PATH,LD_PRELOAD", "./app"], None),
        (["--export=all", "./app"], "NONE"),
        (["-n", "2", "./app", "--export=NONE", "--pty"], None),
        (["-n2", "/bin/sh", "--export=NONE", "--pty"], None),
        (["--", "./app", "--export=NONE"], None),
    ],
)
def test_srun_that_passes_the_environment_is_measured(
    place: Place, arguments: list[str], inherited: str | None
) -> None:
    place.launcher("srun", "")
    done = place.run("srun", *arguments, SLURM_EXPORT_ENV=inherited)
    assert f"LD_PRELOAD={place.library}" in done.stdout
    assert told(done) == []


def test_a_shell_on_a_node_is_no_launch_but_launches_from_it_are(place: Place) -> None:
    place.launcher("srun", "", LAUNCHER.replace("exit 37", '[ "$1" != --pty ] || exec srun ./app'))
    done = place.run("srun", "--pty", "bash")
    assert told(done) == []
    assert done.stdout.splitlines()[:4] == ["<--pty><bash>", "DLB_ARGS=", "LD_PRELOAD=", "<./app>"]
    assert done.stdout.splitlines()[-1] == f"LD_PRELOAD={place.library}"


def test_what_was_not_in_a_job_is_measured_where_it_is(place: Place) -> None:
    place.launcher("srun", "", LAUNCHER.replace("exit 37", '[ "$1" = x ] || SLURM_JOB_ID=1 exec srun x'))
    done = place.run("srun", "bash", SLURM_JOB_ID=None)
    compare_text(done.stderr)
    assert done.stdout.splitlines()[-1] == f"LD_PRELOAD={place.library}"


def test_why_a_launch_is_not_measured_is_said_once_where_daemons_are_started_by_srun(place: Place) -> None:
    place.launcher("srun", "")
    place.launcher("mpirun", SAYS["openmpi"], LAUNCHER.replace("exit 37", "srun orted"))
    done = place.run("mpirun", "./app", DLB_HOME=None)
    assert done.stderr.count("esjobs talp:") == done.stderr.count("\n") == 1


LINKED = {"Open MPI": b"\0libmpi.so.40\0", "MPICH": b"\0libmpich.so.12\0", "Intel MPI": b"\0libmpi.so.12\0"}


def linked(path: Path, with_mpi: str) -> Path:
    path.write_bytes(b"\x7fELF\2\1\1" + LINKED.get(with_mpi, b"") + bytes(100))
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("launcher", "library", "program", "measured"),
    [
        ("srun", "Open MPI", "Open MPI", True),
        ("srun", "Open MPI", "MPICH", False),
        ("srun", "Intel MPI", "Open MPI", False),
        ("srun", "Intel MPI", "MPICH", True),  # one ABI
        ("srun", "Open MPI", "none", True),
        ("openmpi", "MPICH", "none", False),
        ("mpich", "Open MPI", "none", False),
        ("mpich", "MPICH", "MPICH", True),
        ("openmpi", "none", "Open MPI", True),
    ],
)
def test_a_library_for_another_mpi_would_end_the_program_so_it_is_left_out(
    place: Place, launcher: str, library: str, program: str, measured: bool, shell: str
) -> None:
    name = "srun" if launcher == "srun" else "mpiexec"
    place.launcher(name, SAYS.get(launcher, ""))
    linked(place.library, library)
    linked(place.real / "solver", program)
    for app in ("solver", str(place.real / "solver")):
        done = place.run(name, "-n", "4", app, "input.dat", shell=shell)
        assert done.returncode == 37
        assert ("--talp-output-file" in done.stdout) is measured
        assert len(told(done)) == (0 if measured else 1)
        assert measured or " is for " in told(done)[0]


@pytest.mark.parametrize("own", [["-genv", "LD_PRELOAD", ""], ["-env", "DLB_ARGS=--lewi"]])
def test_what_the_user_passes_by_genv_is_left_and_told(place: Place, own: list[str]) -> None:
    place.launcher("mpiexec", SAYS["mpich"])
    done = place.run("mpiexec", *own, "./app")
    assert done.stdout.startswith("".join(f"<{each}>" for each in [*own, "./app"]) + "\n")
    assert done.stderr.startswith(f"esjobs talp: not measured: {own[0]} sets {own[1][:8]}")


def test_off_is_off_without_a_word(place: Place) -> None:
    place.launcher("mpirun", SAYS["openmpi"])
    done = place.run("mpirun", "./app", ESJOBS_TALP="off")
    assert (done.returncode, done.stderr, done.stdout.splitlines()[0]) == (37, "", "<./app>")


def test_copies_of_the_wrapper_find_the_launcher_behind_all_of_them(place: Place, tmp_path: Path) -> None:
    place.launcher("mpiexec", SAYS["mpich"])
    write_wrappers(tmp_path / "again")
    (tmp_path / "linked").symlink_to(place.wrappers)
    path = f"{tmp_path}/linked:{tmp_path}/again:{place.environment['PATH']}"
    done = place.run("mpiexec", "./app", PATH=path)
    assert done.returncode == 37
    assert done.stdout.count("-genv") == 2


def test_a_launcher_inside_a_launcher_is_measured_once(place: Place) -> None:
    place.launcher("srun", "")
    place.launcher("mpirun", SAYS["openmpi"], LAUNCHER.replace("exit 37", "srun ./daemon"))
    done = place.run("mpirun", "./app")
    assert done.stdout.splitlines()[-3:] == ["<./daemon>", "DLB_ARGS=", "LD_PRELOAD="]


def test_no_launcher_at_all_is_what_a_shell_would_say(place: Place) -> None:
    done = place.run("srun", "./app", PATH=str(place.wrappers) + ":/usr/bin:/bin")
    assert (done.returncode, done.stderr) == (127, "srun: command not found\n")


def test_a_launcher_by_its_path_that_cannot_be_run_is_said_once(place: Place) -> None:
    folder = place.wrappers.parent / "folder"
    folder.mkdir()
    for path, code, why in (
        (folder / "absent", 127, "command not found"),
        (folder, 126, "cannot be executed"),
    ):
        done = place.run(str(SCRIPT), str(path), "./app", shell=SHELLS[0])
        assert (done.returncode, done.stdout, done.stderr) == (code, "", f"{path}: {why}\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_reach_the_launcher_itself(place: Place, number: signal.Signals) -> None:
    text = '#!/bin/sh\n[ "$1" = --version ] && exec echo "Open MPI"\n'
    text += f"exec {sys.executable} -c 'import signal, sys\n"
    text += f"signal.signal({int(number)}, lambda *_: sys.exit(73))\n"
    text += 'print("ready", flush=True)\nwhile True: signal.pause()\'\n'
    place.launcher("mpirun", "", text)
    with subprocess.Popen(
        [str(place.wrappers / "mpirun"), "./app"], env=place.environment, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        running.send_signal(number)
        assert running.wait(timeout=20) == 73


def test_a_program_that_a_signal_ends_is_seen_so(place: Place) -> None:
    place.launcher("mpirun", SAYS["openmpi"], LAUNCHER.replace("exit 37", "kill -SEGV $$"))
    assert place.run("mpirun", "./app").returncode == -signal.SIGSEGV


def test_the_command_runs_the_same(place: Place) -> None:
    place.launcher("mpirun", SAYS["openmpi"])
    environment = {**place.environment, "PATH": f"{place.real}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "esjobs", "talp", "run", "--counters", "--", "mpirun", "-np", "2", "a b"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 37
    assert "--talp-papi>" in done.stdout
    assert "<-np><2><a b>\n" in done.stdout


def test_wrappers_are_programs(tmp_path: Path) -> None:
    written = write_wrappers(tmp_path / "bin")
    assert [path.name for path in written] == list(NAMES)
    assert all(os.access(path, os.X_OK) and path.read_bytes() == SCRIPT.read_bytes() for path in written)


def test_a_real_launcher_is_never_written_over(tmp_path: Path) -> None:
    real = tmp_path / "srun"
    real.write_bytes(b"\x7fELF")
    with raised(InputError):
        write_wrappers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["srun"]
    assert real.read_bytes() == b"\x7fELF"


def test_module_files_name_what_the_wrapper_reads() -> None:
    folder = Path(__file__).parents[2] / "deploy" / "talp"
    script = SCRIPT.read_text()
    for path in (folder / "esjobs-talp.lua", folder / "esjobs-talp.tcl"):
        for name in re.findall(r"ESJOBS_TALP\w*", path.read_text()):
            assert name in script, path
