"""``python -m esjobs`` is the command line."""

from esjobs.cli import main

if __name__ == "__main__":
    main()
