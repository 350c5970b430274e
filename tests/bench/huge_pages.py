"""Huge pages for PostgreSQL's shared memory, where Linux gives them to us.

Without, each backend comes to each page of the cache by a fault of its own.
"""

import contextlib
import signal
import sys
from pathlib import Path

import psycopg

POOL = Path("/proc/sys/vm/nr_hugepages")


def memory(name):
    """A line of /proc/meminfo: kB, or a count of huge pages."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


def _wanted(cluster):
    """None: a server before version 15 does not tell."""
    try:
        with cluster.connect() as connection:
            return int(connection.execute("SHOW shared_memory_size_in_huge_pages").fetchone()[0])
    except psycopg.errors.UndefinedObject:
        return None


def free():
    return memory("HugePages_Free") - memory("HugePages_Rsvd")


def _reserve(wanted):
    """Whether so many are free now; never more than half of the memory that is available."""
    missing = wanted - free()
    if missing > 0 and 2 * missing * memory("Hugepagesize") < memory("MemAvailable"):
        with contextlib.suppress(OSError):
            POOL.write_text(f"{memory('HugePages_Total') + missing}\n")
    return wanted <= free()


def _start(cluster, has):
    cluster.settings["huge_pages"] = "on" if has else "off"
    cluster.start()


@contextlib.contextmanager
def huge_pages(cluster):
    """Start a running server again, with huge pages or, told on stderr, without any."""
    before = memory("HugePages_Total")
    wanted = _wanted(cluster)
    cluster.stop(signal.SIGINT)
    try:
        has = wanted is not None and _reserve(wanted)
        if has:
            try:
                _start(cluster, True)
            except RuntimeError:  # somebody else took them
                has = False
        if not has:
            print("no huge pages for PostgreSQL: its memory costs it more", file=sys.stderr)
            _start(cluster, False)
        yield
    finally:
        if memory("HugePages_Total") != before:
            POOL.write_text(f"{before}\n")  # those in use go with the server
