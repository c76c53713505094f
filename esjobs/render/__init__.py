"""Rows as tables, charts, pages and reports."""
