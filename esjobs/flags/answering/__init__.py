"""Answers of sites: signed links, the journal of what people enter on pages, and its entry by the nights."""
