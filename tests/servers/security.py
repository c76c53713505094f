"""Users and roles of an Elasticsearch with security on, written as files before it starts."""

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.servers.products import Setting

ADMIN = "esjobs-test-admin"
SETTINGS: Mapping[str, Setting] = {
    "xpack.security.enabled": True,
    "xpack.security.enrollment.enabled": False,
    "xpack.security.transport.ssl.enabled": False,
    "xpack.security.http.ssl.enabled": False,
}
_ITERATIONS = 1000
_SALT_B = 32
_HASH_B = 32


@dataclass(frozen=True)
class Role:
    """What a role may do: index pattern -> privileges, and privileges on the cluster."""

    indices: Mapping[str, Sequence[str]]
    cluster: Sequence[str] = ()


@dataclass(frozen=True)
class Security:
    """Roles by name, and the roles of each user. Everybody gets a made-up password, an admin, too."""

    roles: Mapping[str, Role]
    users: Mapping[str, Sequence[str]]
    passwords: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.passwords.update({name: secrets.token_urlsafe(12) for name in (ADMIN, *self.users)})

    def login(self, user: str = ADMIN) -> tuple[str, str]:
        """Name and password."""
        return user, self.passwords[user]

    def write(self, config: Path) -> None:
        """Write the files of the server's realm, as bin/elasticsearch-users does, without a JVM per user."""
        roles = {
            name: {
                "cluster": list(role.cluster),
                "indices": [
                    {"names": [pattern], "privileges": list(privileges)}
                    for pattern, privileges in role.indices.items()
                ],
            }
            for name, role in self.roles.items()
        }
        # the server cuts the file into roles by lines
        written = [f"{name}: {json.dumps(role)}\n" for name, role in roles.items()]
        (config / "roles.yml").write_text("".join(written), encoding="utf-8")
        lines = [f"{name}:{_hashed(password)}\n" for name, password in self.passwords.items()]
        (config / "users").write_text("".join(lines), encoding="utf-8")
        members: dict[str, list[str]] = {"superuser": [ADMIN]}
        for user, names in self.users.items():
            for name in names:
                members.setdefault(name, []).append(user)
        lines = [f"{name}:{','.join(users)}\n" for name, users in members.items()]
        (config / "users_roles").write_text("".join(lines), encoding="utf-8")


def _hashed(password: str) -> str:
    """The password in the server's format for PBKDF2."""
    salt = secrets.token_bytes(_SALT_B)
    key = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, _ITERATIONS, _HASH_B)
    return f"{{PBKDF2}}{_ITERATIONS}${base64.b64encode(salt).decode()}${base64.b64encode(key).decode()}"
