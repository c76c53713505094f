"""``esjobs serve --once`` at a moment that is given, as a process of its own.

``python -m tests.scheduler.once STORE MOMENT [COMMAND ...]``; settings come from the environment.
"""

import sys
from datetime import datetime
from functools import partial

from esjobs.cli import nightly
from esjobs.cli.main import main

if __name__ == "__main__":
    store, moment, *command = sys.argv[1:]
    now = datetime.fromisoformat(moment)
    nightly.Trigger = partial(nightly.Trigger, clock=lambda: now)  # type: ignore[misc,assignment]
    main(["--store", store, *(command or ["serve", "--once"])])
