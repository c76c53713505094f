"""``python -m esjobs``."""

from esjobs.cli import program

if __name__ == "__main__":
    program()
