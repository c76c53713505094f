-- Module file for Lmod: parallel efficiency of the programs that a job launches, on the page of the job.
-- Put it into a folder of MODULEPATH, and set the three values.

local wrappers = "/opt/esjobs-talp/bin"    -- made by: esjobs talp wrappers /opt/esjobs-talp/bin
local spool = "/scratch/talp"              -- every node sees it and everybody may write: mkdir -m 1733
local library = ""                         -- libdlb_mpi.so; empty: of the module of DLB (DLB_HOME)

help([[Measures the parallel efficiency (POP metrics) of mpirun, mpiexec and srun with TALP.
ESJOBS_TALP=off switches it off; ESJOBS_TALP_COUNTERS=yes adds hardware counters.]])
whatis("Name: esjobs-talp")
whatis("Description: parallel efficiency of jobs by TALP (DLB)")

prepend_path("PATH", wrappers)
setenv("ESJOBS_TALP_SPOOL", spool)
if library ~= "" then
    setenv("ESJOBS_TALP_LIBRARY", library)
end
