"""Files and folders that are written by name."""
