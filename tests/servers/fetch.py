"""Gets a server's archive with Maven's own client and unpacks it once into a cache."""

import fcntl
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.account import Account
from tests.servers.missing import MissingToolError
from tests.servers.products import Product

CACHE_NAME = "esjobs-tests"
ROOT_CACHE = Path("/var/cache")
_DOWNLOAD_TIMEOUT_S = 600


def unpacked(product: Product, account: Account) -> Path:
    """The folder of the unpacked server: 50 to 130 MB, fetched by the first who asks, then read only.

    Raises ``MissingToolError`` without Maven, when the archive cannot be had, or when the servers' account
    may not enter the cache.
    """
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    place = cache / product.folder_name
    if not place.is_dir():
        with _lock(cache / f"{product.folder_name}.lock"):
            if not place.is_dir():
                _install(product, place)
    if not account.can_run(place / "bin" / product.vendor.name):
        raise MissingToolError(
            f"the servers' account may not enter {place}: set XDG_CACHE_HOME to a folder that is open to all"
        )
    return place


def cache_folder() -> Path:
    """``esjobs-tests`` in the user's cache; for root, whose home is closed to the servers, in /var/cache."""
    if os.geteuid() == 0 and not os.environ.get("XDG_CACHE_HOME"):
        return ROOT_CACHE / CACHE_NAME
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / CACHE_NAME


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock between processes; the system releases it even when the holder is killed."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(product: Product, place: Path) -> None:
    """Unpack aside and rename, so that a folder under the final name is always whole."""
    beginning = f"{place.name}.part-"
    for left_over in place.parent.glob(f"{beginning}*"):  # we hold the lock: nobody works on it
        shutil.rmtree(left_over)
    with tempfile.TemporaryDirectory(prefix=beginning, dir=place.parent) as aside:
        archive = _download(product, Path(aside) / "archive")
        _unpack(archive, Path(aside) / "tree")
        (Path(aside) / "tree" / product.folder_name).rename(place)


def _download(product: Product, folder: Path) -> Path:
    maven = shutil.which("mvn")
    if maven is None:
        raise MissingToolError(f"Maven fetches {product.title} and is missing (Debian: maven)")
    folder.mkdir()
    # "get" asks the repositories, "copy" takes the file from wherever settings.xml lets Maven keep it
    for step in (
        ["dependency:get", "-Dtransitive=false"],
        ["dependency:copy", f"-DoutputDirectory={folder}"],
    ):
        try:
            done = subprocess.run(
                [maven, "-q", "-B", *step, f"-Dartifact={product.artifact}"],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_DOWNLOAD_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise MissingToolError(f"Maven could not fetch {product.artifact}: {error}") from error
        if done.returncode != 0:
            raise MissingToolError(f"Maven could not fetch {product.artifact}: {_reason(done.stdout)}")
    return folder / f"{product.folder_name}.zip"


def _reason(output: str) -> str:
    """The first error that Maven names; all that it said, if it names none."""
    return next((line for line in output.splitlines() if "[ERROR]" in line), output).strip()


def _unpack(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            path = file.extract(member, folder)
            mode = member.external_attr >> 16 & 0o777
            if mode:  # extract() forgets that a script may be run
                Path(path).chmod(mode | 0o444)
