#!/bin/sh
# esjobs-talp-wrapper
#
# Runs a launcher of parallel programs under TALP, the monitor of the DLB library. Installed as mpirun, mpiexec or
# srun ahead of the real ones on PATH, or called as: launch.sh LAUNCHER ARGUMENTS (esjobs talp run).
#
# The launcher takes the place of this shell (exec), so that arguments, signals and exit codes are its own. Whatever
# is not as it should be, the program runs all the same, without TALP, and one line on standard error says why.
#
#   ESJOBS_TALP_SPOOL      folder that reports are written to; every node of the job must see it
#   ESJOBS_TALP_LIBRARY    libdlb_mpi.so; else looked for in $DLB_HOME/lib and along LD_LIBRARY_PATH
#   ESJOBS_TALP_COUNTERS   yes: hardware counters, too (DLB built with PAPI)
#   ESJOBS_TALP_SUMMARY    more summaries: process, node, or both with a comma between
#   ESJOBS_TALP_OPENMP     yes: OpenMP, too, of a runtime that has OMPT (DLB before 3.7 needs to be told)
#   ESJOBS_TALP            off: nothing is measured

own=${0##*/}
case $own in
    mpirun | mpiexec | srun | mpiexec.hydra) name=$own ;;
    *)
        if [ $# -eq 0 ]; then
            echo "usage: $own LAUNCHER [ARGUMENT...]" >&2
            exit 2
        fi
        name=$1
        shift
        ;;
esac

is_wrapper() {
    { read -r _ && read -r second; } <"$1" 2>/dev/null
    [ "${second-}" = "# esjobs-talp-wrapper" ]
}

# The first program of that name along PATH that is not this one, or another copy of it.
find_launcher() {
    case $name in
        */*)
            printf '%s\n' "$name"
            return
            ;;
    esac
    rest=$PATH:
    while [ -n "$rest" ]; do
        folder=${rest%%:*}
        rest=${rest#*:}
        candidate=${folder:-.}/$name
        if [ -f "$candidate" ] && [ -x "$candidate" ]; then
            second=
            if ! is_wrapper "$candidate"; then
                printf '%s\n' "$candidate"
                return
            fi
        fi
    done
}

find_library() {
    if [ -n "${ESJOBS_TALP_LIBRARY-}" ]; then
        printf '%s\n' "$ESJOBS_TALP_LIBRARY"
        return
    fi
    rest=${DLB_HOME:+$DLB_HOME/lib:$DLB_HOME/lib64:}${LD_LIBRARY_PATH-}:
    while [ -n "$rest" ]; do
        folder=${rest%%:*}
        rest=${rest#*:}
        if [ -n "$folder" ] && [ -f "$folder/libdlb_mpi.so" ]; then
            printf '%s\n' "$folder/libdlb_mpi.so"
            return
        fi
    done
}

# Which MPI a program or library is linked with, by the names of libraries in it; nothing where they do not tell.
mpi_of() {
    [ "$(head -c 4 "$1" 2>/dev/null | tail -c 3)" = ELF ] || return
    case " $(head -c 67108864 "$1" | LC_ALL=C grep -aoE 'libmpi(ch|chfort|fort)?\.so\.[0-9]+' 2>/dev/null) " in
        *libmpich* | *libmpifort* | *libmpi.so.12*) echo MPICH ;;
        *libmpi.so.[2-9]0*) echo "Open MPI" ;;
    esac
}

# The MPI of the program: of the first argument that is one and is linked with any.
mpi_of_program() {
    looked=0
    for argument in "$@"; do
        looked=$((looked + 1))
        [ $looked -le 64 ] || return
        case $argument in
            -*) continue ;;
            */*) candidate=$argument ;;
            *[!0-9.,:]*) candidate=$(command -v -- "$argument" 2>/dev/null) ;;
            *) continue ;;
        esac
        [ -f "$candidate" ] && [ -x "$candidate" ] || continue
        known=$(mpi_of "$candidate")
        if [ -n "$known" ]; then
            echo "$known"
            return
        fi
    done
}

