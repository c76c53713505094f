"""The steps of every night, in order."""

import pytest

from esjobs.capabilities import CAPABILITIES
from esjobs.core.capability import Lazy, StepEntry, ordered
from scheduler.steps import night_steps


def test_the_order_of_a_night() -> None:
    names = [step.name for step in night_steps(CAPABILITIES)]
    assert (
        " ".join(names)
        == "enter ingest talp aggregate backfill fit drift decompose watch today detect score notify prune"
    )


def test_every_entry_has_the_name_of_its_step() -> None:
    entries = [entry for capability in CAPABILITIES for entry in capability.steps]
    assert {entry.name: entry.load.load().name for entry in entries} == {
        each.name: each.name for each in entries
    }


def test_every_reference_can_be_imported() -> None:
    for each in CAPABILITIES:
        lazy = [model for _, model in each.sections] + list(each.offers.values())
        for one in (*lazy, *filter(None, (each.facade, each.after_ingest))):
            assert callable(one.load()), one.where


def test_steps_that_wait_for_each_other_are_refused() -> None:
    here = Lazy("scheduler.files:INGEST")
    with pytest.raises(ValueError, match="wait for each other"):
        ordered([StepEntry("a", here, ("b",)), StepEntry("b", here, ("a",))])
