#%Module1.0
# Module file for Environment Modules: parallel efficiency of the programs that a job launches, on the page of the job.
# Put it into a folder of MODULEPATH under the name esjobs-talp, and set the three values.

set wrappers /opt/esjobs-talp/bin    ;# made by: esjobs talp wrappers /opt/esjobs-talp/bin
set spool    /scratch/talp           ;# every node sees it and everybody may write: mkdir -m 1733
set library  ""                      ;# libdlb_mpi.so; empty: of the module of DLB (DLB_HOME)

proc ModulesHelp { } {
    puts stderr "Measures the parallel efficiency (POP metrics) of mpirun, mpiexec and srun with TALP."
    puts stderr "ESJOBS_TALP=off switches it off; ESJOBS_TALP_COUNTERS=yes adds hardware counters."
}
module-whatis "parallel efficiency of jobs by TALP (DLB)"

prepend-path PATH $wrappers
setenv ESJOBS_TALP_SPOOL $spool
if { $library ne "" } {
    setenv ESJOBS_TALP_LIBRARY $library
}