# What srun is told about the environment of the program, before the program's own arguments begin: "pty" for a
# shell to type in, else why the program would not get what is needed.
srun_keeps() {
    exported=${SLURM_EXPORT_ENV-ALL}
    by=SLURM_EXPORT_ENV
    before=
    for argument in "$@"; do
        case $argument in
            --) break ;;
            --pty)
                echo pty
                return
                ;;
            --export=*) exported=${argument#*=} by=--export ;;
            -*) ;;
            *)
                case $before in
                    --export) exported=$argument by=--export ;;
                    -*) case $argument in */*) [ -f "$argument" ] && [ -x "$argument" ] && break ;; esac ;;
                    *) break ;;
                esac
                ;;
        esac
        before=$argument
    done
    case ,$exported, in
        *,LD_PRELOAD=* | *,DLB_ARGS=*) echo "$by sets LD_PRELOAD or DLB_ARGS, which is left as it is" ;;
        *,[Aa][Ll][Ll],*) ;;
        *,LD_PRELOAD,DLB_ARGS,* | *,LD_PRELOAD,*,DLB_ARGS,*) ;;
        *,DLB_ARGS,LD_PRELOAD,* | *,DLB_ARGS,*,LD_PRELOAD,*) ;;
        *) echo "$by=$exported keeps the environment from the program" ;;
    esac
}

launcher=$(find_launcher)
if [ -z "$launcher" ] || [ ! -e "$launcher" ]; then
    echo "$name: command not found" >&2
    exit 127
elif [ -d "$launcher" ] || [ ! -x "$launcher" ]; then
    echo "$name: cannot be executed" >&2
    exit 126
fi

plainly() {
    echo "esjobs talp: not measured: $1" >&2
}

# mpirun starts its daemons with srun: of those nothing is to be said. What srun itself starts, a shell on a node
# perhaps, may be in a job when srun was not, and is looked at again.
inside() {
    ESJOBS_TALP_ACTIVE=1
    export ESJOBS_TALP_ACTIVE
}

unmeasured() {
    plainly "$why"
    [ "${launcher##*/}" = srun ] || inside
    exec "$launcher" "$@"
}

# Which launcher it is decides how a variable reaches the processes on other nodes.
kind_of() {
    case ${1##*/} in
        srun)
            echo srun
            return
            ;;
    esac
    if command -v timeout >/dev/null 2>&1; then
        said=$(timeout 10 "$1" --version 2>/dev/null </dev/null)
    else
        said=$("$1" --version 2>/dev/null </dev/null)
    fi
    case $said in
        *"Open MPI"* | *OpenRTE* | *"Open RTE"* | *PRRTE*) echo openmpi ;;
        *Intel* | *HYDRA* | *Hydra* | *MPICH* | *MVAPICH*) echo hydra ;;
        *) echo unknown ;;
    esac
}

why=
library=
if [ "${ESJOBS_TALP-}" = off ] || [ -n "${ESJOBS_TALP_ACTIVE-}" ] || [ $# -eq 0 ]; then
    # told so; inside another launch; or nothing to launch: not a word
    exec "$launcher" "$@"
fi

job=${SLURM_JOB_ID:-${PBS_JOBID:-${LSB_JOBID:-${OAR_JOB_ID:-${JOB_ID-}}}}}
spool=${ESJOBS_TALP_SPOOL-}
library=$(find_library)
host=$(uname -n 2>/dev/null)
host=${host%%.*}
case $job in
    "") why="not in a job: no SLURM_JOB_ID, PBS_JOBID, LSB_JOBID, OAR_JOB_ID or JOB_ID" ;;
    [!A-Za-z0-9]* | *[!A-Za-z0-9_.\[\]-]*) why="the job's id has other characters than names of reports may have" ;;
esac
case $host in
    "" | *[!A-Za-z0-9_-]*) host=node ;;
esac
if [ -n "$why" ]; then
    :
elif [ -z "$library" ]; then
    why="libdlb_mpi.so was not found; load the module of DLB or set ESJOBS_TALP_LIBRARY"
elif [ ! -f "$library" ] || [ ! -r "$library" ]; then
    why="there is no library $library"
elif [ -z "$spool" ]; then
    why="ESJOBS_TALP_SPOOL names no folder for reports"
elif [ ! -d "$spool" ] || [ ! -w "$spool" ]; then
    why="reports cannot be written to $spool"
fi
case $library$spool in
    *[[:space:]:]*) why=${why:-"the names of library and folder may have no blanks and colons"} ;;
