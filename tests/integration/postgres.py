"""A private PostgreSQL server, reached through a Unix socket only."""

import glob
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import psycopg

from .wait import until

SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "huge_pages": "off",  # those that are free are for the benchmarks
    "max_prepared_transactions": "10",
    "log_min_messages": "warning",
    "log_line_prefix": "%m [%p] %d ",
}


def bindir():
    """The newest server's programs; PG_BINDIR names others."""
    if "PG_BINDIR" in os.environ:
        return Path(os.environ["PG_BINDIR"])
    found = glob.glob("/usr/lib/postgresql/*/bin")
    if not found:
        raise FileNotFoundError("no PostgreSQL server: install the package postgresql")
    return Path(max(found, key=lambda path: int(path.split("/")[-2])))


def ordinary_user():
    """Who runs the server when we are root, which it refuses; else None."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            pass
    raise LookupError("root may not run PostgreSQL, and no other user is here")


class Cluster:
    """The server; use it as a context manager.  `settings` add to SETTINGS."""

    def __init__(self, **settings):
        # Not in pytest's folder: that one is closed to the server's user, and
        # its long name may not fit into a socket's address.
        self.dir = Path(tempfile.mkdtemp(prefix="postrider-pg-", dir="/tmp"))
        self.settings = {**SETTINGS, **settings, "unix_socket_directories": str(self.dir)}
        self.data = self.dir / "data"
        self.log = self.dir / "log"
        self.process = None
        self.user = ordinary_user()
        self.numbers = itertools.count(1)
        if self.user:
            os.chown(self.dir, self.user.pw_uid, self.user.pw_gid)

    def __enter__(self):
        try:
            self._initdb()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process:
            self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)

    def _command(self, program, *args):
        """As the server's user; ended by the kernel if we are killed."""
        drop = []
        if self.user:
            drop = [f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}",
                    "--clear-groups"]
        return ["setpriv", "--pdeathsig=QUIT", *drop, str(bindir() / program), *args]

    def _initdb(self):
        command = self._command(
            "initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust",
            "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        done = subprocess.run(command, cwd=self.dir, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"initdb failed:\n{done.stdout}")

    def start(self):
        options = [f"--{name}={value}" for name, value in self.settings.items()]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                self._command("postgres", "-D", str(self.data), *options),
                cwd=self.dir, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(self._answers, "PostgreSQL answers", seconds=60)

    def _answers(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"PostgreSQL ended:\n{self.log.read_text()}")
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, how=signal.SIGQUIT):
        """Stop as a crash does; SIGINT is PostgreSQL's orderly way."""
        self.process.send_signal(how)
        self.process.wait(timeout=60)
        self.process = None

    def conninfo(self, dbname):
        return f"host={self.dir} dbname={dbname} user=postgres"

    def connect(self, dbname="postgres"):
        return psycopg.connect(self.conninfo(dbname), autocommit=True)

    def create(self, template="template0"):
        """A database of a name not used before, as a copy of `template`."""
        name = f"test_{next(self.numbers)}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return Database(self, name)


class Database:
    """One database, with a connection of the test's own."""

    def __init__(self, cluster, name):
        self.cluster = cluster
        self.name = name
        self.conninfo = cluster.conninfo(name)
        self.connection = cluster.connect(name)

    def rows(self, statement, parameters=None):
        """All rows, as tuples."""
        return self.connection.execute(statement, parameters).fetchall()

    def value(self, statement, parameters=None):
        """The first column of the first row; None if there is no row."""
        row = self.connection.execute(statement, parameters).fetchone()
        return row[0] if row else None

    def execute(self, statement, parameters=None):
        self.connection.execute(statement, parameters)

    def close(self):
        """Close the connection, leave the database."""
        self.connection.close()

    def drop(self):
        self.close()
        with self.cluster.connect() as connection:
            connection.execute(f"DROP DATABASE {self.name} WITH (FORCE)")
