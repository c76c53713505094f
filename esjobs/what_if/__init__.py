"""Forecasts of changes: moved tasks, free cores, declared values, sites without work, new machines."""

from esjobs.core.capability import Capability, Lazy

CAPABILITY = Capability("what_if", facade=Lazy("esjobs.what_if.facade:WhatIf"))
