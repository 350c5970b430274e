"""What every benchmark measures with: processes, medians, goals, the table, the file."""

import json
import os
import platform
import resource
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


# -- processes --

class Gauge:
    """What a process takes, as Linux tells."""

    def __init__(self, pid):
        self.proc = Path(f"/proc/{pid}")

    def octets(self):
        """Resident memory."""
        pages = int((self.proc / "statm").read_text().split()[1])
        return pages * resource.getpagesize()

    def descriptors(self):
        return len(list((self.proc / "fd").iterdir()))

    def processor(self):
        """Seconds of processor time."""
        return sum(_times(self.proc)[1:3])


def _times(proc):
    """A process's parent, its seconds in user and kernel mode, those of its ended children."""
    fields = (proc / "stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[1]), *(int(field) / TICKS for field in fields[11:15])


def processor(*pids):
    """Seconds of processor time of processes and of all that they started."""
    seconds, children = {}, {}
    for proc in Path("/proc").glob("[0-9]*"):
        try:
            parent, *times = _times(proc)
        except (FileNotFoundError, ProcessLookupError):
            continue
        seconds[int(proc.name)] = sum(times)
        children.setdefault(parent, []).append(int(proc.name))

    def family(pid):
        return seconds.get(pid, 0) + sum(family(child) for child in children.get(pid, ()))
    return sum(family(pid) for pid in pids)


def busy():
    """Seconds that this machine's processors were not idle; stolen ones, too."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(fields[:8]) - fields[3] - fields[4]) / TICKS


class Meter:
    """What groups of processes take between start() and stop(): {name: [pid, ...]}.

    What is taken elsewhere, by the kernel, the bench itself and strangers, is a figure too.
    """

    def __init__(self, groups):
        self.groups = groups

    def _read(self):
        found = {name: processor(*pids) for name, pids in self.groups.items()}
        return {**found, "elsewhere": busy() - sum(found.values())}

    def start(self):
        self.before = self._read()
        return self

    def stop(self, per):
        """Microseconds of processor time for each of `per`: {name_us: number}."""
        return {f"{name}_us": round((after - self.before[name]) * 1e6 / max(per, 1), 1)
                for name, after in self._read().items()}


# -- figures --

def medians(runs):
    """Of runs that have the same figures; what is not a number is the first run's."""
    return {name: statistics.median(run[name] for run in runs)
            if isinstance(value, (int, float)) else value for name, value in runs[0].items()}


def percentile(ordered, part):
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)]


def machine(cluster):
    with cluster.connect() as connection:
        version = connection.execute("SHOW server_version").fetchone()[0]
    return {"postgresql": version, "kernel": platform.release(), "cpus": os.cpu_count(),
            "machine": platform.machine()}


# -- what comes of it --

@dataclass(frozen=True)
class Goal:
    """A figure that is to be at least, or at most, so much."""
    what: str
    is_: float
    least: float = None
    most: float = None

    def is_met(self):
        return (self.least is None or self.is_ >= self.least) and (
            self.most is None or self.is_ <= self.most)

    def __str__(self):
        bound = f"at least {self.least:,.4g}" if self.most is None else f"at most {self.most:,.4g}"
        return f"{'   ' if self.is_met() else 'NOT'} {self.what}: {self.is_:,.4g} ({bound})"


def text(value):
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.2f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)


def table(rows):
    """Print rows, dicts of figures, under the names of their columns."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [columns] + [[text(row.get(name)) for name in columns] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        print("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                        for i, (cell, width) in enumerate(zip(line, widths))), flush=True)


def conclude(path, report, goals):
    """Write the file, print the goals, and exit: 1 if one is missed."""
    report["goals"] = [{**vars(goal), "is_met": goal.is_met()} for goal in goals]
    path.write_text(json.dumps(report, indent=1, default=str) + "\n")
    for goal in goals:
        print(goal)
    sys.exit(0 if all(goal.is_met() for goal in goals) else 1)
