"""A made-up computing grid that knows its truth: for the demo, the tests of every engine, and benchmarks."""

from esjobs.records.demo.grid import LAST_DAY, Grid
from esjobs.records.demo.truth import CpuTruth, Declaration, PayloadTruth, QueueTruth, Score, Truth

__all__ = ["LAST_DAY", "CpuTruth", "Declaration", "Grid", "PayloadTruth", "QueueTruth", "Score", "Truth"]
