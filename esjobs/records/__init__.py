"""What comes in and is asked of it: formats, jobs, names, declared values, references, series."""
