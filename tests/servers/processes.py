"""Which processes of a server live, seen from outside."""

import psutil

from tests.servers.server import Server


def server_pids(server: Server) -> set[int]:
    """Every process of a running server, guards included."""
    guards = [psutil.Process(node.guard_pid) for node in server.nodes if node.guard_pid is not None]
    return {process.pid for guard in guards for process in (guard, *guard.children(recursive=True))}


def alive(pids: set[int]) -> set[int]:
    """Those that still live; what only waits to be collected by its parent does not."""
    return {pid for pid in pids if _lives(pid)}


def _lives(pid: int) -> bool:
    try:
        state: str = psutil.Process(pid).status()
        return state != str(psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
