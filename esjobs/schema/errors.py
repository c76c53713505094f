"""Words of lost work by reason; it is computed when asked and has no table."""

from esjobs.core.tables import Table

BY = ("error_category", "error")
"""Groupings of lost work."""

NOT_SHOWN = ("lost_core_h", "cancelled_core_h")
"""Columns of lost work that files have and the terminal omits."""

# a black hole fails jobs faster than others finish theirs, and so attracts more
BLACK_HOLE, FAILING = "black hole", "failing node"
"""Kinds of nodes that are found: jobs fail fast and many, jobs fail."""

NODE_NOT_SHOWN = ("node", "q_value", "slow")
"""Columns of nodes that files have and the terminal omits."""

TABLES: tuple[Table, ...] = ()
