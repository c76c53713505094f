"""Tables of the package that the settings of a store may replace."""

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

Table = TypeVar("Table")


class OfStore(Generic[Table]):
    """Table of each store: its own if one was supplied, else the shipped one, read at first use."""

    def __init__(self, shipped: Callable[[], Table]) -> None:
        self._shipped = shipped
        # weak: a store that is closed and gone does not stay in memory for its table
        self._own: weakref.WeakKeyDictionary[object, Table] = weakref.WeakKeyDictionary()

    def use(self, store: object, table: Table) -> None:
        """Answer questions to a store by this table."""
        self._own[store] = table

    def of(self, store: object) -> Table:
        """Return the table of a store."""
        return self._own[store] if store in self._own else self._shipped()
