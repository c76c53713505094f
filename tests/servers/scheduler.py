"""Which process gets which test: all tests of a vendor's servers go to the same one."""

from xdist.scheduler import LoadGroupScheduling

from tests.servers.vendors import vendor_of


class VendorScheduling(LoadGroupScheduling):  # type: ignore[misc]  # it has no types
    """``--dist loadgroup`` that knows a server's tests by their names.

    pytest-xdist 3.8 hands groups to the scheduler in a field that pytest 9.2 no longer reads, so that tests
    with the mark ``xdist_group`` are distributed as if they had none.
    """

    def _split_scope(self, nodeid: str) -> str:
        found = vendor_of(nodeid)
        scope: str = super()._split_scope(nodeid) if found is None else found
        return scope
