"""Which vendor's server a test needs, told by its name."""

from tests.servers.products import PRODUCTS


def vendor_of(nodeid: str) -> str | None:
    """The vendor of the product that the test's parameters name, as in ``test_x[opensearch3-other]``."""
    _, _, parameters = nodeid.partition("::")[2].partition("[")
    for name in parameters.rpartition("]")[0].split("-"):
        if name in PRODUCTS:
            return PRODUCTS[name].vendor.name
    return None
