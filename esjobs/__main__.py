"""``python -m esjobs``."""

from esjobs.cli.start import command

if __name__ == "__main__":
    command()
