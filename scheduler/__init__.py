"""The service that runs the nights: its calendar, loop and metrics. None of it knows what a night does."""
