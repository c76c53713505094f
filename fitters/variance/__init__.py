"""Variance components: what scatters how much, from sums and residuals."""
