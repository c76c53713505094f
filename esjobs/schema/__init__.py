"""Every table of every capability; imports the core alone."""
