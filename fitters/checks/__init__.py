"""Tests of the model of the fits, from sums that exist."""
