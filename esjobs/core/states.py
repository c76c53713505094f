"""How jobs end: which states of the catalogue mean success, which mean failure."""

FINISHED = ("finished",)
"""The job did what it was for."""

FAILED = (
    "failed",
    "timeout",
    "out_of_memory",
    "node_fail",
    "boot_fail",
    "deadline",
    "launch_failed",
    "reconfig_fail",
)
"""The job ended by itself, its machine or a limit, before it had done what it was for.

Somebody's decision (``cancelled``, ``closed``, ``preempted``) is neither success nor failure, and neither is
a state that is missing or not known here: rates leave such jobs out, and say how many.
"""
