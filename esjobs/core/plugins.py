"""Objects that other packages add by entry points: capabilities, formats, detectors.

The project's own are literal tuples; entry points are read for names that are not in them, or for all names.
"""

import logging
from collections.abc import Callable, Collection
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from esjobs.core.errors import UsageError

Checked = TypeVar("Checked")

_log = logging.getLogger(__name__)


def plugin_names(group: str, own: Collection[str]) -> tuple[str, ...]:
    """Return the names that other packages add to a group, sorted; nothing of them is imported.

    >>> plugin_names("esjobs.none", ())
    ()
    """
    return tuple(sorted(entry_points(group=group).names - set(own)))


def plugin(group: str, name: str, check: Callable[[object], Checked]) -> Checked | None:
    """Return the object of another package, as ``check`` returns it; None if no package has the name.

    Raises :class:`UsageError` for an object that cannot be used: package, entry point, why.
    """
    found = tuple(entry_points(group=group, name=name))
    # the same package found twice on the path, as when installed for development, is no conflict
    if len({each.value for each in found}) > 1:
        raise UsageError(
            f"several packages provide entry point '{name}' of {group}: {_packages(found)}; uninstall all "
            "but one"
        )
    if not found:
        return None
    entry = found[0]
    try:
        return check(entry.load())
    except MemoryError:
        raise
    # whatever the code of another package raises, or its exit, must not end the program
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"{_packages([entry])}: entry point '{entry.name}' of {entry.group} ({entry.value}) cannot be "
            f"loaded: {broken(error)}; repair or uninstall the package"
        ) from error


def usable_plugins(
    group: str, own: Collection[str], check: Callable[[object], Checked]
) -> tuple[Checked, ...]:
    """Return the objects of other packages that can be used, sorted by name.

    Logs one line for each other one, and for each whose name is in ``own``.
    """
    usable: list[Checked] = []
    for name in plugin_names(group, ()):
        try:
            if name in own:
                raise UsageError(
                    f"{package_of(group, name)} is ignored: esjobs has its own '{name}' in {group}"
                )
            found = plugin(group, name, check)
        except UsageError as error:
            warn(str(error))
        else:
            usable += [found] if found is not None else []
    return tuple(usable)


def package_of(group: str, name: str) -> str:
    """Return name and version of the package that adds a name to a group; "" if none does."""
    return _packages(entry_points(group=group, name=name))


def broken(error: BaseException) -> str:
    """Return what another package raised, in one line."""
    why = " ".join(str(error).split())
    return f"{type(error).__name__}: {why}" if why else type(error).__name__


@cache
def warn(line: str) -> None:
    """Log a line about a package of others, once per process."""
    _log.warning(line)


def _packages(found: Collection[EntryPoint]) -> str:
    names = {f"{each.dist.name} {each.dist.version}" for each in found if each.dist is not None}
    return " and ".join(sorted(names))
