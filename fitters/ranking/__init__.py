"""Grades and intervals of ranks from estimates with errors."""
