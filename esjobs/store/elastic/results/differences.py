"""Differences between aliases and the record of what is published."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from esjobs.core.errors import PublishedError
from esjobs.core.tables import Table

Kind = Literal["alias", "gone", "moved", "stranger", "taken"]
"""``alias``: an alias is missing or shows other rows. ``gone``: the index is. ``moved``: an alias of another
index has its name. ``stranger``: an index that is not of esjobs has an alias of ours. ``taken``: an index has
the name of an alias of ours."""

TAKEN = "copy its documents to a different name and delete it, then run 'esjobs setup --repair'"
REPAIR = "'esjobs setup --repair' repairs it, see 'esjobs doctor'"


@dataclass(frozen=True)
class Difference:
    """Index whose aliases and record differ; ``alias``: of a stranger."""

    table: Table
    index: str
    kind: Kind
    what: str
    alias: str = ""

    @property
    def to_do(self) -> str:
        """Remedy."""
        if self.kind == "gone" and self.table.entered:
            return restore_text(self.table)
        return TAKEN if self.kind == "taken" else REPAIR


def difference_error(found: Sequence[Difference]) -> PublishedError:
    """Return one error for all differences."""
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return PublishedError(f"{first.what}{more}; nothing was changed: {first.to_do}")


def restore_text(table: Table) -> str:
    """Return the remedies for lost entered rows."""
    return (
        "restore it from a snapshot, or continue without it: 'esjobs setup --repair --start-empty "
        f"{table.name}'"
    )
