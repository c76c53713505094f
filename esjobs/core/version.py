"""Version of the program, importable from everywhere."""

__version__ = "1.0.0"
