"""The version of the program; a module of its own, which everybody may import."""

__version__ = "0.1.0"
