"""The servers under test: versions, coordinates, differences. Every fact about one stands here only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Setting = str | int | bool | list[str]
VendorName = Literal["elasticsearch", "opensearch"]


@dataclass(frozen=True)
class Vendor:
    """What all versions of one product family share.

    ``name``: also the artifact, the start script, the stem of the settings file and the xdist group.
    ``variables``: start of the names of the environment variables that the start script reads.
    """

    name: VendorName
    group: str
    variables: str


ELASTICSEARCH = Vendor("elasticsearch", "org.elasticsearch.distribution.integ-test-zip", "ES")
OPENSEARCH = Vendor("opensearch", "org.opensearch.distribution.integ-test-zip", "OPENSEARCH")


@dataclass(frozen=True)
class Product:
    """One version of a server, from the vendor's minimal distribution: few modules, no scripts.

    ``java``: first and last major version of the JDK that it runs on; None: no upper limit known.
    ``answers_root``: ``GET /`` tells the version; the minimal Elasticsearch says 405, ask ``_nodes/_local``.
    ``has_security``: users and roles can be switched on.
    ``settings``: what this version needs to be told when security is off.
    """

    name: str
    title: str
    vendor: Vendor
    version: str
    java: tuple[int, int | None]
    answers_root: bool
    has_security: bool
    settings: Mapping[str, Setting]

    @property
    def artifact(self) -> str:
        """The coordinates for Maven."""
        return f"{self.vendor.group}:{self.vendor.name}:{self.version}:zip"

    @property
    def folder_name(self) -> str:
        """The folder at the top of the archive."""
        return f"{self.vendor.name}-{self.version}"


_NO_SECURITY: Mapping[str, Setting] = {"xpack.security.enabled": False}

PRODUCTS: Mapping[str, Product] = {
    product.name: product
    for product in (
        Product(
            name="elasticsearch8",
            title="Elasticsearch 8",
            vendor=ELASTICSEARCH,
            version="8.19.9",
            java=(17, None),
            answers_root=False,
            has_security=True,
            settings=_NO_SECURITY,
        ),
        Product(
            name="elasticsearch9",
            title="Elasticsearch 9",
            vendor=ELASTICSEARCH,
            version="9.2.4",
            java=(21, None),
            answers_root=False,
            has_security=True,
            settings=_NO_SECURITY,
        ),
        Product(
            name="opensearch3",
            title="OpenSearch 3",
            vendor=OPENSEARCH,
            version="3.3.2",
            java=(21, None),
            answers_root=True,
            has_security=False,
            settings={},
        ),
        Product(
            name="opensearch2",
            title="OpenSearch 2",
            vendor=OPENSEARCH,
            version="2.19.3",
            java=(11, 23),  # it needs the security manager, which JDK 24 took away
            answers_root=True,
            has_security=False,
            settings={},
        ),
    )
}
"""Name -> product, in the order in which tests visit them."""
