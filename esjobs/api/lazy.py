"""Facades of a session, imported at their first use."""

from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from esjobs.core.capability import Lazy

if TYPE_CHECKING:
    from esjobs.api.session import Session

Made = TypeVar("Made")


class FacadeOf(Generic[Made]):
    """Attribute of a session that builds its facade once, with the context of the session.

    ``source``: name of a capability, or ``module:class``.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, session: None, owner: type) -> "FacadeOf[Made]": ...
    @overload
    def __get__(self, session: "Session", owner: type) -> Made: ...
    def __get__(self, session: "Session | None", owner: type) -> "FacadeOf[Made] | Made":
        if session is None:
            return self
        context, source = session._context, self._source
        made: Any = Lazy(source).load()(context) if ":" in source else context.facade(source)
        # without __set__ the attribute of the instance wins: the next access does not come here
        vars(session)[self._name] = made
        return made  # type: ignore[no-any-return]
