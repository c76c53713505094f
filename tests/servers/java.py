"""Finds the newest JDK that a server runs on."""

import functools
import os
import re
import shutil
from pathlib import Path

from tests.servers.account import Account
from tests.servers.missing import MissingToolError
from tests.servers.products import Product

JVM_FOLDER = Path("/usr/lib/jvm")


def java_home(product: Product, account: Account) -> Path:
    """The home of the newest suitable JDK among ``JAVA_HOME``, ``java`` on the path and ``/usr/lib/jvm``.

    Raises ``MissingToolError`` when there is none.
    """
    first, last = product.java
    installed = installed_javas(account)
    suitable = {
        version: home
        for version, home in installed.items()
        if version >= first and (last is None or version <= last)
    }
    if suitable:
        return suitable[max(suitable)]
    wanted = f"{first} or newer" if last is None else f"{first} to {last}"
    package = "openjdk-17-jdk-headless" if first <= 17 else "openjdk-21-jdk-headless, or any newer"
    there = ", ".join(str(version) for version in sorted(installed)) or "none"
    raise MissingToolError(
        f"{product.title} needs a JDK {wanted} (Debian: {package}); found: {there}."
        f" Install one below {JVM_FOLDER} or name it in JAVA_HOME"
    )


@functools.cache
def installed_javas(account: Account) -> dict[int, Path]:
    """Major version -> home of every JDK that the account can start; each is asked for its version, 0.1 s."""
    homes = {home.resolve() for home in _candidates()}
    asked = {home: _major_version(home, account) for home in sorted(homes)}
    return {version: home for home, version in asked.items() if version is not None}


def _candidates() -> list[Path]:
    found = sorted(JVM_FOLDER.glob("*"))
    on_path = shutil.which("java")
    if on_path is not None:
        found.append(Path(on_path).resolve().parents[1])
    if os.environ.get("JAVA_HOME"):
        found.append(Path(os.environ["JAVA_HOME"]))
    return found


def _major_version(home: Path, account: Account) -> int | None:
    java = home / "bin" / "java"
    if not java.is_file():
        return None
    try:
        answer = account.run(java, "-version")
    except OSError:  # not for this processor, or not for this account
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stdout)
    return int(version[1]) if answer.returncode == 0 and version else None