esac
case " ${DLB_ARGS-} " in
    *--talp-output-file*) why=${why:-"DLB_ARGS names an output file already, which is left as it is"} ;;
esac

[ -z "$why" ] || unmeasured "$@"

kind=$(kind_of "$launcher")
if [ "$kind" = srun ]; then
    why=$(srun_keeps "$@")
    # what is launched from a shell that somebody types in is measured launch by launch
    [ "$why" != pty ] || exec "$launcher" "$@"
fi
# a library for another MPI ends a program before it begins
ours=$(mpi_of "$library")
theirs=$(mpi_of_program "$@")
case $kind in
    openmpi) theirs=${theirs:-Open MPI} ;;
    hydra) theirs=${theirs:-MPICH} ;;
esac
if [ -n "$ours" ] && [ -n "$theirs" ] && [ "$ours" != "$theirs" ]; then
    why=${why:-"$library is for $ours, the program for $theirs"}
fi
[ -z "$why" ] || unmeasured "$@"

report=$spool/talp.$job.$(date -u +%Y%m%dT%H%M%S).$host.$$.json
arguments="--talp --talp-output-file=$report"
[ "${ESJOBS_TALP_COUNTERS-}" = yes ] && arguments="$arguments --talp-papi"
[ "${ESJOBS_TALP_OPENMP-}" = yes ] && arguments="$arguments --ompt --talp-openmp"
case ${ESJOBS_TALP_SUMMARY-} in
    "") ;;
    process | node | process,node | node,process)
        arguments="$arguments --talp-summary=pop-metrics,$ESJOBS_TALP_SUMMARY" ;;
    *) plainly "the summary $ESJOBS_TALP_SUMMARY, which is none of process, node" ;;
esac
args="${DLB_ARGS:+$DLB_ARGS }$arguments"
preload="$library${LD_PRELOAD:+:$LD_PRELOAD}"
inside

case $kind in
    openmpi)
        before=
        for argument in "$@"; do
            # of two -x for one variable Open MPI takes the later one, which is not ours
            case "$before $argument" in
                "-x LD_PRELOAD="* | "--x LD_PRELOAD="* | "-x DLB_ARGS="* | "--x DLB_ARGS="*)
                    why="-x sets ${argument%%=*}, which is left as it is" ;;
                "-x LD_PRELOAD" | "--x LD_PRELOAD") [ -z "${LD_PRELOAD-}" ] || why="-x passes LD_PRELOAD, which is left as it is" ;;
                "-x DLB_ARGS" | "--x DLB_ARGS") [ -z "${DLB_ARGS-}" ] || why="-x passes DLB_ARGS, which is left as it is" ;;
            esac
            before=$argument
            # with the library in some of its processes alone a program would wait for ever at its end
            [ "$argument" = ":" ] && why="several programs in one launch (:) cannot be measured"
        done
        case "${OMPI_MCA_mca_base_env_list-} $*" in
            *mca_base_env_list* | ?*" $*") why="mca_base_env_list excludes what is needed (-x)" ;;
        esac
        [ -z "$why" ] || unmeasured "$@"
        exec "$launcher" -x "LD_PRELOAD=$preload" -x "DLB_ARGS=$args" "$@"
        ;;
    hydra)
        before=
        for argument in "$@"; do
            # the user's stands behind ours, and is the one that counts
            case "$before $argument" in
                -genv\ LD_PRELOAD* | --genv\ LD_PRELOAD* | -env\ LD_PRELOAD* | --env\ LD_PRELOAD* | \
                    -genv\ DLB_ARGS* | --genv\ DLB_ARGS* | -env\ DLB_ARGS* | --env\ DLB_ARGS*)
                    why="$before sets ${argument%%=*}, which is left as it is" ;;
            esac
            before=$argument
        done
        [ -z "$why" ] || unmeasured "$@"
        exec "$launcher" -genv LD_PRELOAD "$preload" -genv DLB_ARGS "$args" "$@"
        ;;
    srun)
        DLB_ARGS=$args
        LD_PRELOAD=$preload
        export DLB_ARGS LD_PRELOAD
        exec "$launcher" "$@"
        ;;
    *)
        why="$launcher is none of Open MPI, Intel MPI, MPICH and srun"
        unmeasured "$@"
        ;;
esac
