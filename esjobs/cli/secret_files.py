"""Files that hold secrets and that others than their owner may read."""

import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from esjobs.settings import ClusterSettings, Settings
from esjobs.store.elastic.transport.access import login_of
from scheduler.notifications.settings import MailSettings, NotifySettings, Recipient


def exposed(config: Path | None, settings: Settings) -> Iterator[tuple[Path, int]]:
    """Each file of the settings that holds a secret and that the group or all may read, with its mode."""
    files = [] if config is None or not _holds_secret(config) else [config]
    files += [file for model in _models(settings) for file in _files(model)]
    for file in dict.fromkeys(file.expanduser() for file in files):
        try:
            mode = stat.S_IMODE(file.stat().st_mode)
        except OSError:
            # the code that needs the file reports it
            continue
        if mode & 0o044:
            yield file, mode


def _models(value: object) -> Iterator[Any]:
    fields: Any = getattr(type(value), "model_fields", None)
    if fields is not None:
        yield value
        for name in fields:
            yield from _models(getattr(value, name))
    elif isinstance(value, tuple):
        for each in value:
            yield from _models(each)


def _files(model: Any) -> Iterator[Path]:
    """Files named beside a secret (``password_file``), the private key of a client, keys of links."""
    secret = {f"{name}_file" for name in _secret_names(type(model))} | {"key", "key_file"}
    for name in type(model).model_fields:
        value = getattr(model, name)
        if name in secret and isinstance(value, Path):
            yield value


def _secret_names(model: Any) -> set[str]:
    # as text: the type may be optional, or inside another one
    return {name for name, field in model.model_fields.items() if "SecretStr" in str(field.annotation)}


def _holds_secret(config: Path) -> bool:
    """True if a secret stands in the file itself: the environment and other files may have it instead."""
    return _has_secret(tomllib.loads(config.read_text(encoding="utf-8")))


def _has_secret(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_has_secret, value))
    if not isinstance(value, Mapping):
        return False
    # the address of a cluster may hold user and password
    login = login_of(str(value.get("store", "")))[1]
    return login is not None or not _SECRETS.isdisjoint(value) or any(map(_has_secret, value.values()))


_SECRETS: set[str] = set().union(
    *(_secret_names(model) for model in (ClusterSettings, MailSettings, Recipient, NotifySettings))
)
