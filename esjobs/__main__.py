"""``python -m esjobs``."""

from esjobs.cli.start import program

if __name__ == "__main__":
    program()
