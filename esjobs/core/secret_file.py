"""Secrets in files, as mounted by systemd or Kubernetes."""

from dataclasses import dataclass
from pathlib import Path

from esjobs.core.errors import SettingsError
from esjobs.core.redact import remember

# Bytes of a file in which its secret is looked for
_LARGEST = 64 << 10


@dataclass(frozen=True)
class SecretFile:
    """File whose first line is a secret; ``what`` names it in errors."""

    what: str
    path: Path

    def get_secret_value(self) -> str:
        """Read the secret, which is redacted from now on. Raises :class:`SettingsError` without one.

        It is read again each time: mounted secrets are rotated.
        """
        try:
            with self.path.expanduser().open("rb") as stream:
                text = stream.read(_LARGEST).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a text file"
            raise SettingsError(
                f"cannot read {self.what} from {self.path}: {reason}; check the path and its permissions"
            ) from None
        # editors end the last line; some end lines with a carriage return
        value = text.partition("\n")[0].removesuffix("\r")
        if not value.strip():
            raise SettingsError(f"cannot read {self.what} from {self.path}: its first line is empty")
        remember(value)
        return value
