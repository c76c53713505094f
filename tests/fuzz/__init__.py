"""Attacks on everything that reads what others wrote: ``python -m tests.fuzz --minutes 60``."""
