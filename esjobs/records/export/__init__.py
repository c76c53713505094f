"""Stored jobs, written for others."""
