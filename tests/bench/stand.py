"""Where the speed of the whole is measured: PostgreSQL, a receiver, our programs.

All contenders meet the same of each.
"""

import contextlib
import functools
import itertools
import json
import os
import secrets
import select
import socket
import subprocess
import tempfile
from pathlib import Path

from integration.daemons import Cli, Dispatch, Ingest
from integration.postgres import Cluster, Database
from integration.wait import until

from bench.dispatcher import ROOT
from bench.huge_pages import huge_pages
from bench.measure import machine

# What is not PostgreSQL's default is what an operator would set on such a machine.
SERVER = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "shared_buffers": "1GB",
    "max_wal_size": "4GB",
}

CFLAGS = ("-std=c17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror")

NGINX = """
daemon off;
pid nginx.pid;
error_log error.log;
worker_processes {workers};
events {{ worker_connections 16384; multi_accept on; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    client_header_timeout 1h; # until the first, while backlogs are made
    client_body_buffer_size 16k;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{ return 200; }}
        location = /status {{ stub_status; }}
    }}
}}
"""


def build(folder, name, *libraries):
    """A program of this folder's, from its one file."""
    program = Path(folder) / name
    subprocess.run(["cc", *CFLAGS, "-o", program, Path(__file__).with_name(f"{name}.c"),
                    *libraries], check=True)
    return program


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Nginx:
    """Answers 200 to whatever is posted, and counts."""

    def __init__(self, folder, workers=1):
        self.folder = Path(folder) / "nginx"
        self.folder.mkdir()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/hook"
        conf = self.folder / "nginx.conf"
        conf.write_text(NGINX.format(port=self.port, workers=workers))
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig=TERM", "nginx", "-p", self.folder, "-c", conf],
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.connection = until(self._connect, "nginx answers")
        self.asked = 0

    def _connect(self):
        try:
            return socket.create_connection(("127.0.0.1", self.port))
        except ConnectionRefusedError:
            return None

    def count(self):
        """Requests so far, those that ask for it left out."""
        self.connection.sendall(b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.asked += 1
        status = self.connection.recv(4096).decode().split("requests\n")[1]
        return int(status.split()[2]) - self.asked

    @property
    def pid(self):
        return self.process.pid

    def close(self):
        self.connection.close()
        self.process.terminate()
        self.process.wait()


class Endpoint:
    """A receiver that answers after a time, and a publisher: endpoint.c says what it obeys."""

    def __init__(self, folder, delay_ms=0):
        program = build(folder, "endpoint")
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig=KILL", program, str(delay_ms)], text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}/hook"

    @property
    def pid(self):
        return self.process.pid

    def count(self):
        self.process.stdin.write("count\n")
        return int(self.process.stdout.readline())

    def post(self, ingest, key, connections, rate, events):
        """Begin to post; result() waits for what comes of it."""
        self.process.stdin.write(f"post {ingest.port} {key} {connections} {rate} {events}\n")

    def is_posting(self):
        return not select.select([self.process.stdout], [], [], 0)[0]

    def result(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the endpoint gave up")
        return json.loads(line)

    def close(self):
        self.process.kill()
        self.process.communicate()


class Stand:
    """The servers of one benchmark, in a folder that goes with it."""

    def __init__(self, **server):
        os.environ.setdefault("POSTRIDER_BIN", str(ROOT / "build/release/bin"))
        self.cluster = Cluster(**{**SERVER, **server})
        self.numbers = itertools.count(1)

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.folder = Path(stack.enter_context(
                tempfile.TemporaryDirectory(prefix="postrider-bench-")))
            stack.enter_context(self.cluster)
            stack.enter_context(huge_pages(self.cluster))
            self.stack = stack.pop_all()
        self.key_file = self.folder / "secret.key"
        self.key_file.write_text(secrets.token_hex(32) + "\n")
        self.key_file.chmod(0o600)
        return self

    def __exit__(self, *_):
        self.stack.close()

    @functools.cached_property
    def nginx(self):
        return self.stack.enter_context(contextlib.closing(Nginx(self.folder)))

    def describe(self):
        return {"machine": machine(self.cluster), "server": self.cluster.settings}

    def copy(self, template):
        """A copy of a database, in PostgreSQL's cache as if it had just been filled."""
        name = f"bench_{next(self.numbers)}"
        with self.cluster.connect() as connection:
            connection.execute(
                f"CREATE DATABASE {name} TEMPLATE {template.name} STRATEGY file_copy")
        db = Database(self.cluster, name)
        db.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
        db.execute("SELECT pg_prewarm(c.oid) FROM pg_class c JOIN pg_namespace n"
                   " ON n.oid = c.relnamespace WHERE relkind IN ('r', 'i', 't')"
                   " AND nspname !~ '^(pg_catalog|information_schema)'")
        db.execute("CHECKPOINT")
        return db

    def seal(self, db):
        """Make what was loaded ready to be copied."""
        db.execute("VACUUM ANALYZE")
        db.close()
        return db

    def drop(self, template):
        with self.cluster.connect() as connection:
            connection.execute(f"DROP DATABASE {template.name}")

    # -- our programs --

    def settings(self, db):
        return {"database": db.conninfo, "secret_key_file": self.key_file, "log_level": "warn"}

    def install(self):
        """A database with our schema and a tenant; its key for ingest."""
        db = self.cluster.create()
        cli = Cli(self.settings(db))
        cli("migrate")
        cli("tenant", "create", "acme")
        return db, cli.json("key", "create", "--tenant", "acme", "--role", "admin")["key"]

    def ingest(self, db, **own):
        return Ingest(self.folder, {**self.settings(db), **own}).start()

    def dispatch(self, db, **own):
        """Launched; it need not be ready."""
        return Dispatch(self.folder, {**self.settings(db), **own}).launch()


class Stack:
    """Ingest and an endpoint, with a database of their own; dispatchers come and go."""

    def __init__(self, stand):
        self.stand = stand
        self.db, self.key = stand.install()
        self.endpoint = Endpoint(stand.folder)
        # The endpoint has each of its connections for a whole run, much used or seldom.
        self.ingest = stand.ingest(self.db, idle_timeout="1h",
                                   max_requests_per_connection=1_000_000_000)
        self.ingest.api(self.key).subscribe(self.endpoint.url, max_in_flight=1000)

    def dispatch(self, **own):
        return self.stand.dispatch(self.db, **own).wait_ready()

    def post(self, connections, rate, events):
        """Begin to post `rate` events a second, 0: as fast as they are accepted."""
        self.endpoint.post(self.ingest, self.key, connections, rate, events)

    def result(self):
        """Once all have come, what the endpoint says of it."""
        return self.endpoint.result()

    def close(self):
        self.ingest.stop()
        self.endpoint.close()
        self.db.drop()


def wrk(port, seconds, connections, kind, key="", batch=1):
    """Post for some seconds; what post.lua says of it."""
    done = subprocess.run(
        ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s",
         "-s", Path(__file__).with_name("post.lua"), f"http://127.0.0.1:{port}", "--",
         kind, key or "none", str(batch)],
        capture_output=True, text=True, check=True)
    return json.loads(done.stderr)
