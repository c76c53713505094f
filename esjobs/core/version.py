"""Version of the program, importable from everywhere."""

__version__ = "0.1.0"
