"""Definition of a capability: settings, night steps and facade, all imported lazily."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Lazy:
    """Reference ``module:name`` that is imported by :meth:`load` only."""

    where: str

    def load(self) -> Any:
        """Import the module and return the named object."""
        module, _, name = self.where.partition(":")
        return getattr(import_module(module), name)


@dataclass(frozen=True)
class StepEntry:
    """Step of every night, run after those named in ``after``; ``load`` gives a ``NightStep``."""

    name: str
    load: Lazy
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Capability:
    """Everything that a capability adds to the program.

    ``sections``: names and models of its sections of the settings. ``facade``: class behind ``s.NAME``, built
    with a :class:`~esjobs.records.context.Context`. ``offers``: functions for other capabilities, by name.
    ``after_ingest``: function of a context and the account of a load, called after each ingest. ``schema``:
    module with the tables (``TABLES``) and kinds of runs (``KINDS``) of a capability of another package; it
    imports ``esjobs.core`` alone. Those of the project stand in ``esjobs.schema``. ``package``: name and
    version of the other package, filled in when it is found.
    """

    name: str
    sections: tuple[tuple[str, Lazy], ...] = ()
    steps: tuple[StepEntry, ...] = ()
    facade: Lazy | None = None
    # not part of the hash, which a mapping does not have
    offers: Mapping[str, Lazy] = field(default_factory=dict, hash=False)
    after_ingest: Lazy | None = None
    schema: str = ""
    package: str = ""


def ordered(steps: Iterable[StepEntry]) -> tuple[StepEntry, ...]:
    """Return steps in night order: each after those it names, otherwise in the order given.

    Raises :class:`ValueError` for a cycle or an unknown step.

    >>> step = Lazy("esjobs.core.version:__version__")
    >>> [each.name for each in ordered([StepEntry("fit", step, ("ingest",)), StepEntry("ingest", step)])]
    ['ingest', 'fit']
    """
    waiting = list(steps)
    done: dict[str, StepEntry] = {}
    while waiting:
        # the first in order, so that independent steps stay in the order of the catalogue
        ready = next((each for each in waiting if done.keys() >= set(each.after)), None)
        if ready is None:
            raise ValueError(
                f"the steps {', '.join(each.name for each in waiting)} wait for each other or for an unknown "
                "step"
            )
        done[ready.name] = ready
        waiting.remove(ready)
    return tuple(done.values())
