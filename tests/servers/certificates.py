"""Certificates of a made-up authority, for servers and clients on this machine."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import trustme

HERE = ("localhost", "127.0.0.1")


@dataclass(frozen=True)
class Pair:
    """Files of a certificate and of its key, PEM."""

    certificate: str
    key: str


class Authority:
    """Issues certificates; ``ca_file`` is what trusts them. All files are in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ca = trustme.CA()
        self.ca_file = str(folder / "ca.pem")
        self._ca.cert_pem.write_to_path(self.ca_file)

    @classmethod
    def at(cls, folder: Path) -> Self:
        """One in a folder that is made."""
        folder.mkdir()
        return cls(folder)

    def issue(self, *names: str) -> Pair:
        """A certificate for these names and addresses."""
        issued = self._ca.issue_cert(*names)
        stem = names[0].replace("@", "-")
        pair = Pair(str(self._folder / f"{stem}.pem"), str(self._folder / f"{stem}.key"))
        for number, blob in enumerate(issued.cert_chain_pems):
            blob.write_to_path(pair.certificate, append=number > 0)
        issued.private_key_pem.write_to_path(pair.key)
        return pair

    def server(self, *names: str, demands: str | None = None) -> ssl.SSLContext:
        """How a server of these names speaks TLS; ``demands``: CA bundle of the clients it wants."""
        pair = self.issue(*(names or HERE))
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=demands)
        made.load_cert_chain(pair.certificate, pair.key)
        if demands is not None:
            made.verify_mode = ssl.CERT_REQUIRED
        return made
