"""End states of jobs by kind; every list of states derives from these."""

from collections.abc import Mapping

FINISHED = ("finished",)
"""The job did what it was for."""

FAILED_KINDS: Mapping[str, tuple[str, ...]] = {
    "failed": ("failed",),
    # Slurm's DEADLINE: ended at the deadline that the user had set
    "timeout": ("timeout", "deadline"),
    "out of memory": ("out_of_memory",),
    "node failure": ("node_fail", "boot_fail", "launch_failed", "reconfig_fail"),
}
"""Kinds of failure, in the order in which they are shown, each with its states (those of Slurm's sacct)."""

FAILED = tuple(state for states in FAILED_KINDS.values() for state in states)
"""The job was ended by itself, its machine or a limit before it had done what it was for: its hours are lost.

A state that is missing or not listed here is neither success nor failure; rates leave such jobs out, and say
how many.
"""

CANCELLED = ("cancelled", "closed", "preempted")
"""Somebody's decision, or the scheduler's: neither success nor failure, and a kind of its own beside it."""

UNFINISHED_KINDS: Mapping[str, tuple[str, ...]] = {**FAILED_KINDS, "cancelled": CANCELLED}
"""Kinds of jobs that ended without having finished."""

UNFINISHED = (*FAILED, *CANCELLED)
"""States of jobs that ended without having finished."""

ALL_STATES = (*FINISHED, *FAILED, *CANCELLED)
"""Every state that says how a job ended."""
