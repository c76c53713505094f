"""Applications by programs, paths, scripts and names: every code of the table, and words that look alike."""

import pytest

from esjobs.records.names.applications import application_of, applications


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
    table = applications()
    assert len(table) >= 25
    names = [one.name for one in table]
    # what counts last stands last, so that the order of the file is that of the search
    assert names == [one.name for one in sorted(table, key=lambda one: one.interpreter)]
