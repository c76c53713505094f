"""Variance components from sums and residuals."""
