"""Applications by programs, paths, scripts and names: every code of the table, and words that look alike."""

from pathlib import Path

import pytest

import esjobs
from esjobs import Settings
from esjobs.core.errors import SettingsError
from esjobs.records.names.applications import load_applications, shipped

application_of = shipped().of_job


@pytest.mark.parametrize(
    ("executable", "name"),
    [
        *(("vasp_std", "vasp"), ("/sw/vasp/6.4.2/bin/vasp_gam", "vasp"), ("gmx_mpi", "gromacs")),
        *(
            ("lmp_intel_cpu", "lammps"),
            ("namd2", "namd"),
            ("cp2k.popt", "cp2k"),
            ("pw.x", "quantum-espresso"),
        ),
        *(("simpleFoam", "openfoam"), ("pmemd.cuda", "amber"), ("wrf.exe", "wrf"), ("g16", "gaussian")),
        *(("/opt/orca/5.0/orca", "orca"), ("nwchem", "nwchem"), ("abinit", "abinit"), ("siesta", "siesta")),
        *(("cpmd.x", "cpmd"), ("ridft_mpi", "turbomole"), ("starccm+", "star-ccm"), ("fluent", "fluent")),
        *(("ls-dyna_mpp_d", "ls-dyna"), ("abaqus", "abaqus"), ("nek5000", "nek5000"), ("charmm", "charmm")),
        *(("matlab", "matlab"), ("python3.11", "python"), ("Rscript", "r"), ("julia", "julia")),
        # a program whose folder names the package
        *(("/apps/gromacs/2023/bin/run_it", "gromacs"), ("/sw/lammps/lmp", "lammps")),
    ],
)
def test_programs_name_their_application(executable: str, name: str) -> None:
    assert application_of(executable) == name


@pytest.mark.parametrize(
    "text", ["half_life", "dynamic", "flame", "grad", "rest", "bash", "my_orcas", "gmxlike"]
)
def test_words_that_only_hold_a_name_name_nothing(text: str) -> None:
    assert application_of(text, text) is None


def test_evidence_has_an_order() -> None:
    assert application_of("vasp_std", "gromacs") == "vasp"
    assert application_of("a.out", "gromacs-7", "srun lmp -in x") == "lammps"
    # an interpreter starts what the others name
    assert application_of("python3", "vasp_relax") == "vasp"
    assert application_of("python3", None, "module load cp2k\nsrun cp2k.psmp") == "cp2k"
    assert application_of("python3", "anything") == "python"
    # what a comment says is not run
    assert application_of(None, None, "# old: srun vasp_std\nsrun ./a.out") is None


def test_the_table_has_the_codes_that_centres_run_most() -> None:
    table = shipped().listed
    assert len(table) >= 25
    names = [one.name for one in table]
    # what counts last stands last, so that the order of the file is that of the search
    assert names == [one.name for one in sorted(table, key=lambda one: one.interpreter)]


OWN = '[mycode]\nprograms = ["solve_*"]\nwords = ["solver"]\n[vasp]\nprograms = ["Vasp6"]\n'


def test_a_table_of_the_settings_comes_first(tmp_path: Path) -> None:
    table, accounts = tmp_path / "applications.toml", tmp_path / "sacct.txt"
    table.write_text(OWN)
    accounts.write_text(
        "JobIDRaw|Cluster|Partition|Start|End|ElapsedRaw|AllocCPUS|State|JobName\n"
        + "".join(
            f"{job}|c|p|2026-03-01T00:00:00|2026-03-01T01:00:00|3600|4|COMPLETED|{name}\n"
            for job, name in enumerate(["solver-1", "gromacs", "vasp", "vasp6 run"])
        )
    )

    def found(session: esjobs.Session) -> list[str | None]:
        session.ingest("slurm", accounts, fill=["timezone=UTC"])
        rows = session.query("job_name,application").rows.to_pylist()
        return [row["application"] for row in sorted(rows, key=lambda row: row["job_name"])]

    with esjobs.open("duckdb::memory:") as session:
        assert found(session) == ["gromacs", None, "vasp", None]
        with_own = Settings(clusters={"applications": table})
        # the same file is another load by another table
        with esjobs.open(session.store, settings=with_own) as other:
            assert found(other) == ["gromacs", "mycode", "vasp", None]


@pytest.mark.parametrize(
    "text", ["x", '[a]\nwords = ["b"]', "[a]\nprograms = [1]", '[a]\nprograms = ["b"]\nx = 1', "a = 1"]
)
def test_a_wrong_table_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(SettingsError):
        load_applications(tmp_path / "own.toml")
    with pytest.raises(SettingsError):
        load_applications(tmp_path / "absent.toml")
