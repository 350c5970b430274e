"""What the machine and the parts allow, on the same stand: each of them alone."""

import json
import re
import statistics
import subprocess

from bench.measure import Meter
from bench.stand import build, wrk
from integration.postgres import bindir

# A commit and hardly anything else.
COMMIT = "INSERT INTO bench_commit VALUES (:client_id);\n"

# What no queue can do without: a key to each row, and an id accepted once.
PLAIN_TABLES = """
    CREATE TABLE bench_event (
        event_no  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        tenant_id bigint NOT NULL,
        event_id  text   NOT NULL,
        body      bytea  NOT NULL,
        UNIQUE (tenant_id, event_id)
    );
    CREATE TABLE bench_delivery (
        id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        event_no bigint NOT NULL
    );
"""
PLAIN = r"""
\set n :n + :batch
WITH e AS (
    INSERT INTO bench_event (tenant_id, event_id, body)
    SELECT 1, concat('w', :client_id::integer, '_', :n::bigint + i), :body::bytea
      FROM generate_series(1, :batch::integer) AS g (i)
    RETURNING event_no
)
INSERT INTO bench_delivery (event_no) SELECT event_no FROM e;
"""


def receiver(stand, seconds, connections=64):
    """wrk against the receiver."""
    meter = Meter({"nginx": [stand.nginx.pid]}).start()
    found = wrk(stand.nginx.port, seconds, connections, "bare")
    return {"per_second": found["requests"] / found["seconds"], **meter.stop(found["requests"])}


def senders(stand, seconds, processes=1):
    """libcurl alone against the receiver; each process on one core at most."""
    program = build(stand.folder, "multi", "-lcurl", "-lcrypto")
    meter = Meter({"nginx": [stand.nginx.pid]}).start()
    running = [subprocess.Popen([program, stand.nginx.url, "100", str(seconds)],
                                stdout=subprocess.PIPE) for _ in range(processes)]
    found = [json.loads(one.communicate()[0]) for one in running]
    assert not any(one["failed"] for one in found), found
    requests = sum(one["requests"] for one in found)
    return {"per_second": sum(one["requests"] / one["seconds"] for one in found),
            "sender_us": sum(one["requests"] * one["sender_us"] for one in found) / requests,
            **meter.stop(requests)}


def pgbench(stand, db, text, seconds, clients, **variables):
    """Transactions a second of a script."""
    script = stand.folder / "pgbench.sql"
    script.write_text(text)
    done = subprocess.run(
        [bindir() / "pgbench", "-n", "-M", "prepared", "-f", script, "-c", str(clients),
         "-T", str(seconds), *(f"-D{name}={value}" for name, value in variables.items()),
         db.conninfo], check=True, capture_output=True, text=True)
    return float(re.search(r"tps = ([\d.]+)", done.stdout)[1])


def commits(stand, seconds, clients):
    """pgbench, a row a transaction."""
    db = stand.cluster.create()
    db.execute("CREATE TABLE bench_commit (client integer)")
    rate = pgbench(stand, db, COMMIT, seconds, clients)
    db.drop()
    return {"per_second": rate}


def inserts(stand, seconds, clients, batch):
    """pgbench, `batch` events of 1 KiB a transaction, each with a delivery, into plain tables."""
    db = stand.cluster.create()
    db.execute(PLAIN_TABLES)
    meter = Meter({"postgres": [stand.cluster.process.pid]}).start()
    rate = pgbench(stand, db, PLAIN, seconds, clients, n=10**9, batch=batch, body="x" * 1024)
    cost = meter.stop(db.value("SELECT count(*) FROM bench_delivery"))
    db.drop()
    return {"per_second": rate * batch, **cost, "per_commit": batch}


def chain(stand, rate, events):
    """What cannot be left out between an event and its arrival: ms, the median of some."""
    program = build(stand.folder, "chain", "-lpq")
    db = stand.cluster.create()
    db.execute(PLAIN_TABLES)
    done = subprocess.run([program, db.conninfo, str(rate), str(events)], check=True,
                          stdout=subprocess.PIPE, text=True)
    db.drop()
    return statistics.median(map(float, done.stdout.split()))


def measure(stand, seconds):
    """{what: figures}."""
    return {
        "wrk, 64 connections": receiver(stand, seconds),
        "wrk, 1 connection": receiver(stand, seconds, 1),
        "libcurl": senders(stand, seconds),
        "libcurl x2": senders(stand, seconds, 2),
        "libcurl x8": senders(stand, seconds, 8),
        "commits, 1 client": commits(stand, seconds, 1),
        "commits, 8 clients": commits(stand, seconds, 8),
    }


def in_sequence(found):
    """Most that one asset could get: after each answer a commit, after each commit a request."""
    return 1 / (1 / found["wrk, 1 connection"]["per_second"]
                + 1 / found["commits, 1 client"]["per_second"])
