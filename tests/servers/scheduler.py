"""Distribution of tests to processes: all tests of a vendor's servers go to one, so do those of a file."""

from xdist.scheduler import LoadGroupScheduling

from tests.servers.vendors import vendor_of


class VendorScheduling(LoadGroupScheduling):  # type: ignore[misc]  # it has no types
    """``--dist loadgroup`` that knows a server's tests by their names.

    pytest-xdist 3.8 hands groups to the scheduler in a field that pytest 9.2 no longer reads, so that tests
    with the mark ``xdist_group`` are distributed as if they had none.

    The other tests go file by file: what a file builds for its tests is built once. Tests run in the order of
    the collection; pytest-xdist would begin with the groups that have most tests, which are the servers'.
    """

    def schedule(self) -> None:
        """Keep the order of the collection."""
        self.config.option.loadscopereorder = False
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        found = vendor_of(nodeid)
        return nodeid.partition("::")[0] if found is None else found
