"""The account that servers run under: whoever runs the tests, but never root, whom they refuse."""

import functools
import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.servers.missing import MissingToolError

NAME = "esjobs-test"
_USER_OPTIONS = (
    *("--system", "--user-group", "--no-create-home"),
    *("--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin"),
)
_USER_EXISTS = 9


@dataclass(frozen=True)
class Account:
    """User and group id of the servers; None: the present user."""

    ids: tuple[int, int] | None

    def own(self, folder: Path) -> None:
        """Hand a folder with everything in it to the account, and close it to others."""
        folder.chmod(0o700)
        if self.ids is not None:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, *self.ids)

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a short command under the account; output and errors arrive as one text."""
        user, group = self.ids if self.ids is not None else (None, None)
        return subprocess.run(
            command,
            user=user,
            group=group,
            extra_groups=None if user is None else [],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def can_run(self, program: Path) -> bool:
        """Whether the account reaches a program through all folders above it."""
        return self.run("test", "-x", program).returncode == 0


@functools.cache
def server_account() -> Account:
    """The present user; for root, the system user ``esjobs-test``, made when it is not there.

    Raises ``MissingToolError`` when root has no tool to make it.
    """
    if os.geteuid() != 0:
        return Account(None)
    try:
        entry = pwd.getpwnam(NAME)
    except KeyError:
        _make_user()
        entry = pwd.getpwnam(NAME)
    return Account((entry.pw_uid, entry.pw_gid))


def _make_user() -> None:
    tool = shutil.which("useradd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if tool is None:
        raise MissingToolError(
            f"search servers do not run as root, and useradd is missing to make the user {NAME}"
            " (Debian: passwd); or run the tests as an ordinary user"
        )
    made = subprocess.run(
        [tool, *_USER_OPTIONS, NAME],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode not in {0, _USER_EXISTS}:  # another worker may have been faster
        raise MissingToolError(f"useradd could not make the user {NAME}: {made.stderr.strip()}")
