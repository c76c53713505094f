"""Steps of every night in order: those of all capabilities, each after its predecessors."""

from collections.abc import Iterable, Iterator

from esjobs.core.capability import Capability, StepEntry, ordered
from esjobs.core.plugins import broken, warn
from esjobs.records.night import NightStep


def night_steps(capabilities: Iterable[Capability]) -> tuple[NightStep, ...]:
    """Return the steps of a night.

    A step that follows from the runs of a night alone takes :func:`esjobs.records.night.runs_inputs` and runs
    again only with them; one with external inputs (pending mail) runs every time.
    """
    chosen = tuple(capabilities)
    # ours first: a step of another package cannot take the name of one
    own = [entry for each in chosen if not each.package for entry in each.steps]
    steps = {entry.name: entry.load.load() for entry in own}
    foreign = [step for each in chosen if each.package for step in _usable(each, steps)]
    return tuple(steps[entry.name] for entry in ordered([*own, *foreign]))


def _usable(capability: Capability, steps: dict[str, NightStep]) -> Iterator[StepEntry]:
    """Yield the steps of another package that can run, and add them to ``steps``; log a line of others."""
    for entry in capability.steps:
        try:
            if entry.name in steps or not steps.keys() >= set(entry.after):
                raise ValueError("its name is taken, or a step in its list `after` does not exist")
            step = entry.load.load()
            if not isinstance(step, NightStep):
                raise TypeError("not a NightStep of esjobs.records.night")
        except MemoryError:
            raise
        # the code of another package must not end the night
        except (Exception, SystemExit) as error:
            warn(f"{capability.package}: night step '{entry.name}' cannot be loaded: {broken(error)}")
        else:
            steps[entry.name] = step
            yield entry
