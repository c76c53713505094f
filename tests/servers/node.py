"""One process of a server: its folder, its settings, its start and its end."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.servers import guard
from tests.servers.account import Account
from tests.servers.products import Product, Setting
from tests.servers.security import Security

_STOP_TIMEOUT_S = 30.0
_NOT_OURS = re.compile(r"-Xm[sx]|gc\.log|HeapDump|ErrorFile")
"""Options of the vendor that set the heap, or write beside the program, which all servers share."""

QUICK_START = ("-XX:TieredStopAtLevel=1",)
"""Without the second compiler a start takes 5 to 8 s of processor time, not 10 to 12; not for benchmarks."""

_JAVA_OPTIONS = ("-XX:-UsePerfData",)


@dataclass(frozen=True)
class Program:
    """What a node runs: the unpacked product, a JDK, and the account."""

    product: Product
    home: Path
    java_home: Path
    account: Account


class Node:
    """A process that can be started, stopped and killed again and again; ports and data stay.

    ``folder``: configuration, data and logs; belongs to the node alone. ``java_options``: for the JVM.
    """

    def __init__(
        self,
        program: Program,
        folder: Path,
        settings: Mapping[str, Setting],
        heap_mb: int,
        guarded: Path,
        java_options: Sequence[str] = QUICK_START,
    ) -> None:
        self.name = folder.name
        self.folder = folder
        self.program = program
        self.settings = settings
        self.heap_mb = heap_mb
        self.guarded = guarded
        self.java_options = tuple(java_options)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.settings['http.port']}"

    @property
    def running(self) -> bool:
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def guard_pid(self) -> int | None:
        """The process that has the server as its child."""
        return self._process.pid if self._process is not None and self.running else None

    def prepare(self, security: Security | None) -> None:
        """Write the configuration into the folder and hand it to the servers' account."""
        vendor = self.program.product.vendor
        for name in ("data", "logs", "tmp"):
            (self.folder / name).mkdir(parents=True)
        config = self.folder / "config"
        shutil.copytree(self.program.home / "config", config)
        paths = {"path.data": str(self.folder / "data"), "path.logs": str(self.folder / "logs")}
        settings = {"node.name": self.name, **paths, **self.settings}
        # JSON is YAML
        (config / f"{vendor.name}.yml").write_text(json.dumps(settings, indent=1), encoding="utf-8")
        vendors = (config / "jvm.options").read_text(encoding="utf-8").splitlines()
        ours = [f"-Xms{self.heap_mb}m", f"-Xmx{self.heap_mb}m", *_JAVA_OPTIONS, *self.java_options]
        ours.append(f"-XX:ErrorFile={self.folder / 'logs' / 'hs_err.log'}")
        kept = [line for line in vendors if not _NOT_OURS.search(line)]
        (config / "jvm.options").write_text("\n".join([*kept, *ours, ""]), encoding="utf-8")
        if security is not None:
            security.write(config)
        self.program.account.own(self.folder)

    def start(self) -> None:
        """Start the process; it does not answer yet."""
        if self.running:
            return
        program, vendor = self.program, self.program.product.vendor
        self._release()
        user, group = program.account.ids if program.account.ids is not None else ("-", "-")
        guarded = [sys.executable, "-I", "-S", guard.__file__]
        with (self.folder / "console.log").open("ab") as console:
            self._process = subprocess.Popen(
                [*guarded, str(self.guarded), str(user), str(group), str(program.home / "bin" / vendor.name)],
                stdin=subprocess.PIPE,
                stdout=console,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,
                env={
                    "PATH": os.environ.get("PATH", os.defpath),
                    "HOME": str(self.folder),
                    f"{vendor.variables}_JAVA_HOME": str(program.java_home),
                    f"{vendor.variables}_PATH_CONF": str(self.folder / "config"),
                    f"{vendor.variables}_TMPDIR": str(self.folder / "tmp"),
                },
            )

    def stop(self) -> None:
        """End the process gracefully; kill it when that takes too long."""
        self._order(b"t", _STOP_TIMEOUT_S)
        self.kill()

    def kill(self) -> None:
        """End the process as a power cut does (signal 9)."""
        self._order(b"k", _STOP_TIMEOUT_S)
        self._release()

    def log_tail(self, lines: int = 25) -> str:
        """The end of what it wrote to the console."""
        console = self.folder / "console.log"
        text = console.read_text(encoding="utf-8", errors="replace") if console.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def _order(self, letter: bytes, timeout_s: float) -> None:
        if self._process is None or self._process.stdin is None or not self.running:
            return
        try:
            self._process.stdin.write(letter)
            self._process.stdin.flush()
        except BrokenPipeError:  # it ended by itself in this moment
            pass
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return

    def _release(self) -> None:
        """Close the pipe, which makes the guard kill what is left, and take leave of the guard."""
        if self._process is not None:
            if self._process.stdin is not None:
                self._process.stdin.close()
            try:
                self._process.wait(_STOP_TIMEOUT_S)
            except (
                subprocess.TimeoutExpired
            ):  # its server is not to be had, as a process in a dead disk's hands
                self._process.kill()
                self._process.wait()
            self._process = None
