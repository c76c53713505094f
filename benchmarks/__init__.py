"""Measurements side by side with what else one could use; run by hand, not collected by pytest."""
