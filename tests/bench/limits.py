"""What the machine and the parts allow, on the same stand: each of them alone."""

import json
import re
import subprocess

from bench.measure import Meter
from bench.stand import build, wrk
from integration.postgres import bindir

# A commit and hardly anything else.
COMMIT = "INSERT INTO bench_commit VALUES (:client_id);\n"


def receiver(stand, seconds, connections=64):
    """wrk against the receiver."""
    meter = Meter({"nginx": [stand.nginx.pid]}).start()
    found = wrk(stand.nginx.port, seconds, connections, "bare")
    return {"per_second": found["requests"] / found["seconds"], **meter.stop(found["requests"])}


def sender(stand, seconds):
    """libcurl alone against the receiver, on one core."""
    program = build(stand.folder, "multi", "-lcurl", "-lcrypto")
    meter = Meter({"nginx": [stand.nginx.pid]}).start()
    found = json.loads(subprocess.run(
        [program, stand.nginx.url, "100", str(seconds)], check=True, capture_output=True).stdout)
    assert found["failed"] == 0, found
    return {"per_second": found["requests"] / found["seconds"], "sender_us": found["sender_us"],
            **meter.stop(found["requests"])}


def commits(stand, seconds, clients):
    """pgbench, a row a transaction."""
    db = stand.cluster.create()
    db.execute("CREATE TABLE bench_commit (client integer)")
    script = stand.folder / "commit.sql"
    script.write_text(COMMIT)
    done = subprocess.run(
        [bindir() / "pgbench", "-n", "-M", "prepared", "-f", script, "-c", str(clients),
         "-T", str(seconds), db.conninfo], check=True, capture_output=True, text=True)
    db.drop()
    return {"per_second": float(re.search(r"tps = ([\d.]+)", done.stdout)[1])}


def measure(stand, seconds):
    """{what: figures}."""
    return {
        "wrk, 64 connections": receiver(stand, seconds),
        "wrk, 1 connection": receiver(stand, seconds, 1),
        "libcurl": sender(stand, seconds),
        "commits, 1 client": commits(stand, seconds, 1),
        "commits, 8 clients": commits(stand, seconds, 8),
    }


def in_sequence(found):
    """Most that one asset could get: after each answer a commit, after each commit a request."""
    return 1 / (1 / found["wrk, 1 connection"]["per_second"]
                + 1 / found["commits, 1 client"]["per_second"])
