"""What the verdicts of one fit say together: who deviates, how surely, what may be sent."""

from collections.abc import Sequence

from dashboards.cells import count, percent, visible
from dashboards.rows import Row

_JUDGED = ("deviates", "ok", "undecided")


def conclusion(flags: Sequence[Row], what: str, limit: float) -> tuple[str, ...]:
    """Paragraphs about the flags of one fit; none when no name deviates.

    ``what``: what the names are called. ``limit``: the accepted deviation. Every deviating name is named, the
    largest deviation first. Only stable verdicts may be sent; those that are not significant are pointed out.

    >>> row = {"verdict": "deviates", "name": "A", "deviation": -0.4, "significant": True, "stable": True}
    >>> print(conclusion([row | {"n_tasks": 7}], "sites", 0.2)[0].replace("\\u202f", " "))
    1 of 1 comparable sites deviates by more than 20 %: A −40 %.
    """
    judged = [flag for flag in flags if flag["verdict"] in _JUDGED]
    found = [flag for flag in judged if flag["verdict"] == "deviates"]
    if not found:
        return ()
    found.sort(key=lambda flag: (-abs(flag["deviation"] or 0.0), str(flag["name"])))
    named = ", ".join(f"{visible(str(flag['name']))} {percent(flag['deviation'])}" for flag in found)
    first = (
        f"{count(len(found))} of {count(len(judged))} comparable {what} {_deviate(len(found))} by more than "
        f"{percent(limit).lstrip('+')}: {named}."
    )
    return first, f"{_certain(found)} {_rest(judged)}".strip()


def _deviate(names: int) -> str:
    return "deviates" if names == 1 else "deviate"


def _certain(found: Sequence[Row]) -> str:
    """How many are significant, how many stable, and what follows for sending."""
    sure = [flag for flag in found if flag["significant"]]
    stable = [flag for flag in found if flag["stable"]]
    chance = [flag for flag in stable if not flag["significant"]]
    if len(found) == 1:
        text = f"It is {'' if sure else 'not '}significant over all tests of the run and "
        text += (
            "stable under every tried change: it may be sent."
            if stable
            else "not stable: it may not be sent."
        )
    else:
        are = "is" if len(sure) < 2 else "are"
        text = f"{_share(sure, found).capitalize()} {are} significant over all tests of the run, "
        text += f"{_share(stable, found)} stable under every tried change: {_sent(stable, found)}."
    return text + (f" Not significant, so perhaps chance: {_names(chance)}." if chance else "")


def _sent(stable: Sequence[Row], found: Sequence[Row]) -> str:
    if not stable:
        return "none may be sent"
    return f"{'all' if len(stable) == len(found) else 'only ' + _names(stable)} may be sent"


def _names(flags: Sequence[Row]) -> str:
    return ", ".join(visible(str(flag["name"])) for flag in flags)


def _share(part: Sequence[Row], whole: Sequence[Row]) -> str:
    if not part:
        return "none"
    return (
        f"all {count(len(whole))}"
        if len(part) == len(whole)
        else f"{count(len(part))} of {count(len(whole))}"
    )


def _rest(judged: Sequence[Row]) -> str:
    """The other verdicts of comparison, and whether single tasks stand in the way of more."""
    verdicts = [flag["verdict"] for flag in judged]
    text = f"The others: {count(verdicts.count('ok'))} ok, {count(verdicts.count('undecided'))} undecided."
    single = sum(flag["n_tasks"] == 1 for flag in judged)
    if 2 * single > len(judged):
        text += (
            f" {count(single)} of {count(len(judged))} rest on a single task: more tasks in common would "
            "tell site from task, more jobs of the same tasks would not."
        )
    return text
